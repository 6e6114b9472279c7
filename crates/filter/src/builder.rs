//! Collecting the hashes of a run.

use crate::kind::FilterKind;
use crate::{bloom, fuse};

/// Collects hashes and makes a filter of them. Takes eight bytes a distinct neighbour.
#[derive(Debug)]
pub struct FilterBuilder {
    kind: FilterKind,
    hashes: Vec<u64>,
}

impl FilterBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new(kind: FilterKind) -> Self {
        Self { kind, hashes: Vec::new() }
    }

    /// Adds a hash. One that equals the hash before it (another version of the key, another key
    /// with the prefix) is left out, so that filters are sized by what they tell apart.
    #[inline]
    pub fn push(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Hashes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Memory it takes, bytes: what it has touched of the room it has.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.hashes.len() * size_of::<u64>()
    }

    /// The filter's bytes; empty for [`FilterKind::None`].
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        match self.kind {
            FilterKind::None => Vec::new(),
            FilterKind::BlockedBloom => bloom::build(&self.hashes),
            FilterKind::BinaryFuse8 => {
                fuse::build(&mut self.hashes).unwrap_or_else(|| bloom::build(&self.hashes))
            }
        }
    }
}
