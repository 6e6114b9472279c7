//! [`Range`]: a key range to estimate, or one that a range delete hides.

use frondb_core::SeqNo;
use frondb_core::range_delete::RangeDeletes;

/// Maximum number of range deletes of a memtable that an estimate considers; it ignores the others.
const RANGE_DELETES_MAX: usize = 256;

/// The key range `[lo, hi)`; without `hi`, to the end of the tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Range {
    pub(super) lo: Vec<u8>,
    pub(super) hi: Option<Vec<u8>>,
    /// The SeqNo of the range delete that hides the range; [`SeqNo::MIN`] for any other range.
    pub(super) seq: SeqNo,
}

impl Range {
    pub(super) fn new(lo: &[u8], hi: Option<&[u8]>) -> Self {
        Self { lo: lo.to_vec(), hi: hi.map(<[u8]>::to_vec), seq: SeqNo::MIN }
    }

    /// Returns the range of all keys.
    pub(super) fn whole() -> Self {
        Self::new(&[], None)
    }

    /// Returns the range from the same first key to `hi`.
    pub(super) fn up_to(self, hi: Vec<u8>) -> Self {
        Self { hi: Some(hi), ..self }
    }

    /// Returns the range of all keys below `hi`.
    pub(super) fn below(hi: Vec<u8>) -> Self {
        Self::whole().up_to(hi)
    }
}

/// Returns the parts of `[lo, hi)` that range deletes hide, as disjoint ranges.
pub(super) fn hidden_ranges(deletes: &RangeDeletes, lo: &[u8], hi: Option<&[u8]>) -> Vec<Range> {
    let within = deletes.clip(lo, hi);
    let ranges = within.iter().take(RANGE_DELETES_MAX).map(|delete| Range {
        lo: delete.lo.to_vec(),
        hi: delete.hi.as_ref().map(|hi| hi.to_vec()),
        seq: delete.seq,
    });
    disjoint(ranges.filter(|range| range.hi.as_ref().is_none_or(|hi| range.lo < *hi)).collect())
}

/// Joins ranges that overlap. A joined range has the newest SeqNo of its parts.
pub(super) fn disjoint(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort();
    let mut joined: Vec<Range> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.hi.as_ref().is_none_or(|hi| range.lo <= *hi) => {
                last.seq = last.seq.max(range.seq);
                last.hi = match (last.hi.take(), range.hi) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    _ => None,
                };
            }
            _ => joined.push(range),
        }
    }
    joined
}
