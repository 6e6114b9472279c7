//! `LOG.mark`: the position up to which the log is durable, stored outside the log's segments,
//! because a segment that was truncated or lost cannot reveal its own loss (rule 9).
//!
//! ```text
//!  LOG.mark   two slots of 64 bytes, at 0 and 4096: durable Lsn, number of the newest segment
//! ```
//!
//! # Protocol
//! - After each sync of the log, its leader writes the durable position into the older slot,
//!   *before* any waiter is notified. The leader does not sync the slot: the operating system has
//!   it, so it survives `kill -9`. This costs a group of commits one write of 64 bytes, and no
//!   sync.
//! - When a segment begins, and at close, the mark is synced. After power loss the mark may
//!   therefore be older than syncs that followed the start of the newest segment.
//!
//! # Invariants
//! - A slot that reaches the disk is true, whenever that happens: the log was synced before the
//!   slot was written.
//! - Lsns only grow, so the greater mark is the newer one. A slot whose checksum fails is ignored.
//! - `LOG` ([`crate::owner`]) records that there is a mark, and so do the segments created since (a
//!   flag in their headers). From then on a log without a valid slot counts as damaged: if the mark
//!   were lost together with the newest segment, nothing else would reveal the loss. The flag is
//!   written only when both slots and the name of the file are durable. An invalid slot is written
//!   and synced before the other slot is overwritten, so a torn write never leaves two invalid
//!   slots.
//!
//! The leaders of the log use the mark under its own lock, which is taken after all other locks and
//! held during these calls.

use frondb_core::{Error, ErrorKind, Lsn, Result};
use frondb_device::{OpenOptions, SharedDevice, SharedFile};

use crate::format::{DurableMark, MARK_BYTES};

/// The object that a corruption error of the mark names.
pub(crate) const WHAT_MARK: &str = "wal mark";

/// The file of the mark.
pub const MARK_FILE: &str = "LOG.mark";

/// Offsets of the slots, in separate pages so that a torn write damages only one slot.
const SLOTS: [u64; 2] = [0, 4096];

/// The open file of the mark.
#[derive(Debug)]
pub(crate) struct Mark {
    file: SharedFile,
    /// The content of the slots; `None` for a slot that is not valid.
    slots: [Option<DurableMark>; 2],
    /// Whether an earlier write failed and the failure was logged.
    failed: bool,
}

/// Reads the newest mark in `device`; `None` if this database has no mark there.
///
/// # Errors
/// `Unsupported` if a newer version wrote the mark; `Io`.
pub(crate) fn read(device: &SharedDevice, db_id: u128) -> Result<Option<DurableMark>> {
    match device.open(MARK_FILE, OpenOptions::READ) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => Ok(newest(&read_slots(&opened?, db_id)?)),
    }
}

fn read_slots(file: &SharedFile, db_id: u128) -> Result<[Option<DurableMark>; 2]> {
    let mut slots = [None, None];
    for (slot, offset) in slots.iter_mut().zip(SLOTS) {
        let mut bytes = [0; MARK_BYTES];
        let read = file.read_at(offset, &mut bytes)?;
        let mark = DurableMark::decode(MARK_FILE, &bytes[..read])?;
        *slot = mark.filter(|mark| mark.db_id == db_id);
    }
    Ok(slots)
}

fn newest(slots: &[Option<DurableMark>; 2]) -> Option<DurableMark> {
    slots.iter().flatten().max_by_key(|mark| (mark.durable, mark.newest)).copied()
}

impl Mark {
    /// Opens or creates the file; `None` if there is no space for it. Does not make the name of the
    /// file durable.
    ///
    /// # Errors
    /// Like [`read`].
    pub(crate) fn open(device: &SharedDevice, first: DurableMark) -> Result<Option<Self>> {
        if device.exists(MARK_FILE)? {
            let file = device.open(MARK_FILE, OpenOptions::WRITE)?;
            let slots = read_slots(&file, first.db_id)?;
            return Ok(Some(Self { file, slots, failed: false }));
        }
        match Self::create(device, first) {
            // The log works without a mark; the next open tries again.
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                let _ = device.remove(MARK_FILE);
                Ok(None)
            }
            created => created.map(Some),
        }
    }

    fn create(device: &SharedDevice, first: DurableMark) -> Result<Self> {
        let file = device.open(MARK_FILE, OpenOptions::CREATE)?;
        // These writes allocate the disk space of both slots, so later writes succeed even on a
        // full disk.
        SLOTS.iter().try_for_each(|&offset| file.write_at(offset, &first.encode()))?;
        Ok(Self { file, slots: [Some(first); 2], failed: false })
    }

    /// Records the durable position. If the write fails, the other slot stays intact.
    pub(crate) fn note(&mut self, mark: DurableMark) {
        if newest(&self.slots).is_none_or(|known| known.is_below(&mark)) {
            self.try_write(mark);
        }
    }

    /// Writes into the older slot and returns whether the write succeeded. Logs the first failure.
    fn try_write(&mut self, mark: DurableMark) -> bool {
        let Err(error) = self.write(mark) else { return true };
        if !self.failed {
            self.failed = true;
            tracing::warn!(
                "cannot write {MARK_FILE}: {error}; until a write succeeds, a loss of the log's \
                 newest records may go unnoticed"
            );
        }
        false
    }

    /// Writes into the older slot.
    fn write(&mut self, mark: DurableMark) -> Result<()> {
        let is_older = |a: &Option<DurableMark>, b: &Option<DurableMark>| {
            a.map(|mark| (mark.durable, mark.newest)) < b.map(|mark| (mark.durable, mark.newest))
        };
        let at = usize::from(is_older(&self.slots[1], &self.slots[0]));
        self.file.write_at(SLOTS[at], &mark.encode())?;
        self.slots[at] = Some(mark);
        Ok(())
    }

    /// Makes the mark durable.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|error| error.with_kind(ErrorKind::Poisoned))
    }

    /// Durably writes `mark` into both slots, unless both slots contain it already. Gives up if a
    /// write fails.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn record_twice(&mut self, mark: DurableMark) -> Result<()> {
        if self.slots == [Some(mark); 2] {
            return Ok(());
        }
        while self.slots != [Some(mark); 2] {
            let is_first_good = self.slots.contains(&None);
            if !self.try_write(mark) {
                return Ok(());
            }
            if is_first_good {
                // The other slot may be written only after this sync.
                self.sync()?;
            }
        }
        self.sync()
    }

    /// Writes both slots and makes them durable, whatever they contained: for a file whose content
    /// on disk is unknown. Returns `false` if a slot cannot be written.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn establish(&mut self, mark: DurableMark) -> Result<bool> {
        self.slots = [None; 2];
        if !self.try_write(mark) {
            return Ok(false);
        }
        self.sync()?;
        if !self.try_write(mark) {
            return Ok(false);
        }
        self.sync().map(|()| true)
    }
}

/// Replaces the mark by a mark of this database that records nothing as durable. For a device whose
/// writes may be discarded.
///
/// # Errors
/// `Io`.
pub(crate) fn forget(device: &SharedDevice, db_id: u128) -> Result<()> {
    if device.exists(MARK_FILE)? {
        device.remove(MARK_FILE)?;
    }
    Mark::create(device, DurableMark { db_id, newest: 0, durable: Lsn(0) }).map(drop)
}

/// Returns the error for a log whose files say that it has a mark, if no slot of it can be read.
pub(crate) fn missing(device: &SharedDevice) -> Error {
    let found = match device.exists(MARK_FILE) {
        Ok(false) => "is missing",
        _ => "cannot be read in either of its slots",
    };
    let message = format!(
        "the mark, which records how far the log is durable, {found}: the log may have lost \
         commits at its end. `frondb salvage` saves what can be read"
    );
    Error::corruption(MARK_FILE, 0, WHAT_MARK, message)
}

/// Returns the error for a log whose newest segment is missing.
pub(crate) fn missing_segment(file: String, mark: &DurableMark) -> Error {
    let DurableMark { durable, .. } = mark;
    let message =
        format!("this segment of the log is missing; the log was durable up to lsn {durable}");
    Error::corruption(file, 0, "wal segment", message)
}
