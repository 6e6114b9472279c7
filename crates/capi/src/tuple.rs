//! Compound keys: tuples whose encoding sorts as their parts do.

use std::mem::MaybeUninit;

use frondb::tuple::{Part, Scalar, encode_part};
use frondb::{Error, Result};

use crate::call::{call, call_or, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::frondb_slice;

/// A compound key under construction: parts of several types, ascending or descending, encoded so
/// that keys sort as their parts do. Null sorts before all other values (after them if
/// descending), followed by booleans, integers, floats, doubles, bytes and strings.
pub struct frondb_tuple {
    _private: [u8; 0],
}

object!(frondb_tuple, TupleObject, Tuple);

/// The encoded parts.
pub struct TupleObject(Vec<u8>);

/// Makes a tuple without parts. Free it with frondb_tuple_free().
///
/// Threads: any. One thread at a time may use the tuple; a second one gets FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_new(
    tuple: Option<&mut MaybeUninit<*mut frondb_tuple>>,
) -> *mut frondb_error {
    create(tuple, || Ok(TupleObject(Vec::new())))
}

/// Frees a tuple; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_free(tuple: *mut frondb_tuple) -> frondb_kind {
    free::<TupleObject>(tuple)
}

fn add(
    tuple: *mut frondb_tuple,
    descending: bool,
    scalar: Result<Scalar<'_>>,
) -> *mut frondb_error {
    call(|| {
        let mut tuple = handle::exclusive::<TupleObject>(tuple)?;
        let part = Part { scalar: scalar?, descending };
        encode_part(&part, &mut tuple.0);
        Ok(())
    })
}

/// Removes all parts and keeps the allocated memory.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_clear(tuple: *mut frondb_tuple) -> *mut frondb_error {
    call(|| {
        handle::exclusive::<TupleObject>(tuple)?.0.clear();
        Ok(())
    })
}

/// Adds null.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_add_null(
    tuple: *mut frondb_tuple,
    descending: bool,
) -> *mut frondb_error {
    add(tuple, descending, Ok(Scalar::Null))
}

/// Adds a boolean.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_add_bool(
    tuple: *mut frondb_tuple,
    value: bool,
    descending: bool,
) -> *mut frondb_error {
    add(tuple, descending, Ok(Scalar::Bool(value)))
}

/// Adds an integer. It equals an unsigned integer of the same value.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_add_int(
    tuple: *mut frondb_tuple,
    value: i64,
    descending: bool,
) -> *mut frondb_error {
    add(tuple, descending, Ok(Scalar::Int(value.into())))
}

/// Adds an unsigned integer.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_add_uint(
    tuple: *mut frondb_tuple,
    value: u64,
    descending: bool,
) -> *mut frondb_error {
    add(tuple, descending, Ok(Scalar::Int(value.into())))
}

/// Adds a 32-bit float, sorted in IEEE 754's total order.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_add_float(
    tuple: *mut frondb_tuple,
    value: f32,
    descending: bool,
) -> *mut frondb_error {
    add(tuple, descending, Ok(Scalar::F32(value)))
}

/// Adds a 64-bit float, sorted in IEEE 754's total order.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_add_double(
    tuple: *mut frondb_tuple,
    value: f64,
    descending: bool,
) -> *mut frondb_error {
    add(tuple, descending, Ok(Scalar::F64(value)))
}

/// Adds bytes.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_add_bytes(
    tuple: *mut frondb_tuple,
    value: frondb_slice,
    descending: bool,
) -> *mut frondb_error {
    add(tuple, descending, value.bytes().map(|bytes| Scalar::Bytes(bytes.into())))
}

/// Adds a string, which must be UTF-8; sorted by code point.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID if it is not UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_add_string(
    tuple: *mut frondb_tuple,
    value: frondb_slice,
    descending: bool,
) -> *mut frondb_error {
    let string = value.bytes().and_then(|bytes| {
        let text = std::str::from_utf8(bytes);
        text.map_err(|_| Error::invalid("the string is not UTF-8"))
    });
    add(tuple, descending, string.map(|text| Scalar::Str(text.into())))
}

/// The key so far; empty for a pointer that is no tuple. Valid until the tuple changes or is
/// freed.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_key(tuple: *mut frondb_tuple) -> frondb_slice {
    call_or(frondb_slice::NONE, || Ok(frondb_slice::of(&handle::shared::<TupleObject>(tuple)?.0)))
}
