//! Group flush: the small memtables of many trees are flushed together. One sync of the data, one
//! of the log and one of the manifest serve all of them.
//!
//! ```text
//!   runs of tree 1, tree 2, ... written    then data synced, log synced up to the last of them
//!   an edit for each tree appended         then the manifest synced
//! ```
//!
//! Flushed one by one, ten thousand trees of a few rows each would cost twenty thousand syncs. The
//! order of durability is the same as in a single flush (rule 6). Each tree has its own edit, and
//! after a crash any number of them may be present.
//!
//! The queue forms the groups ([`Task::FlushGroup`](crate::queue::Task)). If work of a smaller
//! priority number, which is more urgent, waits, a group ends early (rule 3): the runs already
//! written are installed, and the other trees go back to the queue.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::TreeCore;

use super::Background;
use crate::jobs::flush::{FlushJob, abandon};
use crate::jobs::install::{EDIT_BYTES, Installed};
use crate::jobs::written::{Written, make_durable};
use crate::priority::FLUSH;

/// Number of trees after which a group checks for work of a smaller priority number. The small runs
/// of this many trees are about the output of one step (rule 3).
const CHECK_TREES: usize = 64;

impl Background {
    /// Flushes the oldest memtable of each tree. After a failure the remaining trees go back to the
    /// queue: their flushes would most likely fail too, and each failure would hold work back
    /// again.
    pub(crate) fn flush_group(&self, trees: &[Arc<TreeCore>]) {
        let begun = self.reads.now();
        let (mut written, mut bytes, mut failure) = (Vec::with_capacity(trees.len()), 0, None);
        // Trees with nothing to flush now. A thread that later freezes a memtable of such a tree
        // adds the tree to the queue again.
        let mut idle = Vec::new();
        for (i, tree) in trees.iter().enumerate() {
            if i > 0 && i.is_multiple_of(CHECK_TREES) && self.queue.stepped(FLUSH) {
                break;
            }
            match self.write_small(tree) {
                Ok(None) => idle.push(tree.id),
                Ok(Some((one, memtable_bytes))) => {
                    bytes += memtable_bytes;
                    written.push(one);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        self.tick();
        if !written.is_empty() {
            let reserved = written.iter().all(|written| written.reserved);
            match self.install_group(written) {
                Err(error) => failure = Some(error),
                Ok(()) if failure.is_none() => {
                    self.pacing.drained(bytes, begun, self.reads.now());
                    self.note_space(reserved);
                }
                Ok(()) => {}
            }
        }
        if let Some(error) = failure {
            self.fail(&error);
        }
        let more =
            |tree: &TreeCore| !tree.is_dropped() && tree.has_frozen() && !idle.contains(&tree.id);
        let ended = trees.iter().map(|tree| (Arc::clone(tree), more(tree)));
        self.queue.end_flush_group(&ended.collect::<Vec<_>>());
    }

    /// Writes the runs of a tree's oldest memtable. Returns the runs and the bytes of memory of the
    /// memtable; `None` if there is nothing to flush.
    fn write_small(&self, tree: &Arc<TreeCore>) -> Result<Option<(Written, u64)>> {
        let Some(mut job) = FlushJob::begin(&self.jobs, tree)? else { return Ok(None) };
        let bytes = job.memtable_bytes();
        let written = self.write_out(&mut job).and_then(|()| job.finish(&self.jobs));
        written.inspect_err(|_| abandon(tree)).map(|written| Some((written, bytes)))
    }

    /// Steps a flush, within the rate limit, until all its runs are written.
    fn write_out(&self, job: &mut FlushJob) -> Result<()> {
        let mut paid = job.bytes_written();
        loop {
            self.jobs.throttle.wait(&*self.reads.clock, &mut || self.health.is_closed());
            let ended = job.step()?;
            self.jobs.throttle.pay(job.bytes_written() - paid, self.reads.now());
            paid = job.bytes_written();
            if ended {
                return Ok(());
            }
        }
    }

    /// Makes the written runs durable, installs them, and makes the edits durable. Runs that cannot
    /// be installed because of an error are discarded.
    fn install_group(&self, written: Vec<Written>) -> Result<()> {
        if let Err(error) = make_durable(&self.jobs, &written) {
            written.iter().for_each(|written| abandon(&written.tree));
            return Err(error);
        }
        let mut installed: Vec<(Arc<TreeCore>, Installed)> = Vec::with_capacity(written.len());
        let (mut edit_bytes, mut result) = (0, Ok(()));
        for written in written {
            let tree = Arc::clone(&written.tree);
            let has_room = result.and_then(|()| self.make_room_for_edit());
            let one = match has_room {
                Ok(()) => written.install(&self.jobs),
                Err(error) => {
                    written.discard();
                    Err(error)
                }
            };
            result = one.map(|one| {
                edit_bytes += one.edit_bytes;
                installed.push((Arc::clone(&tree), one));
            });
            if result.is_err() {
                abandon(&tree);
            }
            if edit_bytes > EDIT_BYTES / 2 {
                // The space reserved in the manifest may not suffice for more bytes of edits.
                self.settle_group(&mut installed);
                edit_bytes = 0;
            }
        }
        self.settle_group(&mut installed);
        result
    }

    /// Settles the installs, the newest first: once the newest edit is durable, all earlier edits
    /// are durable.
    fn settle_group(&self, installed: &mut Vec<(Arc<TreeCore>, Installed)>) {
        while let Some((tree, installed)) = installed.pop() {
            self.settle(&tree, installed);
        }
    }
}
