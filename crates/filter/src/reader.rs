//! Probing a filter.

use frondb_core::mem::Bytes;
use frondb_core::{Error, ErrorKind, Result};

use crate::bloom::Bloom;
use crate::format::{KIND_BLOOM, KIND_FUSE};
use crate::fuse::Fuse;

/// An open filter. Immutable; any thread may probe it.
#[derive(Clone, Debug)]
pub struct FilterReader {
    bytes: Bytes,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Bloom(Bloom),
    Fuse(Fuse),
}

impl FilterReader {
    /// Opens the bytes that [`FilterBuilder::finish`](crate::FilterBuilder::finish) returned.
    ///
    /// # Errors
    /// Corruption if the bytes are not a valid filter (the caller adds the place), Unsupported if
    /// this build does not support the kind of filter.
    pub fn open(bytes: Bytes) -> Result<Self> {
        let form = match bytes.first() {
            Some(&KIND_BLOOM) => Bloom::open(&bytes).map(Form::Bloom),
            Some(&KIND_FUSE) => Fuse::open(&bytes).map(Form::Fuse),
            Some(&kind) => {
                let message = format!("unknown filter kind {kind}: written by a newer version");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            None => None,
        };
        match form {
            Some(form) => Ok(Self { bytes, form }),
            None => {
                let message = format!("the {} bytes are not a valid filter", bytes.len());
                Err(Error::new(ErrorKind::Corruption, message))
            }
        }
    }

    /// Returns `false` if the hash is certainly not in the filter.
    #[inline]
    #[must_use]
    pub fn may_contain(&self, hash: u64) -> bool {
        match &self.form {
            Form::Bloom(bloom) => bloom.may_contain(&self.bytes, hash),
            Form::Fuse(fuse) => fuse.may_contain(&self.bytes, hash),
        }
    }

    /// Returns the number of bytes of memory that the open filter takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let more = match &self.form {
            Form::Bloom(_) => 0,
            Form::Fuse(fuse) => fuse.memory_bytes(),
        };
        size_of::<Self>() + self.bytes.footprint() + more
    }
}
