//! Collects the hashes of a run.
//!
//! ```text
//!   push --> | segment | segment | segment |   --> finish: one array, partitions of it, the filter
//! ```
//!
//! Segments avoid copying while the collection grows.

use frondb_core::mem::{Array, Buf};

use crate::kind::FilterKind;
use crate::{bloom, fuse};

/// Hashes per segment.
const SEGMENT_HASHES: usize = 8 * 1024;

/// Collects hashes and builds a filter from them. Memory: eight bytes per hash.
#[derive(Debug)]
pub struct FilterBuilder {
    kind: FilterKind,
    /// All segments but the last are full.
    segments: Vec<Array<u64>>,
    last: Option<u64>,
}

impl FilterBuilder {
    /// Creates an empty builder.
    #[must_use]
    pub fn new(kind: FilterKind) -> Self {
        Self { kind, segments: Vec::new(), last: None }
    }

    /// Adds a hash. A hash equal to the previous one (another version of the key, or another key
    /// with the same prefix) is skipped, so that filters are sized by distinct hashes.
    #[inline]
    pub fn push(&mut self, hash: u64) {
        if self.last != Some(hash) {
            self.last = Some(hash);
            match self.segments.last_mut() {
                Some(segment) if !segment.is_full() => segment.push(hash),
                _ => self.push_segment(hash),
            }
        }
    }

    #[cold]
    fn push_segment(&mut self, hash: u64) {
        let mut segment = Array::with_capacity(SEGMENT_HASHES);
        segment.push(hash);
        self.segments.push(segment);
    }

    /// Returns the number of hashes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        let full = self.segments.len().saturating_sub(1) * SEGMENT_HASHES;
        full + self.segments.last().map_or(0, |segment| segment.len())
    }

    /// Returns whether there are no hashes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the filter's bytes; empty for [`FilterKind::None`].
    #[must_use]
    pub fn finish(self) -> Buf {
        self.finish_behind(0)
    }

    /// Returns `head` zero bytes, which the caller fills in, and then the filter's bytes.
    #[must_use]
    pub fn finish_behind(self, head: usize) -> Buf {
        let mut hashes = Array::with_capacity(self.len());
        // Each segment is freed once it is copied, so that the hashes never take twice their
        // memory.
        self.segments.into_iter().for_each(|segment| hashes.extend_from_slice(&segment));
        match self.kind {
            FilterKind::None => Buf::zeroed(head),
            FilterKind::BlockedBloom => bloom::build(&hashes, head),
            FilterKind::BinaryFuse8 => {
                fuse::build(&mut hashes, head).unwrap_or_else(|| bloom::build(&hashes, head))
            }
        }
    }
}
