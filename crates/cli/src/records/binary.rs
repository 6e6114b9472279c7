//! Writes and reads binary dumps; [`format`](super::format) describes their bytes.
//!
//! The reader trusts nothing: it checks lengths before it allocates memory, and a payload's
//! checksum before it decodes the payload.

use std::io::{Read, Write};

use xxhash_rust::xxh3::xxh3_64;

use super::format::{
    FRAME_BYTES, FRAME_HEAD_BYTES, FrameHead, HEADER_BYTES, PAYLOAD_BYTES_MAX, check_header,
    header, put_entry, take_entry,
};
use super::record::{Entry, Layout, RecordReader, RecordWriter};
use crate::failure::Failure;

/// Writes a dump.
pub(crate) struct BinaryWriter<W> {
    out: W,
    payload: Vec<u8>,
    count: u32,
    total: u64,
}

impl<W: Write> BinaryWriter<W> {
    /// Begins a dump with its header.
    pub(crate) fn new(mut out: W) -> Result<Self, Failure> {
        out.write_all(&header())?;
        Ok(Self { out, payload: Vec::with_capacity(FRAME_BYTES * 2), count: 0, total: 0 })
    }

    fn close_frame(&mut self) -> Result<(), Failure> {
        let bytes = u32::try_from(self.payload.len())
            .map_err(|_| Failure::usage("an entry over 4 GiB cannot be dumped"))?;
        let head = FrameHead { bytes, count: self.count, check: xxh3_64(&self.payload) };
        self.out.write_all(&head.encode())?;
        self.out.write_all(&self.payload)?;
        self.payload.clear();
        self.count = 0;
        Ok(())
    }
}

impl<W: Write> RecordWriter for BinaryWriter<W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        put_entry(&mut self.payload, key, value)
            .ok_or_else(|| Failure::usage("an entry over 4 GiB cannot be dumped"))?;
        self.count += 1;
        self.total += 1;
        if self.payload.len() >= FRAME_BYTES { self.close_frame() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if self.count > 0 {
            self.close_frame()?;
        }
        let last = FrameHead { bytes: 0, count: 0, check: self.total };
        self.out.write_all(&last.encode())?;
        Ok(self.out.flush()?)
    }
}

/// Reads a dump.
pub(crate) struct BinaryReader<R> {
    input: R,
    payload: Vec<u8>,
    /// Offset of the next entry in `payload`.
    at: usize,
    /// Number of entries of the payload that were not returned yet.
    left: u32,
    total: u64,
    ended: bool,
}

impl<R: Read> BinaryReader<R> {
    /// Reads and checks the header.
    pub(crate) fn new(mut input: R) -> Result<Self, Failure> {
        let mut header = [0; HEADER_BYTES];
        let (first, rest) = header.split_at_mut(1);
        if input.read(first)? == 0 {
            return Err(Failure::input("the input is empty"));
        }
        read_exact(&mut input, rest)?;
        check_header(&header)?;
        Ok(Self { input, payload: Vec::new(), at: 0, left: 0, total: 0, ended: false })
    }

    /// Loads the next frame; `false` at the end of the dump.
    fn next_frame(&mut self) -> Result<bool, Failure> {
        if self.at != self.payload.len() {
            return Err(Failure::input("a frame of the dump has more bytes than its entries"));
        }
        let mut head = [0; FRAME_HEAD_BYTES];
        read_exact(&mut self.input, &mut head)?;
        let head = FrameHead::decode(&head);
        if head.bytes == 0 {
            self.ended = true;
            return self.check_end(head);
        }
        let bytes = head.bytes as usize;
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(Failure::input(format!("a frame of the dump claims {bytes} bytes")));
        }
        self.payload.clear();
        // The buffer grows with the input, so that a wrong length in the head does not allocate the
        // largest payload.
        let read = (&mut self.input).take(bytes as u64).read_to_end(&mut self.payload)?;
        if read != bytes {
            return Err(cut_short());
        }
        if xxh3_64(&self.payload) != head.check {
            return Err(Failure::input("a frame of the dump does not match its checksum"));
        }
        self.at = 0;
        self.left = head.count;
        Ok(true)
    }

    /// Checks that the number of entries in the last frame is right, and that nothing follows the
    /// frame.
    fn check_end(&mut self, head: FrameHead) -> Result<bool, Failure> {
        if head.count != 0 || head.check != self.total {
            return Err(Failure::input(format!(
                "the dump should have {} entries, but has {}",
                head.check, self.total
            )));
        }
        if (&mut self.input).take(1).read_to_end(&mut self.payload)? > 0 {
            return Err(Failure::input("the dump has bytes after its end"));
        }
        Ok(false)
    }
}

impl<R: Read> RecordReader for BinaryReader<R> {
    fn layout(&self) -> Layout {
        Layout { format: "binary", ..Layout::default() }
    }

    fn next(&mut self) -> Result<Option<Entry>, Failure> {
        while self.left == 0 {
            if self.ended || !self.next_frame()? {
                return Ok(None);
            }
        }
        let mut rest = self.payload.get(self.at..).unwrap_or_default();
        let (key, value) = take_entry(&mut rest)
            .ok_or_else(|| Failure::input("an entry of the dump extends beyond its frame"))?;
        let entry = (key.to_vec(), value.to_vec());
        self.at = self.payload.len() - rest.len();
        self.left -= 1;
        self.total += 1;
        Ok(Some(entry))
    }
}

fn cut_short() -> Failure {
    Failure::input("the dump is cut short")
}

fn read_exact(input: &mut impl Read, buffer: &mut [u8]) -> Result<(), Failure> {
    input.read_exact(buffer).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => cut_short(),
        _ => Failure::from(e),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = BinaryWriter::new(&mut bytes).unwrap();
        for (key, value) in entries {
            writer.write(key, value).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    fn load(bytes: &[u8]) -> Result<Vec<Entry>, Failure> {
        let mut reader = BinaryReader::new(bytes)?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.next()? {
            entries.push(entry);
        }
        Ok(entries)
    }

    #[test]
    fn the_worked_example_has_these_bytes() {
        let mut expected = b"FRONDUMP\x01\0\0\0\0\0\0\0\x0b\0\0\0\x01\0\0\0".to_vec();
        let payload = b"\x01\0\0\0\x02\0\0\0abc";
        expected.extend_from_slice(&xxh3_64(payload).to_le_bytes());
        expected.extend_from_slice(payload);
        expected.extend_from_slice(b"\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0");
        assert_eq!(dump(&[(b"a", b"bc")]), expected);
    }

    #[test]
    fn entries_of_all_sizes_come_back() {
        let large = vec![7; FRAME_BYTES + 1];
        let entries: [(&[u8], &[u8]); 4] =
            [(b"", b""), (b"a", &large), (b"b", b""), (&large[..100], b"x")];
        let loaded = load(&dump(&entries)).unwrap();
        assert_eq!(loaded.len(), 4);
        for (loaded, entry) in loaded.iter().zip(entries) {
            assert_eq!((&loaded.0[..], &loaded.1[..]), entry);
        }
        assert_eq!(load(&dump(&[])).unwrap(), []);
    }

    #[test]
    fn bytes_after_the_end_are_found() {
        let mut bytes = dump(&[(b"key", b"value")]);
        bytes.push(0);
        assert!(load(&bytes).unwrap_err().message.contains("after its end"));
        // Two dumps in one file: the second must not be ignored silently.
        let twice = dump(&[(b"key", b"value")]).repeat(2);
        assert!(load(&twice).is_err());
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_found() {
        let bytes = dump(&[(b"key", b"value"), (b"k2", b"")]);
        for cut in 0..bytes.len() {
            assert!(load(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut broken = bytes.clone();
                broken[at] ^= 1 << bit;
                assert!(load(&broken).is_err(), "bit {bit} of byte {at}");
            }
        }
    }
}
