//! A cursor over several sets of range deletes, for readers of neighbouring keys.

use super::RangeDeletes;
use crate::SeqNo;

/// Follows the keys of a merge through several sets: ascending or descending keys cost one
/// comparison per set and an occasional step. Lookups in any other order also work; each takes one
/// step for every fragment between the last key and the new one.
#[derive(Clone, Debug, Default)]
pub struct RangeDeleteCursor {
    positions: Vec<SetPosition>,
}

/// A position in one non-empty set.
#[derive(Clone, Debug)]
struct SetPosition {
    set: RangeDeletes,
    /// Number of fragments that begin at or before the last key; `None` before the first lookup.
    passed: Option<usize>,
}

impl RangeDeleteCursor {
    /// A cursor over the deletes of all `sets`.
    #[must_use]
    pub fn new(sets: impl IntoIterator<Item = RangeDeletes>) -> Self {
        let sets = sets.into_iter().filter(|set| !set.is_empty());
        Self { positions: sets.map(|set| SetPosition { set, passed: None }).collect() }
    }

    /// Whether no set has a delete, so that lookups are unnecessary.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Forgets the position: the next key may be far from the last one.
    pub fn reset(&mut self) {
        for position in &mut self.positions {
            position.passed = None;
        }
    }

    /// The newest delete that covers `key` and is visible at `snapshot`; 0 if there is none.
    #[inline]
    pub fn newest_covering(&mut self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let newest =
            self.positions.iter_mut().map(|position| position.newest_covering(key, snapshot));
        newest.max().unwrap_or(SeqNo(0))
    }

    /// Whether a message of `key` at `seq` is hidden from a reader at `snapshot`.
    #[inline]
    pub fn hides(&mut self, key: &[u8], seq: SeqNo, snapshot: SeqNo) -> bool {
        seq < self.newest_covering(key, snapshot)
    }
}

impl SetPosition {
    #[inline]
    fn newest_covering(&mut self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let Some(inner) = &self.set.0 else { return SeqNo(0) };
        let mut passed = match self.passed {
            Some(passed) => passed,
            // A merge may begin anywhere, so its first fragment is found by a search.
            None => inner.fragment_of(key).map_or(0, |fragment| fragment + 1),
        };
        while inner.points.get(passed).is_some_and(|point| **point <= *key) {
            passed += 1;
        }
        while passed > 0 && *inner.points[passed - 1] > *key {
            passed -= 1;
        }
        self.passed = Some(passed);
        inner.newest(passed.checked_sub(1), snapshot)
    }
}
