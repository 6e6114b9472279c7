//! [`KeyRange`]: the ranges of keys that cursors and iterators take.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: every range of the standard library whose ends are `AsRef<[u8]>`, such as
/// `"a".."b"`, `b"a"..=b"b"`, `7_u32.to_be_bytes()..`, `&lower..&upper` and `..`, and a pair of
/// [`Bound`]s. A range whose end is not above its start is empty.
///
/// The trait exists because `..` does not determine the type of the keys, so a parameter of type
/// `RangeBounds<K>` would not accept it.
pub trait KeyRange: sealed::Bounds {}

impl<R: sealed::Bounds> KeyRange for R {}

mod sealed {
    use std::ops::Bound;

    pub trait Bounds {
        /// Returns where the range starts.
        fn start(&self) -> Bound<&[u8]>;
        /// Returns where the range ends.
        fn end(&self) -> Bound<&[u8]>;
    }
}

macro_rules! ranges {
    ($($range:ident |$a:pat_param| $start:expr, |$b:pat_param| $end:expr;)*) => {
        $(impl<K: AsRef<[u8]>> sealed::Bounds for $range<K> {
            fn start(&self) -> Bound<&[u8]> {
                let $a = self;
                $start
            }

            fn end(&self) -> Bound<&[u8]> {
                let $b = self;
                $end
            }
        })*
    };
}

ranges! {
    Range |it| Bound::Included(it.start.as_ref()), |it| Bound::Excluded(it.end.as_ref());
    RangeInclusive |it| Bound::Included(it.start().as_ref()), |it| Bound::Included(it.end().as_ref());
    RangeFrom |it| Bound::Included(it.start.as_ref()), |_| Bound::Unbounded;
    RangeTo |_| Bound::Unbounded, |it| Bound::Excluded(it.end.as_ref());
    RangeToInclusive |_| Bound::Unbounded, |it| Bound::Included(it.end.as_ref());
}

impl sealed::Bounds for RangeFull {
    fn start(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }

    fn end(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}

impl<K: AsRef<[u8]>, L: AsRef<[u8]>> sealed::Bounds for (Bound<K>, Bound<L>) {
    fn start(&self) -> Bound<&[u8]> {
        self.0.as_ref().map(AsRef::as_ref)
    }

    fn end(&self) -> Bound<&[u8]> {
        self.1.as_ref().map(AsRef::as_ref)
    }
}

/// Returns the first key of the range, and the first key after it.
pub(super) fn bounds_of(range: &impl KeyRange) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let above = |key: &[u8]| [key, &[0]].concat();
    let lower = match range.start() {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(key.to_vec()),
        Bound::Excluded(key) => Some(above(key)),
    };
    let upper = match range.end() {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(above(key)),
        Bound::Excluded(key) => Some(key.to_vec()),
    };
    (lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(range: impl KeyRange) -> String {
        let (lower, upper) = bounds_of(&range);
        let show = |key: Option<Vec<u8>>| match key {
            Some(key) => key.escape_ascii().to_string(),
            None => "-".to_owned(),
        };
        format!("{} {}", show(lower), show(upper))
    }

    #[test]
    fn every_range_of_keys_of_every_type_is_taken() {
        let (low, high) = ("a".to_owned(), vec![b'b']);
        assert_eq!(shown("a".."b"), "a b");
        assert_eq!(shown(b"a"..=b"b"), r"a b\x00");
        assert_eq!(shown([0_u8, 1]..[0, 2]), r"\x00\x01 \x00\x02");
        assert_eq!(shown(7_u16.to_be_bytes()..), r"\x00\x07 -");
        assert_eq!(shown(&low..), "a -");
        assert_eq!(shown(..&high), "- b");
        assert_eq!(shown(..=high.as_slice()), r"- b\x00");
        assert_eq!(shown(..), "- -");
        assert_eq!(shown((Bound::Excluded(&low), Bound::Included(&high))), r"a\x00 b\x00");
        assert_eq!(shown((Bound::Included("a"), Bound::<&[u8]>::Unbounded)), "a -");
    }
}
