//! The manifest that is written to: group commit of edits, and failures.

use frondb_block::frame::Body;
use frondb_core::sync::{Arc, Condvar, Mutex, MutexGuard};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::SharedDevice;

use crate::file::LogFile;
use crate::format::KIND_EDIT;
use crate::options::ManifestOptions;
use crate::recovery::{self, Recovered};
use crate::snapshot::SnapshotWriter;
use crate::stats::ManifestStats;
use crate::superblock::Slots;

/// An appended edit, to wait for. Later edits have greater tickets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(pub(crate) u64);

/// The manifest of an open database. Shared by all threads; cloning gives another handle.
///
/// # Edits
/// `append` keeps an edit in memory and gives it a place in the order. `sync` returns when it is
/// durable: whoever finds no leader at work writes *all* edits appended so far with one write and
/// one sync; the others wait. So the order on disk is the order of the `append` calls, and a
/// caller that appends under its own lock decides the order of everything.
///
/// # What the superblocks know
/// The last edits of a file have nothing behind them that could prove that they were durable: a file that
/// was cut short there looks like one whose last write was torn. [`Manifest::secure`] has the
/// superblock say how far the file is durable, which costs a second sync, of 4 KiB in place. So:
///
/// - an edit that lets go of something (a tree, log, space), or that a user is told of, is *secured*
///   before any of that is done;
/// - an edit that only says what the log has too (a flush) needs `sync` alone: without it, recovery does the
///   same work again.
///
/// # A new file
/// [`Manifest::begin_snapshot`] starts it while edits go on:
/// 1. The caller captures its state under the lock it appends under, and calls `begin_snapshot` there.
///    From now on each edit is also kept for the new file.
/// 2. The snapshot is written and synced, at leisure. Edits are acknowledged by the old file.
/// 3. `finish` takes the lead, so for two or three syncs no edit is acknowledged. It appends the
///    edits since step 1, syncs file and directory, puts the new superblock in force, appends the
///    record `confirmed`, and syncs that.
/// 4. From now on edits go to the new file only, and the old one is removed.
///
/// A crash before the superblock of step 3 is durable finds the old file with every acknowledged edit;
/// a crash behind it finds the new one with the same. That a superblock was in force is proved by
/// the `confirmed` record, so one that is damaged later is Corruption and the old one is not taken
/// for it: its file may lack edits.
///
/// # Failures
/// - A failed write of edits (a full disk): every edit not yet durable is given up, because later
///   ones rest on earlier ones; who waits for one gets the error; what the write left is cut off
///   durably first. A snapshot under way is abandoned, because its state may hold them. If the
///   caller cannot take one of them back ([`Manifest::append_final`]), the manifest is poisoned in
///   the same moment: an edit that rests on one that is not there must never be written.
/// - A failed sync, or anything that fails while the superblock is replaced: nobody knows what the
///   next start will find. `Poisoned` from then on, and nothing is synced again.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) device: SharedDevice,
    pub(crate) options: ManifestOptions,
    pub(crate) db_id: u128,
    /// Never held during I/O.
    pub(crate) state: Mutex<State>,
    /// A leader has finished.
    pub(crate) progress: Condvar,
}

/// An edit in memory.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) ticket: u64,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// The caller's state has it already and cannot take it back.
    is_final: bool,
}

#[derive(Debug)]
pub(crate) struct State {
    /// Appended and not durable, oldest first.
    pending: Vec<Edit>,
    /// The ticket of the newest edit.
    last: u64,
    /// The newest edit that is durable.
    durable: u64,
    /// The newest edit that a superblock knows to be durable.
    known: u64,
    failed: Vec<Failed>,
    poison: Option<Error>,
    /// What a leader takes; `None` while one leads.
    files: Option<Files>,
    /// The edits since a snapshot was begun; `None` if there is none, or if it was abandoned.
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

/// Edits that were given up: those with a ticket in (from, to].
#[derive(Debug)]
struct Failed {
    from: u64,
    to: u64,
    error: Error,
}

impl Manifest {
    /// Makes the manifest of a new database: durable when this returns. Leftovers of a creation that
    /// was interrupted are replaced.
    ///
    /// # Errors
    /// `Exists` if there is one, `Corruption` if there was one whose superblocks are lost, `NoSpace`,
    /// `Io`.
    pub fn create(device: SharedDevice, db_id: u128, options: ManifestOptions) -> Result<Self> {
        let (files, sizes) = recovery::create(&device, db_id, &options)?;
        Ok(Self::new(device, db_id, options, files, sizes))
    }

    /// Opens the manifest of a database and gives what it holds.
    ///
    /// # Errors
    /// `NotFound` without one, `Invalid` if `SUPER` is a foreign file, `Unsupported` if a newer
    /// version wrote it, `Corruption` naming file and offset if something that was durable does not
    /// verify or is missing, `Io`.
    pub fn open(device: SharedDevice, options: ManifestOptions) -> Result<(Self, Recovered)> {
        let (files, sizes, recovered) = recovery::open(&device, &options)?;
        let manifest = Self::new(device, recovered.db_id, options, files, sizes);
        Ok((manifest, recovered))
    }

    /// Whether a database's superblocks are in `device`. It may still not open. Changes nothing.
    ///
    /// # Errors
    /// As [`Manifest::open`] where the superblocks tell; `Corruption` too if they are lost; `Io`.
    pub fn exists(device: &SharedDevice) -> Result<bool> {
        recovery::exists(device)
    }

    fn new(
        device: SharedDevice,
        db_id: u128,
        options: ManifestOptions,
        files: Files,
        sizes: Sizes,
    ) -> Self {
        let state = State {
            pending: Vec::new(),
            last: 0,
            durable: 0,
            known: 0,
            failed: Vec::new(),
            poison: None,
            last_generation: files.log.generation,
            files: Some(files),
            carried: None,
            snapshot_open: false,
            sizes,
            stats: ManifestStats::default(),
        };
        let state = Mutex::new(state);
        let shared = Shared { device, options, db_id, state, progress: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// The database this is the manifest of.
    #[must_use]
    pub fn db_id(&self) -> u128 {
        self.shared.db_id
    }

    /// Appends an edit in memory. It is durable when [`Manifest::sync`] of its ticket returns; if
    /// that fails for want of space, the caller takes back what the edit says.
    ///
    /// # Errors
    /// `Poisoned`; `Invalid` for an edit of 1 GiB or more.
    pub fn append(&self, edit: &[u8]) -> Result<Ticket> {
        self.append_edit(edit, false)
    }

    /// As [`append`](Self::append), for what the caller cannot take back: if it cannot be written,
    /// the manifest is poisoned before any other edit can follow.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_final(&self, edit: &[u8]) -> Result<Ticket> {
        self.append_edit(edit, true)
    }

    fn append_edit(&self, edit: &[u8], is_final: bool) -> Result<Ticket> {
        Body::Raw(&[edit]).check()?;
        let bytes = Arc::new(edit.to_vec());
        let mut state = self.shared.state.lock();
        state.check_poison()?;
        state.last += 1;
        let edit = Edit { ticket: state.last, bytes, is_final };
        if let Some(carried) = &mut state.carried {
            carried.push(edit.clone());
        }
        state.pending.push(edit);
        Ok(Ticket(state.last))
    }

    /// Waits until the edit, and all before it, is durable.
    ///
    /// # Errors
    /// `NoSpace` or `Io` if it could not be written: it is then given up, with all that were appended
    /// behind it, and will not be found at the next start. `Poisoned`.
    pub fn sync(&self, ticket: Ticket) -> Result<()> {
        loop {
            let mut state = self.shared.state.lock();
            state.check(ticket)?;
            if state.durable >= ticket.0 {
                return Ok(());
            }
            match state.files.take() {
                None => self.shared.progress.wait(&mut state),
                Some(files) => {
                    let edits = state.pending.clone();
                    drop(state);
                    self.shared.lead(files, &edits);
                }
            }
        }
    }

    /// As [`sync`](Self::sync), and waits until a superblock knows that the edit is durable: from then on a
    /// manifest without it is damaged. To be called before anything that the edit permits is done.
    /// Callers that come meanwhile share one write.
    ///
    /// # Errors
    /// As [`sync`](Self::sync). Whatever fails at the superblock is `Poisoned`.
    pub fn secure(&self, ticket: Ticket) -> Result<()> {
        self.sync(ticket)?;
        loop {
            let mut state = self.shared.state.lock();
            if state.known >= ticket.0 {
                return Ok(());
            }
            state.check_poison()?;
            match state.files.take() {
                None => self.shared.progress.wait(&mut state),
                Some(files) => {
                    drop(state);
                    self.shared.tell(files, false)?;
                }
            }
        }
    }

    /// Secures everything that is durable, in both superblocks, for a database that is being closed: from
    /// then on nothing that is cut off or damaged can look like a torn tail. Writes nothing where they say
    /// so already. Edits may follow.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn settle(&self) -> Result<()> {
        let (state, files) = self.shared.take_lead()?;
        drop(state);
        self.shared.tell(files, true)
    }

    /// Starts a new file. The caller's captured state must hold exactly the edits appended so far:
    /// it captures and calls this under the lock it appends under.
    ///
    /// # Errors
    /// `Busy` while another snapshot is under way; `NoSpace`, `Io`, `Poisoned`.
    pub fn begin_snapshot(&self) -> Result<SnapshotWriter> {
        SnapshotWriter::begin(&self.shared)
    }

    /// Bytes of edits in the current file.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.shared.state.lock().sizes.log_bytes
    }

    /// Bytes of the snapshot in the current file.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.shared.state.lock().sizes.snapshot_bytes
    }

    /// Whether at least half of [`ManifestOptions::reserve_bytes`] is taken ahead of the end. When it
    /// is not, the disk is full, and what is left should be kept for edits that free space.
    #[must_use]
    pub fn has_reserve(&self) -> bool {
        let left = self.shared.state.lock().sizes.reserve_left;
        left >= self.shared.options.reserve_bytes / 2
    }

    /// Takes space ahead now if less than half of the reserve is left, as a write would. Returns
    /// whether edits of `bytes` find room then; always `true` without a reserve.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn make_room(&self, bytes: u64) -> Result<bool> {
        let reserve = self.shared.options.reserve_bytes;
        if reserve == 0 || self.has_reserve() {
            return Ok(true);
        }
        let (state, mut files) = self.shared.take_lead()?;
        files.log.reserve(files.log.end, reserve);
        let left = files.log.reserved_to.saturating_sub(files.log.end);
        self.shared.end_lead(state, files);
        Ok(left >= bytes)
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> ManifestStats {
        self.shared.state.lock().stats
    }
}

impl Shared {
    /// Writes and syncs edits for all who wait.
    fn lead(&self, mut files: Files, edits: &[Edit]) {
        let log = &mut files.log;
        let bodies: Vec<[&[u8]; 1]> = edits.iter().map(|edit| [edit.bytes.as_slice()]).collect();
        let bodies = bodies.iter().map(|parts| Body::Raw(parts));
        let written = log.write(KIND_EDIT, bodies, self.options.reserve_bytes);
        let outcome = match written {
            Ok(bytes) => match log.sync() {
                Ok(()) => Outcome::Done(bytes),
                Err(error) => Outcome::Unknown(error),
            },
            // Before anyone hears of the failure, nothing of it may be left in the file.
            Err(error) => match log.cut() {
                Ok(()) => Outcome::GivenUp(error),
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
                state.made_durable(last);
            }
            Outcome::GivenUp(error) => state.give_up(&error),
            Outcome::Unknown(error) => state.poison(&error),
        }
        self.end_lead(state, files);
    }

    /// Has the superblocks say how far the file is durable; ends the lead.
    fn tell(&self, mut files: Files, twice: bool) -> Result<()> {
        let Files { log, slots } = &mut files;
        let told = if twice { slots.tell_twice(log.durable) } else { slots.tell(log.durable) };
        let mut state = self.state.lock();
        match &told {
            Ok(()) => {
                state.made_known();
                state.stats.superblocks += 1;
            }
            Err(error) => state.poison(error),
        }
        let result = state.check_poison();
        self.end_lead(state, files);
        result
    }

    /// Gives the files back and wakes who waits.
    pub(crate) fn end_lead(&self, mut state: MutexGuard<'_, State>, files: Files) {
        state.sizes.reserve_left = files.log.reserved_to.saturating_sub(files.log.end);
        state.files = Some(files);
        drop(state);
        self.progress.notify_all();
    }

    /// Waits until no leader is at work and takes the lead.
    pub(crate) fn take_lead(&self) -> Result<(MutexGuard<'_, State>, Files)> {
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

/// How a leader's write ended.
enum Outcome {
    Done(u64),
    /// Nothing of it is in the file.
    GivenUp(Error),
    /// Nobody knows what is in the file.
    Unknown(Error),
}

impl State {
    /// Everything up to `ticket` is durable.
    pub(crate) fn made_durable(&mut self, ticket: u64) {
        self.durable = self.durable.max(ticket);
        let durable = self.durable;
        let done = self.pending.iter().take_while(|edit| edit.ticket <= durable).count();
        for edit in self.pending.drain(..done) {
            self.stats.edits += 1;
            self.stats.edit_bytes += edit.bytes.len() as u64;
        }
    }

    /// A superblock knows all that is durable. REQUIRES: the lead.
    pub(crate) fn made_known(&mut self) {
        self.known = self.durable;
    }

    fn give_up(&mut self, error: &Error) {
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
            self.poison = Some(error.context("the manifest failed and must be reopened"));
        }
    }

    pub(crate) fn check_poison(&self) -> Result<()> {
        self.poison.clone().map_or(Ok(()), Err)
    }

    /// Whether the edit can still become durable.
    fn check(&self, ticket: Ticket) -> Result<()> {
        self.check_poison()?;
        if ticket.0 > self.last {
            return Err(Error::invalid(format!("no edit has ticket {}", ticket.0)));
        }
        let failed = self.failed.iter().rev().find(|f| f.from < ticket.0 && ticket.0 <= f.to);
        failed.map_or(Ok(()), |failed| Err(failed.error.clone()))
    }

    /// The newest edit's ticket.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// A generation that no file has had.
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.last_generation += 1;
        self.last_generation
    }
}
