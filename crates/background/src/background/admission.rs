//! Admission of commits: write stalls, and refusal on a full disk.
//!
//! Three limits delay a commit: the pace of background work ([`crate::pacing`]), memtables of twice
//! the write buffer, and a log of twice the write buffer (rule 10). A full disk is a fourth limit
//! (rule 25): a commit that frees no space fails, and a commit that frees space waits for flushes
//! of deletes once it finds no room in memory.
//!
//! A database without background threads does the work here instead of waiting for it.

use std::time::Duration;

use frondb_commit::{Batch, ENTRY_OVERHEAD_BYTES};
use frondb_core::clock::Nanos;
use frondb_core::events::{Event, StallReason};
use frondb_core::{Error, ErrorKind, Result};

use super::Background;
use crate::background::full_disk::DiskWait;
use crate::pacing::Debt;

/// Longest wait for background work between two checks of the health of the database.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(100);

/// The shortest pause for pacing that is reported to the listener. Waits at the other limits are
/// always reported.
const NOTIFY_MIN: Duration = Duration::from_millis(10);

/// The size of a commit, and how it is to be admitted.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of the commit's messages.
    pub bytes: u64,
    /// Number of the commit's messages.
    pub messages: u64,
    /// Whether the commit is admitted while the disk is full: it only deletes, or the caller has
    /// declared that it leads to space being freed.
    pub frees_space: bool,
    /// Whether the commit is exempt from pacing and from the limits of memtables and log, but not
    /// from the limit of a full disk.
    pub unpaced: bool,
}

impl Load {
    /// Returns the load of a batch.
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

/// A wait of a commit that was reported to the listener.
struct Stall {
    reason: StallReason,
    begun: Nanos,
}

impl Background {
    fn debt(&self) -> Debt {
        Debt {
            memtable_bytes: self.account.unflushed_bytes(),
            write_buffer_bytes: self.shares.now().write_buffer_bytes(),
            log_bytes: self.log.replay_bytes(),
            merge_bytes: self.queue.due().debt_bytes,
            merge_allowance: self.shares.now().merge_debt_bytes(),
        }
    }

    /// Admits a commit at the pace that background work can follow. Calls `is_cancelled` from time
    /// to time while the commit waits.
    ///
    /// # Errors
    /// `NoSpace` if the disk is full and the commit frees no space, or memory has no room for its
    /// deletes. `Cancelled` soon after `is_cancelled` returns `true`. `Poisoned`, `Closed`.
    pub fn admit(&self, load: Load, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
        if self.health.full().is_some() {
            // Two attempts: in the first one, only work that frees space may run.
            for _ in 0..2 {
                let admits = load.frees_space && self.has_room_to_delete();
                if self.is_manual() && !admits && self.health.full().is_some() {
                    self.try_space();
                    self.run_pending();
                }
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
            return self.health.check();
        }
        // Memtables grow by the encoded messages and the overhead of each.
        let bytes = load.bytes + load.messages * ENTRY_OVERHEAD_BYTES as u64;
        let (before, pause) = (self.reads.now(), self.pacing.wait(bytes, debt));
        if let Some(pause) = pause {
            let told =
                (pause >= NOTIFY_MIN).then(|| self.notify_stall(self.pacing.reason(bytes, debt)));
            self.reads.clock.sleep(pause);
            if let Some(told) = told {
                self.notify_stall_end(told);
            }
        }
        let mut stall = None;
        let room = self.wait_for_room(is_cancelled, &mut stall);
        let nanos = self.reads.nanos_since(before);
        self.pacing.waited(nanos);
        if pause.is_some() || stall.is_some() {
            self.latencies.stall.add(nanos);
        }
        if let Some(stall) = stall {
            self.notify_stall_end(stall);
        }
        room?;
        // The disk may have become full during the wait.
        self.admit_to_full_disk(load, is_cancelled)
    }

    /// Reports to the listener that a commit begins to wait.
    fn notify_stall(&self, reason: StallReason) -> Stall {
        self.events.tell(Event::StallBegan(reason));
        Stall { reason, begun: self.reads.now() }
    }

    /// Reports to the listener that the wait has ended; returns its length in nanoseconds.
    fn notify_stall_end(&self, stall: Stall) -> u64 {
        let nanos = self.reads.nanos_since(stall.begun);
        self.events.tell(Event::StallEnded { reason: stall.reason, nanos });
        nanos
    }

    /// Whether the memtables and the log are below twice the write buffer.
    fn has_room(&self) -> bool {
        self.is_below(self.shares.now().write_buffer_bytes() * 2)
    }

    /// Whether the memtables and the log are below three times the write buffer, the limit for
    /// deletes on a full disk. Rows that cannot be flushed may fill the memtables to their usual
    /// limit, twice the write buffer, while only deletes can free space. The extra room lets the
    /// deletes in a memtable outnumber its rows; such a memtable is flushed even on a full disk.
    fn has_room_to_delete(&self) -> bool {
        self.is_below(self.shares.now().write_buffer_bytes() * 3)
    }

    /// Whether the memtables and the log are both smaller than `limit` bytes.
    fn is_below(&self, limit: u64) -> bool {
        self.account.unflushed_bytes() < limit && self.log.replay_bytes() < limit
    }

    /// Admits commits on a full disk: admits deletes while memory has room for them. Without room,
    /// deletes wait for flushes of deletes, for which the reserve has space. Other commits fail.
    fn admit_to_full_disk(&self, load: Load, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
        let mut stall = None;
        let admitted = self.admit_deletes(load, is_cancelled, &mut stall);
        if let Some(stall) = stall {
            self.latencies.stall.add(self.notify_stall_end(stall));
        }
        admitted
    }

    /// Admits deletes on a full disk. Sets `stall` if the commit begins to wait.
    fn admit_deletes(
        &self,
        load: Load,
        is_cancelled: &dyn Fn() -> bool,
        stall: &mut Option<Stall>,
    ) -> Result<()> {
        let mut wait = DiskWait::default();
        while let Some(full) = self.health.full() {
            if load.frees_space && self.has_room_to_delete() {
                return Ok(());
            }
            if !load.frees_space || self.is_manual() || self.gives_up(&mut wait) {
                return Err(full);
            }
            check_cancelled(is_cancelled)?;
            if stall.is_none() {
                *stall = Some(self.notify_stall(StallReason::Disk));
            }
            self.freeze_deletes();
            let changed = || self.health.full().is_none() || self.has_room_to_delete();
            self.queue.wait_until(CHECK_EVERY, &mut |_| changed());
            self.health.check()?;
        }
        Ok(())
    }

    /// Waits while the memtables or the log are at their limit, unless the disk is known to be
    /// full. Sets `stall` if the commit begins to wait.
    fn wait_for_room(
        &self,
        is_cancelled: &dyn Fn() -> bool,
        stall: &mut Option<Stall>,
    ) -> Result<()> {
        while !self.has_room() {
            if stall.is_none() {
                *stall = Some(self.notify_stall(self.debt().buffer_reason()));
            }
            check_cancelled(is_cancelled)?;
            self.freeze_if_full();
            let mut nothing_due = false;
            self.queue.wait_until(CHECK_EVERY, &mut |due| {
                nothing_due = due.debt_jobs == 0 && due.running == 0 && !due.maintenance;
                nothing_due || self.has_room()
            });
            self.health.check()?;
            if nothing_due || self.health.full().is_some() {
                // If nothing is due, no flush can make room, and the wait would never end. On a
                // full disk, `admit_to_full_disk` decides about the commit.
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Returns `Cancelled` if the caller has cancelled the wait.
fn check_cancelled(is_cancelled: &dyn Fn() -> bool) -> Result<()> {
    if is_cancelled() {
        let message =
            "the commit was cancelled while it waited for background work; nothing was written";
        return Err(Error::new(ErrorKind::Cancelled, message));
    }
    Ok(())
}
