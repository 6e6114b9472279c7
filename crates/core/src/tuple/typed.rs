//! Reads keys as values of Rust's types: [`decode_as`] reads a whole key, [`Part::into_value`] one
//! part.

use std::borrow::Cow;

use super::decode::{Parts, parts};
use super::part::{Part, Scalar};
use crate::{Error, Result};

/// A type to which a part of a key can be converted: each type that can be converted to a [`Part`],
/// in a form that owns or borrows its bytes, and its [`Option`] for parts that may be null.
pub trait FromPart<'a>: Sized {
    /// Converts the part to this type. The direction of the part does not matter.
    ///
    /// # Errors
    /// `Invalid` if the part is of another type, or an integer out of the type's range.
    fn from_part(part: Part<'a>) -> Result<Self>;
}

/// A type to which a whole key can be converted: a tuple of 1 to 12 types that implement
/// [`FromPart`].
pub trait FromParts<'a>: Sized {
    /// Reads all parts.
    ///
    /// # Errors
    /// `Invalid` if the key is not a tuple, if it has more or fewer parts than there are types, or
    /// as from [`FromPart::from_part`].
    fn from_parts(parts: Parts<'a>) -> Result<Self>;
}

/// Decodes a key, and converts each part to the type that the caller names.
///
/// ```
/// # use frondb_core as frondb;
/// use frondb::tuple::{self, Tuple, desc};
///
/// let key = Tuple::new().with("cpu.load").with(desc(1_700_000_000_u64)).with(None::<i32>);
/// let (metric, ts, host): (String, u64, Option<i32>) = tuple::decode_as(key.as_bytes())?;
/// assert_eq!((metric.as_str(), ts, host), ("cpu.load", 1_700_000_000, None));
/// assert!(tuple::decode_as::<(String, u8, Option<i32>)>(key.as_bytes()).is_err());
/// # Ok::<(), frondb::Error>(())
/// ```
///
/// # Errors
/// `Invalid` if the key is not a tuple, has more or fewer parts than the type, or if a part does
/// not fit its type; the message names the part.
pub fn decode_as<'a, T: FromParts<'a>>(key: &'a [u8]) -> Result<T> {
    T::from_parts(parts(key))
}

impl<'a> Part<'a> {
    /// Converts the part to a value of type `T`.
    ///
    /// ```
    /// # use frondb_core as frondb;
    /// use frondb::tuple::{self, Tuple};
    ///
    /// let key = Tuple::new().with("frond").with(7_u16);
    /// let mut parts = tuple::parts(key.as_bytes());
    /// let name: Option<String> = parts.next().transpose()?.map(|part| part.into_value()).transpose()?;
    /// assert_eq!(name.as_deref(), Some("frond"));
    /// # Ok::<(), frondb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if the part is of another type, or an integer out of the type's range.
    pub fn into_value<T: FromPart<'a>>(self) -> Result<T> {
        T::from_part(self)
    }
}

#[cold]
fn wrong(scalar: &Scalar<'_>, wanted: &str) -> Error {
    let found = match scalar {
        Scalar::Null => "null",
        Scalar::Bool(_) => "a boolean",
        Scalar::Int(_) | Scalar::Uint(_) => "an integer",
        Scalar::F32(_) => "an f32",
        Scalar::F64(_) => "an f64",
        Scalar::Bytes(_) => "bytes",
        Scalar::Str(_) => "a string",
    };
    Error::invalid(format!("the part is {found}, not {wanted}"))
}

macro_rules! integers {
    ($($integer:ident),*) => {
        $(impl<'a> FromPart<'a> for $integer {
            fn from_part(part: Part<'a>) -> Result<Self> {
                let fitting = match part.scalar {
                    Scalar::Int(value) => Self::try_from(value).ok(),
                    Scalar::Uint(value) => Self::try_from(value).ok(),
                    other => return Err(wrong(&other, concat!("an integer (", stringify!($integer), ")"))),
                };
                let message = "the integer is out of the range of ";
                fitting.ok_or_else(|| Error::invalid(format!("{message}{}", stringify!($integer))))
            }
        })*
    };
}

integers!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128);

macro_rules! scalars {
    ($($type:ty, $pattern:pat => $value:expr, $wanted:literal;)*) => {
        $(impl<'a> FromPart<'a> for $type {
            fn from_part(part: Part<'a>) -> Result<Self> {
                match part.scalar {
                    $pattern => Ok($value),
                    other => Err(wrong(&other, $wanted)),
                }
            }
        })*
    };
}

scalars! {
    bool, Scalar::Bool(value) => value, "a boolean";
    f32, Scalar::F32(value) => value, "an f32";
    f64, Scalar::F64(value) => value, "an f64";
    Cow<'a, [u8]>, Scalar::Bytes(bytes) => bytes, "bytes";
    Vec<u8>, Scalar::Bytes(bytes) => bytes.into_owned(), "bytes";
    Cow<'a, str>, Scalar::Str(text) => text, "a string";
    String, Scalar::Str(text) => text.into_owned(), "a string";
}

impl<'a, const N: usize> FromPart<'a> for [u8; N] {
    fn from_part(part: Part<'a>) -> Result<Self> {
        match &part.scalar {
            Scalar::Bytes(bytes) => <[u8; N]>::try_from(&**bytes).map_err(|_| {
                Error::invalid(format!("the part has {} bytes, not {N}", bytes.len()))
            }),
            other => Err(wrong(other, "bytes")),
        }
    }
}

/// A null part is `None`.
impl<'a, T: FromPart<'a>> FromPart<'a> for Option<T> {
    fn from_part(part: Part<'a>) -> Result<Self> {
        match part.scalar {
            Scalar::Null => Ok(None),
            _ => T::from_part(part).map(Some),
        }
    }
}

impl<'a> FromPart<'a> for Scalar<'a> {
    fn from_part(part: Part<'a>) -> Result<Self> {
        Ok(part.scalar)
    }
}

impl<'a> FromPart<'a> for Part<'a> {
    fn from_part(part: Part<'a>) -> Result<Self> {
        Ok(part)
    }
}

/// Converts the next part. `at` is the position of the part, counted from 1, and `all` the number
/// of parts that the type has.
fn next<'a, T: FromPart<'a>>(parts: &mut Parts<'a>, at: usize, all: usize) -> Result<T> {
    let too_few = || Error::invalid(format!("the key has {} parts, not {all}", at - 1));
    let part = parts.next().ok_or_else(too_few)??;
    T::from_part(part).map_err(|error| error.context(format!("part {at} of the key")))
}

macro_rules! tuples {
    ($all:literal: $($type:ident $at:literal),*) => {
        impl<'a, $($type: FromPart<'a>),*> FromParts<'a> for ($($type,)*) {
            fn from_parts(mut parts: Parts<'a>) -> Result<Self> {
                let tuple = ($(next::<$type>(&mut parts, $at, $all)?,)*);
                match parts.next() {
                    None => Ok(tuple),
                    Some(Err(error)) => Err(error),
                    Some(Ok(_)) => {
                        Err(Error::invalid(concat!("the key has more than ", $all, " parts")))
                    }
                }
            }
        }
    };
}

tuples!(1: A 1);
tuples!(2: A 1, B 2);
tuples!(3: A 1, B 2, C 3);
tuples!(4: A 1, B 2, C 3, D 4);
tuples!(5: A 1, B 2, C 3, D 4, E 5);
tuples!(6: A 1, B 2, C 3, D 4, E 5, F 6);
tuples!(7: A 1, B 2, C 3, D 4, E 5, F 6, G 7);
tuples!(8: A 1, B 2, C 3, D 4, E 5, F 6, G 7, H 8);
tuples!(9: A 1, B 2, C 3, D 4, E 5, F 6, G 7, H 8, I 9);
tuples!(10: A 1, B 2, C 3, D 4, E 5, F 6, G 7, H 8, I 9, J 10);
tuples!(11: A 1, B 2, C 3, D 4, E 5, F 6, G 7, H 8, I 9, J 10, K 11);
tuples!(12: A 1, B 2, C 3, D 4, E 5, F 6, G 7, H 8, I 9, J 10, K 11, L 12);
