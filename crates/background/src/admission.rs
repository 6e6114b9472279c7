//! Letting commits in: what they wait for, what is frozen when, and what waits for flushes.
//!
//! A writer meets three limits: the pace of background work ([`crate::pacing`]), twice the write
//! buffer of memtables, and as much of log. On a full disk it meets a fourth: what does not free
//! space is refused, what does waits for its own flushes.
//!
//! An engine without background threads does the work here instead of waiting for it.

use std::time::Duration;

use frondb_commit::Batch;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_tree::TreeCore;

use crate::background::Background;
use crate::jobs::flush::frees_space;
use crate::pacing::Debt;

/// Range deletes in a memtable above which it is frozen: nodes that get many are rewritten, and
/// space comes back.
const RANGE_DELETES_MAX: u64 = 1000;

/// Large values of a memtable, bytes, above which it is frozen. Their messages are so small that
/// the write buffer would hold gigabytes of them, overwritten and deleted ones too, before a flush
/// gave any of it back.
const VALUE_BYTES_MAX: u64 = 64 << 20;

/// How long a wait for background work lasts before the engine's health is looked at again.
pub const CHECK_EVERY: Duration = Duration::from_millis(100);

/// How often a delete or a flush on a full disk looks again before it gives up.
pub const FULL_TRIES: u32 = 20;

/// What a commit brings.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of its messages.
    pub bytes: u64,
    /// How many messages.
    pub messages: u64,
    /// It only deletes: let in while the disk is full.
    pub frees_space: bool,
    /// It does not wait for background work.
    pub unpaced: bool,
}

impl Load {
    /// What a batch brings.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self {
            bytes: batch.bytes() as u64,
            messages: batch.len() as u64,
            frees_space: batch.frees_space(),
            unpaced: batch.is_unpaced(),
        }
    }
}

impl Background {
    fn debt(&self) -> Debt {
        Debt {
            memtable_bytes: self.account.unflushed_bytes(),
            write_buffer_bytes: self.jobs.shares.now().write_buffer_bytes(),
            log_bytes: self.jobs.log.replay_bytes(),
            merge_bytes: self.queue.due().debt_bytes,
            merge_allowance: self.jobs.shares.now().merge_debt_bytes(),
        }
    }

    /// Lets a commit in, at the pace that background work can follow; `Cancelled`, soon after
    /// `is_cancelled` says so, if it still waits then.
    pub fn admit(&self, load: Load, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
        if self.health().full().is_some() {
            if self.is_manual() && !(load.frees_space && self.has_room_to_delete()) {
                self.try_space();
                self.run_pending();
            }
            return self.admit_to_full_disk(load, is_cancelled);
        }
        if load.unpaced && !self.is_manual() {
            return Ok(());
        }
        let debt = self.debt();
        if debt.permille() == 0 {
            return Ok(());
        }
        if self.log_is_long() {
            self.queue.add_maintenance();
        }
        if self.is_manual() {
            self.run_pending();
            return self.health().check();
        }
        // What the commit adds to memtables is about its encoding and a slot a message.
        let bytes = load.bytes + load.messages * 24;
        let before = self.jobs.now();
        if let Some(wait) = self.pacing.wait(bytes, debt) {
            self.jobs.reads.clock.sleep(wait);
        }
        self.wait_for_room(is_cancelled)?;
        self.pacing.waited(self.jobs.now().since(before).as_nanos() as u64);
        // The disk may have been found full meanwhile.
        self.admit_to_full_disk(load, is_cancelled)
    }

    /// Freezes the largest memtable that mostly deletes, so that it is flushed although it is small:
    /// one at a time, for flushes of a few deletes each would fill the disk with what describes them.
    pub fn freeze_deletes(&self) {
        let trees = self.jobs.trees.all();
        if trees.iter().any(|tree| frees_space(&tree.version().frozen)) {
            return;
        }
        let deletes = trees.iter().filter(|tree| tree.version().active.frees_space());
        if let Some(tree) = deletes.max_by_key(|tree| tree.version().active.memtable.bytes()) {
            self.freeze(tree);
        }
    }

    /// Whether both the write buffer and the log are below their limit.
    fn has_room(&self) -> bool {
        self.is_below(self.jobs.shares.now().write_buffer_bytes() * 2)
    }

    /// The same for deletes on a full disk. Rows that found no space may fill the buffer to its limit,
    /// and only deletes can get them out: there is room for so many that they outnumber the rows of
    /// the memtable that they go to, for this makes it one that is flushed.
    fn has_room_to_delete(&self) -> bool {
        self.is_below(self.jobs.shares.now().write_buffer_bytes() * 3)
    }

    fn is_below(&self, limit: u64) -> bool {
        self.account.unflushed_bytes() < limit && self.jobs.log.replay_bytes() < limit
    }

    /// Deletes go on while the disk is full, as far as memory takes them, and wait for their own
    /// flushes then; there is always some space for those.
    fn admit_to_full_disk(&self, load: Load, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
        let mut tries = 0;
        while let Some(full) = self.health().full() {
            if load.frees_space && self.has_room_to_delete() {
                return Ok(());
            }
            if !load.frees_space || self.is_manual() || tries == FULL_TRIES {
                return Err(full);
            }
            tries += 1;
            check_cancelled(is_cancelled)?;
            self.freeze_deletes();
            let changed = || self.health().full().is_none() || self.has_room_to_delete();
            self.queue.wait_until(CHECK_EVERY, &mut |_| changed());
            self.health().check()?;
        }
        Ok(())
    }

    /// Waits while the write buffer, or the log, is at its limit and the disk is not known as full.
    fn wait_for_room(&self, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
        while !self.has_room() {
            check_cancelled(is_cancelled)?;
            self.freeze_if_full(&[]);
            let mut nothing_due = false;
            self.queue.wait_until(CHECK_EVERY, &mut |due| {
                nothing_due = due.debt_jobs == 0 && due.running == 0 && !due.maintenance;
                nothing_due || self.has_room()
            });
            self.health().check()?;
            if nothing_due || self.health().full().is_some() {
                // What is left is not ours to flush; waiting would not end.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Freezes memtables as rule 4 says: the largest when the buffer is full, a sequential tree's
    /// early, one with a long stretch of deletes (rule 15), and one with many large values.
    pub fn freeze_if_full(&self, touched: &[Arc<TreeCore>]) {
        let buffer = self.jobs.shares.now().write_buffer_bytes();
        // A flush into a slow codec stays below half a second, so that writers never wait longer.
        let part = self.pacing.half_second_bytes().unwrap_or(u64::MAX);
        let part = part.clamp((1 << 20).min(buffer / 8), buffer / 8);
        for tree in touched {
            let active = Arc::clone(&tree.version().active);
            let memtable = &active.memtable;
            let early = tree.is_sequential() && memtable.bytes() >= part;
            let tombstone_run = tree.tombstone_search.is_due(&tree.version());
            let many = memtable.range_delete_count() > RANGE_DELETES_MAX;
            let large = active.value_bytes() > VALUE_BYTES_MAX;
            if early || tombstone_run || many || large {
                if tombstone_run {
                    self.wait_tombstone_compaction(tree);
                }
                self.freeze(tree);
            }
        }
        while self.account.active_bytes() >= buffer {
            match self.jobs.trees.largest() {
                Some(tree) if self.freeze(&tree) => {}
                _ => break,
            }
        }
        if self.is_manual() && !touched.is_empty() {
            self.run_pending();
        }
    }

    /// A second long stretch of deletes waits until the first has been cleaned away, so that a
    /// reader steps over two at most (rule 15).
    fn wait_tombstone_compaction(&self, tree: &Arc<TreeCore>) {
        if self.is_manual() {
            self.run_pending();
            return;
        }
        while !self.queue.wait_compacted(tree.id, CHECK_EVERY) {
            if self.health().check().is_err() || self.health().full().is_some() || tree.is_dropped()
            {
                return;
            }
        }
    }

    /// Sees to it that the runs of a commit become part of their trees.
    pub fn flush_attached(&self, trees: &[Arc<TreeCore>]) {
        trees.iter().for_each(|tree| self.queue.add_flush(tree));
        if self.is_manual() && !trees.is_empty() {
            self.run_pending();
        }
    }

    /// Freezes the active memtable of a tree, if it has anything, and has it flushed. Returns whether it
    /// did.
    pub fn freeze(&self, tree: &Arc<TreeCore>) -> bool {
        let froze = self.committer.exclusive(|_| tree.freeze());
        if froze {
            self.queue.add_flush(tree);
        }
        froze
    }

    /// Freezes every memtable of more than `above` bytes.
    pub fn freeze_all(&self, above: u64) {
        for tree in self.jobs.trees.all() {
            if tree.version().active.memtable.bytes() > above {
                self.freeze(&tree);
            }
        }
    }

    /// Freezes all memtables and waits until they are flushed.
    ///
    /// # Errors
    /// As [`wait_flushed`](Self::wait_flushed).
    pub fn flush(&self) -> Result<()> {
        self.freeze_all(0);
        self.wait_flushed()
    }

    /// Waits until all frozen memtables are flushed.
    ///
    /// # Errors
    /// `NoSpace`, `Poisoned`.
    pub fn wait_flushed(&self) -> Result<()> {
        let mut tries = 0;
        let mut left = self.jobs.trees.all();
        loop {
            self.health().check_unpoisoned()?;
            if self.is_manual() {
                self.try_space();
                self.run_pending();
                self.health().check_unpoisoned()?;
            }
            // A tree is looked at again only until its memtables are seen to be flushed: with ten
            // thousand of them a look at all after each change would be most of the work.
            if all_flushed(&mut left) {
                return Ok(());
            }
            if let Some(full) = self.health().full() {
                // Merges may be about to free what is missing.
                if tries == FULL_TRIES || self.is_manual() && tries > 0 {
                    return Err(full);
                }
                tries += 1;
            }
            if self.is_manual() {
                continue;
            }
            self.queue.wait_until(CHECK_EVERY, &mut |_| all_flushed(&mut left));
        }
    }

    /// Runs background work on this thread until nothing is due.
    pub fn run_pending(&self) {
        loop {
            self.plan_hints();
            let Some(task) = self.queue.try_next() else { return };
            self.perform(task);
            if self.health().check_unpoisoned().is_err() {
                return;
            }
        }
    }
}

/// Whether no tree has frozen memtables; forgets those that have none. The last go first, as flushes
/// take the first ones first.
fn all_flushed(left: &mut Vec<Arc<TreeCore>>) -> bool {
    while left.pop_if(|tree| tree.version().frozen.is_empty()).is_some() {}
    left.is_empty()
}

fn check_cancelled(is_cancelled: &dyn Fn() -> bool) -> Result<()> {
    if is_cancelled() {
        let message = "cancelled waiting for background work to make room: nothing was written";
        return Err(Error::new(ErrorKind::Cancelled, message));
    }
    Ok(())
}
