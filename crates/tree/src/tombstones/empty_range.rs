//! [`EmptyRange`]: a known-empty range, with the smaller ranges from which it grew.

use frondb_core::SeqNo;

/// Maximum number of former ranges that are kept, and about how many bytes they may take.
const PARTS_MAX: usize = 24;
const PART_BYTES_MAX: usize = 8 << 10;

/// A key range without an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EmptyRange {
    /// `[lo, hi)`; at least one key.
    pub(super) lo: Vec<u8>,
    pub(super) hi: Vec<u8>,
    /// The range is empty for readers at this SeqNo and later.
    pub(super) since: SeqNo,
    /// Approximate number of deletes that the probe or reader stepped over in the range.
    pub(super) deletes: u64,
    /// Whether there is also no entry below `lo` (`is_first`), or from `hi` on (`is_last`).
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    /// Number of times the range has grown.
    pub(super) growths: u64,
    /// The former ranges that are kept, newest first.
    pub(super) parts: Vec<Part>,
}

/// A former range, before it grew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) lo: Vec<u8>,
    pub(super) hi: Vec<u8>,
    pub(super) since: SeqNo,
    /// Number of times the range had grown before.
    pub(super) growths: u64,
}

impl EmptyRange {
    pub(super) fn new(lo: Vec<u8>, hi: Vec<u8>, since: SeqNo, deletes: u64) -> Self {
        Self {
            lo,
            hi,
            since,
            deletes,
            is_first: false,
            is_last: false,
            growths: 0,
            parts: Vec::new(),
        }
    }

    /// Returns the part `[lo, hi)` of the range that is empty for a reader at `seq`.
    pub(super) fn seen_at(&self, seq: SeqNo) -> Option<(&[u8], &[u8])> {
        if self.since <= seq {
            return Some((&self.lo, &self.hi));
        }
        let part = self.parts.iter().find(|part| part.since <= seq)?;
        Some((&part.lo, &part.hi))
    }

    /// Records `old`, a former part of this range, and the former ranges of `old`.
    pub(super) fn grow_from(&mut self, old: Self) {
        self.growths = old.growths + 1;
        self.parts = old.parts;
        let (lo, hi, since) = (old.lo, old.hi, old.since);
        let bytes = lo.len() + hi.len() + size_of::<Part>();
        self.parts.insert(0, Part { lo, hi, since, growths: old.growths });
        // Of the older former ranges, keep fewer: the part of the range that a reader cannot skip
        // is then in proportion to the age of the reader's snapshot.
        let growths = self.growths;
        self.parts.retain(|part| {
            let age = growths - part.growths;
            part.growths % 4_u64.pow(age.ilog(4).min(20)) == 0
        });
        self.parts.truncate((PART_BYTES_MAX / bytes).clamp(1, PARTS_MAX));
    }
}
