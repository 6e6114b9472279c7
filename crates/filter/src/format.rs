//! Every byte of a filter. All integers are little-endian. The bytes are the payload of a filter
//! block, whose frame adds the checksum.
//!
//! Blocked Bloom filter, 16 bytes and the lines:
//!
//! ```text
//!  0  u8   kind       1
//!  1  u8   probes     bits set for each hash, 1 to 16
//!  2  u16  0
//!  4  u32  lines      at least 1
//!  8  u64  0
//! 16       lines x 64 bytes
//! ```
//!
//! Binary fuse filter with 8-bit fingerprints, 16 bytes, then partitions. The highest bits of a
//! hash name its partition. Each partition is a filter of its own, so that building one takes
//! little memory however large the run is.
//!
//! ```text
//!  0  u8   kind       2
//!  1  u8   bits       2^bits partitions, 0 to 24
//!  2  u16  0
//!  4  u32  0
//!  8  u64  0
//! 16       partitions x 24 bytes:
//!            u64  seed
//!            u32  segment length        a power of two; 0 if the partition is empty
//!            u32  segments' length      of all segments in which the first place of a hash can be
//!            u64  offset                of its fingerprints after the table
//!          fingerprints of all partitions: segments' length + 2 x segment length bytes each
//! ```

/// Kind byte of a blocked Bloom filter.
pub(crate) const KIND_BLOOM: u8 = 1;
/// Kind byte of a binary fuse filter.
pub(crate) const KIND_FUSE: u8 = 2;

/// Bytes of either header.
pub(crate) const HEADER_BYTES: usize = 16;

/// Bytes of a Bloom line: one cache line, so that a query makes one memory access.
pub(crate) const LINE_BYTES: usize = 64;

/// Maximum number of probes that a Bloom filter may use.
pub(crate) const PROBES_MAX: u8 = 16;

/// Bytes of an entry in the partition table.
pub(crate) const PARTITION_BYTES: usize = 24;

/// Maximum number of partition bits.
pub(crate) const PARTITION_BITS_MAX: u8 = 24;

/// Returns the little-endian u32 at `at`, if it is there.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the little-endian u64 at `at`, if it is there.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
