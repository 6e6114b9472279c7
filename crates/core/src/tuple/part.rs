//! The parts of a tuple: typed values with a direction, and their order.

use std::borrow::Cow;
use std::cmp::Ordering;

/// The value of a part.
#[derive(Clone, Debug)]
pub enum Scalar<'a> {
    /// No value; sorts before all values.
    Null,
    /// `false` before `true`.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// An integer above `i128::MAX`. A smaller one equals the [`Int`](Self::Int) of the same value,
    /// and decoding returns that `Int`.
    Uint(u128),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A byte string.
    Bytes(Cow<'a, [u8]>),
    /// A character string, ordered by its UTF-8, which is the order of code points.
    Str(Cow<'a, str>),
}

impl Scalar<'_> {
    /// Returns whether the integer is at least 0, and its magnitude, for comparisons of `Int` and
    /// `Uint`; `None` for other types.
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

/// The order of ascending parts; see the head of [`tuple`](super).
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

/// Returns a part that sorts in reverse: with `desc(ts)`, the latest time sorts first.
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
