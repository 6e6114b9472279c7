//! [`WriteSet`]: the uncommitted writes of a transaction in all trees, and its savepoints.

use frondb_core::sync::Arc;
use frondb_core::{Error, RangeDelete, Result, SeqNo, TreeId};
use frondb_run::Run;
use frondb_space::Extent;

use crate::env::{SpillEnv, TreeSpill};
use crate::own::{OVERLAY_SEQS, OWN_SEQS};
use crate::savepoint::{Mark, SavepointId};
use crate::writes::{Place, TreeWrites};

/// If a commit attaches runs anyway, a tree with at least this many bytes of messages in memory
/// writes them as a run too, instead of logging them and inserting them into a memtable. The run
/// saves one write of the messages, and the next reader of the tree finds a run instead of a
/// memtable with all of them.
const RUN_BYTES_MIN: usize = 4 << 20;

/// Returns how a tree's runs are written.
pub type SpillOf<'a> = dyn Fn(TreeId) -> Result<TreeSpill> + 'a;

/// The uncommitted writes of a transaction. Used by one thread at a time. Before dropping a write
/// set that has spilled, call [`discard`](Self::discard).
pub struct WriteSet {
    /// The SeqNo that readers see for message number 0 of a tree.
    from: SeqNo,
    /// The trees in the order of their first write.
    trees: Vec<TreeWrites>,
    /// Index of the tree used last: a transaction writes to few trees in turns.
    last: usize,
    marks: Vec<Mark>,
    next_savepoint: u64,
    /// An empty `TreeWrites` whose memory the next tree reuses; write sets are reused too.
    reusable: Option<TreeWrites>,
}

/// The part of one tree's writes that a commit takes from disk: private runs, their range deletes
/// and their large values.
pub struct Sealed {
    /// The tree that the writes are for.
    pub tree: TreeId,
    /// Runs, newest first, with numbers as SeqNos.
    pub runs: Vec<Arc<Run>>,
    /// Range deletes in ascending order, with numbers as SeqNos.
    pub range_deletes: Vec<RangeDelete>,
    /// Extents of the large values that the runs refer to.
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
    /// An empty write set. Takes no memory until something is written.
    #[must_use]
    pub fn new() -> Self {
        Self::reading_from(OWN_SEQS)
    }

    /// An empty write set with the savepoints of this write set. Readers see the overlay's messages
    /// below the messages of this write set and above everything committed. The overlay is never
    /// committed: it holds corrections that its transaction must see instead of committed data.
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

    /// The writes to `tree`.
    pub fn tree(&mut self, tree: TreeId) -> &mut TreeWrites {
        let at = self.position(tree).unwrap_or_else(|| {
            let reusable = self.reusable.take().map(|reusable| reusable.reused(tree));
            self.trees.push(reusable.unwrap_or_else(|| TreeWrites::new(tree, self.from)));
            self.trees.len() - 1
        });
        self.last = at;
        &mut self.trees[at]
    }

    /// The writes to `tree`; `None` if there are none.
    pub fn find(&mut self, tree: TreeId) -> Option<&mut TreeWrites> {
        let at = self.position(tree)?;
        Some(&mut self.trees[at]).filter(|writes| !writes.is_empty())
    }

    /// The position after the last message to `tree`.
    #[must_use]
    pub fn place(&self, tree: TreeId) -> Place {
        self.position(tree).map_or_else(Place::default, |at| self.trees[at].place())
    }

    /// Visits the keys of the point deletes in `tree` since `place`, in order. Returns true if all
    /// messages since then are at most `max` point deletes, all in memory; otherwise false, also
    /// after a spill. REQUIRES: no rollback to a savepoint since.
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

    /// The writes to all trees, in the order of their first write.
    #[must_use]
    pub fn trees(&self) -> &[TreeWrites] {
        &self.trees
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trees.iter().all(TreeWrites::is_empty)
    }

    /// Whether only deletes were written: the engine accepts such commits while the disk is full.
    #[must_use]
    pub fn frees_space(&self) -> bool {
        !self.trees.iter().any(TreeWrites::adds_data)
    }

    /// Number of messages in memory.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.trees.iter().map(TreeWrites::count).sum()
    }

    /// Number of messages written and not undone, spilled or not.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.trees.iter().map(TreeWrites::written).sum()
    }

    /// Bytes of the messages in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.trees.iter().map(|writes| writes.bytes().len() as u64).sum()
    }

    /// Estimated bytes of memory.
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
    /// `NotFound` if the savepoint is not set. Errors of reading and writing a private run; after
    /// such an error the call may be repeated.
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

    /// The numbers in tree `i` at which savepoints are set, ascending.
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
    /// `NoSpace` or a device error; after an error nothing has changed.
    pub fn spill_largest(&mut self, env: &SpillEnv, spill_of: &SpillOf<'_>) -> Result<()> {
        let largest = (0..self.trees.len()).max_by_key(|&i| self.trees[i].memory_bytes());
        largest.map_or(Ok(()), |i| self.spill(i, env, spill_of))
    }

    fn spill(&mut self, i: usize, env: &SpillEnv, spill_of: &SpillOf<'_>) -> Result<()> {
        let savepoints = self.savepoints_of(i);
        let writes = &mut self.trees[i];
        writes.spill(env, &spill_of(writes.tree())?, &savepoints)
    }

    /// Ensures that the writes of each tree are either all in memory or all on disk. Trees that
    /// have spilled spill the rest. If there are such trees, other trees with enough bytes for a
    /// run spill too. Savepoints stay set, in case the commit fails.
    ///
    /// # Errors
    /// Like [`spill_largest`](Self::spill_largest); the call may be repeated.
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

    /// The parts that a commit takes from disk, by tree; [`trees`](Self::trees) returns the
    /// messages in memory. REQUIRES: [`seal`](Self::seal) was called.
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

    /// The extents of large values that messages in memory refer to.
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

    /// Clears the write set, because the commit has taken over the parts on disk.
    pub fn hand_over(&mut self) {
        self.clear();
    }

    /// Clears the write set and frees the parts on disk.
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
