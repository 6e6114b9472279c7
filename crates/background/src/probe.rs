//! Probing for known-empty ranges: what finds them for [`frondb_tree::tombstones::EmptyRanges`].

use frondb_core::Direction;
use frondb_core::sync::Arc;
use frondb_tree::tombstones::KeyRange;
use frondb_tree::{Cursor, CursorOptions, TreeCore};

use crate::background::Background;

impl Background {
    /// After a commit: if the deletes of the tree's memtable have made a tombstone run, walks over it and
    /// keeps where it ends. The deleting thread pays one cursor step per delete; if it has not read the
    /// rows, the walk reads their blocks, in sequence.
    pub(crate) fn probe_empty_ranges(&self, tree: &Arc<TreeCore>) {
        let Some((first, last)) = tree.empty_ranges.due(&tree.version().active.memtable) else {
            return;
        };
        // What lies between it and the void before, or behind, belongs to it if that is empty.
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
        // Deletes at both ends, or from one end to the other with a row left between.
        let upto = tree.empty_ranges.begin_after(&last).unwrap_or_else(|| after(&last));
        self.probe(tree, Direction::Backward, &[], Some(&upto), |cursor| {
            let (lo, hi) = walk_backward(cursor, &upto, &last)?;
            Some((lo.unwrap_or(first), hi))
        });
    }

    /// One probe over `[lo, hi)`: `walk` finds the empty range at that end of it where `direction` begins.
    fn probe(
        &self,
        tree: &Arc<TreeCore>,
        direction: Direction,
        lo: &[u8],
        hi: Option<&[u8]>,
        walk: impl FnOnce(&mut Cursor) -> Option<KeyRange>,
    ) {
        let begun = self.committer.exclusive(|_| {
            // All that was inserted is visible here.
            tree.empty_ranges
                .begin_probe(direction, lo, hi)
                .map(|probe| (probe, self.jobs.reads.snapshot()))
        });
        let Some((probe, snapshot)) = begun else { return };
        let since = snapshot.seq();
        let options = CursorOptions { snapshot: Some(snapshot), ..CursorOptions::default() };
        let mut cursor = Cursor::new(Arc::clone(&self.jobs.reads), Arc::clone(tree), options);
        cursor.set_probes();
        let found = walk(&mut cursor);
        tree.empty_ranges.end_probe(probe, found, since, cursor.deletes_passed());
    }
}

/// Where nothing is visible from `from` on, or from `first` on if there is an entry between them; to the
/// end of the tree if there is no `hi`. What cannot be read is not known to be empty: the next reader reports why.
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

/// The same down from `upto`, or from behind `last`.
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
