//! How a walk reports a range that it found empty: to the tree ([`crate::tombstones`]), or to the
//! reader's transaction if the range is empty because of the transaction's own writes
//! ([`OwnEmptyRanges`](frondb_writeset::OwnEmptyRanges)).

use frondb_core::{Direction, SeqNo};
use frondb_writeset::{FoundEmpty, OwnWrites};

use super::around::{own_ranges, sees_same};
use super::scope::Scope;
use super::walk::Walk;
use crate::tombstones::GROWTH_MIN;

impl Walk {
    /// Reports the empty range that the first step of the walk has crossed, if that step passed at
    /// least `GROWTH_MIN` deletes. `found` says whether the step reached an entry. If not, a single
    /// delete, or a known-empty range that the walk skipped at its beginning, suffices for a report
    /// and counts as `GROWTH_MIN` deletes: to open the walk again would cost more than to pass so
    /// many deletes.
    pub(super) fn note_empty(&self, scope: &Scope, found: bool) {
        let stats = self.merge.stats();
        let passed = stats.deletes_passed + stats.own_deletes_passed;
        let is_in_vain = !found && (passed > 0 || self.begins_after_empty);
        if (passed >= GROWTH_MIN || is_in_vain) && !scope.is_probe {
            self.note_passed(scope, found, passed.max(GROWTH_MIN));
        }
    }

    #[cold]
    fn note_passed(&self, scope: &Scope, found: bool, deletes: u64) {
        let Some(part) = self.empty_part(found) else { return };
        let EmptyPart { lo, hi, is_first, is_last } = &part;
        let seq = scope.snapshot.seq();
        let has_own = scope.writes().next().is_some();
        // The merge does not count rows in a known-empty range of the transaction that the walk has
        // skipped, and `is_empty_in` does not see range deletes.
        let are_own =
            |own: &OwnWrites| !own.range_deletes().is_empty() || !own.is_empty_in(lo, Some(hi));
        if !has_own || self.merge.stats().own_deletes_passed == 0 && !scope.writes().any(are_own) {
            let (is_first, is_last) = (*is_first && !has_own, *is_last && !has_own);
            let found = FoundEmpty { lo, hi, is_first, is_last, deletes };
            scope.tree.empty_ranges.found(found, seq);
        } else if let Some((own, seen)) = own_ranges(scope) {
            let same = |lo: &[u8], hi: Option<&[u8]>, then: SeqNo| sees_same(scope, lo, hi, then);
            let (is_first, is_last) = (*is_first, *is_last);
            own.found(FoundEmpty { lo, hi, is_first, is_last, deletes }, seen, &same);
        }
    }

    /// Returns the part of the walk's range in which the first step found no entry. At an end of
    /// the tree the part ends at the outermost delete, so that a later put beyond that delete does
    /// not cut the range.
    fn empty_part(&self, found: bool) -> Option<EmptyPart> {
        let first = self.merge.first_passed();
        let here = if found { self.merge.key() } else { b"" };
        // Whether the walk reaches the beginning or the end of the tree.
        let (at_first, at_last) = (self.lo.is_empty(), self.hi.is_none());
        Some(match self.direction {
            Direction::Forward => EmptyPart {
                lo: first.filter(|_| at_first).unwrap_or(&self.lo).to_vec(),
                hi: match &self.hi {
                    _ if found => here.to_vec(),
                    Some(hi) => hi.to_vec(),
                    None => after(self.merge.end_key()?),
                },
                is_first: at_first,
                is_last: at_last && !found,
            },
            Direction::Backward => EmptyPart {
                lo: match found {
                    true => after(here),
                    false if at_first => self.merge.end_key()?.to_vec(),
                    false => self.lo.to_vec(),
                },
                hi: match &self.hi {
                    Some(hi) => hi.to_vec(),
                    None => after(first?),
                },
                is_first: at_first && !found,
                is_last: at_last,
            },
        })
    }
}

/// A range `[lo, hi)` without an entry. `is_first` says whether there is no entry below `lo`
/// either, `is_last` whether there is none from `hi` on.
struct EmptyPart {
    lo: Vec<u8>,
    hi: Vec<u8>,
    is_first: bool,
    is_last: bool,
}

/// Returns the smallest key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
