//! Compound keys: an encoding of tuples that sorts byte by byte as the tuples sort.
//!
//! A tree compares its keys as byte strings. A key of a table may have several columns of several
//! types, some of them descending. Encoded as a [`Tuple`], such a key sorts as its columns do, and
//! can be decoded without knowledge of its types.
//!
//! # Format
//!
//! A tuple consists of its parts, one after the other. A part is a tag and the bytes in the table
//! below. In a descending part every byte is inverted, including the tag, so the top bit of a
//! part's first byte shows the direction.
//!
//! ```text
//! tag        part       bytes after the tag
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
//! - Parts of different types sort by tag: null first, then booleans, integers, f32, f64, bytes,
//!   strings. Descending parts sort in reverse, null last.
//! - Integers sort by value, whatever their width or sign: `5u8` and `5i128` are the same part.
//! - Floats sort in IEEE 754's total order: -NaN, -infinity, ..., -0.0, +0.0, ..., infinity, NaN.
//!   If a column treats -0.0 and 0.0, or all NaNs, as one value, the caller must normalise them
//!   first.
//! - A tuple sorts directly before all tuples of which it is a prefix, even if their next part is
//!   descending. So `[p, prefix_end(p))` contains exactly the tuples that begin with the parts `p`.
//!
//! The terminator of bytes and strings has two bytes for this reason: with 00 alone, inverted in a
//! descending part, `"a"` at the end of a key would sort before `"a\0"`.
//!
//! # Example
//!
//! The table `metrics`: primary key (ts, device_id, metric_id), secondary keys (metric_id, ts) and
//! (device_id, ts). A key of a secondary tree ends with the remaining columns of the primary key,
//! so that it is unique and identifies its row.
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
//! let (device, at, metric): (u32, u64, String) = tuple::decode_as(by_device.as_bytes())?;
//! assert_eq!((device, at, metric.as_str()), (device_id, ts, metric_id));
//! # Ok::<(), frondb::Error>(())
//! ```

mod decode;
mod encode;
mod format;
mod part;
mod typed;

pub use decode::{Parts, decode, parts};
pub use encode::{encode, encode_part};
pub use part::{Part, Scalar, desc};
pub use typed::{FromPart, FromParts, decode_as};

/// A compound key under construction.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tuple {
    bytes: Vec<u8>,
}

impl Tuple {
    /// Creates the empty tuple, whose key is empty and sorts first.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the tuple with one more part at its end.
    #[must_use]
    pub fn with<'a>(mut self, part: impl Into<Part<'a>>) -> Self {
        encode_part(&part.into(), &mut self.bytes);
        self
    }

    /// Returns the encoded key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the encoded key, as a vector.
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

/// Returns the smallest key that is larger than every key with this prefix. `None` if there is no
/// such key, because the prefix is empty or consists of ff bytes; then the keys with the prefix
/// reach to the end of the tree.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(all(test, not(shuttle)))]
mod tests;
