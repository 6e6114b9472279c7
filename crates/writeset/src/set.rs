//! [`WriteSet`]: the uncommitted writes of a transaction in all trees, and its savepoints.

use frondb_core::sync::Arc;
use frondb_core::{Error, RangeDelete, Result, SeqNo, TreeId};
use frondb_run::Run;
use frondb_space::Extent;

use crate::env::{SpillEnv, TreeSpill};
use crate::own::{OVERLAY_SEQS, OWN_SEQS};
use crate::savepoint::{Mark, SavepointId};
use crate::writes::{Place, TreeWrites};

/// If a commit attaches runs of any tree, then each tree with at least this many bytes of messages
/// in memory writes these messages as a run too. Otherwise the commit would log the messages and
/// insert them into a memtable. A run saves one write of the messages and a large memtable.
const RUN_BYTES_MIN: usize = 4 << 20;

/// Returns the parameters for writing the runs of a tree.
pub type SpillOf<'a> = dyn Fn(TreeId) -> Result<TreeSpill> + 'a;

/// The uncommitted writes of a transaction. One thread at a time may use it. The owner of a write
/// set with private runs or large values must call [`discard`](Self::discard) or
/// [`hand_over`](Self::hand_over) before the drop, which does not free their space.
pub struct WriteSet {
    /// The SeqNo that readers see for message number 0 of a tree.
    from: SeqNo,
    /// The trees in the order of their first write.
    trees: Vec<TreeWrites>,
    /// Index of the tree used last. A lookup tries this tree and the next one first, because a
    /// transaction writes to few trees in turn.
    last: usize,
    marks: Vec<Mark>,
    next_savepoint: u64,
    /// An empty `TreeWrites`, whose memory the next tree reuses, also after the write set itself
    /// was reused for another transaction.
    reusable: Option<TreeWrites>,
}

/// The writes to one tree that are on disk, for a commit: private runs, range deletes and large
/// values.
pub struct Sealed {
    /// The tree to which the writes belong.
    pub tree: TreeId,
    /// Runs, newest first, with message numbers as SeqNos.
    pub runs: Vec<Arc<Run>>,
    /// Range deletes in ascending order of their message numbers, which they have as SeqNos.
    pub range_deletes: Vec<RangeDelete>,
    /// Extents of the large values to which the runs refer.
    pub values: Vec<Vec<Extent>>,
    /// The largest message number.
    pub numbers: u64,
    /// Whether all runs are base runs of a bulk statement.
    pub are_base: bool,
}

impl Default for WriteSet {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteSet {
    /// Creates an empty write set. It takes no memory before the first write.
    #[must_use]
    pub fn new() -> Self {
        Self::reading_from(OWN_SEQS)
    }

    /// Creates an overlay: an empty write set with the savepoints of this write set. For readers,
    /// the overlay's messages are older than the messages of this write set and newer than all
    /// committed ones. The overlay is never committed; its messages are corrections that the
    /// transaction must see instead of committed data.
    #[must_use]
    pub fn overlay(&self) -> Self {
        let empty = |mark: &Mark| Mark { id: mark.id, trees: Vec::new() };
        Self {
            marks: self.marks.iter().map(empty).collect(),
            next_savepoint: self.next_savepoint,
            ..Self::reading_from(OVERLAY_SEQS)
        }
    }

    fn reading_from(from: SeqNo) -> Self {
        let (trees, marks) = (Vec::new(), Vec::new());
        Self { from, trees, last: 0, marks, next_savepoint: 0, reusable: None }
    }

    /// Returns the writes to `tree`, which may be empty.
    pub fn tree(&mut self, tree: TreeId) -> &mut TreeWrites {
        let at = self.position(tree).unwrap_or_else(|| {
            let reusable = self.reusable.take().map(|reusable| reusable.reused(tree));
            self.trees.push(reusable.unwrap_or_else(|| TreeWrites::new(tree, self.from)));
            self.trees.len() - 1
        });
        self.last = at;
        &mut self.trees[at]
    }

    /// Returns the writes to `tree`; `None` if there are none.
    pub fn find(&mut self, tree: TreeId) -> Option<&mut TreeWrites> {
        let at = self.position(tree)?;
        Some(&mut self.trees[at]).filter(|writes| !writes.is_empty())
    }

    /// Returns the position after the last message to `tree`.
    #[must_use]
    pub fn place(&self, tree: TreeId) -> Place {
        self.position(tree).map_or_else(Place::default, |at| self.trees[at].place())
    }

    /// Calls `visit` for the keys of the point deletes in `tree` since `place`, in the order in
    /// which they were written. Returns `true` if the messages since `place` are only point
    /// deletes, at most `max`, and all in memory. REQUIRES: no rollback to a savepoint since
    /// `place`.
    pub fn deletes_since<'a>(
        &'a self,
        tree: TreeId,
        place: &Place,
        max: u64,
        visit: &mut dyn FnMut(&'a [u8]),
    ) -> bool {
        let Some(at) = self.position(tree) else { return true };
        self.trees[at].deletes_since(place, max, visit)
    }

    fn position(&self, tree: TreeId) -> Option<usize> {
        let is = |at: usize| self.trees.get(at).is_some_and(|writes| writes.tree() == tree);
        if is(self.last) {
            return Some(self.last);
        }
        if is(self.last + 1) {
            return Some(self.last + 1);
        }
        self.trees.iter().position(|writes| writes.tree() == tree)
    }

    /// Returns the writes to all trees, in the order of the first write to each.
    #[must_use]
    pub fn trees(&self) -> &[TreeWrites] {
        &self.trees
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trees.iter().all(TreeWrites::is_empty)
    }

    /// Whether the writes are only deletes. The engine accepts such a commit while the disk is
    /// full.
    #[must_use]
    pub fn frees_space(&self) -> bool {
        !self.trees.iter().any(TreeWrites::adds_data)
    }

    /// Returns the number of messages in memory.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.trees.iter().map(TreeWrites::count).sum()
    }

    /// Returns the number of messages that were written and not undone, in memory and on disk.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.trees.iter().map(TreeWrites::written).sum()
    }

    /// Returns the bytes of the messages that were written and not undone, in memory and on disk,
    /// and of their large values.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.trees.iter().map(TreeWrites::written_bytes).sum()
    }

    /// Returns the bytes of the messages in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.trees.iter().map(|writes| writes.bytes().len() as u64).sum()
    }

    /// Returns the estimated bytes of memory of the write set.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.trees.iter().map(TreeWrites::memory_bytes).sum()
    }

    /// Whether part of the write set is on disk.
    #[must_use]
    pub fn has_spilled(&self) -> bool {
        self.trees.iter().any(TreeWrites::has_spilled)
    }

    // --- Savepoints ---

    /// Sets a savepoint.
    pub fn set_savepoint(&mut self) -> SavepointId {
        self.next_savepoint += 1;
        let id = SavepointId(self.next_savepoint);
        self.marks.push(Mark { id, trees: self.trees.iter().map(TreeWrites::mark).collect() });
        id
    }

    /// Undoes everything written since the savepoint was set. The savepoint stays set; later
    /// savepoints are released.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is not set. Errors of reading and writing a private run, after
    /// which the call may be repeated.
    pub fn roll_back_to(
        &mut self,
        id: SavepointId,
        env: &SpillEnv,
        spill_of: &SpillOf<'_>,
    ) -> Result<()> {
        let at = self.mark_at(id)?;
        self.marks.truncate(at + 1);
        for i in 0..self.trees.len() {
            let savepoints = self.savepoints_of(i);
            let mark = self.marks[at].trees.get(i).copied().unwrap_or_default();
            let writes = &mut self.trees[i];
            // Do the steps that can fail first.
            if writes.runs.first().is_some_and(|run| run.meta().max_seq.get() > mark.number) {
                writes.cut_runs(env, &spill_of(writes.tree())?, mark.number, &savepoints)?;
            }
            let values = writes.cut(mark);
            writes.release(env, values);
        }
        Ok(())
    }

    /// Releases the savepoint and all later ones; the writes stay.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is not set.
    pub fn release(&mut self, id: SavepointId) -> Result<()> {
        let at = self.mark_at(id)?;
        self.marks.truncate(at);
        Ok(())
    }

    /// Releases only this savepoint; later savepoints stay set.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is not set.
    pub fn forget_savepoint(&mut self, id: SavepointId) -> Result<()> {
        let at = self.mark_at(id)?;
        self.marks.remove(at);
        Ok(())
    }

    fn mark_at(&self, id: SavepointId) -> Result<usize> {
        self.marks.binary_search_by_key(&id, |mark| mark.id).map_err(|_| {
            let message = "the savepoint was released, or rolled back with an earlier one";
            Error::new(frondb_core::ErrorKind::NotFound, message)
        })
    }

    /// Returns the message numbers in tree `i` at which savepoints are set, ascending.
    fn savepoints_of(&self, i: usize) -> Arc<[SeqNo]> {
        let numbers = self.marks.iter().filter_map(|mark| mark.trees.get(i));
        let mut numbers: Vec<SeqNo> = numbers.map(|mark| SeqNo(mark.number)).collect();
        numbers.dedup();
        numbers.into()
    }

    // --- Spilling ---

    /// Writes the messages of the tree with the most bytes in memory to a private run.
    ///
    /// # Errors
    /// `NoSpace` or a device error, after which no write is lost, and the call may be repeated.
    pub fn spill_largest(&mut self, env: &SpillEnv, spill_of: &SpillOf<'_>) -> Result<()> {
        let largest = (0..self.trees.len()).max_by_key(|&i| self.trees[i].memory_bytes());
        largest.map_or(Ok(()), |i| self.spill(i, env, spill_of))
    }

    fn spill(&mut self, i: usize, env: &SpillEnv, spill_of: &SpillOf<'_>) -> Result<()> {
        let savepoints = self.savepoints_of(i);
        let writes = &mut self.trees[i];
        writes.spill(env, &spill_of(writes.tree())?, &savepoints)
    }

    /// Prepares the write set for a commit: afterwards the writes of each tree are either all in
    /// memory or all on disk. Spills the rest of each tree that has spilled. If there is such a
    /// tree, also spills other trees with enough bytes for a run. Savepoints stay set, in case the
    /// commit fails.
    ///
    /// # Errors
    /// As [`spill_largest`](Self::spill_largest). The call may be repeated.
    pub fn seal(&mut self, env: &SpillEnv, spill_of: &SpillOf<'_>) -> Result<()> {
        let attaches = self.has_spilled();
        for i in 0..self.trees.len() {
            let writes = &self.trees[i];
            let is_worth_it = attaches && writes.bytes().len() >= RUN_BYTES_MIN;
            if writes.count() > 0 && (writes.has_spilled() || is_worth_it) {
                self.spill(i, env, spill_of)?;
            }
        }
        Ok(())
    }

    /// Returns the writes on disk, sorted by tree id, for a commit; [`trees`](Self::trees) returns
    /// the messages in memory. REQUIRES: [`seal`](Self::seal) was called.
    #[must_use]
    pub fn sealed(&self) -> Vec<Sealed> {
        let spilled = self.trees.iter().filter(|writes| writes.has_spilled());
        let sealed = spilled.map(|writes| {
            debug_assert_eq!(writes.count(), 0, "a tree has spilled only a part of its messages");
            Sealed {
                tree: writes.tree(),
                runs: writes.runs.to_vec(),
                range_deletes: writes.range_deletes.clone(),
                values: writes.values.iter().map(|(_, extents)| extents.clone()).collect(),
                numbers: writes.last,
                are_base: writes.is_base_only(),
            }
        });
        let mut sealed: Vec<Sealed> = sealed.collect();
        sealed.sort_by_key(|sealed| sealed.tree);
        sealed
    }

    /// Returns the extents of the large values to which messages in memory refer.
    #[must_use]
    pub fn values(&self) -> Vec<(TreeId, Vec<Extent>)> {
        if self.trees.iter().all(|writes| writes.values.is_empty()) {
            return Vec::new();
        }
        let of_tree = |writes: &TreeWrites| {
            let tree = writes.tree();
            let values = writes.values.iter().map(move |(_, extents)| (tree, extents.clone()));
            values.collect::<Vec<_>>()
        };
        self.trees.iter().filter(|writes| !writes.has_spilled()).flat_map(of_tree).collect()
    }

    /// Clears the write set, but keeps its runs and large values on disk, which belong to the
    /// commit now.
    pub fn hand_over(&mut self) {
        self.clear();
    }

    /// Clears the write set, and frees its runs and large values on disk.
    pub fn discard(&mut self, env: &SpillEnv) {
        for writes in &mut self.trees {
            writes.discard(env);
        }
        self.clear();
    }

    fn clear(&mut self) {
        if let Some(writes) = self.trees.pop().filter(TreeWrites::is_small) {
            self.reusable = Some(writes.emptied());
        }
        self.trees.clear();
        self.marks.clear();
        self.last = 0;
    }
}
