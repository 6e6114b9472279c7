//! The choice of the filter structure.

/// The structure of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum FilterKind {
    /// No filter.
    None,
    /// Blocked Bloom filter, 10 bits per key, about 1 % false positives, one cache line per query.
    #[default]
    BlockedBloom,
    /// Binary fuse filter, about 9 bits per key, 0.4 % false positives, three cache lines per
    /// query.
    BinaryFuse8,
}
