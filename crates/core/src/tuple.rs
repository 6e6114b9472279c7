//! Compound keys: an encoding of tuples whose byte order is the order of the tuples.
//!
//! A key of a tree is a byte string, compared byte by byte. A table's key has several columns of
//! several types, some of them descending. Encoded as a [`Tuple`], the key sorts as the columns do,
//! and it can be decoded without knowing its types.
//!
//! # Format
//!
//! A tuple is its parts one after the other. A part is a tag and the bytes that the table gives. A
//! descending part has every byte inverted, including its tag, so the top bit of a part's first
//! byte shows the direction.
//!
//! ```text
//! tag        part       bytes behind the tag
//! 01         null
//! 02  03     false true
//! 10 .. 1f   negative   n = 0x20 - tag bytes: the magnitude, big-endian, inverted
//! 20         zero
//! 21 .. 30   positive   n = tag - 0x20 bytes: the number, big-endian, no leading zero
//! 38         f32        4 bytes: big-endian, negative ones inverted, others with the top bit set
//! 39         f64        8 bytes: the same
//! 40         bytes      each byte, 00 as 00 ff; then 00 01
//! 41         string     the same, of the UTF-8
//! ```
//!
//! # Order
//!
//! - Between types by tag: null first, then booleans, integers, f32, f64, bytes, strings. A
//!   descending part sorts the other way round, null last.
//! - Integers by value, whatever their width or sign: `5u8` and `5i128` are the same part.
//! - Floats in IEEE 754's total order: -NaN, -infinity, ..., -0.0, +0.0, ..., infinity, NaN. If
//!   -0.0 and 0.0, or all NaNs, are to be one value in a column, the caller normalises them first.
//! - A tuple sorts directly before the tuples it is a prefix of, also when the next part is
//!   descending. So `[p, prefix_end(p))` holds exactly the tuples that begin with the parts `p`.
//!
//! Why the terminator has two bytes: with 00 alone, inverted, `"a"` at the end of a key would sort
//! before `"a\0"` in a descending part.
//!
//! # Example
//!
//! The table `metrics`: primary key (ts, device_id, metric_id), secondary keys (metric_id, ts) and
//! (device_id, ts). A secondary tree's keys end in what the primary key has beyond them, so that
//! each is unique and leads to its row.
//!
//! ```
//! # use frondb_core as frondb;
//! use frondb::tuple::{self, Scalar, Tuple, desc};
//!
//! let (ts, device_id, metric_id) = (1_700_000_000_000_u64, 17_u32, "cpu.load");
//! let primary = Tuple::new().with(ts).with(device_id).with(metric_id);
//! let by_metric = Tuple::new().with(metric_id).with(ts).with(device_id);
//! // The latest first.
//! let by_device = Tuple::new().with(device_id).with(desc(ts)).with(metric_id);
//!
//! let later = Tuple::new().with(ts + 1).with(3_u32).with("a");
//! assert!(primary.as_bytes() < later.as_bytes());
//!
//! // All rows of one metric lie between a prefix and its end.
//! let from = Tuple::new().with(metric_id).into_bytes();
//! let to = tuple::prefix_end(&from).expect("a prefix of a tuple has an end");
//! assert!(from.as_slice() <= by_metric.as_bytes() && by_metric.as_bytes() < to.as_slice());
//!
//! let parts = tuple::decode(by_device.as_bytes())?;
//! assert_eq!(parts[0].scalar, Scalar::Int(17));
//! assert_eq!(parts[1], desc(ts));
//! # Ok::<(), frondb::Error>(())
//! ```

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::{Error, Result};

const TAG_NULL: u8 = 0x01;
const TAG_FALSE: u8 = 0x02;
const TAG_TRUE: u8 = 0x03;
const TAG_ZERO: u8 = 0x20;
const TAG_INT_MIN: u8 = TAG_ZERO - INT_BYTES_MAX;
const TAG_INT_MAX: u8 = TAG_ZERO + INT_BYTES_MAX;
const TAG_F32: u8 = 0x38;
const TAG_F64: u8 = 0x39;
const TAG_BYTES: u8 = 0x40;
const TAG_STRING: u8 = 0x41;
const INT_BYTES_MAX: u8 = 16;

/// Follows a 00 that is part of the string.
const ESCAPED: u8 = 0xff;
/// Follows the 00 that ends the string.
const END: u8 = 0x01;

/// The value of a part.
#[derive(Clone, Debug)]
pub enum Scalar<'a> {
    /// No value; sorts before all others.
    Null,
    /// `false` before `true`.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// An integer above `i128::MAX`. (A smaller one equals its [`Int`](Self::Int), which decoding
    /// returns.)
    Uint(u128),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A byte string.
    Bytes(Cow<'a, [u8]>),
    /// A character string, ordered by its UTF-8 (which is the order of code points).
    Str(Cow<'a, str>),
}

impl Scalar<'_> {
    /// Sign and magnitude, for comparing integers of both kinds.
    fn integer(&self) -> Option<(bool, u128)> {
        match *self {
            Self::Int(value) => Some((value >= 0, value.unsigned_abs())),
            Self::Uint(value) => Some((true, value)),
            _ => None,
        }
    }

    fn type_rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) | Self::Uint(_) => 2,
            Self::F32(_) => 3,
            Self::F64(_) => 4,
            Self::Bytes(_) => 5,
            Self::Str(_) => 6,
        }
    }
}

/// The order of ascending parts; see the module's head.
impl Ord for Scalar<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::F32(a), Self::F32(b)) => a.total_cmp(b),
            (Self::F64(a), Self::F64(b)) => a.total_cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            _ => match (self.integer(), other.integer()) {
                (Some((true, a)), Some((true, b))) => a.cmp(&b),
                (Some((false, a)), Some((false, b))) => b.cmp(&a),
                (Some((a, _)), Some((b, _))) => a.cmp(&b),
                _ => self.type_rank().cmp(&other.type_rank()),
            },
        }
    }
}

impl PartialOrd for Scalar<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scalar<'_> {}

/// One part of a tuple: a value and the direction in which it sorts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part<'a> {
    /// The value.
    pub scalar: Scalar<'a>,
    /// Whether larger values sort first.
    pub descending: bool,
}

/// A part in descending order: `desc(ts)` sorts the latest first.
pub fn desc<'a>(part: impl Into<Part<'a>>) -> Part<'a> {
    let part = part.into();
    Part { descending: !part.descending, ..part }
}

impl<'a> From<Scalar<'a>> for Part<'a> {
    fn from(scalar: Scalar<'a>) -> Self {
        Self { scalar, descending: false }
    }
}

macro_rules! part_from {
    ($($from:ty, $value:ident => $scalar:expr;)*) => {
        $(impl<'a> From<$from> for Part<'a> {
            #[inline]
            fn from($value: $from) -> Self {
                $scalar.into()
            }
        })*
    };
}

part_from! {
    bool, value => Scalar::Bool(value);
    i8, value => Scalar::Int(value.into());
    i16, value => Scalar::Int(value.into());
    i32, value => Scalar::Int(value.into());
    i64, value => Scalar::Int(value.into());
    i128, value => Scalar::Int(value);
    u8, value => Scalar::Int(value.into());
    u16, value => Scalar::Int(value.into());
    u32, value => Scalar::Int(value.into());
    u64, value => Scalar::Int(value.into());
    u128, value => i128::try_from(value).map_or(Scalar::Uint(value), Scalar::Int);
    f32, value => Scalar::F32(value);
    f64, value => Scalar::F64(value);
    &'a [u8], value => Scalar::Bytes(Cow::Borrowed(value));
    Vec<u8>, value => Scalar::Bytes(Cow::Owned(value));
    &'a str, value => Scalar::Str(Cow::Borrowed(value));
    String, value => Scalar::Str(Cow::Owned(value));
}

impl<'a, const N: usize> From<&'a [u8; N]> for Part<'a> {
    fn from(value: &'a [u8; N]) -> Self {
        Scalar::Bytes(Cow::Borrowed(value)).into()
    }
}

/// `None` is [`Scalar::Null`].
impl<'a, T: Into<Part<'a>>> From<Option<T>> for Part<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Scalar::Null.into(), Into::into)
    }
}

/// A compound key under construction.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tuple {
    bytes: Vec<u8>,
}

impl Tuple {
    /// The empty tuple; its key is empty and sorts first.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tuple with one more part.
    #[must_use]
    pub fn with<'a>(mut self, part: impl Into<Part<'a>>) -> Self {
        encode_part(&part.into(), &mut self.bytes);
        self
    }

    /// The encoded key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded key, owned.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl AsRef<[u8]> for Tuple {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The key of a tuple.
#[must_use]
pub fn encode(parts: &[Part<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        encode_part(part, &mut out);
    }
    out
}

/// Appends the encoding of `part`, for callers that build keys in a buffer of their own.
pub fn encode_part(part: &Part<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    match &part.scalar {
        Scalar::Null => out.push(TAG_NULL),
        Scalar::Bool(false) => out.push(TAG_FALSE),
        Scalar::Bool(true) => out.push(TAG_TRUE),
        Scalar::Int(value) => encode_integer(*value >= 0, value.unsigned_abs(), out),
        Scalar::Uint(value) => encode_integer(true, *value, out),
        Scalar::F32(value) => {
            let bits = value.to_bits();
            let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
            out.push(TAG_F32);
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Scalar::F64(value) => {
            let bits = value.to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.push(TAG_F64);
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Scalar::Bytes(bytes) => encode_string(TAG_BYTES, bytes, out),
        Scalar::Str(string) => encode_string(TAG_STRING, string.as_bytes(), out),
    }
    if part.descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

fn encode_integer(positive: bool, magnitude: u128, out: &mut Vec<u8>) {
    let skipped = magnitude.leading_zeros() as usize / 8;
    let bytes = &magnitude.to_be_bytes()[skipped..];
    if positive {
        out.push(TAG_ZERO + bytes.len() as u8);
        out.extend_from_slice(bytes);
    } else {
        out.push(TAG_ZERO - bytes.len() as u8);
        out.extend(bytes.iter().map(|byte| !byte));
    }
}

fn encode_string(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 3);
    out.push(tag);
    for (i, piece) in bytes.split(|&byte| byte == 0).enumerate() {
        if i > 0 {
            out.extend_from_slice(&[0, ESCAPED]);
        }
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(&[0, END]);
}

/// The parts of a key that [`encode`] or [`Tuple`] made.
///
/// # Errors
/// `Invalid` for any other key: another encoding, or a truncated key. Accepted bytes are exactly
/// the encoding of the returned parts.
pub fn decode(key: &[u8]) -> Result<Vec<Part<'_>>> {
    parts(key).collect()
}

/// Decodes part by part, without unnecessary allocation. Ends after an error.
#[must_use]
pub fn parts(key: &[u8]) -> Parts<'_> {
    Parts { key, at: 0 }
}

/// Iterates over the parts of a key; see [`parts`].
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

/// The first part of `bytes` (which is not empty) and its length.
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
    // Computed by subtraction to reach i128::MIN, whose magnitude is no i128.
    0i128.checked_sub_unsigned(magnitude).map(Scalar::Int).ok_or("an integer out of range")
}

/// The string at the beginning of `body`, and its encoded length.
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

/// The smallest key that is larger than every key with this prefix. `None` if there is none,
/// because the prefix is empty or all ff: the keys with the prefix reach to the end of the tree.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(all(test, not(shuttle)))]
#[path = "tuple/tests.rs"]
mod tests;
