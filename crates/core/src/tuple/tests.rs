//! Tests of the tuple encoding: order, round trip, and rejection of other bytes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::borrow::Cow;
use std::cmp::Ordering;

use super::format::{TAG_NULL, TAG_TRUE};
use super::*;
use crate::Error;
use crate::fuzz;
use crate::prng::Prng;

/// Returns a random scalar. Many are close to one another or to the limits of their types.
fn scalar(prng: &mut Prng) -> Scalar<'static> {
    match prng.below(9) {
        0 => Scalar::Null,
        1 => Scalar::Bool(prng.chance(1, 2)),
        2 | 3 => integer(prng),
        4 => Scalar::F32(float(prng) as f32),
        5 => Scalar::F64(float(prng)),
        6 => Scalar::Bytes(Cow::Owned(bytes(prng))),
        _ => Scalar::Str(Cow::Owned(bytes(prng).iter().map(|&byte| char::from(byte)).collect())),
    }
}

fn integer(prng: &mut Prng) -> Scalar<'static> {
    let near = i128::from(prng.below(3)) - 1;
    let power = 1i128.checked_shl(prng.below(127) as u32).unwrap_or(1);
    match prng.below(6) {
        0 => Scalar::Int(near),
        1 => Scalar::Int(power + near),
        2 => Scalar::Int(-power + near),
        3 => Scalar::Int(if near > 0 { i128::MAX } else { i128::MIN }),
        4 => Scalar::Uint(u128::MAX - prng.below(2) as u128),
        _ => Scalar::Int(i128::from(prng.next_u64() as i64)),
    }
}

fn float(prng: &mut Prng) -> f64 {
    let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0];
    match prng.below(3) {
        0 => special[prng.index(special.len())],
        1 => f64::from_bits(prng.next_u64()),
        _ => prng.unit() - 0.5,
    }
}

fn bytes(prng: &mut Prng) -> Vec<u8> {
    let len = prng.index(5);
    (0..len).map(|_| *prng.pick(&[0, 1, 2, b'a', 0xfe, 0xff]).unwrap()).collect()
}

/// Returns a random tuple. Tuples to compare have the same directions, as keys of one tree do.
fn tuple(directions: &[bool], prng: &mut Prng) -> Vec<Part<'static>> {
    let len = prng.index(directions.len() + 1);
    directions[..len].iter().map(|&descending| Part { scalar: scalar(prng), descending }).collect()
}

fn compare(a: &[Part<'_>], b: &[Part<'_>]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = a.scalar.cmp(&b.scalar);
        if order.is_ne() {
            return if a.descending { order.reverse() } else { order };
        }
    }
    a.len().cmp(&b.len())
}

#[test]
fn bytes_sort_as_the_tuples_do_and_decode_to_them() {
    for seed in 0..200 {
        let mut prng = Prng::new(seed);
        let directions: Vec<bool> = (0..3).map(|_| prng.chance(1, 2)).collect();
        let tuples: Vec<_> = (0..40).map(|_| tuple(&directions, &mut prng)).collect();
        for a in &tuples {
            let a_bytes = encode(a);
            assert_eq!(decode(&a_bytes).unwrap(), *a, "seed {seed}");
            fuzz::tuple(&a_bytes);
            for b in &tuples {
                let b_bytes = encode(b);
                assert_eq!(a_bytes.cmp(&b_bytes), compare(a, b), "seed {seed}: {a:?} {b:?}");
                // A key is a prefix of another key if and only if its parts are a prefix of the
                // other's parts, so a scan by prefix is exact.
                let begins = b.len() >= a.len() && a[..] == b[..a.len()];
                assert_eq!(b_bytes.starts_with(&a_bytes), begins, "seed {seed}: {a:?} {b:?}");
            }
        }
    }
}

#[test]
fn encodings_match_the_format_table() {
    let key = Tuple::new()
        .with(None::<u8>)
        .with(true)
        .with(0)
        .with(258_u16)
        .with(-258_i64)
        .with(1.0_f32)
        .with(-1.0_f64)
        .with(b"a\0b")
        .with(desc("a"));
    let expected = [
        &[0x01, 0x03, 0x20, 0x22, 0x01, 0x02, 0x1e, 0xfe, 0xfd][..],
        &[0x38, 0xbf, 0x80, 0, 0, 0x39, 0x40, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x40, b'a', 0, 0xff, b'b', 0, 0x01, !0x41, !b'a', 0xff, 0xfe],
    ]
    .concat();
    assert_eq!(key.into_bytes(), expected);
}

#[test]
fn integers_of_all_widths_encode_alike() {
    assert_eq!(Part::from(5_u8), Part::from(5_i128));
    assert_eq!(Tuple::new().with(5_u8), Tuple::new().with(5_i64));
    assert_eq!(Part::from(u128::MAX).scalar, Scalar::Uint(u128::MAX));
    assert_eq!(decode(&encode(&[Scalar::Uint(7).into()])).unwrap()[0].scalar, Scalar::Int(7));
}

/// Encodes one value, ascending and descending, and reads it back as its type.
#[track_caller]
fn comes_back<T>(value: T)
where
    T: Clone + PartialEq + std::fmt::Debug + Into<Part<'static>> + for<'a> FromPart<'a>,
{
    for key in [Tuple::new().with(value.clone()), Tuple::new().with(desc(value.clone()))] {
        assert_eq!(decode_as::<(T,)>(key.as_bytes()).unwrap(), (value.clone(),));
        assert_eq!(decode_as::<(Option<T>,)>(key.as_bytes()).unwrap(), (Some(value.clone()),));
    }
}

#[test]
fn every_type_that_is_encoded_is_decoded_as_itself() {
    comes_back(true);
    comes_back(i8::MIN);
    comes_back(i16::MIN);
    comes_back(i32::MIN);
    comes_back(i64::MIN);
    comes_back(i128::MIN);
    comes_back(u8::MAX);
    comes_back(u16::MAX);
    comes_back(u32::MAX);
    comes_back(u64::MAX);
    comes_back(u128::MAX);
    comes_back(-1.5_f32);
    comes_back(f64::MAX);
    comes_back(b"a\0b".to_vec());
    comes_back("frond\0".to_owned());
    let key = Tuple::new().with(None::<u8>).with(b"four").with("text").with(7);
    let (null, array, text, scalar): (Option<u8>, [u8; 4], Cow<'_, str>, Scalar<'_>) =
        decode_as(key.as_bytes()).unwrap();
    assert_eq!((null, &array, &*text, scalar), (None, b"four", "text", Scalar::Int(7)));
}

#[test]
fn a_part_that_does_not_fit_its_type_is_named() {
    let key = Tuple::new().with(1).with(300).into_bytes();
    let message = |result: Result<(), Error>| result.unwrap_err().message().to_owned();
    let narrow = message(decode_as::<(i8, u8)>(&key).map(drop));
    assert_eq!(narrow, "part 2 of the key: the integer is out of the range of u8");
    let text = message(decode_as::<(String, u16)>(&key).map(drop));
    assert_eq!(text, "part 1 of the key: the part is an integer, not a string");
    let long = message(decode_as::<(u8,)>(&key).map(drop));
    assert_eq!(long, "the key has more than 1 parts");
    let short = message(decode_as::<(u8, u16, u8)>(&key).map(drop));
    assert_eq!(short, "the key has 2 parts, not 3");
    assert!(decode_as::<(u8, u16)>(&key[..3]).is_err(), "a truncated key");
    let array = Tuple::new().with(b"abc").into_bytes();
    assert!(decode_as::<([u8; 4],)>(&array).is_err());
}

#[test]
fn malformed_keys_are_refused_with_their_offset() {
    let cases: [(&[u8], &str); 9] = [
        (&[0x00], "unknown tag"),
        (&[0x7f], "unknown tag"),
        (&[0x22, 0x01], "truncated integer"),
        (&[0x22, 0x00, 0x01], "leading zero"),
        (&[0x10, 0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "out of range"),
        (&[0x39, 0x01], "truncated number"),
        (&[0x40, b'a', 0x00], "unterminated string"),
        (&[0x40, 0x00, 0x02], "unknown escape"),
        (&[0x41, 0xc3, 0x00, 0x01], "not UTF-8"),
    ];
    for (bytes, what) in cases {
        let error = decode(&[&[TAG_TRUE], bytes].concat()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        assert!(error.message().contains(what), "{error}");
        assert!(error.message().ends_with("at byte 1"), "{error}");
    }
    let mut parts = parts(&[TAG_NULL, 0x00, TAG_NULL]);
    assert!(parts.next().is_some_and(|part| part.is_ok()));
    assert!(parts.next().is_some_and(|part| part.is_err()));
    assert!(parts.next().is_none());
}

#[test]
fn the_end_of_a_prefix_is_beyond_its_keys_only() {
    assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(prefix_end(b"a\xff\xff"), Some(b"b".to_vec()));
    assert_eq!(prefix_end(b"\xff"), None);
    assert_eq!(prefix_end(b""), None);
}

/// Runs the fuzz target with random and mutated bytes, without the fuzzer, which needs nightly
/// Rust.
#[test]
fn damaged_tuples_are_decoded_again_or_refused() {
    let (mut decoded, mut refused) = (0, 0);
    for seed in 0..3000 {
        let mut prng = Prng::new(seed);
        let mut bytes = encode(&tuple(&[false, true, false, true], &mut prng));
        for _ in 0..prng.index(3) {
            match bytes.len() {
                0 => bytes.push(prng.next_u32() as u8),
                len if prng.chance(1, 3) => bytes.truncate(prng.index(len)),
                len => bytes[prng.index(len)] = prng.next_u32() as u8,
            }
        }
        for _ in 0..2 {
            *if fuzz::tuple(&bytes) { &mut decoded } else { &mut refused } += 1;
            prng.fill(&mut bytes);
        }
    }
    assert!(decoded > 0 && refused > 0, "{decoded} decoded, {refused} refused");
}
