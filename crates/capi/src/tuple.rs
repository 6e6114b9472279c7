//! Compound keys: tuples whose encoded bytes sort in the order of their parts.

use std::mem::MaybeUninit;

use frondb::tuple::{Part, Scalar, decode, encode_part};
use frondb::{Error, Result};

use crate::call::{call, call_or, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{frondb_slice, out};

/// A compound key under construction: parts of several types, ascending or descending, encoded so
/// that the keys sort in the order of their parts. Null sorts before all other values (after them
/// if descending), followed by booleans, integers, floats, doubles, bytes and strings.
pub struct frondb_tuple {
    _private: [u8; 0],
}

object!(frondb_tuple, TupleObject, Tuple);

/// A key and its parts.
#[derive(Default)]
pub struct TupleObject {
    key: Vec<u8>,
    /// The parts of the key; `None` until they are first requested, and decoded then.
    parts: Option<Vec<TypedPart>>,
}

struct TypedPart {
    part: frondb_part,
    /// Owns the memory that `part.bytes` points to.
    _bytes: Vec<u8>,
}

/// The type of a part.
pub type frondb_part_type = u32;
/// No value.
pub const FRONDB_PART_NULL: frondb_part_type = 0;
/// A boolean, in `boolean`.
pub const FRONDB_PART_BOOL: frondb_part_type = 1;
/// An integer from INT64_MIN to INT64_MAX, in `integer`.
pub const FRONDB_PART_INT: frondb_part_type = 2;
/// An integer above INT64_MAX and up to UINT64_MAX, in `unsigned_integer`.
pub const FRONDB_PART_UINT: frondb_part_type = 3;
/// An integer below INT64_MIN or above UINT64_MAX, which only Rust programs write. `bytes` has its
/// decimal digits, after a minus sign if it is negative.
pub const FRONDB_PART_WIDE: frondb_part_type = 4;
/// A 32-bit float, in `number`.
pub const FRONDB_PART_FLOAT: frondb_part_type = 5;
/// A 64-bit float, in `number`.
pub const FRONDB_PART_DOUBLE: frondb_part_type = 6;
/// Bytes, in `bytes`.
pub const FRONDB_PART_BYTES: frondb_part_type = 7;
/// A string in UTF-8, in `bytes`.
pub const FRONDB_PART_STRING: frondb_part_type = 8;

/// A part of a tuple. Fields that do not apply to `type` are zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_part {
    /// The type, which determines the field that has the value.
    r#type: frondb_part_type,
    /// Whether larger values sort first.
    descending: bool,
    /// A boolean; for FRONDB_PART_BOOL.
    boolean: bool,
    /// An integer; for FRONDB_PART_INT.
    integer: i64,
    /// An integer; for FRONDB_PART_UINT, and for FRONDB_PART_INT unless it is negative (then 0).
    unsigned_integer: u64,
    /// A float or a double.
    number: f64,
    /// Bytes, a string, or digits; valid until the tuple changes or is freed.
    bytes: frondb_slice,
}

impl TypedPart {
    fn of(part: Part<'_>) -> Self {
        let mut typed = frondb_part {
            r#type: FRONDB_PART_NULL,
            descending: part.descending,
            boolean: false,
            integer: 0,
            unsigned_integer: 0,
            number: 0.0,
            bytes: frondb_slice::NONE,
        };
        let mut bytes = Vec::new();
        match part.scalar {
            Scalar::Null => {}
            Scalar::Bool(value) => (typed.r#type, typed.boolean) = (FRONDB_PART_BOOL, value),
            Scalar::Int(value) => {
                typed.unsigned_integer = u64::try_from(value).unwrap_or(0);
                if let Ok(value) = i64::try_from(value) {
                    (typed.r#type, typed.integer) = (FRONDB_PART_INT, value);
                } else if typed.unsigned_integer > 0 {
                    typed.r#type = FRONDB_PART_UINT;
                } else {
                    (typed.r#type, bytes) = (FRONDB_PART_WIDE, value.to_string().into_bytes());
                }
            }
            Scalar::Uint(value) => {
                (typed.r#type, bytes) = (FRONDB_PART_WIDE, value.to_string().into_bytes());
            }
            Scalar::F32(value) => (typed.r#type, typed.number) = (FRONDB_PART_FLOAT, value.into()),
            Scalar::F64(value) => (typed.r#type, typed.number) = (FRONDB_PART_DOUBLE, value),
            Scalar::Bytes(value) => (typed.r#type, bytes) = (FRONDB_PART_BYTES, value.into_owned()),
            Scalar::Str(value) => {
                (typed.r#type, bytes) = (FRONDB_PART_STRING, value.into_owned().into_bytes());
            }
        }
        if matches!(typed.r#type, FRONDB_PART_WIDE | FRONDB_PART_BYTES | FRONDB_PART_STRING) {
            typed.bytes = frondb_slice::of(&bytes);
        }
        Self { part: typed, _bytes: bytes }
    }
}

impl TupleObject {
    fn parts(&mut self) -> Result<&[TypedPart]> {
        if self.parts.is_none() {
            let parts = decode(&self.key)?.into_iter().map(TypedPart::of).collect();
            self.parts = Some(parts);
        }
        Ok(self.parts.as_deref().unwrap_or_default())
    }
}

/// Makes a tuple without parts. Free it with frondb_tuple_free().
///
/// Threads: any. One thread at a time may use the tuple; a second one gets FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_new(
    tuple: Option<&mut MaybeUninit<*mut frondb_tuple>>,
) -> *mut frondb_error {
    create(tuple, || Ok(TupleObject::default()))
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
        encode_part(&part, &mut tuple.key);
        tuple.parts = None;
        Ok(())
    })
}

/// Removes all parts and keeps the allocated memory.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_clear(tuple: *mut frondb_tuple) -> *mut frondb_error {
    call(|| {
        let mut tuple = handle::exclusive::<TupleObject>(tuple)?;
        tuple.key.clear();
        tuple.parts = None;
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

/// Adds an integer. It is encoded like an unsigned integer of the same value.
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

/// Adds a string in UTF-8. Strings sort by code point.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID if the string is not UTF-8.
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

/// Returns the key that the parts so far make; empty for a pointer that is not a tuple. The bytes
/// are valid until the tuple changes or is freed.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_key(tuple: *mut frondb_tuple) -> frondb_slice {
    call_or(frondb_slice::NONE, || Ok(frondb_slice::of(&handle::shared::<TupleObject>(tuple)?.key)))
}

/// Decodes a key, and replaces the parts of the tuple by the parts of the key. frondb_tuple_get()
/// reads the parts.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a key that is not an encoded tuple; the tuple then has no parts.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_decode(
    tuple: *mut frondb_tuple,
    key: frondb_slice,
) -> *mut frondb_error {
    call(|| {
        let mut tuple = handle::exclusive::<TupleObject>(tuple)?;
        tuple.key.clear();
        tuple.parts = None;
        tuple.key.extend_from_slice(key.bytes()?);
        let decoded = tuple.parts().map(drop);
        if decoded.is_err() {
            tuple.key.clear();
        }
        decoded
    })
}

/// Returns the number of parts; 0 for a pointer that is not a tuple.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_count(tuple: *mut frondb_tuple) -> usize {
    call_or(0, || Ok(handle::exclusive::<TupleObject>(tuple)?.parts()?.len()))
}

/// Reads part `at`, from 0, of the tuple.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID if `at` is beyond the last part.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tuple_get(
    tuple: *mut frondb_tuple,
    at: usize,
    part: Option<&mut MaybeUninit<frondb_part>>,
) -> *mut frondb_error {
    call(|| {
        let (place, mut tuple) = (out(part)?, handle::exclusive::<TupleObject>(tuple)?);
        let parts = tuple.parts()?;
        let beyond = || {
            Error::invalid(format!("index {at} is out of range: there are {} parts", parts.len()))
        };
        place.write(parts.get(at).ok_or_else(beyond)?.part);
        Ok(())
    })
}
