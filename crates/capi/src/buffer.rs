//! Buffers: where reads put values. One is used for any number of reads; a value is moved into it
//! and not copied.

use std::mem::MaybeUninit;

use frondb::Result;

use crate::call::{call, call_or, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, Exclusive, object};
use crate::slice::{OutSlices, frondb_slice, out_handle};

/// Where reads put values; may be used again and again. What it holds stays good until it is
/// filled again or freed.
pub struct frondb_buffer {
    _private: [u8; 0],
}

object!(frondb_buffer, Buffer, Buffer);

/// A value, or several.
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

/// The buffer of a handle, before anything is read or locked for it: a read that cannot hand out what
/// it has found must not have locked it.
pub(crate) fn to_fill(buffer: *mut frondb_buffer) -> Result<Exclusive<Buffer>> {
    handle::exclusive::<Buffer>(buffer)
}

/// Takes a value; whether there is one.
pub(crate) fn fill(mut buffer: Exclusive<Buffer>, value: Option<Vec<u8>>) -> bool {
    buffer.many = Vec::new();
    let found = value.is_some();
    buffer.one = value.unwrap_or_default();
    found
}

/// Takes several values and says where they are: NULL for those that are not there.
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
/// Threads: any. The buffer is for one thread at a time; a second one gets FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_buffer_new(
    buffer: Option<&mut MaybeUninit<*mut frondb_buffer>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(buffer)?;
        place.write(handle::insert(Buffer::default())?);
        Ok(())
    })
}

/// The value that the buffer was last filled with; empty if there was none, or if it is no buffer.
/// Good until the buffer is filled again or freed.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_buffer_value(buffer: *mut frondb_buffer) -> frondb_slice {
    call_or(frondb_slice::NONE, || Ok(frondb_slice::of(&handle::shared::<Buffer>(buffer)?.one)))
}

/// Frees a buffer and what it holds. NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_buffer_free(buffer: *mut frondb_buffer) -> frondb_kind {
    free::<Buffer>(buffer)
}
