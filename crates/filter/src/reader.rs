//! Opening a filter, and queries of it.

use frondb_core::mem::Bytes;

use crate::bloom::Bloom;
use crate::format::{KIND_BLOOM, KIND_FUSE};
use crate::fuse::Fuse;

/// Why bytes cannot be opened as a filter. The caller knows where the bytes are, and makes an error
/// with this place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterError {
    /// The bytes are not a valid filter.
    Malformed,
    /// The kind of the filter, which this build does not know: a newer version may have written the
    /// filter.
    UnknownKind(u8),
}

/// An open filter. Immutable; any thread may query it.
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
    /// `Malformed` if the bytes are not a valid filter, `UnknownKind` if this build does not
    /// support the kind of filter.
    pub fn open(bytes: Bytes) -> Result<Self, FilterError> {
        let form = match bytes.first() {
            Some(&KIND_BLOOM) => Bloom::open(&bytes).map(Form::Bloom),
            Some(&KIND_FUSE) => Fuse::open(&bytes).map(Form::Fuse),
            Some(&kind) => return Err(FilterError::UnknownKind(kind)),
            None => None,
        };
        form.map(|form| Self { bytes, form }).ok_or(FilterError::Malformed)
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
