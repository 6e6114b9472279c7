//! [`PassingFrames`]: verifies frames whose bytes arrive in pieces, for code that copies frames.

use frondb_core::checksum::{Xxh3, xxh3};

use crate::envelope::frame_checksum;
use crate::format::{CHECKSUM_BYTES, FRAME_HEADER_BYTES};

/// Verifies consecutive frames, as in a run, that arrive in pieces of any length. Decodes nothing.
pub struct PassingFrames {
    /// Bytes of the frames that have not arrived yet.
    left: u64,
    /// Offset of the current frame.
    at: u64,
    /// The header of the current frame; `header_len` bytes of it have arrived.
    header: [u8; FRAME_HEADER_BYTES],
    header_len: usize,
    /// Bytes of the current frame's body that have not arrived; valid once the header is complete.
    body_left: u64,
    checksum: Xxh3,
}

/// The offset of a frame that differs from the frame written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DamagedFrame(pub u64);

impl PassingFrames {
    /// Creates a verifier of frames that take `bytes` bytes in all.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self {
            left: bytes,
            at: 0,
            header: [0; FRAME_HEADER_BYTES],
            header_len: 0,
            body_left: 0,
            checksum: Xxh3::new(),
        }
    }

    /// Verifies the next bytes. Bytes after the last frame are ignored.
    ///
    /// # Errors
    /// The first frame that does not match its checksum, or that is longer than the rest of the
    /// bytes that [`new`](Self::new) announced.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), DamagedFrame> {
        while self.left > 0 && !bytes.is_empty() {
            let taken = match self.whole_frame(bytes) {
                Some(length) => self.take_whole(&bytes[..length])?,
                None if self.header_len < FRAME_HEADER_BYTES => self.take_header(bytes)?,
                None => self.take_body(bytes),
            };
            bytes = &bytes[taken..];
            self.left -= taken as u64;
            if self.header_len == FRAME_HEADER_BYTES && self.body_left == 0 {
                self.check(self.checksum.finish(), frame_checksum(&self.header))?;
                self.at += FRAME_HEADER_BYTES as u64 + body_len(&self.header);
                self.header_len = 0;
            }
        }
        Ok(())
    }

    /// Whether all frames have arrived.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        self.left == 0
    }

    fn check(&self, found: u64, expected: u64) -> Result<(), DamagedFrame> {
        if found == expected { Ok(()) } else { Err(DamagedFrame(self.at)) }
    }

    /// Returns the length of the frame at the beginning of `bytes`, if the whole frame is there.
    fn whole_frame(&self, bytes: &[u8]) -> Option<usize> {
        let header = bytes.first_chunk().filter(|_| self.header_len == 0)?;
        let length = FRAME_HEADER_BYTES as u64 + body_len(header);
        let length = usize::try_from(length).ok()?;
        (length <= bytes.len() && length as u64 <= self.left).then_some(length)
    }

    fn take_whole(&mut self, frame: &[u8]) -> Result<usize, DamagedFrame> {
        self.check(xxh3(&frame[CHECKSUM_BYTES..]), frame_checksum(frame))?;
        self.at += frame.len() as u64;
        Ok(frame.len())
    }

    fn take_header(&mut self, bytes: &[u8]) -> Result<usize, DamagedFrame> {
        let wanted = FRAME_HEADER_BYTES - self.header_len;
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let taken = wanted.min(bytes.len()).min(left);
        self.header[self.header_len..][..taken].copy_from_slice(&bytes[..taken]);
        self.header_len += taken;
        if self.header_len == FRAME_HEADER_BYTES {
            self.body_left = body_len(&self.header);
            self.checksum = Xxh3::new();
            self.checksum.update(&self.header[CHECKSUM_BYTES..]);
            if self.body_left > self.left - taken as u64 {
                return Err(DamagedFrame(self.at));
            }
        } else if self.left == taken as u64 {
            return Err(DamagedFrame(self.at));
        }
        Ok(taken)
    }

    fn take_body(&mut self, bytes: &[u8]) -> usize {
        let taken = self.body_left.min(bytes.len() as u64) as usize;
        self.checksum.update(&bytes[..taken]);
        self.body_left -= taken as u64;
        taken
    }
}

/// Number of bytes after the header of a frame.
fn body_len(header: &[u8; FRAME_HEADER_BYTES]) -> u64 {
    let [.., a, b, c, d, _, _, _, _, _, _, _, _] = *header;
    u64::from(u32::from_le_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests {
    use frondb_core::prng::Prng;

    use super::*;
    use crate::{BlockKind, Codec, encode_frame};

    /// Returns some frames, of which the last one is empty, and the offset of each.
    fn frames() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut begins) = (Vec::new(), Vec::new());
        for length in [100, 0, 4000, 27, 28, 1, 60_000, 0] {
            begins.push(bytes.len());
            let raw: Vec<u8> = (0..length).map(|i: u64| (i * i % 251) as u8).collect();
            encode_frame(BlockKind::Data, Codec::Lz4, &raw, &mut bytes).unwrap();
        }
        (bytes, begins)
    }

    /// Passes `bytes` in pieces of random lengths, and zeros after them.
    fn pass(bytes: &[u8], prng: &mut Prng, longest: u64) -> Result<bool, DamagedFrame> {
        let mut frames = PassingFrames::new(bytes.len() as u64);
        let padded: Vec<u8> = bytes.iter().copied().chain([0; 50]).collect();
        let mut rest = &padded[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((1 + prng.below(longest) as usize).min(rest.len()));
            frames.take(piece)?;
            rest = after;
        }
        Ok(frames.are_complete())
    }

    #[test]
    fn written_frames_pass_in_pieces_of_any_length() {
        let (bytes, _) = frames();
        let mut prng = Prng::new(1);
        for longest in [1, 7, 29, 500, 5000, 1 << 20] {
            for _ in 0..20 {
                assert_eq!(pass(&bytes, &mut prng, longest), Ok(true), "{longest}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_found_in_its_frame() {
        let (good, begins) = frames();
        let mut prng = Prng::new(2);
        for _ in 0..2000 {
            let bit = prng.below(good.len() as u64 * 8) as usize;
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let frame = begins.iter().rev().find(|begin| **begin <= bit / 8).unwrap();
            let longest = [30, 1 << 20][bit % 2];
            assert_eq!(pass(&bytes, &mut prng, longest), Err(DamagedFrame(*frame as u64)), "{bit}");
        }
    }

    #[test]
    fn frames_that_do_not_end_where_they_should_are_damaged() {
        let (bytes, _) = frames();
        let mut prng = Prng::new(3);
        for cut in [1, 10, 27, 29, 60] {
            assert!(pass(&bytes[..bytes.len() - cut], &mut prng, 1000) != Ok(true), "{cut}");
        }
    }
}
