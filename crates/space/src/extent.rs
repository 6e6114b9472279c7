//! [`Extent`], the unit of allocation, and [`Class`], the purpose of an extent.

use frondb_core::limits::PAGE_BYTES;

/// A range of whole pages in one data file. Plain data: the manifest records which run or value
/// owns the extent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Extent {
    /// Number of the data file.
    pub file: u32,
    /// First page; a page has [`PAGE_BYTES`] bytes, so a file has at most 16 TiB.
    pub page: u32,
    /// Number of pages, at least one.
    pub pages: u32,
}

impl Extent {
    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.pages as u64 * PAGE_BYTES as u64
    }

    /// Returns the offset in the data file, in bytes.
    #[inline]
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.page as u64 * PAGE_BYTES as u64
    }

    /// Returns the page after the last one.
    #[inline]
    #[must_use]
    pub const fn end(self) -> u32 {
        self.page + self.pages
    }

    /// Returns the number of pages that `bytes` take.
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

/// The purpose of an extent. It decides where the extent comes from, and how small the parts of a
/// request may be before the file grows instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Class {
    /// Slices of a flush, the output of a merge inside a node, private runs and spools: large,
    /// short-lived sequential writes. Taken from the longest free ranges, so that small gaps remain
    /// for long-lived extents.
    Merge,
    /// The consolidated run of a leaf. It lives long, so it fills the smallest gap that holds it,
    /// low in the file.
    Base,
    /// A value in extents of its own. Placed like a base.
    Blob,
}

impl Class {
    /// Returns the shortest part of a request, in pages, that is taken while a file can still grow.
    pub(crate) const fn part_pages_min(self) -> u32 {
        match self {
            Self::Merge | Self::Base => 64,
            Self::Blob => 16,
        }
    }

    /// Returns whether the extent is written sequentially in one go and soon released.
    pub(crate) const fn is_short_lived(self) -> bool {
        matches!(self, Self::Merge)
    }
}
