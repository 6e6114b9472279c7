//! Probing for known-empty ranges: walks over deletes with a cursor, and reports to
//! [`frondb_tree::tombstones::EmptyRanges`] where the next visible row is.

use frondb_core::Direction;
use frondb_core::sync::Arc;
use frondb_tree::tombstones::KeyRange;
use frondb_tree::{Cursor, CursorOptions, TreeCore};

use super::Background;
use crate::background::admission::CHECK_EVERY;

impl Background {
    /// Requests a probe of a tree after a commit, if the deletes in its memtable form a tombstone
    /// run. Waits for the probe if the one that earlier commits requested is overdue: a reader
    /// would step over all deletes that no probe has covered (rule 15).
    pub(crate) fn request_probe(&self, tree: &Arc<TreeCore>) {
        let is_overdue = tree.empty_ranges.is_overdue();
        let Some(run) = tree.empty_ranges.due(&tree.version().active.memtable) else { return };
        self.queue.add_probe(tree, run);
        if is_overdue && !self.is_manual() {
            self.wait_for(tree, || self.queue.wait_probed(tree.id, CHECK_EVERY));
        }
    }

    /// Probes a tombstone run of a tree, and records the empty range around it. The work is one
    /// cursor step per delete. If no reader has read the deleted rows lately, the walk reads their
    /// blocks, in sequence. Therefore a worker does this work and not the commit that made it due.
    pub(crate) fn probe_tombstone_run(&self, tree: &Arc<TreeCore>, run: KeyRange) {
        tree.empty_ranges.note_probe();
        let (first, last) = run;
        // If no row lies between this range and the known-empty range before or after it, the two
        // become one.
        let from = tree.empty_ranges.end_before(&first).unwrap_or_else(|| first.clone());
        let mut ends_inside = false;
        self.probe(tree, Direction::Forward, &from, None, |cursor| {
            let (lo, hi) = walk_forward(cursor, &from, &first)?;
            ends_inside = hi.as_ref().is_some_and(|hi| *hi <= last);
            Some((lo, hi.unwrap_or_else(|| after(&last))))
        });
        if !ends_inside {
            return;
        }
        // A visible row lies inside the run, so the forward walk covered only the beginning of the
        // run: also walk backward from the end of the run.
        let upto = tree.empty_ranges.begin_after(&last).unwrap_or_else(|| after(&last));
        self.probe(tree, Direction::Backward, &[], Some(&upto), |cursor| {
            let (lo, hi) = walk_backward(cursor, &upto, &last)?;
            Some((lo.unwrap_or(first), hi))
        });
    }

    /// Probes `[lo, hi)`. `walk` finds the empty range at the end of `[lo, hi)` where `direction`
    /// begins.
    fn probe(
        &self,
        tree: &Arc<TreeCore>,
        direction: Direction,
        lo: &[u8],
        hi: Option<&[u8]>,
        walk: impl FnOnce(&mut Cursor) -> Option<KeyRange>,
    ) {
        let begun = self.committer.exclusive(|_| {
            // Under the commit lock, all messages in memtables are visible.
            tree.empty_ranges
                .begin_probe(direction, lo, hi)
                .map(|probe| (probe, self.reads.snapshot()))
        });
        let Some((probe, snapshot)) = begun else { return };
        let since = snapshot.seq();
        let options = CursorOptions::new().at(&snapshot);
        let mut cursor = Cursor::new(Arc::clone(&self.reads), Arc::clone(tree), options);
        cursor.set_probes();
        let found = walk(&mut cursor);
        tree.empty_ranges.end_probe(probe, found, since, cursor.deletes_passed());
    }
}

/// Finds the range without a visible row that begins at `from`, or at `first` if there is a row
/// between the two. A range without an upper bound reaches to the end of the tree. `None` after a
/// read error: the range is not known to be empty, and the next reader reports the error.
fn walk_forward(
    cursor: &mut Cursor,
    from: &[u8],
    first: &[u8],
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let (mut lo, mut found) = (from, cursor.seek(from).ok()?);
    if found && *cursor.key() < *first {
        (lo, found) = (first, cursor.seek(first).ok()?);
    }
    Some((lo.to_vec(), found.then(|| cursor.key().to_vec())))
}

/// As [`walk_forward`], but downwards from `upto`, or from just above `last`. Without a lower bound
/// the range reaches to the beginning of the tree.
fn walk_backward(
    cursor: &mut Cursor,
    upto: &[u8],
    last: &[u8],
) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
    let (mut hi, mut found) = (upto.to_vec(), cursor.seek_below(upto).ok()?);
    if found && *cursor.key() > *last {
        hi = after(last);
        found = cursor.seek_below(&hi).ok()?;
    }
    Some((found.then(|| after(cursor.key())), hi))
}

/// The smallest key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
