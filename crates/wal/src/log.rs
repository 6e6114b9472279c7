//! The log that is appended to: group commit, segments, failures.
//!
//! See [`Wal`] for the protocol. Locks: `state`, never held during I/O; behind it `mark`, held over its writes.

use std::time::Duration;

use frondb_block::frame::{self, Body};
use frondb_core::clock::SharedClock;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Condvar, Mutex};
use frondb_core::{Lsn, Result};
use frondb_device::SharedDevice;

use crate::files::Directory;
use crate::format::DurableMark;
use crate::mark::Mark;
use crate::options::{SyncMode, WalOptions};
use crate::owner;
use crate::replay::Replay;
use crate::state::State;
use crate::stats::WalStats;
use crate::waiters::Woken;

/// After a record that lz4 did not shorten, so many are written without trying.
const COMPRESSION_SKIPS: u32 = 32;

/// Where a record went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Its Lsn.
    pub start: Lsn,
    /// The Lsn behind it: what to wait for.
    pub end: Lsn,
}

/// The write-ahead log. Shared by all threads that commit.
///
/// # Naive version
/// Each commit locks the file, writes its record and syncs. One sync a commit bounds the rate to
/// what the disk syncs a second, and every commit pays a system call even if it does not sync.
///
/// # Protocol
/// Three positions only grow: `durable <= written <= end`.
///
/// ```text
///          disk has it       kernel has it       memory has it
///  |------------------------|-------------------|--------------|
///                        durable             written          end
/// ```
///
/// - `append` encodes the record into the buffer at `end`, under the lock, and returns. Position,
///   checksum and segment are decided there, so the order of the log is the order of the calls.
/// - `write_to(lsn)`: whoever finds no writer at work becomes the leader, takes the whole buffer,
///   writes it without the lock, and wakes the others. Their records went with it.
/// - `sync_to(lsn)`: likewise, with one sync for all that was written. A thread that arrives while
///   a sync is under way waits for it *before* it writes, so that the next leader writes and syncs
///   for everyone who arrived meanwhile.
///
/// The leader also does what a record decided in memory: where `append` found the segment full, the
/// leader syncs the old file and makes the new one (see `files`). So only the last segment can
/// have a torn tail.
///
/// # Invariants
/// - A record is in the file only behind all records of smaller Lsn: a torn tail is a suffix.
/// - An Lsn is never given to two records, also when the first could not be written.
/// - A record that was reported as failed is never replayed.
///
/// # Failures
/// - A failed *write* (a full disk): everything from `written` to `end` is given up, and exactly
///   the callers who wait for it get the error. What the write left in the file is cut off durably
///   before anyone is told. The segment ends there; the next record begins a new one, which says
///   in its header where the old one ended. So the log can go on when there is space again.
/// - A failed *sync*, or a failed cut: nobody knows what the disk has. Everything after it is
///   `Poisoned`, and nothing is synced again.
///
/// # Rejected
/// - A thread of the log's own: two context switches a commit, and nobody to hand errors to.
/// - Reusing the Lsns of given-up records: `sync_to` could not tell who failed.
/// - No sync between segments: any record of any segment could then be missing after power loss,
///   and a lost middle of the log would look like a torn tail.
#[derive(Debug)]
pub struct Wal {
    pub(crate) directory: Directory,
    pub(crate) options: WalOptions,
    /// The [`SyncMode`] in force, as its bits: `options.sync` is only what it began with.
    mode: AtomicU64,
    db_id: u128,
    pub(crate) clock: SharedClock,
    pub(crate) state: Mutex<State>,
    /// A leader has finished. Those who wait for a sync to have their records durable are not
    /// here, but in [`State::waiters`].
    pub(crate) progress: Condvar,
    scratch: Mutex<Scratch>,
    /// How far the log is durable, beside it; `None` where there is no space for it. Taken last.
    mark: Mutex<Option<Mark>>,
    /// Whether the mark is durable beside the log, which says so.
    pub(crate) marked: bool,
}

/// Memory for compression, reused.
#[derive(Debug, Default)]
struct Scratch {
    gather: Vec<u8>,
    block: Vec<u8>,
    /// Records that are not worth a try any more.
    skips: u32,
}

impl Wal {
    /// Reads the log in `device`, a directory of its own or one it shares with files of other
    /// names.
    ///
    /// `start` is the oldest Lsn whose record is still needed: a record's `start` or `end`, and
    /// durable when it was recorded. `known_durable` is the highest Lsn of which the caller knows
    /// that it was durable. A directory without segments is an empty log that begins at `start`.
    ///
    /// # Errors
    /// `Corruption` naming file and offset if segments that are needed are missing or damaged;
    /// `Unsupported` for a newer format; `Invalid` for another database's log or a bad option.
    pub fn open(
        device: SharedDevice,
        options: WalOptions,
        db_id: u128,
        start: Lsn,
        known_durable: Lsn,
        clock: SharedClock,
    ) -> Result<Replay> {
        Replay::open(device, options, db_id, start, known_durable, clock)
    }

    /// The log behind a finished replay, which ended at `end`.
    pub(crate) fn resume(replay: Replay, end: Lsn) -> Result<Self> {
        let Replay { directory, options, db_id, clock, segments, obsolete, spares, .. } = replay;
        let numbers = segments.iter().map(|found| found.header.generation);
        let last_generation = numbers.chain(spares.iter().copied()).max().unwrap_or(0);
        let live = segments.iter().map(|found| found.header).collect();
        let keep = spares.len().min(options.spares_max);
        directory.remove_spares(&spares[keep..])?;
        directory.retire(&[], &obsolete)?;
        let newest = segments.last().map_or(0, |found| found.header.generation);
        let durable = DurableMark { db_id, newest, durable: end };
        let mut mark = Mark::open(directory.device(), durable)?;
        let marked = match &mut mark {
            Some(mark) if owner::is_marked(directory.device(), db_id)? => {
                mark.settle(durable)?;
                true
            }
            // The log says so only behind a mark that is durable.
            Some(mark) => mark.establish(durable)? && owner::note_mark(directory.device(), db_id)?,
            None => false,
        };
        let state = State::new(end, last_generation, live, spares[..keep].to_vec(), clock.now());
        Ok(Self {
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
        })
    }

    /// Appends one record, the parts one after the other. It is in memory only; wait for
    /// [`Appended::end`] with [`Wal::commit_to`], [`Wal::write_to`] or [`Wal::sync_to`].
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
        } else if let Some(raw_bytes) = frame::compress(parts, gather, block) {
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

    /// What [`Wal::commit_to`] waits for now.
    #[must_use]
    pub fn sync_mode(&self) -> SyncMode {
        SyncMode::from_bits(self.mode.load(Ordering::Acquire))
    }

    /// Changes what [`Wal::commit_to`] waits for, from now on and for all threads; then makes
    /// everything appended so far durable. So no promise of the former mode is left open, and
    /// whatever was acknowledged before this returned in a weaker mode survives power loss.
    ///
    /// # Errors
    /// `Invalid` for a bad interval, and nothing is changed. As [`Wal::sync`]: the mode is changed all
    /// the same.
    pub fn set_sync_mode(&self, mode: SyncMode) -> Result<()> {
        mode.check()?;
        // A commit that still finds the old mode had appended its record before it looked, and the
        // end of the log is read behind the change: so the sync covers it.
        self.mode.store(mode.to_bits(), Ordering::Release);
        self.sync()
    }

    /// Waits until the record that ends at `lsn` is as safe as the mode asks for.
    ///
    /// # Errors
    /// As [`Wal::sync_to`].
    pub fn commit_to(&self, lsn: Lsn) -> Result<()> {
        match self.sync_mode() {
            SyncMode::Always => self.sync_to(lsn),
            SyncMode::EveryMillis(_) | SyncMode::Never => self.write_to(lsn),
        }
    }

    /// Waits until the operating system has the record that ends at `lsn`, and all before it: it
    /// then survives the end of the process, not of the power.
    ///
    /// # Errors
    /// `NoSpace` or `Io` if the record could not be written; it is then given up and will never be
    /// replayed, and so are all that were appended behind it. `Poisoned`.
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

    /// [`Wal::write_to`] for everything appended so far.
    ///
    /// # Errors
    /// As [`Wal::write_to`].
    pub fn write_out(&self) -> Result<()> {
        self.write_to(self.end_lsn())
    }

    /// Waits until the record that ends at `lsn`, and all before it, is durable.
    ///
    /// # Errors
    /// As [`Wal::write_to`]; `Poisoned` if the sync fails, from then on for every call.
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
                // All that is in the buffer goes along. If that fails and this record is among
                // those given up, the check above finds it.
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
    /// As [`Wal::sync_to`].
    pub fn sync(&self) -> Result<()> {
        self.sync_to(self.end_lsn())
    }

    /// The Lsn behind the last record that was appended and not given up.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        self.state.lock().end
    }

    /// The Lsn up to which the operating system has the log.
    #[must_use]
    pub fn written_lsn(&self) -> Lsn {
        self.state.lock().written
    }

    /// The Lsn up to which the log is durable.
    #[must_use]
    pub fn durable_lsn(&self) -> Lsn {
        self.state.lock().durable
    }

    /// Bytes of log from the oldest segment on: what recovery would read at most.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.state.lock().live_bytes()
    }

    /// Whether space was there the last time the log took some ahead
    /// ([`WalOptions::reserve_bytes`]), or a spare is left. When not, the disk is full, and what is
    /// left should be kept for records that free space.
    #[must_use]
    pub fn has_reserve(&self) -> bool {
        let state = self.state.lock();
        !state.short || !state.spares.is_empty()
    }

    /// Counters and sizes.
    #[must_use]
    pub fn stats(&self) -> WalStats {
        self.state.lock().stats()
    }

    /// Gives up the segments that lie wholly below `before`: their files become spares or are
    /// removed. Nothing below `before` may be needed by a manifest that recovery could read.
    ///
    /// # Errors
    /// Those of the device. The log goes on; files left behind go at the next open.
    pub fn recycle(&self, before: Lsn) -> Result<()> {
        let (spares, removed) = self.state.lock().take_obsolete(before, &self.options);
        if spares.is_empty() && removed.is_empty() {
            return Ok(());
        }
        self.directory.retire(&spares, &removed)?;
        self.state.lock().spares.extend(spares);
        Ok(())
    }

    /// Removes the spares, for a log that has become idle.
    ///
    /// # Errors
    /// Those of the device.
    pub fn trim_spares(&self) -> Result<()> {
        let spares = std::mem::take(&mut self.state.lock().spares);
        self.directory.remove_spares(&spares)
    }

    /// What has to be done from time to time: the sync of [`SyncMode::EveryMillis`]. Cheap; to be
    /// called when [`Wal::next_tick`] says so, or often.
    ///
    /// # Errors
    /// As [`Wal::sync_to`].
    pub fn tick(&self) -> Result<()> {
        match self.next_tick() {
            Some(Duration::ZERO) => self.sync(),
            _ => Ok(()),
        }
    }

    /// How long it is until [`Wal::tick`] has something to do, zero if it has; `None` if only
    /// another record, or another mode, could give it something.
    #[must_use]
    pub fn next_tick(&self) -> Option<Duration> {
        let SyncMode::EveryMillis(millis) = self.sync_mode() else { return None };
        let state = self.state.lock();
        let since = self.clock.now().since(state.synced_at);
        let is_dirty = state.end > state.durable;
        is_dirty.then(|| Duration::from_millis(millis).saturating_sub(since))
    }

    /// Makes everything appended so far durable, and durably known to be: from then on a log that is cut short
    /// or lacks a segment is damaged. For a database that is being closed; records may follow.
    ///
    /// # Errors
    /// As [`Wal::sync_to`].
    pub fn settle(&self) -> Result<()> {
        self.sync()?;
        let mark = self.durable_mark();
        match &mut *self.mark.lock() {
            Some(file) => file.settle(mark),
            None => Ok(()),
        }
    }

    /// What is durable now.
    fn durable_mark(&self) -> DurableMark {
        let state = self.state.lock();
        let newest = state.live.back().map_or(0, |header| header.generation);
        DurableMark { db_id: self.db_id, newest, durable: state.durable }
    }

    /// Notes beside the log what is durable now, at least up to `durable`.
    pub(crate) fn note_durable(&self, durable: Lsn) {
        let mark = self.durable_mark();
        if let Some(file) = &mut *self.mark.lock() {
            file.note(DurableMark { durable: mark.durable.max(durable), ..mark });
        }
    }

    /// Makes durable what was noted.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn sync_mark(&self) -> Result<()> {
        match &*self.mark.lock() {
            Some(file) => file.sync(),
            None => Ok(()),
        }
    }

    /// Makes everything durable and ends the log. (Dropping it instead gives up what was neither
    /// written nor synced, as the end of the process would.)
    ///
    /// # Errors
    /// As [`Wal::sync_to`].
    pub fn close(self) -> Result<()> {
        self.settle()
    }
}
