//! The file with the two superblocks: choosing between them, and replacing the older one.
//!
//! A superblock is written only into the slot that does not hold the current one, so a torn write
//! can only destroy the older. Whether a slot that does not verify was *never finished* (and the
//! other one counts) or was *damaged later* (and the other one is out of date) the slots alone
//! cannot tell. The proof is in the manifest file of that generation: its `confirmed` record is
//! written when its superblock is durable, and edits follow only behind it. [`recovery`] looks for
//! it in every manifest file newer than the chosen superblock.
//!
//! [`recovery`]: crate::recovery

use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Device, OpenOptions, SharedFile};

use crate::format::{
    Bad, FORMAT_VERSION, SLOT_BYTES, SUPER_FILE, SUPER_FILE_NEW, Superblock, WHAT_SUPERBLOCK,
};

/// The open file and which slot is in force.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    file: SharedFile,
    current: usize,
}

impl Slots {
    /// Makes the file, with the same superblock in both slots. The name appears only with the
    /// content, and both are durable.
    pub(crate) fn create(device: &dyn Device, superblock: &Superblock) -> Result<Self> {
        let file = device.open(SUPER_FILE_NEW, OpenOptions::CREATE)?;
        let slot = superblock.encode();
        file.set_len(0)?;
        file.write_vectored_at(0, &[&slot, &slot])?;
        file.sync()?;
        device.rename(SUPER_FILE_NEW, SUPER_FILE)?;
        device.sync_dir("")?;
        Ok(Self { file, current: 0 })
    }

    /// Reads the file and chooses the newest superblock that verifies. The second value says what is
    /// wrong with the other slot, if anything.
    ///
    /// # Errors
    /// `NotFound` without the file; `Invalid` if it is not a file of this engine; `Unsupported` if a
    /// newer version wrote it; `Corruption` if neither slot verifies.
    pub(crate) fn open(device: &dyn Device) -> Result<(Self, Superblock, Option<String>)> {
        let file = device.open(SUPER_FILE, OpenOptions::WRITE)?;
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        let read = file.read_at(0, &mut bytes)?;
        let (first, second) = bytes[..read].split_at(SLOT_BYTES.min(read));
        let slots = [Superblock::decode(first), Superblock::decode(second)];
        let (current, superblock) = match slots {
            [Err(Bad::Newer(version)), _] | [_, Err(Bad::Newer(version))] => {
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
            [Ok(a), Ok(b)] if b.generation > a.generation => (1, b),
            [Ok(a), _] => (0, a),
            [_, Ok(b)] => (1, b),
            [Err(Bad::Foreign), Err(Bad::Foreign)] => {
                return Err(Error::invalid(format!(
                    "not a FronDB database: {SUPER_FILE} in {} is empty or was made by \
                     something else",
                    device.describe()
                )));
            }
            _ => {
                let message = "neither superblock verifies";
                return Err(Error::corruption(SUPER_FILE, 0, WHAT_SUPERBLOCK, message));
            }
        };
        let other = slots[1 - current].err();
        let warning = other.map(|_| {
            format!(
                "superblock slot {} in {SUPER_FILE} does not verify; generation {} in the other \
                 slot is in force",
                1 - current,
                superblock.generation
            )
        });
        Ok((Self { file, current }, superblock, warning))
    }

    /// Makes durable what was read. It is written again, because a sync that failed may have dropped
    /// it from the disk and not from the operating system's cache.
    pub(crate) fn settle(&self, superblock: &Superblock) -> Result<()> {
        self.file.write_at((self.current * SLOT_BYTES) as u64, &superblock.encode())?;
        self.file.sync()
    }

    /// Puts `superblock` in force, durably.
    ///
    /// # Errors
    /// Those of the device. It is then unknown which superblock the next start will find.
    pub(crate) fn replace(&mut self, superblock: &Superblock) -> Result<()> {
        let slot = 1 - self.current;
        self.file.write_at((slot * SLOT_BYTES) as u64, &superblock.encode())?;
        self.file.sync()?;
        self.current = slot;
        Ok(())
    }
}
