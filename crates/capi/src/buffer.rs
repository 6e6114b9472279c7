//! Buffers for the values that reads return. A buffer is reused for any number of reads; values are
//! moved into it, not copied.

use std::mem::MaybeUninit;

use frondb::Result;

use crate::call::{call_or, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, Exclusive, object};
use crate::slice::{OutSlices, frondb_slice};

/// Holds the values that a read returns. A buffer may be reused: its contents are valid until the
/// next call that fills it, or until it is freed.
pub struct frondb_buffer {
    _private: [u8; 0],
}

object!(frondb_buffer, Buffer, Buffer);

/// Has the value of a single read in `one`, or the values of a multi-get in `many`.
#[derive(Default)]
pub struct Buffer {
    one: Vec<u8>,
    many: Vec<Option<Vec<u8>>>,
}

impl Buffer {
    #[cfg(test)]
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { one: bytes, many: Vec::new() }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.one
    }
}

/// Returns the buffer of a handle. Called before the read, so that a bad buffer handle fails the
/// call before the read takes a lock.
pub(crate) fn to_fill(buffer: *mut frondb_buffer) -> Result<Exclusive<Buffer>> {
    handle::exclusive::<Buffer>(buffer)
}

/// Stores a value, if there is one, in the buffer. Returns whether there is one.
pub(crate) fn fill(mut buffer: Exclusive<Buffer>, value: Option<Vec<u8>>) -> bool {
    buffer.many = Vec::new();
    let found = value.is_some();
    buffer.one = value.unwrap_or_default();
    found
}

/// Stores several values in the buffer, and writes a slice of each into `places`; a missing value
/// has a NULL slice.
pub(crate) fn fill_many(
    mut buffer: Exclusive<Buffer>,
    values: Vec<Option<Vec<u8>>>,
    mut places: OutSlices,
) -> Result<()> {
    buffer.one = Vec::new();
    buffer.many = values;
    let slice = |value: &Option<Vec<u8>>| {
        value.as_ref().map_or(frondb_slice::NONE, |value| frondb_slice::of(value))
    };
    let slices: Vec<frondb_slice> = buffer.many.iter().map(slice).collect();
    places.write(&slices)
}

/// Makes an empty buffer. Free it with frondb_buffer_free().
///
/// Threads: any. One thread at a time may use the buffer. While another thread uses it, a call that
/// fills or frees it gets FRONDB_BUSY. While another thread fills it, frondb_buffer_value() returns
/// an empty slice.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_buffer_new(
    buffer: Option<&mut MaybeUninit<*mut frondb_buffer>>,
) -> *mut frondb_error {
    create(buffer, || Ok(Buffer::default()))
}

/// Returns the value that the last read put into the buffer; an empty slice if the read found no
/// value, after a read of several keys, or for a pointer that is not a buffer. The bytes are valid
/// until the buffer is filled again or freed.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_buffer_value(buffer: *mut frondb_buffer) -> frondb_slice {
    call_or(frondb_slice::NONE, || Ok(frondb_slice::of(&handle::shared::<Buffer>(buffer)?.one)))
}

/// Frees a buffer and its contents; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_buffer_free(buffer: *mut frondb_buffer) -> frondb_kind {
    free::<Buffer>(buffer)
}
