//! The choice of the filter structure.

/// The structure of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum FilterKind {
    /// No filter.
    None,
    /// Blocked Bloom filter, 10 bits a key, about 1 % false positives, one cache line a query.
    #[default]
    BlockedBloom,
    /// Binary fuse filter, about 9 bits a key, 0.4 % false positives, three cache lines a query.
    BinaryFuse8,
}
