//! Short ranges whose entries all come from one source, counted without merging.
//!
//! Most short ranges have entries in one source only: in a memtable, in a buffered run, or in the
//! bases of leaves. If this source has one message for each key and no delete, the number of entries
//! is the distance between two positions. An optimizer needs this number before each short query
//! (`short.rs`). To know that the other sources have nothing in the range takes a search for the
//! range's bounds in each, which is cheaper than a cursor in each. It reads the blocks that a merge
//! would read first.
//!
//! The result is exact, or `None` if a second source has messages in the range: these may add, hide
//! or overwrite entries.

use frondb_core::{Result, SeqNo};
use frondb_memtable::MemCursor;
use frondb_run::Run;
use frondb_trunk::{Node, View};

use crate::version::Version;

/// The entries of a range, as long as they come from one source.
struct Tally {
    entries: u64,
    snapshot: SeqNo,
}

impl Tally {
    /// Adds a source that has `entries` entries in the range. Returns whether it is still the only
    /// one.
    fn add(&mut self, entries: u64) -> bool {
        let is_single = entries == 0 || self.entries == 0;
        self.entries += entries;
        is_single
    }

    /// Adds a run that has `messages` messages in the range. As [`add`](Self::add); also `false` if
    /// these may be fewer entries at the snapshot.
    fn add_run(&mut self, run: &Run, messages: u64) -> bool {
        (messages == 0 || self.sees_one_value_a_key(run)) && self.add(messages)
    }

    /// Whether each message of the run is a value that the snapshot sees, and no two are of one key.
    fn sees_one_value_a_key(&self, run: &Run) -> bool {
        let meta = run.meta();
        meta.deletes == 0 && meta.unique_keys && meta.max_seq <= self.snapshot
    }
}

/// The number of entries of `[lo, hi)` at the snapshot. `in_memory` are cursors over the range, one
/// for each memtable, with at most a few hundred messages: counting their keys goes over them.
pub(super) fn count_single(
    version: &Version,
    snapshot: SeqNo,
    in_memory: &[MemCursor],
    lo: &[u8],
    hi: Option<&[u8]>,
) -> Result<Option<u64>> {
    let mut tally = Tally { entries: 0, snapshot };
    for (source, cursor) in version.sources().zip(in_memory) {
        let memtable = &source.memtable;
        if memtable.range_delete_count() > 0 {
            return Ok(None);
        }
        if cursor.messages() > 0 {
            let keys = if memtable.deletes() == 0 { cursor.count_keys() } else { None };
            if !keys.is_some_and(|keys| tally.add(keys)) {
                return Ok(None);
            }
        }
        for run in source.runs() {
            if !tally.add_run(run, run.count_between(lo, hi)?) {
                return Ok(None);
            }
        }
    }
    let Some(in_bases) = add_buffered(&version.trunk.root, lo, hi, &mut tally)? else {
        return Ok(None);
    };
    Ok(tally.add(in_bases).then_some(tally.entries))
}

/// Adds the buffered runs of the nodes below `node`, and returns the number of entries in bases;
/// `None` if they may be fewer than the messages, or if a second source was added.
fn add_buffered(
    node: &Node,
    lo: &[u8],
    hi: Option<&[u8]>,
    tally: &mut Tally,
) -> Result<Option<u64>> {
    let ends_before = node.hi.as_ref().is_some_and(|end| **end <= *lo);
    if ends_before || hi.is_some_and(|hi| *hi <= *node.lo) {
        return Ok(Some(0));
    }
    if !node.range_deletes.is_empty() {
        return Ok(None);
    }
    let above = node.views().count() - node.base().len();
    for view in node.views().take(above) {
        if !tally.add_run(&view.run, count_view(view, lo, hi)?) {
            return Ok(None);
        }
    }
    let mut entries = 0;
    for view in node.base() {
        let messages = count_view(view, lo, hi)?;
        if messages > 0 && !tally.sees_one_value_a_key(&view.run) {
            return Ok(None);
        }
        entries += messages;
    }
    for child in node.children() {
        let Some(below) = add_buffered(child, lo, hi, tally)? else { return Ok(None) };
        entries += below;
    }
    Ok(Some(entries))
}

/// The number of messages of a view in `[lo, hi)`.
fn count_view(view: &View, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
    let run = &view.run;
    let lo = lo.max(&view.lo);
    let hi = match (hi, view.hi.as_deref()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    run.count_between(lo, hi)
}
