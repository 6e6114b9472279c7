//! Background work on a full disk: what was held back is tried again, and space is kept for edits.

use frondb_commit::Committed;
use frondb_core::{Error, ErrorKind, Result};

use crate::background::Background;
use crate::jobs::install::EDIT_BYTES;
use crate::planning::replan;

/// Bytes of the reserve given to the log and the manifest on a full disk, at a time.
pub(crate) const LEND_BYTES: u64 = 2 << 20;

impl Background {
    /// Runs `commit`; one that only deletes can be logged on a full disk (rule 25).
    ///
    /// # Errors
    /// Those of `commit`.
    pub fn lending_space(
        &self,
        frees_space: bool,
        mut commit: impl FnMut() -> Result<Committed>,
    ) -> Result<Committed> {
        let committed = match commit() {
            Err(error) if error.kind() == ErrorKind::NoSpace && frees_space => {
                self.jobs.reads.runs.space.lend_reserve(LEND_BYTES)?;
                commit()
            }
            other => other,
        };
        // A failed sync of a large value, or of the log.
        committed.inspect_err(|error| self.health().poison_if_unknown(error))
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
    pub(crate) fn plan_failed(&self) {
        for (tree, node) in self.queue.take_failed() {
            replan(&self.jobs, &self.queue, &tree, &[node]);
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

    /// A job could write; if it took no reserved space, the disk is no longer full.
    pub(crate) fn note_space(&self, reserved: bool) {
        if !reserved && self.health().full().is_some() {
            self.queue.release(|| self.health().set_full(None));
            self.plan_failed();
        }
    }
}
