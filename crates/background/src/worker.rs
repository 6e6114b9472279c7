//! Background workers: take tasks from the queue, step their jobs, install what is done.
//!
//! A worker never holds a lock while it steps. What fails: for want of space, all work that writes
//! is held back and tried again, and writers are told; a merge for a damaged block, the node is left
//! alone and everything else goes on; a sync, a flush, the log or the manifest, or a panic in a
//! user's function: the engine is poisoned.

use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Result};
use frondb_space::Reclaim;
use frondb_tree::TreeCore;
use frondb_wal::SyncMode;

use crate::background::{Background, LEND_BYTES};
use crate::counters::add;
use crate::jobs::flush::{FlushJob, abandon};
use crate::jobs::install::{EDIT_BYTES, Installed};
use crate::jobs::merge::{Begun, MergeJob};
use crate::jobs::relocate::move_one;
use crate::jobs::{Running, attach};
use crate::planning::{plan_all, replan};
use crate::queue::{Next, Task};

/// After this long without a commit, idle work is done.
const IDLE_TIMEOUT: Duration = Duration::from_millis(1000);

/// Between tries of work that failed for want of space.
const RETRY_EVERY: Duration = Duration::from_millis(200);

/// A tree must have more than this on disk for its deletes to be flushed before their time: tens of
/// thousands of small trees should not be written again for every row that goes.
const IDLE_FLUSH_BYTES: u64 = 1 << 20;

/// Whether the active memtable hides a good part of what is on disk.
fn hides_much(tree: &TreeCore) -> bool {
    let version = tree.version();
    let memtable = &version.active.memtable;
    let totals = version.trunk.root.totals;
    let part_of_all = |messages: u64| messages * 16 >= totals.entries;
    let ranges = memtable.range_delete_count() > 0;
    if memtable.is_empty() {
        return false;
    }
    let deletes_much = ranges || part_of_all(memtable.deletes());
    if deletes_much && totals.disk_bytes >= IDLE_FLUSH_BYTES {
        return true;
    }
    // Large values have their bytes elsewhere, and any message may be one that hides one.
    let in_memtable = version.active.value_bytes();
    let writes_much = ranges || part_of_all(memtable.len());
    in_memtable >= IDLE_FLUSH_BYTES || writes_much && tree.value_bytes() >= IDLE_FLUSH_BYTES
}

/// The loop of one worker thread.
pub fn worker(background: &Background) {
    loop {
        match background.queue.next(&mut || background.idle_timeout()) {
            Next::Stopped => return,
            Next::Hints => background.plan_hints(),
            Next::Nothing => background.on_timeout(),
            Next::Task(task) => background.perform_or_poison(task),
        }
    }
}

impl Background {
    /// How long a worker waits for a task before it looks around; `None` when there is nothing
    /// that time alone could make due, so that an idle engine does not wake up.
    fn idle_timeout(&self) -> Option<Duration> {
        let full = self.health().full().map(|_| RETRY_EVERY);
        let idle_work = (!self.idle_work_done.load(Ordering::Acquire)).then_some(IDLE_TIMEOUT);
        let checkpoint = self.period.due_in(self.jobs.now());
        [full, self.sync_due(), idle_work, checkpoint].into_iter().flatten().min()
    }

    /// How long until the log is to be synced, if it has something to sync.
    fn sync_due(&self) -> Option<Duration> {
        self.jobs.log.wal.next_tick().or_else(|| {
            // A commit behind this look finds nobody who knows, and wakes a worker.
            self.ticking.store(false, Ordering::Release);
            self.jobs.log.wal.next_tick()
        })
    }

    /// Has a record that was just written synced when its time has come.
    pub fn keep_ticking(&self) {
        if !matches!(self.jobs.log.wal.sync_mode(), SyncMode::EveryMillis(_)) {
            return;
        }
        if self.is_manual() {
            self.tick();
        } else if !self.ticking.swap(true, Ordering::AcqRel) {
            self.queue.wake();
        }
    }

    /// Plans anew what readers found expensive.
    pub fn plan_hints(&self) {
        for (tree, node) in self.queue.take_hints() {
            replan(&self.jobs, &self.queue, &tree, &[node]);
        }
    }

    /// The same where no worker would.
    pub fn plan_hints_if_manual(&self) {
        if self.is_manual() {
            self.plan_hints();
        }
    }

    /// Nothing was due for a while.
    fn on_timeout(&self) {
        self.try_space();
        self.tick();
        if self.is_idle() && !self.idle_work_done.load(Ordering::Acquire) {
            self.begin_idle();
            let due = self.queue.due();
            if due.jobs == 0 && due.running == 0 {
                self.idle_maintenance();
            }
        }
    }

    /// Lets idle work in, if it was not.
    pub fn begin_idle(&self) {
        if !self.queue.set_idle(true) {
            return;
        }
        for tree in self.jobs.trees.all() {
            if hides_much(&tree) {
                // Space comes back although nothing more is written.
                self.freeze(&tree);
            }
            // What only the end of a snapshot made possible is found now.
            plan_all(&self.jobs, &self.queue, &tree);
        }
    }

    /// Finds what gives back deleted large values, as idle work does.
    pub fn plan_values(&self) {
        let has_values = |tree: &Arc<TreeCore>| !tree.install.lock().values.is_empty();
        for tree in self.jobs.trees.all().into_iter().filter(has_values) {
            if hides_much(&tree) {
                self.freeze(&tree);
            }
            // What only the end of a snapshot made possible.
            plan_all(&self.jobs, &self.queue, &tree);
        }
    }

    /// Syncs the log if the mode says that it is time to, and sees whether a checkpoint is due.
    pub fn tick(&self) {
        if let Err(error) = self.jobs.log.wal.tick() {
            self.fail(&error);
        }
        self.request_checkpoint_if_due();
    }

    /// Lets work that failed for want of space try again.
    pub fn try_space(&self) {
        if self.health().full().is_none() {
            return;
        }
        if !self.jobs.edits.manifest.has_reserve() || !self.jobs.log.wal.has_reserve() {
            // Log and manifest must go on for deletes to be possible.
            self.lend_reserve();
        }
        self.plan_failed();
        let due = self.queue.due();
        self.queue.release(|| {
            if due.debt_jobs == 0 && due.running == 0 {
                // What failed went with its tree, or nobody waits for it: nothing else would ever
                // say that there is space.
                self.health().set_full(None);
            }
        });
        // What failed since, and found the disk still full: see `plan_again`.
        self.plan_failed();
    }

    fn lend_reserve(&self) {
        if let Err(error) = self.jobs.reads.runs.space.lend_reserve(LEND_BYTES) {
            tracing::warn!(%error, "the space kept for a full disk cannot be used");
        }
    }

    /// Plans again what failed for want of space.
    fn plan_failed(&self) {
        for (tree, node) in self.queue.take_failed() {
            replan(&self.jobs, &self.queue, &tree, &[node]);
        }
    }

    /// Whether nothing was committed for a while.
    pub(crate) fn is_idle(&self) -> bool {
        let last = Nanos(self.last_commit.load(Ordering::Relaxed));
        self.jobs.now().since(last) >= IDLE_TIMEOUT
    }

    /// Gives back what a busy engine keeps: free space, spare segments, freed memory.
    pub fn idle_maintenance(&self) {
        self.idle_work_done.store(true, Ordering::Release);
        self.jobs.reads.cursors.unpin_all_old(self.jobs.now());
        let result = self.return_space();
        if let Err(error) = result.and_then(|()| self.jobs.log.wal.trim_spares()) {
            self.fail(&error);
        }
        frondb_core::mem::trim();
    }

    fn return_space(&self) -> Result<()> {
        while let Some(tail) = self.jobs.reads.runs.space.tail_move_wanted() {
            let goes_on = self.is_idle() || self.health().is_closed();
            if !goes_on
                || !self.jobs.edits.manifest.has_reserve()
                || !move_one(&self.jobs, &self.queue, tail)?
            {
                break;
            }
        }
        while self.jobs.reads.runs.space.reclaim_step(Reclaim::Idle)? {
            if !self.is_idle() && !self.health().is_closed() {
                break;
            }
        }
        Ok(())
    }

    /// As [`perform`](Self::perform). A worker must not die silently, or those who wait for its work
    /// would wait for ever.
    fn perform_or_poison(&self, task: Task) {
        // Nothing is used afterwards that the panic could have left half done: the engine stops.
        let performed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.perform(task)));
        if let Err(panic) = performed {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let why = text.unwrap_or_else(|| "no reason given".to_owned());
            self.health().poison(&Error::internal(format!("background work panicked: {why}")));
            self.queue.stop();
        }
    }

    /// Does one task to its end, or until something more urgent waits.
    pub fn perform(&self, task: Task) {
        match task {
            Task::Flush(tree) => self.begin_flush(&tree),
            Task::FlushGroup(trees) => self.flush_group(&trees),
            Task::Plan(tree, planned) => {
                let key = (tree.id, planned.node);
                let begun = self.make_room_for_edit();
                match begun.and_then(|()| MergeJob::begin(&self.jobs, &tree, planned)) {
                    Ok(Some(Begun::Job(job))) => self.drive(Running::Merge(job)),
                    Ok(Some(Begun::Done(installed))) => {
                        self.settle(&tree, installed);
                        self.queue.end_plan(key.0, key.1);
                    }
                    Ok(None) => self.queue.end_plan(key.0, key.1),
                    Err(error) => {
                        self.fail_merge(&error);
                        self.queue.end_plan(key.0, key.1);
                        self.plan_again(&tree, key.1, &error);
                    }
                }
            }
            Task::Resume(job) => self.drive(job),
            Task::Maintenance => {
                if let Err(error) = self.maintain() {
                    self.fail(&error);
                }
                self.queue.end_maintenance();
            }
        }
    }

    fn begin_flush(&self, tree: &Arc<TreeCore>) {
        match self.make_room_for_edit().and_then(|()| attach::flush(&self.jobs, tree)) {
            Ok(None) => {}
            Ok(Some(installed)) => {
                self.settle(tree, installed);
                let more = !tree.is_dropped() && !tree.version().frozen.is_empty();
                self.queue.end_flush_with_maintenance(tree, more);
                return;
            }
            Err(error) => {
                self.fail(&error);
                self.queue.end_flush(tree, true);
                return;
            }
        }
        match FlushJob::begin(&self.jobs, tree) {
            Ok(Some(job)) => self.drive(Running::Flush(Box::new(job))),
            Ok(None) => self.queue.end_flush(tree, false),
            Err(error) => {
                self.fail(&error);
                self.queue.end_flush(tree, true);
            }
        }
    }

    fn drive(&self, mut job: Running) {
        let mut written = job.bytes_written();
        loop {
            self.jobs.throttle.wait(&*self.jobs.reads.clock, &mut || self.health().is_closed());
            let stepped = job.step();
            self.jobs.throttle.pay(job.bytes_written() - written, self.jobs.now());
            written = job.bytes_written();
            match stepped {
                Ok(true) => return self.install(job),
                Ok(false) => {
                    self.tick();
                    if let Running::Flush(job) = &job {
                        self.pacing.draining(job.drained_bytes(), job.begun(), self.jobs.now());
                    }
                    if self.queue.stepped(job.priority()) {
                        return self.park(job);
                    }
                }
                Err(error) => return self.give_up(job, &error),
            }
        }
    }

    /// Something more urgent waits.
    fn park(&self, job: Running) {
        if let Some(job) = self.queue.park(job) {
            self.requeue(job);
        }
    }

    /// Sees to it that the edit of an install finds space in the manifest: the engine would not know
    /// what is durable, and be poisoned.
    pub(crate) fn make_room_for_edit(&self) -> Result<()> {
        let manifest = &self.jobs.edits.manifest;
        if manifest.has_reserve() {
            return Ok(());
        }
        self.lend_reserve();
        if manifest.make_room(EDIT_BYTES)? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NoSpace, "no space left for the manifest"))
    }

    fn install(&self, job: Running) {
        if let Err(error) = self.make_room_for_edit() {
            return self.give_up(job, &error);
        }
        let tree = Arc::clone(job.tree());
        let reserved = job.frees_space();
        match job {
            Running::Flush(job) => {
                let (bytes, begun) = (job.memtable_bytes(), job.begun());
                match job.install(&self.jobs) {
                    Ok(installed) => {
                        self.pacing.drained(bytes, begun, self.jobs.now());
                        self.settle(&tree, installed);
                        self.note_space(reserved);
                    }
                    Err(error) => {
                        abandon(&tree);
                        self.fail(&error);
                    }
                }
                let more = !tree.is_dropped() && !tree.version().frozen.is_empty();
                self.queue.end_flush_with_maintenance(&tree, more);
            }
            Running::Merge(job) => {
                let node = job.planned.node;
                match job.install(&self.jobs) {
                    Ok(installed) => {
                        self.settle(&tree, installed);
                        self.note_space(reserved);
                    }
                    Err(error) => {
                        tree.install.lock().claimed.remove(&node);
                        self.fail_merge(&error);
                        self.plan_again(&tree, node, &error);
                    }
                }
                self.queue.end_plan(tree.id, node);
            }
        }
    }

    /// Makes an install durable, lets go of what it dropped, and plans what it touched.
    pub(crate) fn settle(&self, tree: &Arc<TreeCore>, installed: Installed) {
        self.idle_work_done.store(false, Ordering::Release);
        match installed.settle(&self.jobs) {
            Ok(touched) => {
                self.jobs.reads.cursors.unpin_old(tree, self.jobs.now());
                replan(&self.jobs, &self.queue, tree, &touched);
            }
            Err(error) => {
                // The trunk in memory is ahead of the manifest: nothing may build on it.
                self.health().poison(&error);
                self.queue.stop();
            }
        }
    }

    /// A job could write; if it took no reserved space, the disk is no longer full.
    pub(crate) fn note_space(&self, reserved: bool) {
        if !reserved && self.health().full().is_some() {
            self.queue.release(|| self.health().set_full(None));
            self.plan_failed();
        }
    }

    /// A job failed: its output goes, its inputs are as they were.
    fn give_up(&self, job: Running, error: &Error) {
        let (tree, node) = (Arc::clone(job.tree()), job.node());
        undo(job);
        match node {
            None => {
                self.fail(error);
                self.queue.end_flush(&tree, true);
            }
            Some(node) => {
                self.fail_merge(error);
                self.queue.end_plan(tree.id, node);
                self.plan_again(&tree, node, error);
            }
        }
    }

    /// The disk is full: a job that may not go on before there is space is begun anew then. It would
    /// keep what it has written, and its node from a job that frees space.
    fn requeue(&self, job: Running) {
        let (tree, node) = (Arc::clone(job.tree()), job.node());
        undo(job);
        match node {
            None => self.queue.end_flush(&tree, true),
            Some(node) => {
                self.queue.end_plan(tree.id, node);
                replan(&self.jobs, &self.queue, &tree, &[node]);
            }
        }
    }

    /// Plans a node whose job failed again, unless it cannot succeed: a damaged block stays
    /// damaged, and trying for ever would use the disk up for nothing.
    fn plan_again(&self, tree: &Arc<TreeCore>, node: frondb_core::NodeId, error: &Error) {
        if error.kind() == ErrorKind::NoSpace {
            self.queue.add_failed(tree, node);
            if self.health().full().is_none() {
                // Another job found space since, and has not seen this one.
                self.plan_failed();
            }
        }
    }

    /// Notes a failure of background work that must go on: a flush, the log, the manifest.
    pub fn fail(&self, error: &Error) {
        add(&self.jobs.counters.job_failures, 1);
        if error.kind() == ErrorKind::NoSpace {
            for job in self.queue.hold(|| self.health().set_full(Some(error.clone()))) {
                self.requeue(job);
            }
        } else {
            self.health().poison(error);
            self.queue.stop();
        }
    }

    /// Notes a failure of a merge. Its inputs are as they were: a node that cannot be merged, for a
    /// damaged block, a sector that cannot be read, a message that fits no function, is left alone,
    /// and everything else goes on.
    fn fail_merge(&self, error: &Error) {
        match error.kind() {
            ErrorKind::NoSpace | ErrorKind::Poisoned | ErrorKind::Internal => self.fail(error),
            _ => {
                add(&self.jobs.counters.job_failures, 1);
                tracing::error!(%error, "background work could not merge a node; it stays as it is");
            }
        }
    }

    /// Looks after the log, the manifest and the free space.
    fn maintain(&self) -> Result<()> {
        self.trim_log_if_long()?;
        if self.log_is_long() {
            self.shorten_log()?;
        }
        if self.health().full().is_none() {
            self.checkpoint_if_due()?;
            self.rotate_manifest(false)?;
        }
        self.jobs.reads.runs.space.reclaim_step(Reclaim::Busy)?;
        Ok(())
    }
}

/// Takes back what a job has done so far.
fn undo(job: Running) {
    match &job {
        Running::Flush(flush) => abandon(&flush.tree),
        Running::Merge(merge) => {
            merge.tree.install.lock().claimed.remove(&merge.planned.node);
        }
    }
}
