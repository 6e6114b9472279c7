//! Letting commits in: what they wait for, what is frozen when, and what waits for flushes.
//!
//! A writer meets three limits: the pace of background work ([`crate::pacing`]), twice the write
//! buffer of memtables, and as much of log. On a full disk it meets a fourth: what does not free
//! space is refused, what does waits for its own flushes.
//!
//! An engine without background threads does the work here instead of waiting for it.

use std::time::Duration;

use frondb_commit::Batch;
use frondb_core::{Error, ErrorKind, Result};

use crate::background::Background;
use crate::pacing::Debt;

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
}

fn check_cancelled(is_cancelled: &dyn Fn() -> bool) -> Result<()> {
    if is_cancelled() {
        let message = "cancelled waiting for background work to make room: nothing was written";
        return Err(Error::new(ErrorKind::Cancelled, message));
    }
    Ok(())
}
