//! [`WriteSet`]: all that a transaction has written, over all trees, and its savepoints.

use frondb_core::sync::Arc;
use frondb_core::{Error, RangeDelete, Result, SeqNo, TreeId};
use frondb_run::Run;
use frondb_space::Extent;

use crate::own::{OVERLAY_SEQS, OWN_SEQS};
use crate::savepoint::{Mark, SavepointId};
use crate::spill::{SpillEnv, TreeSpill};
use crate::writes::TreeWrites;

/// What a commit that attaches runs anyway does not put into the log and a memtable, but into a run of its own: it is
/// written once less, and who reads the tree next finds a run and not a memtable with all of it.
const RUN_BYTES_MIN: usize = 4 << 20;

/// Finds how a tree's runs are written.
pub type SpillOf<'a> = dyn Fn(TreeId) -> Result<TreeSpill> + 'a;

/// What a transaction has written and not committed. For one thread at a time. Whoever drops one
/// that has spilled calls [`discard`](Self::discard) first.
pub struct WriteSet {
    /// The SeqNo of message number 0 of a tree for readers.
    from: SeqNo,
    /// In the order of their first write.
    trees: Vec<TreeWrites>,
    /// The tree used last: rows go round few trees.
    last: usize,
    marks: Vec<Mark>,
    next_savepoint: u64,
    /// Empty, with memory for the next tree: write sets are used again.
    spare: Option<TreeWrites>,
}

/// Of one tree, what a commit takes from disk: private runs and what belongs to them.
pub struct Sealed {
    /// The tree.
    pub tree: TreeId,
    /// Newest first, numbers for SeqNos.
    pub runs: Vec<Arc<Run>>,
    /// Numbers for SeqNos, ascending.
    pub range_deletes: Vec<RangeDelete>,
    /// Extents of the large values that the runs refer to.
    pub values: Vec<Vec<Extent>>,
    /// The largest number.
    pub numbers: u64,
}

impl Default for WriteSet {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteSet {
    /// One that is empty. Takes no memory until something is written.
    #[must_use]
    pub fn new() -> Self {
        Self::reading_from(OWN_SEQS)
    }

    /// An empty one whose messages readers see below this one's and above all that is committed; it has this
    /// one's savepoints. Nobody commits it: it is for what its transaction must see in place of committed data.
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
        Self { from, trees, last: 0, marks, next_savepoint: 0, spare: None }
    }

    /// The writes to `tree`.
    pub fn tree(&mut self, tree: TreeId) -> &mut TreeWrites {
        let at = self.position(tree).unwrap_or_else(|| {
            let spare = self.spare.take().map(|spare| spare.reused(tree));
            self.trees.push(spare.unwrap_or_else(|| TreeWrites::new(tree, self.from)));
            self.trees.len() - 1
        });
        self.last = at;
        &mut self.trees[at]
    }

    /// The writes to `tree`, if there are any.
    pub fn find(&mut self, tree: TreeId) -> Option<&mut TreeWrites> {
        let at = self.position(tree)?;
        Some(&mut self.trees[at]).filter(|writes| !writes.is_empty())
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

    /// All trees' writes, in the order of their first.
    #[must_use]
    pub fn trees(&self) -> &[TreeWrites] {
        &self.trees
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trees.iter().all(TreeWrites::is_empty)
    }

    /// Whether all that was written are deletes: such commits are let in while the disk is full.
    #[must_use]
    pub fn frees_space(&self) -> bool {
        !self.trees.iter().any(TreeWrites::grows)
    }

    /// Messages in memory.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.trees.iter().map(TreeWrites::count).sum()
    }

    /// Messages written and not undone, spilled or not.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.trees.iter().map(TreeWrites::written).sum()
    }

    /// Bytes of the messages in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.trees.iter().map(|writes| writes.bytes().len() as u64).sum()
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.trees.iter().map(TreeWrites::memory_bytes).sum()
    }

    /// Whether a part of it is on disk.
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

    /// Undoes all that was written since the savepoint was set; it stays set, later ones are gone.
    ///
    /// # Errors
    /// `NotFound` if it is not set (any more); what reading and writing a private run returns: the
    /// call may then be repeated.
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
            // First what can fail.
            if writes.runs.first().is_some_and(|run| run.meta().max_seq.get() > mark.number) {
                writes.cut_runs(env, &spill_of(writes.tree())?, mark.number, &savepoints)?;
            }
            let values = writes.cut(mark);
            writes.release(env, values);
        }
        Ok(())
    }

    /// Forgets the savepoint and those set after it; what was written stays.
    ///
    /// # Errors
    /// `NotFound` if it is not set (any more).
    pub fn release(&mut self, id: SavepointId) -> Result<()> {
        let at = self.mark_at(id)?;
        self.marks.truncate(at);
        Ok(())
    }

    /// Forgets the savepoint alone: those set after it stay.
    ///
    /// # Errors
    /// `NotFound` if it is not set (any more).
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

    /// Writes the messages of the tree that has most in memory to a private run.
    ///
    /// # Errors
    /// `NoSpace` or a device error; nothing has changed then.
    pub fn spill_largest(&mut self, env: &SpillEnv, spill_of: &SpillOf<'_>) -> Result<()> {
        let largest = (0..self.trees.len()).max_by_key(|&i| self.trees[i].memory_bytes());
        largest.map_or(Ok(()), |i| self.spill(i, env, spill_of))
    }

    fn spill(&mut self, i: usize, env: &SpillEnv, spill_of: &SpillOf<'_>) -> Result<()> {
        let savepoints = self.savepoints_of(i);
        let writes = &mut self.trees[i];
        writes.spill(env, &spill_of(writes.tree())?, &savepoints)
    }

    /// Brings each tree's writes either all into memory's form or all onto disk: trees that have
    /// spilled spill the rest, and if there are such, others that have as much as a run is worth spill, too.
    /// Savepoints stay set, for a commit that fails.
    ///
    /// # Errors
    /// As [`spill_largest`](Self::spill_largest); may be repeated.
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

    /// What a commit takes from disk, by tree; [`trees`](Self::trees) have what is in memory. After
    /// [`seal`](Self::seal).
    #[must_use]
    pub fn sealed(&self) -> Vec<Sealed> {
        let spilled = self.trees.iter().filter(|writes| writes.has_spilled());
        let sealed = spilled.map(|writes| {
            debug_assert_eq!(writes.count(), 0, "a tree has spilled a part only");
            Sealed {
                tree: writes.tree(),
                runs: writes.runs.to_vec(),
                range_deletes: writes.range_deletes.clone(),
                values: writes.values.iter().map(|(_, extents)| extents.clone()).collect(),
                numbers: writes.last,
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

    /// Forgets everything; what is on disk is somebody else's now.
    pub fn hand_over(&mut self) {
        self.clear();
    }

    /// Forgets everything and gives back what is on disk.
    pub fn discard(&mut self, env: &SpillEnv) {
        for writes in &mut self.trees {
            writes.discard(env);
        }
        self.clear();
    }

    fn clear(&mut self) {
        if let Some(writes) = self.trees.pop().filter(TreeWrites::is_small) {
            self.spare = Some(writes.emptied());
        }
        self.trees.clear();
        self.marks.clear();
        self.last = 0;
    }
}
