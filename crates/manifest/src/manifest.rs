//! [`Manifest`]: the manifest of an open database, and its protocol.

use frondb_block::frame::Body;
use frondb_core::Result;
use frondb_core::sync::{Arc, Condvar, Mutex};
use frondb_device::SharedDevice;

use crate::options::ManifestOptions;
use crate::recovery::{self, Recovered};
use crate::snapshot::SnapshotWriter;
use crate::state::{Edit, Files, ManifestState, Shared, Sizes};
use crate::stats::ManifestStats;
use crate::superblock::NoteSource;

/// Identifies an appended edit, to wait for. Later edits have greater tickets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(pub(crate) u64);

/// The manifest of an open database. Shared by all threads; cloning gives another handle.
///
/// # Edits
/// `append` keeps an edit in memory and gives it a ticket, its position in the order of edits.
/// `sync` returns when the edit is durable: a thread that finds no leader at work writes *all*
/// edits appended so far with one write and one sync, and the others wait. The order on disk is
/// therefore the order of the `append` calls, and a caller that appends under its own lock decides
/// the order of the edits.
///
/// # What the superblocks record
/// Nothing in a manifest file proves that its last edits were durable, because no record follows
/// them: a file whose last edits were cut off looks like a file whose last write was torn.
/// [`Manifest::secure`] records in a superblock how far the file is durable, which costs a second
/// sync, of 4 KiB in place. So:
///
/// - an edit that releases something (a tree, log, space), or that is acknowledged to a user, is
///   *secured* before any of that happens;
/// - the edit of a flush, whose messages the log has too, needs only `sync`: without the edit,
///   recovery repeats the work.
///
/// # A new file
/// [`Manifest::begin_snapshot`] starts a new file while edits continue:
/// 1. The caller captures its state under the lock under which it appends, and calls
///    `begin_snapshot` there. From now on each edit is also kept for the new file.
/// 2. The snapshot is written and synced. Meanwhile edits are acknowledged when they are durable in
///    the old file.
/// 3. `finish` takes the lead, so no edit is acknowledged during its four syncs. It appends the
///    edits that the new file still lacks, syncs file and directory, puts the new superblock in
///    force (from then on startup reads the new file), appends the record `confirmed`, and syncs
///    that record.
/// 4. From now on edits go to the new file only, and the old one is removed.
///
/// A crash before the superblock of step 3 is durable leaves the old file with every acknowledged
/// edit; a crash after it leaves the new file with the same edits. The `confirmed` record proves
/// that a superblock was in force. If the only superblock that names the new file is damaged later,
/// recovery therefore fails with Corruption, and does not fall back to the old file, which may lack
/// edits.
///
/// # Failures
/// - A failed write of edits (a full disk): every edit that is not yet durable is abandoned,
///   because later edits depend on earlier ones. First the remains of the write are durably cut
///   off, then the callers that wait for the edits get the error. A snapshot under way is
///   abandoned, because its state may contain the edits. If the caller cannot undo one of them
///   ([`Manifest::append_final`]), the manifest is poisoned before any other edit can be appended:
///   an edit that depends on a missing one must never be written.
/// - A failed sync, or any failure while the superblock is replaced: it is unknown what the next
///   startup will find. From then on every call fails with `Poisoned`, and nothing is synced again.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub(crate) shared: Arc<Shared>,
}

impl Manifest {
    /// Creates the manifest of a new database, durably. Replaces leftovers of an interrupted
    /// creation. `snapshot` is the initial state: empty, or the state of a backup that is restored.
    /// The database exists once `SUPER.new` has been renamed: after an error in a later step,
    /// [`open`](Self::open) finds it.
    ///
    /// # Errors
    /// `Exists` if there is a manifest; `Corruption` if there was one whose superblocks are lost;
    /// `NoSpace`; `Io`.
    pub fn create(
        device: SharedDevice,
        db_id: u128,
        options: ManifestOptions,
        snapshot: &[u8],
    ) -> Result<Self> {
        let (files, sizes) = recovery::create(&device, db_id, &options, snapshot)?;
        Ok(Self::new(device, db_id, options, files, sizes))
    }

    /// Opens the manifest of a database and returns its content.
    ///
    /// # Errors
    /// `NotFound` without a manifest; `Invalid` if `SUPER` is a foreign file; `Unsupported` if a
    /// newer version wrote it; `Corruption` naming file and offset if something that was durable is
    /// invalid or missing; `Io`.
    pub fn open(device: SharedDevice, options: ManifestOptions) -> Result<(Self, Recovered)> {
        let (files, sizes, recovered) = recovery::open(&device, &options)?;
        let manifest = Self::new(device, recovered.db_id, options, files, sizes);
        Ok((manifest, recovered))
    }

    /// Reads the note in the newest superblock of a database, which may be open. Empty if there is
    /// none.
    ///
    /// # Errors
    /// Like [`Manifest::open`] for errors in the superblocks.
    pub fn read_note(device: &SharedDevice) -> Result<Vec<u8>> {
        recovery::note(device)
    }

    /// Calls `notes` for the note of every superblock that is written from now on.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn set_notes(&self, notes: Arc<dyn NoteSource>) -> Result<()> {
        let (state, mut files) = self.shared.take_lead()?;
        files.slots.set_notes(notes);
        self.shared.end_lead(state, files);
        Ok(())
    }

    /// Returns whether a database's superblocks are in `device`. Opening it may still fail. Changes
    /// nothing.
    ///
    /// # Errors
    /// Like [`Manifest::open`] for errors in the superblocks; also `Corruption` if they are lost;
    /// `Io`.
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
        let state = ManifestState::new(files, sizes);
        let state = Mutex::new(state);
        let shared = Shared { device, options, db_id, state, progress: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the id of the database.
    #[must_use]
    pub fn db_id(&self) -> u128 {
        self.shared.db_id
    }

    /// Appends an edit in memory. It is durable when [`Manifest::sync`] of its ticket returns. If
    /// `sync` fails with `NoSpace` or `Io`, the caller must undo the change that the edit
    /// describes.
    ///
    /// # Errors
    /// `Poisoned`; `Invalid` for an edit of 1 GiB or more.
    pub fn append(&self, edit: &[u8]) -> Result<Ticket> {
        self.append_edit(edit, false)
    }

    /// Like [`append`](Self::append), for an edit that the caller cannot undo: if it cannot be
    /// written, the manifest is poisoned before any other edit can follow.
    ///
    /// # Errors
    /// Like [`append`](Self::append).
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

    /// Waits until the edit, and everything before it, is durable.
    ///
    /// # Errors
    /// `NoSpace` or `Io` if it could not be written. It is then abandoned together with all edits
    /// after it, and the next startup will not find them. `Poisoned`.
    pub fn sync(&self, ticket: Ticket) -> Result<()> {
        loop {
            let mut state = self.shared.state.lock();
            state.check(ticket.0)?;
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

    /// Like [`sync`](Self::sync), and waits until a superblock records that the edit is durable:
    /// from then on a manifest without the edit counts as damaged. Call it before you do anything
    /// that the edit permits. Concurrent callers share one write.
    ///
    /// # Errors
    /// Like [`sync`](Self::sync). `Poisoned` if writing the superblock fails.
    pub fn secure(&self, ticket: Ticket) -> Result<()> {
        self.sync(ticket)?;
        loop {
            let mut state = self.shared.state.lock();
            if state.secured >= ticket.0 {
                return Ok(());
            }
            state.check_poison()?;
            match state.files.take() {
                None => self.shared.progress.wait(&mut state),
                Some(files) => {
                    drop(state);
                    self.shared.update_superblock(files, false)?;
                }
            }
        }
    }

    /// Calls [`secure`](Self::secure) for every edit appended so far, except abandoned edits.
    ///
    /// # Errors
    /// Like [`secure`](Self::secure).
    pub fn secure_appended(&self) -> Result<()> {
        let last = {
            let state = self.shared.state.lock();
            state.pending.last().map_or(state.durable, |edit| edit.ticket)
        };
        self.secure(Ticket(last))
    }

    /// Secures all durable edits in both superblocks, for a database that is being closed: from
    /// then on a truncated or damaged file cannot look like a torn tail. Writes nothing if both
    /// superblocks already record them. More edits may be appended afterwards.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn secure_all(&self) -> Result<()> {
        let (state, files) = self.shared.take_lead()?;
        drop(state);
        self.shared.update_superblock(files, true)
    }

    /// Starts a new file. The state that the caller captures must contain exactly the edits
    /// appended so far: the caller captures the state and calls this under the lock under which it
    /// appends.
    ///
    /// # Errors
    /// `Busy` while another snapshot is under way; `NoSpace`, `Io`, `Poisoned`.
    pub fn begin_snapshot(&self) -> Result<SnapshotWriter> {
        SnapshotWriter::begin(&self.shared)
    }

    /// Returns the size of the edits in the current manifest file, bytes.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.shared.state.lock().sizes.log_bytes
    }

    /// Returns the size of the snapshot with which the current manifest file begins, bytes.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.shared.state.lock().sizes.snapshot_bytes
    }

    /// Returns whether at least half of [`ManifestOptions::reserve_bytes`] is allocated ahead of
    /// the end. If not, the disk is full, and the remaining space should be kept for edits that
    /// free space.
    #[must_use]
    pub fn has_reserve(&self) -> bool {
        let left = self.shared.state.lock().sizes.reserve_left;
        left >= self.shared.options.reserve_bytes / 2
    }

    /// Allocates space ahead now if less than half of the reserve, or less than `bytes`, is left.
    /// Returns whether edits of `bytes` then fit; always `true` without a reserve.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn make_room(&self, bytes: u64) -> Result<bool> {
        let reserve = self.shared.options.reserve_bytes;
        let left = self.shared.state.lock().sizes.reserve_left;
        if reserve == 0 || left >= bytes.max(reserve / 2) {
            return Ok(true);
        }
        let (state, mut files) = self.shared.take_lead()?;
        // `reserve` allocates once half of the space ahead is used, so half must hold `bytes`.
        files.log.reserve(files.log.end, reserve.max(2 * bytes));
        let left = files.log.reserved_to.saturating_sub(files.log.end);
        self.shared.end_lead(state, files);
        Ok(left >= bytes)
    }

    /// Returns the counters since the manifest was opened.
    #[must_use]
    pub fn stats(&self) -> ManifestStats {
        self.shared.state.lock().stats
    }
}
