//! Blocked Bloom filter: all bits of a hash lie in one 64-byte line.
//!
//! The high half of the hash selects the line. For each probe, the low half is multiplied once
//! more, and the highest nine bits of the product name one of the line's 512 bits.

use frondb_core::mem::Buf;

use crate::format::{HEADER_BYTES, KIND_BLOOM, LINE_BYTES, PROBES_MAX, u32_at, u64_at};

/// Bits per hash. With six probes: about 1 % false positives.
pub(crate) const BITS_PER_HASH: usize = 10;
const PROBES: u8 = 6;

/// Odd and far from a power of two, so that every multiplication changes the high bits.
const STEP: u32 = 0x9e37_79b9;

#[inline]
fn line_of(hash: u64, lines: u32) -> usize {
    ((hash >> 32).wrapping_mul(u64::from(lines)) >> 32) as usize
}

/// Returns `head` zero bytes and then the filter of `hashes`. Duplicates do no harm.
pub(crate) fn build(hashes: &[u64], head: usize) -> Buf {
    let lines = (hashes.len() * BITS_PER_HASH).div_ceil(LINE_BYTES * 8).max(1) as u32;
    let mut buf = Buf::zeroed(head + HEADER_BYTES + lines as usize * LINE_BYTES);
    let out = &mut buf[head..];
    out[0] = KIND_BLOOM;
    out[1] = PROBES;
    out[4..8].copy_from_slice(&lines.to_le_bytes());
    let body = &mut out[HEADER_BYTES..];
    for &hash in hashes {
        let at = line_of(hash, lines) * LINE_BYTES;
        let line = &mut body[at..at + LINE_BYTES];
        let mut bits = hash as u32;
        for _ in 0..PROBES {
            bits = bits.wrapping_mul(STEP);
            let bit = (bits >> 23) as usize;
            line[bit / 8] |= 1 << (bit % 8);
        }
    }
    buf
}

/// The parameters of an open filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bloom {
    lines: u32,
    probes: u8,
}

impl Bloom {
    /// Validates the bytes of a filter.
    pub(crate) fn open(bytes: &[u8]) -> Option<Self> {
        let (probes, lines) = (*bytes.get(1)?, u32_at(bytes, 4)?);
        let reserved_zero = bytes.get(2..4)? == [0, 0] && u64_at(bytes, 8)? == 0;
        let body = bytes.len().checked_sub(HEADER_BYTES)?;
        let sound = reserved_zero
            && (1..=PROBES_MAX).contains(&probes)
            && lines > 0
            && body as u64 == u64::from(lines) * LINE_BYTES as u64;
        sound.then_some(Self { lines, probes })
    }

    /// Returns whether the filter whose bytes are `bytes` may contain `hash`.
    #[inline]
    pub(crate) fn may_contain(self, bytes: &[u8], hash: u64) -> bool {
        let at = HEADER_BYTES + line_of(hash, self.lines) * LINE_BYTES;
        let line = &bytes[at..at + LINE_BYTES];
        let mut bits = hash as u32;
        for _ in 0..self.probes {
            bits = bits.wrapping_mul(STEP);
            let bit = (bits >> 23) as usize;
            if line[bit / 8] >> (bit % 8) & 1 == 0 {
                return false;
            }
        }
        true
    }
}
