//! Carries out a task: begins its job, steps the job, installs the job's output.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_space::Reclaim;
use frondb_tree::TreeCore;

use super::Background;
use crate::background::stowing::stow;
use crate::jobs::flush::{FlushJob, abandon};
use crate::jobs::install::Installed;
use crate::jobs::merge::{Begun, MergeJob};
use crate::jobs::{Running, attach};
use crate::planning::replan;
use crate::queue::Task;

impl Background {
    /// Carries out one task to its end. Parks the task's job between two steps if more urgent work,
    /// of a smaller priority number, waits.
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
                        let is_damage = self.fail_merge(&tree, key.1, &error);
                        self.queue.end_plan(key.0, key.1);
                        self.plan_again(&tree, key.1, &error, is_damage);
                    }
                }
            }
            Task::Resume(job) => self.drive(job),
            Task::Replan(tree, nodes) => {
                self.freeze_if_paid(&tree);
                replan(&self.jobs, &self.queue, &tree, &nodes);
                self.queue.end_replan(tree.id);
            }
            Task::Search(tree) => {
                self.search_tombstone_runs(&tree);
                self.queue.end_search(tree.id);
            }
            Task::Probe(tree, run) => {
                self.probe_tombstone_run(&tree, run);
                self.queue.end_probe(tree.id);
            }
            Task::Maintenance => {
                if let Err(error) = self.maintain() {
                    self.fail(&error);
                }
                self.queue.end_maintenance();
            }
        }
    }

    /// Flushes the oldest frozen source of a tree: installs attached runs, or begins a job.
    fn begin_flush(&self, tree: &Arc<TreeCore>) {
        match self.make_room_for_edit().and_then(|()| attach::flush(&self.jobs, tree)) {
            Ok(None) => {}
            Ok(Some(installed)) => {
                self.settle(tree, installed);
                let more = !tree.is_dropped() && tree.has_frozen();
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

    /// Steps a job within the rate limit, until it is installed, parked or has failed.
    fn drive(&self, mut job: Running) {
        let mut written = job.bytes_written();
        loop {
            self.jobs.throttle.wait(&*self.reads.clock, &mut || self.health.is_closed());
            let stepped = job.step();
            self.jobs.throttle.pay(job.bytes_written() - written, self.reads.now());
            written = job.bytes_written();
            match stepped {
                Ok(true) => {
                    self.queue.stepped_last(job.priority());
                    return self.install(job);
                }
                Ok(false) => {
                    self.tick();
                    if let Running::Flush(job) = &job {
                        self.pacing.draining(job.drained_bytes(), job.begun(), self.reads.now());
                    }
                    // Requests of readers and commits come before this job, because they may lead
                    // to work on a tombstone run (rule 15).
                    if let Some(request) = self.queue.next_request() {
                        self.perform(request);
                    }
                    if self.queue.stepped(job.priority()) {
                        return self.park(job);
                    }
                }
                Err(error) => return self.give_up(job, &error),
            }
        }
    }

    /// Parks the job because work of a smaller priority number waits.
    fn park(&self, job: Running) {
        if let Some(job) = self.queue.park(job) {
            self.requeue(job);
        }
    }

    /// Installs the output of a job, and requests the work that follows from it.
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
                        self.pacing.drained(bytes, begun, self.reads.now());
                        self.settle(&tree, installed);
                        self.note_space(reserved);
                    }
                    Err(error) => {
                        abandon(&tree);
                        self.fail(&error);
                    }
                }
                let more = !tree.is_dropped() && tree.has_frozen();
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
                        let is_damage = self.fail_merge(&tree, node, &error);
                        self.queue.end_plan(tree.id, node);
                        return self.plan_again(&tree, node, &error, is_damage);
                    }
                }
                self.queue.end_plan(tree.id, node);
            }
        }
    }

    /// Waits until the edit of an install is durable. Then frees the runs and large values that the
    /// edit dropped, and plans the nodes that it changed.
    pub(crate) fn settle(&self, tree: &Arc<TreeCore>, installed: Installed) {
        self.idle_work_done.store(false, Ordering::Release);
        match installed.settle(&self.jobs) {
            Ok(touched) => {
                self.reads.cursors.unpin_old(tree, self.reads.now());
                replan(&self.jobs, &self.queue, tree, &touched);
                stow(&self.jobs, tree);
            }
            Err(error) => {
                // The trunk in memory is ahead of the manifest, so no later edit may build on it.
                self.health.poison(&error);
                self.queue.stop();
            }
        }
    }

    /// Carries out maintenance: stows unused trees if very many were opened, trims and shortens the
    /// log, begins or continues a checkpoint that is due, replaces a long manifest by a snapshot,
    /// and returns free space.
    fn maintain(&self) -> Result<()> {
        if self.queue.take_stowing() {
            self.stow_unused();
        }
        self.trim_log_if_long()?;
        if self.log_is_long() {
            self.shorten_log()?;
        }
        if self.health.full().is_none() {
            self.checkpoint_if_due()?;
            self.rotate_manifest(false)?;
        }
        self.space.reclaim_step(Reclaim::Busy)?;
        Ok(())
    }
}
