//! Probes for known-empty ranges: steps over deletes with a cursor, and reports to
//! [`frondb_tree::tombstones::EmptyRanges`] the range up to the next visible row.

use frondb_core::Direction;
use frondb_core::sync::Arc;
use frondb_tree::tombstones::KeyRange;
use frondb_tree::{Cursor, CursorOptions, MemSource, TreeCore};

use super::Background;
use crate::background::admission::CHECK_EVERY;

impl Background {
    /// Requests a probe of a tree after a commit, if the deletes in its memtable form a tombstone
    /// run. Waits for the probe if an earlier requested probe is overdue, because a reader steps
    /// over all deletes that no probe has covered (rule 15). `active` is the active memtable.
    /// Returns whether the call has waited.
    pub(crate) fn request_probe(&self, tree: &Arc<TreeCore>, active: &MemSource) -> bool {
        let is_overdue = tree.empty_ranges.is_overdue();
        let Some(run) = tree.empty_ranges.due(&active.memtable) else { return false };
        self.queue.add_probe(tree, run);
        let waits = is_overdue && !self.is_manual();
        if waits {
            self.wait_for(tree, || self.queue.wait_probed(tree.id, CHECK_EVERY));
        }
        waits
    }

    /// Probes a tombstone run of a tree, and records the known-empty range around it. A probe takes
    /// one cursor step per delete. If the blocks of the deleted rows are not in the cache, the
    /// probe reads them in sequence. Therefore a worker probes, and not the commit that requested
    /// the probe.
    pub(crate) fn probe_tombstone_run(&self, tree: &Arc<TreeCore>, run: KeyRange) {
        tree.empty_ranges.note_probe();
        let (first, last) = run;
        // Begin at the end of the known-empty range before the run: if no row lies between them,
        // the two ranges become one.
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

    /// Probes `[lo, hi)` and records the empty range that `walk` finds. A forward walk begins at
    /// `lo`, a backward walk at `hi`.
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

/// Finds the range without a visible row that begins at `from`, or at `first` if a row lies between
/// `from` and `first`. A range without an upper bound ends at the end of the tree. `None` after a
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

/// Finds the range without a visible row that ends at `upto`, or just above `last` if a row lies
/// between `last` and `upto`. A range without a lower bound begins at the beginning of the tree.
/// `None` as in [`walk_forward`].
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

/// Returns the smallest key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
