//! [`LockStream`]: the locks of one locker, ordered by their first keys.

use super::packs::MergedPacks;
use crate::class::{Class, LockMode};
use crate::key::{Key, UpperBound};

pub(super) enum HeldLock {
    Packed(Key, LockMode),
    Range(Key, UpperBound, Class),
}

impl HeldLock {
    fn lo(&self) -> &Key {
        match self {
            Self::Packed(key, _) | Self::Range(key, ..) => key,
        }
    }
}

/// The locks of one locker, ordered by their first keys.
pub(super) struct LockStream<'a> {
    pub(super) ranges: std::iter::Peekable<std::vec::IntoIter<HeldLock>>,
    pub(super) packed: MergedPacks<'a>,
}

impl LockStream<'_> {
    pub(super) fn is_empty(&mut self) -> bool {
        self.ranges.peek().is_none() && self.packed.peek().is_none()
    }

    pub(super) fn next(&mut self) -> Option<HeldLock> {
        let packed_first = match (self.packed.peek(), self.ranges.peek()) {
            (Some(packed), Some(range)) => packed < range.lo(),
            (packed, _) => packed.is_some(),
        };
        if packed_first {
            return self.packed.next().map(|(key, mode)| HeldLock::Packed(key, mode));
        }
        self.ranges.next()
    }
}
