//! Binary fuse filter with 8-bit fingerprints (Graf and Lemire, 2022), in partitions.
//!
//! A hash names three places, one in each of three neighbouring segments; the XOR of their bytes is
//! its fingerprint. Peeling (crate xorf) finds bytes for which this holds for all hashes. The query
//! is written out here because its arithmetic is part of the format.

use frondb_core::mem::{Array, Buf};
use xorf::BinaryFuse8;

use crate::format::{HEADER_BYTES, KIND_FUSE, PARTITION_BITS_MAX, PARTITION_BYTES, u32_at, u64_at};

/// Target number of hashes per partition.
const PARTITION_HASHES: usize = 128 * 1024;

/// Returns the partition of `hash` among `2^bits`.
#[inline]
fn partition_of(hash: u64, bits: u8) -> usize {
    // Two shifts, because a shift by 64 bits is not defined.
    (hash >> 1 >> (63 - u32::from(bits))) as usize
}

/// Returns `head` zero bytes and then the filter of `hashes`. Sorts and deduplicates `hashes`.
/// `None` if no filter was found, which takes an improbable series of failures.
pub(crate) fn build(hashes: &mut Array<u64>, head: usize) -> Option<Buf> {
    let partitions = hashes.len().div_ceil(PARTITION_HASHES).next_power_of_two();
    let bits = (partitions.trailing_zeros() as u8).min(PARTITION_BITS_MAX);
    // Sorting groups the partitions and removes duplicates, which cannot be peeled.
    hashes.sort_unstable();
    hashes.dedup();
    let mut filters = Vec::with_capacity(1 << bits);
    let mut rest = &hashes[..];
    for partition in 0..1usize << bits {
        let count = rest.partition_point(|&hash| partition_of(hash, bits) == partition);
        let (these, others) = rest.split_at(count);
        rest = others;
        if !these.is_empty() {
            filters.push((partition, BinaryFuse8::try_from(these).ok()?));
        }
    }
    let fingerprints: usize = filters.iter().map(|(_, filter)| filter.fingerprints.len()).sum();
    let body_at = head + HEADER_BYTES + (PARTITION_BYTES << bits);
    let mut out = Buf::zeroed(body_at + fingerprints);
    out[head] = KIND_FUSE;
    out[head + 1] = bits;
    let mut end = body_at;
    for (partition, filter) in filters {
        let at = head + HEADER_BYTES + partition * PARTITION_BYTES;
        let entry = &mut out[at..at + PARTITION_BYTES];
        entry[..8].copy_from_slice(&filter.descriptor.seed.to_le_bytes());
        entry[8..12].copy_from_slice(&filter.descriptor.segment_length.to_le_bytes());
        entry[12..16].copy_from_slice(&filter.descriptor.segment_count_length.to_le_bytes());
        entry[16..24].copy_from_slice(&((end - body_at) as u64).to_le_bytes());
        let begin = end;
        end += filter.fingerprints.len();
        out[begin..end].copy_from_slice(&filter.fingerprints);
    }
    Some(out)
}

/// The parameters of an open filter.
#[derive(Clone, Debug)]
pub(crate) struct Fuse {
    bits: u8,
    partitions: Box<[Partition]>,
}

#[derive(Clone, Copy, Debug)]
struct Partition {
    seed: u64,
    segment_length: u32,
    segments_length: u32,
    /// Offset of the fingerprints in the filter's bytes.
    at: usize,
}

impl Fuse {
    /// Validates the bytes of a filter.
    pub(crate) fn open(bytes: &[u8]) -> Option<Self> {
        let bits = *bytes.get(1)?;
        let reserved_zero = bytes.get(2..HEADER_BYTES)?.iter().all(|&byte| byte == 0);
        if bits > PARTITION_BITS_MAX || !reserved_zero {
            return None;
        }
        let body_at = HEADER_BYTES + (PARTITION_BYTES << bits);
        if body_at > bytes.len() {
            return None;
        }
        let partitions =
            (0..1 << bits).map(|i| Partition::open(bytes, i, body_at)).collect::<Option<_>>()?;
        Some(Self { bits, partitions })
    }

    /// Returns whether the filter whose bytes are `bytes` may contain `hash`.
    #[inline]
    pub(crate) fn may_contain(&self, bytes: &[u8], hash: u64) -> bool {
        let partition = &self.partitions[partition_of(hash, self.bits)];
        if partition.segment_length == 0 {
            return false;
        }
        let hash = mix(hash.wrapping_add(partition.seed));
        let mask = partition.segment_length - 1;
        let spread = u128::from(hash) * u128::from(partition.segments_length);
        let first = (spread >> 64) as u32;
        let second = (first + partition.segment_length) ^ ((hash >> 18) as u32 & mask);
        let third = (first + 2 * partition.segment_length) ^ (hash as u32 & mask);
        let fingerprints = &bytes[partition.at..];
        let found = fingerprints[first as usize]
            ^ fingerprints[second as usize]
            ^ fingerprints[third as usize];
        found == (hash ^ (hash >> 32)) as u8
    }

    /// Returns the number of bytes of memory in addition to the filter's own bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.partitions)
    }
}

impl Partition {
    fn open(bytes: &[u8], index: usize, body_at: usize) -> Option<Self> {
        let entry = HEADER_BYTES + index * PARTITION_BYTES;
        let segment_length = u32_at(bytes, entry + 8)?;
        let segments_length = u32_at(bytes, entry + 12)?;
        let offset = usize::try_from(u64_at(bytes, entry + 16)?).ok()?;
        let at = body_at.checked_add(offset)?;
        if segment_length == 0 {
            let empty = Self { seed: 0, segment_length: 0, segments_length: 0, at: body_at };
            return (segments_length == 0 && offset == 0).then_some(empty);
        }
        // XOR with a masked number keeps a place inside its segment only if every segment begins
        // at a multiple of the segment length, which is a power of two.
        let aligned = segment_length.is_power_of_two() && segments_length % segment_length == 0;
        let len = u64::from(segments_length) + 2 * u64::from(segment_length);
        let end = (at as u64).checked_add(len)?;
        let sound = aligned
            && segments_length > 0
            && len <= u64::from(u32::MAX)
            && end <= bytes.len() as u64;
        let seed = u64_at(bytes, entry)?;
        sound.then_some(Self { seed, segment_length, segments_length, at })
    }
}

/// Mixes the bits of `k`: the finalizer of MurmurHash3.
#[inline]
fn mix(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}
