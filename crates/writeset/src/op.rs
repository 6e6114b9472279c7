//! The encoding of one message, in the log, in batches and in write sets.
//!
//! ```text
//! message: head u8 (bits 0-2 kind, bit 3 value empty, bits 4-7 0), key length, key,
//!          unless empty: value length, value
//! range delete: head 7, lo length, lo, hi (optional bytes)
//! ```
//!
//! Kinds: 0 put, 1 delete, 2 update, 3 put by reference, 7 range delete. A decoder refuses a head
//! with one of the bits 4-7, which a later version could use for a message that is derived from an
//! entry of another section (today rule 26 excludes such messages).

use frondb_core::MessageKind;
use frondb_core::codec::{Reader, Truncated, put_bytes, put_bytes_opt};

/// Head byte of a range delete.
pub const OP_RANGE_DELETE: u8 = 7;
const OP_VALUE_EMPTY: u8 = 8;

/// Appends a point message.
#[inline]
pub fn encode_op(out: &mut Vec<u8>, kind: MessageKind, key: &[u8], value: &[u8]) {
    out.reserve(key.len() + value.len() + 11);
    let empty = if value.is_empty() { OP_VALUE_EMPTY } else { 0 };
    out.push(kind as u8 | empty);
    put_bytes(out, key);
    if !value.is_empty() {
        put_bytes(out, value);
    }
}

/// Appends a range delete.
pub fn encode_range_delete(out: &mut Vec<u8>, lo: &[u8], hi: Option<&[u8]>) {
    out.push(OP_RANGE_DELETE);
    put_bytes(out, lo);
    put_bytes_opt(out, hi);
}

/// A decoded message of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op<'a> {
    /// A point message.
    Point {
        /// The kind of the message.
        kind: MessageKind,
        /// The key of the message.
        key: &'a [u8],
        /// The value of the message; empty for a delete.
        value: &'a [u8],
    },
    /// A range delete.
    RangeDelete {
        /// First key of the range.
        lo: &'a [u8],
        /// First key after the range; `None` for no bound.
        hi: Option<&'a [u8]>,
    },
}

/// Decodes one message.
///
/// # Errors
/// [`Truncated`] if the bytes end early, or the head has an unknown kind or bit.
#[inline]
pub fn decode_op<'a>(input: &mut Reader<'a>) -> Result<Op<'a>, Truncated> {
    let head = input.u8()?;
    if head == OP_RANGE_DELETE {
        return Ok(Op::RangeDelete { lo: input.bytes()?, hi: input.bytes_opt()? });
    }
    let kind = MessageKind::from_u8(head & 7).ok_or(Truncated)?;
    let key = input.bytes()?;
    let value = match head & !7 {
        0 => input.bytes()?,
        OP_VALUE_EMPTY => b"",
        _ => return Err(Truncated),
    };
    Ok(Op::Point { kind, key, value })
}
