//! The open log: appends, group commit, segments, failures.
//!
//! See [`Wal`] for the protocol. LOCK order: first `state`, which is never held during I/O; then
//! `mark`, which is held while the file of the mark is written.

use std::time::Duration;

use frondb_block::frame::{self, Body};
use frondb_core::clock::SharedClock;
use frondb_core::latency::{Latency, LatencyStats};
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Condvar, Mutex};
use frondb_core::{Lsn, Result};

use crate::files::Directory;
use crate::format::DurableMark;
use crate::mark::Mark;
use crate::options::{SyncMode, WalOptions};
use crate::state::{Appended, LogState};
use crate::stats::WalStats;
use crate::waiters::Woken;

/// Number of records written uncompressed after a record that lz4 did not shorten.
const COMPRESSION_SKIPS: u32 = 32;

/// The write-ahead log. Shared by all threads that commit.
///
/// # Naive version
/// Each commit locks the file, writes its record and syncs. One sync per commit limits the commit
/// rate to the number of syncs that the disk performs per second, and every commit makes a system
/// call even if it does not sync.
///
/// # Protocol
/// There are three positions: `durable <= written <= end`. `durable` and `written` only grow; `end`
/// falls back to `written` when records are abandoned.
///
/// ```text
///          disk has it       kernel has it       memory has it
///  |------------------------|-------------------|--------------|
///                        durable             written          end
/// ```
///
/// - `append` encodes the record into the buffer at `end` (after abandoned records, at the first
///   unused Lsn), under the lock, and returns. Position, checksum and segment are decided there, so
///   the order of the log is the order of the calls.
/// - `write_to(lsn)`: a thread that finds no other thread writing becomes the leader, takes the
///   whole buffer, writes it without the lock, and wakes the other threads, whose records it has
///   written, too.
/// - `sync_to(lsn)`: likewise, with one sync for everything written. A thread that arrives during a
///   sync waits for the end of that sync *before* it writes, so that the next leader writes and
///   syncs for all threads that arrived meanwhile.
///
/// `append` only notes in memory that a segment is full; the leader of the next write then syncs
/// the old file and creates the new one (see `files`). Therefore only the last segment can have a
/// torn tail.
///
/// # Invariants
/// - A record is in the file only after all records with smaller Lsns: a torn tail is a suffix.
/// - Two records never get the same Lsn, even if the first could not be written.
/// - A record that was reported as failed is never replayed.
///
/// # Failures
/// - A failed *write* (a full disk): everything from `written` to `end` is abandoned, and exactly
///   the callers that wait for these records get the error. The part of the write that reached the
///   file is durably cut off before any caller is notified. The segment ends there; the next record
///   begins a new segment, whose header says where the old one ended. So the log can continue when
///   there is space again.
/// - A failed *sync*, or a failed cut: the content of the disk is unknown. Every later call fails
///   with `Poisoned`, and nothing is synced again.
///
/// # Rejected
/// - A thread of the log: it costs two context switches per commit, and it has no caller to which
///   it could return errors.
/// - Reusing the Lsns of abandoned records: `sync_to` could not tell whose record failed.
/// - No sync between segments: after a power loss any record of any segment could then be missing,
///   and a loss in the middle of the log would look like a torn tail.
#[derive(Debug)]
pub struct Wal {
    pub(crate) directory: Directory,
    pub(crate) options: WalOptions,
    /// The bits of the [`SyncMode`] in force; `options.sync` is only the initial mode.
    mode: AtomicU64,
    db_id: u128,
    pub(crate) clock: SharedClock,
    pub(crate) state: Mutex<LogState>,
    /// Signals that a leader has finished. Threads that wait for a sync of their records are in
    /// [`LogState::waiters`] instead.
    pub(crate) progress: Condvar,
    scratch: Mutex<Scratch>,
    /// The file that records how far the log is durable; `None` if there is no space for the file.
    /// Locked last.
    mark: Mutex<Option<Mark>>,
    /// Whether the mark is durable and the log's files say that it exists.
    pub(crate) marked: bool,
    /// Durations of syncs.
    pub(crate) sync_latency: Latency,
}

/// Buffers for compression, reused.
#[derive(Debug, Default)]
struct Scratch {
    gather: Vec<u8>,
    block: Vec<u8>,
    /// Number of records that are still to be written without trying to compress them.
    skips: u32,
}

impl Wal {
    pub(crate) fn new(
        directory: Directory,
        options: WalOptions,
        db_id: u128,
        clock: SharedClock,
        state: LogState,
        mark: Option<Mark>,
        marked: bool,
    ) -> Self {
        Self {
            directory,
            mode: AtomicU64::new(options.sync.to_bits()),
            options,
            db_id,
            clock,
            state: Mutex::new(state),
            progress: Condvar::new(),
            scratch: Mutex::new(Scratch::default()),
            mark: Mutex::new(mark),
            marked,
            sync_latency: Latency::default(),
        }
    }

    /// Appends one record, the concatenation of the parts. The record is then only in memory; wait
    /// for [`Appended::end`] with [`Wal::commit_to`], [`Wal::write_to`] or [`Wal::sync_to`].
    ///
    /// # Errors
    /// `Invalid` for a record of 1 GiB or more; `Poisoned`.
    pub fn append(&self, parts: &[&[u8]]) -> Result<Appended> {
        if !self.options.compression {
            return self.append_body(Body::Raw(parts), parts);
        }
        let mut scratch = self.scratch.lock();
        let Scratch { gather, block, skips } = &mut *scratch;
        if *skips > 0 {
            *skips -= 1;
        } else if let Some(raw_bytes) = frame::compress(parts, gather, block, self.options.verify) {
            return self.append_body(Body::Lz4 { raw_bytes, block }, parts);
        } else {
            *skips = COMPRESSION_SKIPS;
        }
        drop(scratch);
        self.append_body(Body::Raw(parts), parts)
    }

    fn append_body(&self, body: Body<'_>, parts: &[&[u8]]) -> Result<Appended> {
        let mut state = self.state.lock();
        state.check_poison()?;
        let appended = state.append(body, self.db_id, self.options.segment_bytes)?;
        state.stats.records += 1;
        state.stats.payload_bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        Ok(appended)
    }

    /// Returns the mode, which decides for which durability [`Wal::commit_to`] waits.
    #[must_use]
    pub fn sync_mode(&self) -> SyncMode {
        SyncMode::from_bits(self.mode.load(Ordering::Acquire))
    }

    /// Changes the durability for which [`Wal::commit_to`] waits, from now on and for all threads,
    /// and then makes everything appended so far durable. So the promises of the former mode are
    /// kept, and every commit acknowledged in a weaker mode survives a power loss.
    ///
    /// # Errors
    /// `Invalid` for a bad interval; nothing is changed. Otherwise like [`Wal::sync`]; the mode is
    /// then changed although the call fails.
    pub fn set_sync_mode(&self, mode: SyncMode) -> Result<()> {
        mode.check()?;
        // A commit that still reads the old mode has appended its record before. The end of the log
        // is read after the change of the mode, so this sync covers that record.
        self.mode.store(mode.to_bits(), Ordering::Release);
        self.sync()
    }

    /// Waits until the record that ends at `lsn` is as durable as the mode requires (rule 11).
    ///
    /// # Errors
    /// Like [`Wal::sync_to`].
    pub fn commit_to(&self, lsn: Lsn) -> Result<()> {
        match self.sync_mode() {
            SyncMode::Always => self.sync_to(lsn),
            SyncMode::EveryMillis(_) | SyncMode::Never => self.write_to(lsn),
        }
    }

    /// Waits until the operating system has the record that ends at `lsn` and everything before it.
    /// The record then survives the end of the process but not a power loss.
    ///
    /// # Errors
    /// `NoSpace` or `Io` if the record could not be written. The record is then abandoned together
    /// with all records after it, and none of them will ever be replayed. `Poisoned`.
    pub fn write_to(&self, lsn: Lsn) -> Result<()> {
        loop {
            let mut state = self.state.lock();
            loop {
                state.check(lsn)?;
                if state.written >= lsn {
                    return Ok(());
                }
                if !state.writing {
                    break;
                }
                self.progress.wait(&mut state);
            }
            let (batch, segment) = state.take_batch();
            drop(state);
            self.lead_write(batch, segment);
        }
    }

    /// As [`Wal::write_to`], for everything appended so far.
    ///
    /// # Errors
    /// Like [`Wal::write_to`].
    pub fn write_out(&self) -> Result<()> {
        self.write_to(self.end_lsn())
    }

    /// Waits until the record that ends at `lsn`, and everything before it, is durable.
    ///
    /// # Errors
    /// Like [`Wal::write_to`]; `Poisoned` if the sync fails, and for every call from then on.
    pub fn sync_to(&self, lsn: Lsn) -> Result<()> {
        loop {
            let mut state = self.state.lock();
            state.check(lsn)?;
            if state.durable >= lsn {
                return Ok(());
            }
            if state.syncing {
                let place = state.waiters.join(lsn);
                drop(state);
                if place.wait() == Woken::Durable {
                    return Ok(());
                }
                continue;
            }
            if state.written < lsn {
                // Write the whole buffer. If the write fails and this record is abandoned, the
                // check above returns the error.
                let end = state.end;
                drop(state);
                let _ = self.write_to(end);
                continue;
            }
            let file = state.current_file.clone();
            self.sync_as_leader(state, || file.map_or(Ok(()), |file| file.sync()))?;
        }
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// Like [`Wal::sync_to`].
    pub fn sync(&self) -> Result<()> {
        self.sync_to(self.end_lsn())
    }

    /// Returns the id of the database to which the log belongs.
    #[must_use]
    pub fn db_id(&self) -> u128 {
        self.db_id
    }

    /// Returns the Lsn after the last record that was appended and not abandoned.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        self.state.lock().end
    }

    /// Returns the Lsn up to which the operating system has the log.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn written_lsn(&self) -> Lsn {
        self.state.lock().written
    }

    /// Returns the Lsn up to which the log is durable.
    #[must_use]
    pub fn durable_lsn(&self) -> Lsn {
        self.state.lock().durable
    }

    /// Returns the bytes of log from the oldest segment on: the most that a recovery would read.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.state.lock().live_bytes()
    }

    /// Whether the last attempt to allocate space ahead ([`WalOptions::reserve_bytes`]) succeeded,
    /// or a spare is left. If neither is true, the disk is full, and the remaining space should be
    /// kept for records that free space.
    #[must_use]
    pub fn has_reserve(&self) -> bool {
        let state = self.state.lock();
        !state.reserve_failed || !state.spares.is_empty()
    }

    /// Returns statistics of the durations of syncs.
    #[must_use]
    pub fn sync_latency(&self) -> LatencyStats {
        self.sync_latency.read()
    }

    /// Returns the log's counters and sizes.
    #[must_use]
    pub fn stats(&self) -> WalStats {
        self.state.lock().stats()
    }

    /// Releases the segments that lie completely below `before`. Their files become spares or are
    /// deleted. REQUIRES: no manifest that a recovery could read needs a record below `before`.
    ///
    /// # Errors
    /// Errors of the device. The log stays usable; the next open removes files left behind.
    pub fn recycle(&self, before: Lsn) -> Result<()> {
        let segment_bytes = self.options.segment_bytes;
        let (spares, removed) = self.state.lock().take_obsolete(before, segment_bytes);
        if spares.is_empty() && removed.is_empty() {
            return Ok(());
        }
        self.directory.retire(&spares, &removed)?;
        self.state.lock().spares.extend(spares);
        Ok(())
    }

    /// Sets whether [`recycle`](Self::recycle) may keep files as spares; after an open it may.
    /// `false` also deletes the present spares, for a log that has become idle.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn keep_spares(&self, keep: bool) -> Result<()> {
        let unneeded = {
            let mut state = self.state.lock();
            state.spares_max = if keep { self.options.spares_max } else { 0 };
            let kept = state.spares.len().min(state.spares_max);
            state.spares.split_off(kept)
        };
        self.directory.remove_spares(&unneeded)
    }

    /// Begins a new segment if the file of the newest segment has at least `bytes` bytes. For a log
    /// that has become idle, if no record of the newest segment is needed any more:
    /// [`recycle`](Self::recycle) releases only segments that have ended. Does nothing while
    /// records are being written, or on a full disk.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn end_segment(&self, bytes: u64) -> Result<()> {
        let mut state = self.state.lock();
        state.check_poison()?;
        if state.writing || !state.begin_segment(self.db_id, bytes) {
            return Ok(());
        }
        let (batch, segment) = state.take_batch();
        drop(state);
        // If the disk is full, the next record begins a segment instead.
        self.lead_write(batch, segment);
        self.state.lock().check_poison()
    }

    /// Does periodic work: the sync of [`SyncMode::EveryMillis`]. Cheap; call it at the time that
    /// [`Wal::next_tick`] returns, or more often.
    ///
    /// # Errors
    /// Like [`Wal::sync_to`].
    pub fn tick(&self) -> Result<()> {
        match self.next_tick() {
            Some(Duration::ZERO) => self.sync(),
            _ => Ok(()),
        }
    }

    /// Returns the time until [`Wal::tick`] has work, zero if it has work now; `None` if it has no
    /// work until a record is appended or the mode changes.
    #[must_use]
    pub fn next_tick(&self) -> Option<Duration> {
        let SyncMode::EveryMillis(millis) = self.sync_mode() else { return None };
        let state = self.state.lock();
        let since = self.clock.now().since(state.synced_at);
        let is_dirty = state.end > state.durable;
        is_dirty.then(|| Duration::from_millis(millis).saturating_sub(since))
    }

    /// Makes everything appended so far durable, and durably records that position in the mark. A
    /// log that is truncated or lacks a segment then counts as damaged. For a database that is
    /// being closed; more records may be appended afterwards.
    ///
    /// # Errors
    /// Like [`Wal::sync_to`].
    pub fn secure(&self) -> Result<()> {
        self.sync()?;
        let mark = self.durable_mark();
        match &mut *self.mark.lock() {
            Some(file) => file.record_twice(mark),
            None => Ok(()),
        }
    }

    /// Returns the mark for the current durable position.
    fn durable_mark(&self) -> DurableMark {
        let state = self.state.lock();
        let newest = state.live.back().map_or(0, |header| header.generation);
        DurableMark { db_id: self.db_id, newest, durable: state.durable }
    }

    /// Writes the current durable position, or `durable` if that is higher, to the mark.
    pub(crate) fn note_durable(&self, durable: Lsn) {
        let mark = self.durable_mark();
        if let Some(file) = &mut *self.mark.lock() {
            file.note(DurableMark { durable: mark.durable.max(durable), ..mark });
        }
    }

    /// Makes the mark durable.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn sync_mark(&self) -> Result<()> {
        match &*self.mark.lock() {
            Some(file) => file.sync(),
            None => Ok(()),
        }
    }

    /// Makes everything durable and ends the log. (If the log is only dropped, the records that
    /// were not yet written are lost, as at the end of the process.)
    ///
    /// # Errors
    /// Like [`Wal::sync_to`].
    pub fn close(self) -> Result<()> {
        self.secure()
    }
}
