//! Decodes keys into parts, and rejects bytes that no encoder produces.

use std::borrow::Cow;

use super::format::{
    END, ESCAPED, TAG_BYTES, TAG_F32, TAG_F64, TAG_FALSE, TAG_INT_MAX, TAG_INT_MIN, TAG_NULL,
    TAG_STRING, TAG_TRUE, TAG_ZERO,
};
use super::part::{Part, Scalar};
use crate::{Error, Result};

/// Decodes the parts of a key that [`encode`](super::encode()) or [`Tuple`](super::Tuple) has
/// encoded.
///
/// # Errors
/// `Invalid` for any other key: one with another encoding, or a truncated one. If decoding
/// succeeds, `key` is exactly the encoding of the returned parts.
pub fn decode(key: &[u8]) -> Result<Vec<Part<'_>>> {
    parts(key).collect()
}

/// Returns an iterator that decodes part by part, without unnecessary allocation. The iterator ends
/// after an error.
#[must_use]
pub fn parts(key: &[u8]) -> Parts<'_> {
    Parts { key, at: 0 }
}

/// An iterator over the parts of a key; see [`parts`].
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    key: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Part<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.key.get(self.at..).filter(|rest| !rest.is_empty())?;
        match decode_part(rest) {
            Ok((part, len)) => {
                self.at += len;
                Some(Ok(part))
            }
            Err(what) => {
                let at = self.at;
                self.at = self.key.len();
                Some(Err(Error::invalid(format!("not a tuple: {what} in the part at byte {at}"))))
            }
        }
    }
}

impl std::iter::FusedIterator for Parts<'_> {}

/// Decodes the first part of `bytes`, which is not empty. Returns the part and its encoded length.
fn decode_part(bytes: &[u8]) -> Result<(Part<'_>, usize), &'static str> {
    let descending = bytes[0] & 0x80 != 0;
    let flip = if descending { 0xff } else { 0 };
    let body = &bytes[1..];
    let (scalar, len) = match bytes[0] ^ flip {
        TAG_NULL => (Scalar::Null, 0),
        TAG_FALSE => (Scalar::Bool(false), 0),
        TAG_TRUE => (Scalar::Bool(true), 0),
        tag @ TAG_INT_MIN..=TAG_INT_MAX => {
            (decode_integer(tag, body, flip)?, usize::from(tag.abs_diff(TAG_ZERO)))
        }
        TAG_F32 => {
            let ordered = u32::from_be_bytes(fixed(body, flip)?);
            let bits = if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered };
            (Scalar::F32(f32::from_bits(bits)), 4)
        }
        TAG_F64 => {
            let ordered = u64::from_be_bytes(fixed(body, flip)?);
            let bits = if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered };
            (Scalar::F64(f64::from_bits(bits)), 8)
        }
        TAG_BYTES => {
            let (bytes, len) = decode_string(body, flip)?;
            (Scalar::Bytes(bytes), len)
        }
        TAG_STRING => {
            let (bytes, len) = decode_string(body, flip)?;
            (Scalar::Str(utf8(bytes)?), len)
        }
        _ => return Err("an unknown tag"),
    };
    Ok((Part { scalar, descending }, 1 + len))
}

fn fixed<const N: usize>(body: &[u8], flip: u8) -> Result<[u8; N], &'static str> {
    let bytes = body.first_chunk::<N>().ok_or("a truncated number")?;
    Ok(bytes.map(|byte| byte ^ flip))
}

fn decode_integer(tag: u8, body: &[u8], flip: u8) -> Result<Scalar<'static>, &'static str> {
    let len = usize::from(tag.abs_diff(TAG_ZERO));
    let bytes = body.get(..len).ok_or("a truncated integer")?;
    let flip = if tag < TAG_ZERO { !flip } else { flip };
    let magnitude = bytes.iter().fold(0u128, |value, &byte| value << 8 | u128::from(byte ^ flip));
    if bytes.first().is_some_and(|&byte| byte ^ flip == 0) {
        return Err("an integer with a leading zero");
    }
    if tag >= TAG_ZERO {
        return Ok(i128::try_from(magnitude).map_or(Scalar::Uint(magnitude), Scalar::Int));
    }
    // Subtract the magnitude from 0: the magnitude of `i128::MIN` does not fit an `i128`.
    0i128.checked_sub_unsigned(magnitude).map(Scalar::Int).ok_or("an integer out of range")
}

/// Decodes the string at the beginning of `body`. Returns the string and its encoded length.
fn decode_string(body: &[u8], flip: u8) -> Result<(Cow<'_, [u8]>, usize), &'static str> {
    let mut owned: Option<Vec<u8>> = (flip != 0).then(Vec::new);
    let mut start = 0;
    loop {
        let rest = &body[start..];
        let zero =
            rest.iter().position(|&byte| byte ^ flip == 0).ok_or("an unterminated string")?;
        let piece = &rest[..zero];
        let next = start + zero + 2;
        let mark = rest.get(zero + 1).ok_or("an unterminated string")? ^ flip;
        if let Some(owned) = &mut owned {
            owned.extend(piece.iter().map(|byte| byte ^ flip));
        }
        match (mark, &mut owned) {
            (END, Some(owned)) => return Ok((Cow::Owned(std::mem::take(owned)), next)),
            (END, None) => return Ok((Cow::Borrowed(piece), next)),
            (ESCAPED, Some(owned)) => owned.push(0),
            (ESCAPED, None) => {
                let mut begun = piece.to_vec();
                begun.push(0);
                owned = Some(begun);
            }
            _ => return Err("an unknown escape in a string"),
        }
        start = next;
    }
}

fn utf8(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, &'static str> {
    const WRONG: &str = "a string that is not UTF-8";
    match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| WRONG),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| WRONG),
    }
}
