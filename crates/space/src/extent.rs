//! [`Extent`], the unit of allocation, and what it is wanted for.

use frondb_core::limits::PAGE_BYTES;

/// A stretch of whole pages in one data file. Plain data: owning it is a matter of the manifest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Extent {
    /// Number of the data file.
    pub file: u32,
    /// First page; a page has [`PAGE_BYTES`] bytes, so a file has at most 16 TiB.
    pub page: u32,
    /// How many pages, at least one.
    pub pages: u32,
}

impl Extent {
    /// Length in bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.pages as u64 * PAGE_BYTES as u64
    }

    /// Where it begins in its file, in bytes.
    #[inline]
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.page as u64 * PAGE_BYTES as u64
    }

    /// The page behind its last one.
    #[inline]
    #[must_use]
    pub const fn end(self) -> u32 {
        self.page + self.pages
    }

    /// How many pages `bytes` take.
    #[inline]
    #[must_use]
    pub const fn pages_for(bytes: u64) -> u64 {
        bytes.div_ceil(PAGE_BYTES as u64)
    }
}

impl std::fmt::Display for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}+{}", self.file, self.page, self.pages)
    }
}

/// What an extent is wanted for. Decides where it comes from and into how small parts a request
/// may be broken before the file grows instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Class {
    /// Slices of a flushed memtable: one large sequential write that does not live long. From the
    /// largest free range, so that the small gaps stay for what lives long.
    Flush,
    /// The output of a merge inside a node. As a flush.
    Merge,
    /// The consolidated run of a leaf: lives long, so it fills the smallest gap that holds it,
    /// low in the file.
    Base,
    /// A value in extents of its own. As a base.
    Blob,
}

impl Class {
    /// A free range of fewer pages than this is not used while the file can grow.
    pub(crate) const fn part_pages_min(self) -> u32 {
        match self {
            Self::Flush => 256,
            Self::Merge | Self::Base => 64,
            Self::Blob => 16,
        }
    }

    /// Whether it is written in one go and soon dead.
    pub(crate) const fn is_short_lived(self) -> bool {
        matches!(self, Self::Flush | Self::Merge)
    }
}
