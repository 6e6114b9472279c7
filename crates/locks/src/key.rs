//! Keys and ranges as the lock tables store them. Pure.
//!
//! Every range is half-open, `[lo, hi)`. Keys are bytes in byte order, so the next key after `k` is
//! `k` followed by a zero byte. A range after `k` begins at that next key, and a range up to and
//! including `k` ends at that next key. So a bound needs no flag "inclusive" or "exclusive".

use std::cmp::Ordering;
use std::ops::Bound;

use smallvec::SmallVec;

use crate::class::Class;

/// Keys up to this length need no allocation.
const INLINE_BYTES: usize = 24;

/// A key with its first bytes as a number, which decides most comparisons without reading the rest.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Key {
    prefix: u64,
    bytes: SmallVec<[u8; INLINE_BYTES]>,
}

impl Clone for Key {
    /// Copies the memory at once; the small vector's own clone copies byte by byte.
    #[inline]
    fn clone(&self) -> Self {
        Self { prefix: self.prefix, bytes: SmallVec::from_slice(&self.bytes) }
    }
}

impl Key {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { prefix: prefix_of(bytes), bytes: SmallVec::from_slice(bytes) }
    }

    /// Returns the next key after `bytes`.
    pub(crate) fn after(bytes: &[u8]) -> Self {
        let mut next = SmallVec::with_capacity(bytes.len() + 1);
        next.extend_from_slice(bytes);
        next.push(0);
        // An additional zero byte does not change the zero-padded prefix.
        Self { prefix: prefix_of(bytes), bytes: next }
    }

    pub(crate) fn successor(&self) -> Self {
        Self::after(&self.bytes)
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes allocated outside of the struct.
    pub(crate) fn heap_bytes(&self) -> u64 {
        if self.bytes.spilled() { self.bytes.capacity() as u64 } else { 0 }
    }
}

fn prefix_of(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0; 8];
    first[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(first)
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| self.bytes.as_slice().cmp(&other.bytes))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The end of a range: the first key after it, or `None` for no end.
pub(crate) type UpperBound = Option<Key>;

/// Whether a range that ends at `hi` may contain keys at or after `key`.
#[inline]
pub(crate) fn ends_after(hi: &UpperBound, key: &Key) -> bool {
    hi.as_ref().is_none_or(|hi| hi > key)
}

/// Compares two ends; no end is the largest.
pub(crate) fn cmp_ends(a: &UpperBound, b: &UpperBound) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
    }
}

/// Returns the first key of a range with this lower bound.
pub(crate) fn lo_of(bound: Bound<&[u8]>) -> Key {
    match bound {
        Bound::Included(key) => Key::new(key),
        Bound::Excluded(key) => Key::after(key),
        Bound::Unbounded => Key::new(&[]),
    }
}

/// Returns the end of a range with this upper bound.
pub(crate) fn hi_of(bound: Bound<&[u8]>) -> UpperBound {
    match bound {
        Bound::Included(key) => Some(Key::after(key)),
        Bound::Excluded(key) => Some(Key::new(key)),
        Bound::Unbounded => None,
    }
}

/// The keys that an [`Area`] covers, from its first key on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// The first key alone.
    Row,
    /// All keys before the end.
    To(UpperBound),
}

/// A lock without its owner: keys and a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Area {
    pub(crate) lo: Key,
    pub(crate) extent: Extent,
    pub(crate) class: Class,
}

impl Area {
    pub(crate) fn row(key: Key, class: Class) -> Self {
        Self { lo: key, extent: Extent::Row, class }
    }

    pub(crate) fn range(lo: Key, hi: UpperBound, class: Class) -> Self {
        Self { lo, extent: Extent::To(hi), class }
    }

    pub(crate) fn is_row(&self) -> bool {
        self.extent == Extent::Row
    }

    /// Whether the area contains no key.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.extent, Extent::To(Some(hi)) if *hi <= self.lo)
    }

    /// Whether `key` lies before the end of the area, so that the area may contain keys at or after
    /// it.
    #[inline]
    pub(crate) fn reaches(&self, key: &Key) -> bool {
        match &self.extent {
            Extent::Row => *key <= self.lo,
            Extent::To(hi) => ends_after(hi, key),
        }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.reaches(&other.lo) && other.reaches(&self.lo)
    }

    /// Whether the areas conflict, so that different lockers cannot hold both.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        self.class.conflicts(other.class) && self.overlaps(other)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_their_bytes() {
        let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
        for len in 1..=3_usize {
            for n in 0..(4_u32.pow(len as u32)) {
                keys.push(
                    (0..len).map(|i| [0, 1, 128, 255][(n >> (2 * i)) as usize & 3]).collect(),
                );
            }
        }
        let long: Vec<Vec<u8>> =
            keys.iter().map(|key| [b"12345678".as_slice(), key].concat()).collect();
        keys.extend(long);
        for a in &keys {
            for b in &keys {
                assert_eq!(Key::new(a).cmp(&Key::new(b)), a.cmp(b), "{a:?} {b:?}");
            }
            let next = Key::after(a);
            assert!(next > Key::new(a));
            assert!(!keys.iter().any(|b| Key::new(b) > Key::new(a) && Key::new(b) < next));
            assert_eq!(next, Key::new(&[a.as_slice(), &[0]].concat()));
        }
    }

    #[test]
    fn areas_overlap_where_they_share_a_key() {
        let key = |n: u8| Key::new(&[n]);
        let range = |lo, hi| Area::range(key(lo), Some(key(hi)), Class::RangeExclusive);
        let row = |n| Area::row(key(n), Class::RowExclusive);
        assert!(range(1, 5).overlaps(&range(4, 9)));
        assert!(!range(1, 5).overlaps(&range(5, 9)));
        assert!(range(1, 5).overlaps(&row(1)) && row(4).overlaps(&range(1, 5)));
        assert!(!row(5).overlaps(&range(1, 5)) && !range(1, 5).overlaps(&row(0)));
        assert!(row(3).overlaps(&row(3)) && !row(3).overlaps(&row(4)));
        let open = Area::range(key(7), None, Class::Gap);
        assert!(open.overlaps(&row(200)) && !open.overlaps(&row(6)));
        assert!(range(3, 3).is_empty() && !row(3).is_empty());
        let gap =
            Area::range(lo_of(Bound::Excluded(&[3])), hi_of(Bound::Excluded(&[3, 0])), Class::Gap);
        assert!(gap.is_empty(), "no key lies between a key and its successor");
    }
}
