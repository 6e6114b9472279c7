//! How a walk skips known-empty ranges: the ranges of the tree ([`crate::tombstones`]), and the
//! ranges that are empty because of the reader's own writes ([`OwnEmptyRanges`]).

use frondb_core::{Direction, SeqNo};
use frondb_writeset::{OwnEmptyRanges, Seen};

use super::scope::Scope;
use crate::tombstones::Around;

/// Maximum number of rounds. A round skips a known-empty range of the tree, then one of the
/// transaction. Another round is necessary if the walk would then begin in another range of the
/// tree.
const LOOKS_MAX: usize = 4;

/// Returns where a walk from `at` begins and ends, so that it skips known-empty ranges.
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

/// Returns the known-empty ranges of the reader's transaction; `None` if it has none, or with an
/// overlay, because the ranges may contain rows of the overlay.
pub(super) fn own_ranges(scope: &Scope) -> Option<(&OwnEmptyRanges, Seen)> {
    let own = scope.own.as_ref().filter(|_| scope.overlay.is_none())?;
    own.empty_ranges(scope.snapshot.seq())
}

/// Returns whether `[lo, hi)`, a known-empty range of the transaction, is also empty for this
/// reader. The range was found at the snapshot `then`: the transaction's own writes delete all
/// committed entries that `then` sees in the range.
pub(super) fn sees_same(scope: &Scope, lo: &[u8], hi: Option<&[u8]>, then: SeqNo) -> bool {
    let now = scope.snapshot.seq();
    if scope.tree.newest_commit() <= then.min(now) {
        return true;
    }
    // If `then` is newer than this snapshot, commits between the two may have deleted entries that
    // this reader still sees.
    then <= now && !scope.tree.empty_ranges.may_have_put(lo, hi, then)
}
