//! [`RangeDeleteCursor`]: lookups in several sets of range deletes, for readers of neighbouring
//! keys.

use super::RangeDeletes;
use crate::SeqNo;

/// Looks up the keys of a merge in several sets. For ascending or descending keys, a lookup costs
/// two comparisons per set and sometimes a step to the next fragment. For keys in another order, a
/// lookup takes one step for every fragment between the last key and the new one.
#[derive(Clone, Debug, Default)]
pub struct RangeDeleteCursor {
    positions: Vec<SetPosition>,
}

/// A position in one non-empty set.
#[derive(Clone, Debug)]
struct SetPosition {
    set: RangeDeletes,
    /// Number of fragments that begin at or before the last key; `None` before the first lookup and
    /// after a reset.
    passed: Option<usize>,
}

impl RangeDeleteCursor {
    /// Creates a cursor over the deletes of all `sets`.
    #[must_use]
    pub fn new(sets: impl IntoIterator<Item = RangeDeletes>) -> Self {
        let sets = sets.into_iter().filter(|set| !set.is_empty());
        Self { positions: sets.map(|set| SetPosition { set, passed: None }).collect() }
    }

    /// Whether no set has a delete. Then lookups are unnecessary.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Forgets the position, so that the next lookup searches. For a caller whose next key may be
    /// far from the last one.
    pub fn reset(&mut self) {
        for position in &mut self.positions {
            position.passed = None;
        }
    }

    /// Returns the SeqNo of the newest delete that covers `key` and is visible at `snapshot`; 0 if
    /// there is none.
    #[inline]
    pub fn newest_covering(&mut self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let newest =
            self.positions.iter_mut().map(|position| position.newest_covering(key, snapshot));
        newest.max().unwrap_or(SeqNo(0))
    }

    /// Whether a message of `key` with SeqNo `seq` is hidden from a reader at `snapshot`.
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
            // A merge may begin at any key, so search for the first fragment.
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
