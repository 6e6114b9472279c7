//! How a walk skips the ranges that are known to be empty, and what it finds to be empty itself: in
//! the tree ([`crate::tombstones`]), and in the tree together with the reader's own writes
//! ([`OwnEmptyRanges`]).

use frondb_core::{Direction, SeqNo};
use frondb_writeset::{FoundEmpty, OwnEmptyRanges, OwnWrites, Seen};

use super::walk::{Scope, Walk};
use crate::tombstones::{Around, GROWTH_MIN};

/// A walk that begins in a range of the tree, then in one of the transaction, and so on, looks at most
/// so often for the next one.
const LOOKS_MAX: usize = 4;

/// How a walk from `at` skips what is known to be empty.
pub(super) fn around(scope: &Scope, direction: Direction, at: Option<&[u8]>) -> Around {
    let seq = scope.snapshot.seq();
    let may_skip = |lo: &[u8], hi: Option<&[u8]>| scope.writes().all(|own| own.is_empty_in(lo, hi));
    let of_tree = |at: Option<&[u8]>| scope.tree.empty_ranges.around(direction, at, seq, &may_skip);
    let Some((own, seen)) = own_ranges(scope) else { return of_tree(at) };
    let same = |lo: &[u8], hi: Option<&[u8]>, then: SeqNo| sees_same(scope, lo, hi, then);
    let mut begins = None;
    for _ in 0..LOOKS_MAX {
        let from = begins.as_deref().or(at);
        let tree = of_tree(from);
        let mine = own.around(direction, tree.at.as_deref().or(from), seen, &same);
        if mine.at.is_some() {
            begins = mine.at;
            continue;
        }
        let at = tree.at.or(begins);
        return match direction {
            Direction::Forward => Around { at, lo: None, hi: nearer(tree.hi, mine.end, Ord::min) },
            Direction::Backward => Around { at, lo: nearer(tree.lo, mine.end, Ord::max), hi: None },
        };
    }
    Around { at: begins, ..Around::default() }
}

fn nearer<K>(a: Option<K>, b: Option<K>, choose: fn(K, K) -> K) -> Option<K> {
    match (a, b) {
        (Some(a), Some(b)) => Some(choose(a, b)),
        (a, b) => a.or(b),
    }
}

/// The ranges of the reader's transaction. An overlay shows rows that they do not know of.
fn own_ranges(scope: &Scope) -> Option<(&OwnEmptyRanges, Seen)> {
    let own = scope.own.as_ref().filter(|_| scope.overlay.is_none())?;
    own.empty_ranges(scope.snapshot.seq())
}

/// Whether a range in which a reader of the snapshot `then` has found no committed entry but those
/// that its own writes delete has none for this reader either.
fn sees_same(scope: &Scope, lo: &[u8], hi: Option<&[u8]>, then: SeqNo) -> bool {
    let now = scope.snapshot.seq();
    if scope.tree.newest_commit() <= then.min(now) {
        return true;
    }
    // Commits between the two may have deleted entries, which an older reader still sees.
    then <= now && !scope.tree.empty_ranges.may_have_put(lo, hi, then)
}

impl Walk {
    /// Records that there is no entry before the one that the first step of the walk has `found`, or
    /// none in the walk, if the step has passed several deletes. A walk that has found none counts
    /// for as many, because opening it again costs more than passing them.
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
        // What an own range delete hides does not count as own.
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

    /// The part of the walk without an entry. It reaches no further than the deletes, so that puts
    /// beyond them do not cut it.
    fn empty_part(&self, found: bool) -> Option<EmptyPart> {
        let first = self.merge.first_passed();
        let here = if found { self.merge.key() } else { b"" };
        // The walk reaches to the beginning or the end of the tree.
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

/// A range `[lo, hi)` without an entry, and whether nothing comes before it or after it in the tree.
struct EmptyPart {
    lo: Vec<u8>,
    hi: Vec<u8>,
    is_first: bool,
    is_last: bool,
}

/// The smallest key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
