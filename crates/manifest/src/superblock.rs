//! The file with the two superblocks: chooses between them (rule 9), and replaces the older one.
//!
//! A new superblock is written only into the slot that does not hold the current one, so a torn
//! write can only destroy the older one. There are two reasons to write a new superblock:
//!
//! - a new manifest file ([`Slots::replace`]): the generation grows;
//! - more of the same file is durable ([`Slots::record_durable`]): the generation stays and the
//!   update number grows. Both slots then name the same file, and after a torn write the remaining
//!   one records fewer durable bytes, not another state.
//!
//! With two generations, the slots alone cannot tell whether an invalid slot was *never finished*
//! (and the other one is valid) or was *damaged later* (and the other one is out of date). The
//! manifest file of the invalid slot's generation tells: its `confirmed` record is written once its
//! superblock is durable, and edits that the old file lacks only follow that record. [`recovery`]
//! looks for this record in every manifest file newer than the chosen superblock.
//!
//! [`recovery`]: crate::recovery

use std::fmt;

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Device, OpenOptions, SharedFile};

use crate::format::{
    DecodeFault, FORMAT_VERSION, SLOT_BYTES, SUPER_FILE, SUPER_FILE_NEW, Superblock, VERSION_BYTES,
    WHAT_SUPERBLOCK, note_of,
};

/// The open file and the slot in force.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    file: SharedFile,
    current: usize,
    /// The content of the slot in force, and its bytes, which an earlier version may have written.
    superblock: Superblock,
    bytes: Vec<u8>,
    /// Whether the other slot names the same file with as many durable bytes, in this version, so
    /// that either slot may be lost.
    is_twice: bool,
    /// Provides the notes of the superblocks that are written. If `None`, each superblock gets the
    /// note of the previous one.
    notes: Option<Arc<dyn NoteSource>>,
}

/// Provides the note of each superblock that is written. A note is a few bytes that need not be
/// exact: after a crash the newest superblock may have an older note, and recovery does not depend
/// on notes.
pub trait NoteSource: fmt::Debug + Send + Sync {
    /// Returns the note of a superblock that is about to be written, of at most
    /// [`NOTE_BYTES_MAX`](crate::NOTE_BYTES_MAX) bytes. `bytes` is the size of the write. The
    /// thread that leads the manifest calls this function, so it must be quick and not call the
    /// manifest.
    fn note(&self, bytes: u64) -> Vec<u8>;
}

/// The superblocks of a database as they were found.
#[derive(Debug)]
pub(crate) struct FoundSlots {
    pub(crate) slots: Slots,
    pub(crate) superblock: Superblock,
    /// A sentence about the slot that is not in force, if that slot is invalid.
    pub(crate) warning: Option<String>,
}

impl Slots {
    /// Creates the file with the same superblock in both slots. The name appears only together with
    /// the content, and both are durable.
    pub(crate) fn create(device: &dyn Device, superblock: &Superblock) -> Result<Self> {
        let file = device.open(SUPER_FILE_NEW, OpenOptions::CREATE)?;
        let slot = superblock.encode(&[]);
        file.set_len(0)?;
        file.write_vectored_at(0, &[&slot, &slot])?;
        file.sync()?;
        device.rename(SUPER_FILE_NEW, SUPER_FILE)?;
        device.sync_dir("")?;
        let bytes = slot.to_vec();
        Ok(Self { file, current: 0, superblock: *superblock, bytes, is_twice: true, notes: None })
    }

    /// Reads the file and chooses the newest valid superblock.
    ///
    /// # Errors
    /// `NotFound` without the file; `Invalid` if it is not a file of this engine; `Unsupported` if
    /// a newer version wrote it; `Corruption` if neither slot is valid, or if the two belong to
    /// different databases.
    pub(crate) fn open(device: &dyn Device, options: OpenOptions) -> Result<FoundSlots> {
        let file = device.open(SUPER_FILE, options)?;
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        let read = file.read_at(0, &mut bytes)?;
        let (first, second) = bytes[..read].split_at(SLOT_BYTES.min(read));
        let slots = [Superblock::decode(first), Superblock::decode(second)];
        let (current, superblock) = match slots {
            [Err(DecodeFault::Newer(version)), _] | [_, Err(DecodeFault::Newer(version))] => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "the database in {} has format version {version}; this build reads up to \
                         {FORMAT_VERSION}: use a newer FronDB",
                        device.describe()
                    ),
                ));
            }
            [Ok(a), Ok(b)] if a.db_id != b.db_id => {
                let message = "the two superblocks belong to different databases";
                return Err(Error::corruption(SUPER_FILE, 0, WHAT_SUPERBLOCK, message));
            }
            [Ok(a), Ok(b)] if b.age() > a.age() => (1, b),
            [Ok(a), _] => (0, a),
            [_, Ok(b)] => (1, b),
            [Err(DecodeFault::Foreign), Err(DecodeFault::Foreign)] => {
                return Err(Error::invalid(format!(
                    "not a FronDB database: {SUPER_FILE} in {} is empty or was written by \
                     another program",
                    device.describe()
                )));
            }
            _ => {
                let message = "neither superblock is valid";
                return Err(Error::corruption(SUPER_FILE, 0, WHAT_SUPERBLOCK, message));
            }
        };
        let other = slots[1 - current].err();
        // A slot of an earlier version counts as missing, so that opening writes this version: from
        // then on earlier builds refuse the database.
        let is_of_this_version =
            |slot: &[u8]| slot.get(VERSION_BYTES) == Some(&FORMAT_VERSION.to_le_bytes()[..]);
        let is_twice = slots[1 - current].is_ok_and(|other| {
            (other.generation, other.durable_bytes)
                == (superblock.generation, superblock.durable_bytes)
        }) && is_of_this_version(first)
            && is_of_this_version(second);
        let warning = other.map(|_| {
            format!(
                "superblock slot {} in {SUPER_FILE} is invalid; generation {} in the other \
                 slot is in force",
                1 - current,
                superblock.generation
            )
        });
        let bytes = if current == 0 { first.to_vec() } else { second.to_vec() };
        let slots = Self { file, current, superblock, bytes, is_twice, notes: None };
        Ok(FoundSlots { slots, superblock, warning })
    }

    /// Returns the note of the superblock in force.
    pub(crate) fn note(&self) -> &[u8] {
        note_of(&self.bytes)
    }

    /// Calls `notes` for the note of every superblock from now on.
    pub(crate) fn set_notes(&mut self, notes: Arc<dyn NoteSource>) {
        self.notes = Some(notes);
    }

    /// Makes the slot that was read durable. Writes it again, because a failed sync may have lost
    /// it on the disk but not in the page cache. Not a byte changes, so a torn write does no harm.
    pub(crate) fn rewrite(&self) -> Result<()> {
        self.file.write_at((self.current * SLOT_BYTES) as u64, &self.bytes)?;
        self.file.sync()
    }

    /// Durably records that the first `durable_bytes` of the manifest file in force are durable.
    /// REQUIRES: these bytes are durable, and the superblock in force is confirmed.
    ///
    /// # Errors
    /// Errors of the device. It is then unknown which of the two values the next startup finds;
    /// both are true.
    pub(crate) fn record_durable(&mut self, durable_bytes: u64) -> Result<()> {
        if durable_bytes <= self.superblock.durable_bytes {
            return Ok(());
        }
        self.write_other(durable_bytes)?;
        self.is_twice = false;
        Ok(())
    }

    /// Like [`record_durable`](Self::record_durable), but in both slots: from then on damage to one
    /// slot hides nothing. For a manifest that is being closed or was just opened.
    ///
    /// # Errors
    /// Like [`record_durable`](Self::record_durable).
    pub(crate) fn record_durable_twice(&mut self, durable_bytes: u64) -> Result<()> {
        self.record_durable(durable_bytes)?;
        if !self.is_twice {
            self.write_other(self.superblock.durable_bytes)?;
            self.is_twice = true;
        }
        Ok(())
    }

    fn write_other(&mut self, durable_bytes: u64) -> Result<()> {
        let update = self.superblock.update + 1;
        self.replace(&Superblock { durable_bytes, update, ..self.superblock })
    }

    /// Durably puts `superblock` in force.
    ///
    /// # Errors
    /// Errors of the device. It is then unknown which superblock the next startup finds.
    pub(crate) fn replace(&mut self, superblock: &Superblock) -> Result<()> {
        let note = match &self.notes {
            Some(notes) => notes.note(SLOT_BYTES as u64),
            None => self.note().to_vec(),
        };
        let (slot, bytes) = (1 - self.current, superblock.encode(&note));
        self.file.write_at((slot * SLOT_BYTES) as u64, &bytes)?;
        self.file.sync()?;
        self.current = slot;
        self.bytes = bytes.to_vec();
        self.superblock = *superblock;
        self.is_twice = false;
        Ok(())
    }
}
