//! [`LeafMessages`]: all messages of the keys from a given key on, within one leaf, to count or to
//! sample.

use std::ops::Bound;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::{Direction, Result, SeqNo, Source};
use frondb_memtable::{MemCursor, Memtable};
use frondb_merge::Merger;
use frondb_trunk::{Scan, segment};

use crate::version::Version;

/// The messages of all sources from a key on, within the leaf that holds the key.
pub(super) struct LeafMessages {
    pub(super) merge: Merger,
    /// Range deletes of memtables and attached runs.
    pub(super) above: RangeDeletes,
    /// Range deletes of the nodes on the path to the leaf.
    pub(super) in_nodes: Vec<RangeDeletes>,
    /// First key after the leaf, or after the range.
    pub(super) end: Option<Vec<u8>>,
}

/// Makes a cursor over `[lo, hi)` in the memtable with this index among the version's sources.
pub(super) type MemtableCursor<'a> =
    &'a dyn Fn(usize, &Memtable, &[u8], Option<&[u8]>) -> MemCursor;

impl LeafMessages {
    /// Opens the messages from `at` on and below `hi`, within the leaf that holds `at`.
    pub(super) fn open(
        version: &Version,
        snapshot: SeqNo,
        at: &[u8],
        hi: Option<&[u8]>,
        memtable_cursor: MemtableCursor<'_>,
    ) -> Result<Self> {
        // Pass no range deletes of memtables, which would exclude hidden messages: the caller
        // itself decides which messages are hidden.
        let (direction, lo) = (Direction::Forward, at);
        let scan = Scan { direction, at: Some(at), lo, hi, snapshot, expected: 0 };
        let part = segment(&version.trunk, &scan, &[])?;
        let mut deletes = Vec::new();
        let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(part.sources.len() + 2);
        for (i, source) in version.sources().enumerate() {
            let memtable = &source.memtable;
            deletes.extend(memtable.range_deletes().iter().cloned());
            sources.push(Box::new(memtable_cursor(i, memtable, &part.lo, part.hi.as_deref())));
            for run in source.runs() {
                sources.extend(part.source_of(run, Direction::Forward, snapshot)?);
            }
        }
        let above = RangeDeletes::new(deletes);
        sources.extend(part.sources);
        let end = part.hi.as_deref().map(<[u8]>::to_vec);
        let merge = Merger::new(sources, Direction::Forward);
        Ok(Self { merge, above, in_nodes: part.range_deletes, end })
    }
}

/// Returns whether one of these range deletes hides a message from `snapshot`.
pub(super) fn is_hidden(deletes: &[RangeDeletes], key: &[u8], seq: SeqNo, snapshot: SeqNo) -> bool {
    deletes.iter().any(|set| seq < set.newest_covering(key, snapshot))
}

pub(super) fn bounds<'a>(lo: &'a [u8], hi: Option<&'a [u8]>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (Bound::Included(lo), hi.map_or(Bound::Unbounded, Bound::Excluded))
}
