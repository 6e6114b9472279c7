//! Reads a run's dictionary, and samples for training another one.

use frondb_block::{BlockKind, Dictionary};
use frondb_core::mem::Bytes;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};

use crate::dictionaries::HeldDictionary;
use crate::env::RunEnv;
use crate::format::RunDictionary;
use crate::read::ReadMode;
use crate::reader::{NO_PLACE, Run};

impl RunEnv {
    /// Registers a newly trained dictionary, so that the runs packed with it share one object. The
    /// dictionary stays in memory while the caller or a run holds it.
    #[must_use]
    pub fn hold_dictionary(&self, trained: Dictionary) -> Arc<HeldDictionary> {
        self.dictionaries.add(&self.budget, trained)
    }
}

impl Run {
    /// Returns the dictionary with which the run's blocks were packed; `None` if there is none.
    ///
    /// # Errors
    /// `Corruption` or a device error, if the dictionary is not in memory and cannot be read.
    pub fn dictionary(&self) -> Result<Option<Arc<HeldDictionary>>> {
        let Some(named) = self.meta().dictionary else { return Ok(None) };
        if let Some(held) = self.dictionary.get() {
            return Ok(Some(Arc::clone(held)));
        }
        let env = self.env();
        let held = match env.dictionaries.find(named.hash) {
            Some(held) => held,
            None => env.dictionaries.add(&env.budget, self.read_dictionary(named)?),
        };
        if held.has_room() {
            let _ = self.dictionary.set(Arc::clone(&held));
        }
        Ok(Some(held))
    }

    /// Reads the dictionary from the device.
    pub(crate) fn read_dictionary(&self, named: RunDictionary) -> Result<Dictionary> {
        let meta = self.meta();
        let offset = meta.disk_bytes() - u64::from(named.bytes);
        let span = self.read(offset, named.bytes as usize)?;
        let frame = span.bytes();
        let decoded = Dictionary::decode(frame, &NO_PLACE)
            .or_else(|_| self.decode_at(offset, |place| Dictionary::decode(frame, place)))?;
        if decoded.hash() == named.hash {
            return Ok(decoded);
        }
        Err(self.corrupt(offset, BlockKind::Dictionary.name(), "this is another dictionary"))
    }

    /// Returns the decompressed payload of data block `number`, bypassing the cache: a sample for
    /// training.
    ///
    /// # Errors
    /// `Corruption` or a device error; `NotFound` if the run has no such block.
    pub fn sample(&self, number: usize) -> Result<Bytes> {
        let index = self.index_of(number, ReadMode::Merge)?;
        if !index.blocks().contains(&number) {
            let message = format!("run {} has no block {number}", self.meta().id);
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let (offset, len) = index.extent(number);
        let span = self.read_for_merge(offset, len)?;
        self.payload(span.bytes(), offset)
    }
}
