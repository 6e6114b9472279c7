//! The state that the threads of a manifest share: pending edits, positions, and the leaders that
//! write and sync for all waiters.

use frondb_block::frame::Body;
use frondb_core::sync::{Arc, Condvar, Mutex, MutexGuard};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::SharedDevice;

use crate::file::LogFile;
use crate::format::RecordKind;
use crate::options::ManifestOptions;
use crate::stats::ManifestStats;
use crate::superblock::Slots;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) device: SharedDevice,
    pub(crate) options: ManifestOptions,
    pub(crate) db_id: u128,
    /// Never held during I/O.
    pub(crate) state: Mutex<ManifestState>,
    /// Signals that a leader has finished.
    pub(crate) progress: Condvar,
}

/// An edit in memory.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) ticket: u64,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Whether the caller cannot undo the edit, because the caller's state contains it already.
    pub(crate) is_final: bool,
}

#[derive(Debug)]
pub(crate) struct ManifestState {
    /// Edits that are appended but not yet durable, oldest first.
    pub(crate) pending: Vec<Edit>,
    /// The ticket of the newest edit.
    pub(crate) last: u64,
    /// Ticket of the newest durable edit.
    pub(crate) durable: u64,
    /// Ticket of the newest edit that a superblock records as durable.
    pub(crate) secured: u64,
    failed: Vec<Failed>,
    poison: Option<Error>,
    /// The files for the next leader; `None` while a thread leads.
    pub(crate) files: Option<Files>,
    /// The edits since a snapshot was begun that are not yet in the new file; `None` if no snapshot
    /// is under way or it was abandoned.
    pub(crate) carried: Option<Vec<Edit>>,
    pub(crate) snapshot_open: bool,
    last_generation: u64,
    pub(crate) sizes: Sizes,
    pub(crate) stats: ManifestStats,
}

/// The files that a leader works on.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) log: LogFile,
    pub(crate) slots: Slots,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) snapshot_bytes: u64,
    pub(crate) log_bytes: u64,
    pub(crate) reserve_left: u64,
}

/// Abandoned edits: the edits with a ticket in (from, to].
#[derive(Debug)]
struct Failed {
    from: u64,
    to: u64,
    error: Error,
}

impl Shared {
    /// Writes and syncs edits for all waiters.
    pub(crate) fn lead(&self, mut files: Files, edits: &[Edit]) {
        let log = &mut files.log;
        let bodies: Vec<[&[u8]; 1]> = edits.iter().map(|edit| [edit.bytes.as_slice()]).collect();
        let bodies = bodies.iter().map(|parts| Body::Raw(parts));
        let written = log.write(RecordKind::Edit, bodies, self.options.reserve_bytes);
        let outcome = match written {
            Ok(bytes) => match log.sync() {
                Ok(()) => Outcome::Done(bytes),
                Err(error) => Outcome::Unknown(error),
            },
            // The file must contain no part of the edits before any waiter learns of the failure.
            Err(error) => match log.cut() {
                Ok(()) => Outcome::Abandoned(error),
                Err(error) => Outcome::Unknown(error),
            },
        };
        let mut state = self.state.lock();
        match outcome {
            Outcome::Done(bytes) => {
                state.stats.syncs += 1;
                state.stats.written_bytes += bytes;
                state.sizes.log_bytes += bytes;
                let last = edits.last().map_or(0, |edit| edit.ticket);
                state.mark_durable(last);
            }
            Outcome::Abandoned(error) => state.abandon(&error),
            Outcome::Unknown(error) => state.poison(&error),
        }
        self.end_lead(state, files);
    }

    /// Records in the superblocks how far the file is durable; then gives up the lead.
    pub(crate) fn update_superblock(&self, mut files: Files, twice: bool) -> Result<()> {
        let Files { log, slots } = &mut files;
        let updated = if twice {
            slots.record_durable_twice(log.durable)
        } else {
            slots.record_durable(log.durable)
        };
        let mut state = self.state.lock();
        match &updated {
            Ok(()) => {
                state.mark_secured();
                state.stats.superblocks += 1;
            }
            Err(error) => state.poison(error),
        }
        let result = state.check_poison();
        self.end_lead(state, files);
        result
    }

    /// Gives up the lead: puts the files back for the next leader and wakes the waiters.
    pub(crate) fn end_lead(&self, mut state: MutexGuard<'_, ManifestState>, files: Files) {
        state.sizes.reserve_left = files.log.reserved_to.saturating_sub(files.log.end);
        state.files = Some(files);
        drop(state);
        self.progress.notify_all();
    }

    /// Waits until no leader is at work and takes the lead.
    pub(crate) fn take_lead(&self) -> Result<(MutexGuard<'_, ManifestState>, Files)> {
        let mut state = self.state.lock();
        loop {
            state.check_poison()?;
            if let Some(files) = state.files.take() {
                return Ok((state, files));
            }
            self.progress.wait(&mut state);
        }
    }
}

/// The outcome of a leader's write.
enum Outcome {
    Done(u64),
    /// The file contains no part of the edits.
    Abandoned(Error),
    /// The content of the file is unknown.
    Unknown(Error),
}

impl ManifestState {
    pub(crate) fn new(files: Files, sizes: Sizes) -> Self {
        Self {
            pending: Vec::new(),
            last: 0,
            durable: 0,
            secured: 0,
            failed: Vec::new(),
            poison: None,
            last_generation: files.log.generation,
            files: Some(files),
            carried: None,
            snapshot_open: false,
            sizes,
            stats: ManifestStats::default(),
        }
    }

    /// Marks everything up to `ticket` as durable.
    pub(crate) fn mark_durable(&mut self, ticket: u64) {
        self.durable = self.durable.max(ticket);
        let durable = self.durable;
        let done = self.pending.iter().take_while(|edit| edit.ticket <= durable).count();
        for edit in self.pending.drain(..done) {
            self.stats.edits += 1;
            self.stats.edit_bytes += edit.bytes.len() as u64;
        }
    }

    /// Marks everything durable as recorded in a superblock. REQUIRES: the lead.
    pub(crate) fn mark_secured(&mut self) {
        self.secured = self.durable;
    }

    fn abandon(&mut self, error: &Error) {
        let (from, to) = (self.durable, self.last);
        match self.failed.last_mut() {
            Some(last) if last.from == from => (last.to, last.error) = (to, error.clone()),
            _ => self.failed.push(Failed { from, to, error: error.clone() }),
        }
        if self.pending.iter().any(|edit| edit.is_final) {
            self.poison(error);
        }
        self.pending.clear();
        self.carried = None;
        self.stats.failed_writes += 1;
    }

    pub(crate) fn poison(&mut self, cause: &Error) {
        if self.poison.is_none() {
            let error = cause.clone().with_kind(ErrorKind::Poisoned);
            self.poison =
                Some(error.context("an earlier write of the manifest failed: reopen the database"));
        }
    }

    pub(crate) fn check_poison(&self) -> Result<()> {
        self.poison.clone().map_or(Ok(()), Err)
    }

    /// Fails if the edit can no longer become durable.
    pub(crate) fn check(&self, ticket: u64) -> Result<()> {
        self.check_poison()?;
        if ticket > self.last {
            return Err(Error::invalid(format!("the manifest has no edit with ticket {}", ticket)));
        }
        let failed = self.failed.iter().rev().find(|f| f.from < ticket && ticket <= f.to);
        failed.map_or(Ok(()), |failed| Err(failed.error.clone()))
    }

    /// Returns the newest edit's ticket.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Reserves a generation that no file has now, and that none had since the manifest was opened.
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.last_generation += 1;
        self.last_generation
    }
}
