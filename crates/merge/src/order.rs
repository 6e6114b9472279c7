//! Offset-value codes: the position and the bytes at which a key differs from its predecessor, as
//! one number.
//!
//! A merge of composite keys compares long equal prefixes again and again: the key of an index
//! entry may be a price that many rows share, then a date whose first bytes are zeros, and so on. A
//! code (Conner 1977; Graefe and Do 2023) stores the result of earlier comparisons, so that nearly
//! every comparison in the loser tree compares two integers.
//!
//! Keys are divided into columns of six bytes, padded with zeros, and a last column, the length.
//! The code of a key relative to a *base* that precedes it in merge order:
//!
//! ```text
//!   63            48 47                             0
//!   | ffff - column |  the key's bytes there, as u48 |     column: the first that differs
//!   |       1       |  length                        |     if only the length differs
//!   |                      0                         |     the keys are equal
//! ```
//!
//! Two facts make codes work, for keys whose codes are all relative to the same base:
//! 1. The key with the smaller code comes earlier. Equal codes other than 0 decide nothing.
//! 2. If codes differ, the later key's code relative to the earlier *key* is its code relative to
//!    the base: either the later key differs from the base at an earlier column, where the earlier
//!    key still equals the base, or both differ from the base at the same column.
//!
//! A backward merge complements all columns, and "earlier" means a larger key.

use std::cmp::Ordering;

use frondb_core::Direction;
use frondb_core::mem::Array;

/// Bytes of a column: together with the 16 bits of a column number they fill a u64.
const COLUMN_BYTES: usize = 6;

const VALUE_MASK: u64 = (1 << 48) - 1;

/// The code of a key that equals its base.
pub(crate) const EQUAL: u64 = 0;

/// The code of an exhausted source; no code is larger.
pub(crate) const END: u64 = u64::MAX;

/// Returns column `column` of `key`. With `complement`, the bits are inverted, so that the values
/// of larger keys are smaller, as a backward merge needs.
#[inline(always)]
fn column_value(key: &[u8], column: usize, complement: u64) -> u64 {
    let at = column * COLUMN_BYTES;
    let value = if let Some(bytes) = key.get(at..at + 8) {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        u64::from_be_bytes(word) >> 16
    } else {
        let mut word = [0; 8];
        let rest = key.get(at..).unwrap_or(&[]);
        let n = rest.len().min(COLUMN_BYTES);
        word[..n].copy_from_slice(&rest[..n]);
        u64::from_be_bytes(word) >> 16
    };
    (value ^ complement) & VALUE_MASK
}

#[inline(always)]
const fn complement(direction: Direction) -> u64 {
    match direction {
        Direction::Forward => 0,
        Direction::Backward => VALUE_MASK,
    }
}

#[inline(always)]
fn code_at(key: &[u8], column: usize, complement: u64) -> u64 {
    (0xffff - column as u64) << 48 | column_value(key, column, complement)
}

/// Returns the code of a key without a base.
#[inline]
pub(crate) fn first_code(key: &[u8], direction: Direction) -> u64 {
    code_at(key, 0, complement(direction))
}

/// Returns the code of `key` relative to `base`.
#[inline]
pub(crate) fn code(base: &[u8], key: &[u8], direction: Direction) -> u64 {
    let same = common_prefix(base, key);
    if same == base.len().min(key.len()) {
        return code_of_extension(base, key, same, direction);
    }
    code_at(key, same / COLUMN_BYTES, complement(direction))
}

/// Returns the code if the shorter key, of `same` bytes, is a prefix of the longer one. All their
/// columns may be equal because of the padding.
#[inline(never)]
fn code_of_extension(base: &[u8], key: &[u8], same: usize, direction: Direction) -> u64 {
    if base.len() == key.len() {
        return EQUAL;
    }
    let longest = base.len().max(key.len());
    let complement = complement(direction);
    for column in same / COLUMN_BYTES..longest.div_ceil(COLUMN_BYTES) {
        if column_value(base, column, 0) != column_value(key, column, 0) {
            return code_at(key, column, complement);
        }
    }
    1 << 48 | ((key.len() as u64 ^ complement) & VALUE_MASK)
}

/// Returns the length of the common prefix; compares eight bytes at a time.
#[inline(always)]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a_words, a_rest) = a[..len].as_chunks::<8>();
    let (b_words, b_rest) = b[..len].as_chunks::<8>();
    for (i, (x, y)) in a_words.iter().zip(b_words).enumerate() {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return i * 8 + (differ.trailing_zeros() / 8) as usize;
        }
    }
    a_words.len() * 8 + a_rest.iter().zip(b_rest).take_while(|(x, y)| x == y).count()
}

/// Replaces `codes` by the codes of sorted keys, which are stored one after the other and end at
/// `ends`. Each code is relative to the key before it in the order of the merge, the first code to
/// `base`, if there is one.
pub(crate) fn code_all(
    keys: &[u8],
    ends: &[u32],
    base: Option<&[u8]>,
    direction: Direction,
    codes: &mut Array<u64>,
) {
    codes.clear();
    let count = ends.len();
    if count == 0 {
        return;
    }
    let key_at = |i: usize| {
        let start = if i == 0 { 0 } else { ends[i - 1] as usize };
        &keys[start..ends[i] as usize]
    };
    codes.resize(count, EQUAL);
    let first = match direction {
        Direction::Forward => 0,
        Direction::Backward => count - 1,
    };
    let first_key = key_at(first);
    codes[first] = match base {
        Some(base) => code(base, first_key, direction),
        None => first_code(first_key, direction),
    };
    match direction {
        Direction::Forward => {
            let mut before = first_key;
            let mut start = ends[0] as usize;
            for (&end, out) in ends[1..].iter().zip(&mut codes[1..]) {
                let key = &keys[start..end as usize];
                *out = code(before, key, Direction::Forward);
                before = key;
                start = end as usize;
            }
        }
        Direction::Backward => {
            let mut before = first_key;
            for i in (0..count - 1).rev() {
                let key = key_at(i);
                codes[i] = code(before, key, Direction::Backward);
                before = key;
            }
        }
    }
}

/// Compares two keys in the order of the merge.
#[inline]
pub(crate) fn compare(a: &[u8], b: &[u8], direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => a.cmp(b),
        Direction::Backward => b.cmp(a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys over a tiny alphabet with zeros, so that padding, extensions and long common prefixes
    /// all occur.
    fn keys() -> Vec<Vec<u8>> {
        let mut keys = vec![vec![]];
        let mut level = keys.clone();
        for _ in 0..3 {
            level = level
                .iter()
                .flat_map(|key| {
                    [vec![0], vec![1], vec![0; 5], vec![0, 0, 0, 0, 0, 0, 0xff]].map(|more| {
                        let mut key = key.clone();
                        key.extend(more);
                        key
                    })
                })
                .collect();
            keys.extend(level.iter().cloned());
        }
        keys.sort();
        keys.dedup();
        keys
    }

    #[test]
    fn codes_order_keys_and_a_smaller_code_decides() {
        for direction in [Direction::Forward, Direction::Backward] {
            let mut keys = keys();
            if direction == Direction::Backward {
                keys.reverse();
            }
            for (i, base) in keys.iter().enumerate() {
                assert_eq!(code(base, base, direction), EQUAL);
                for (j, a) in keys.iter().enumerate().skip(i) {
                    let a_code = code(base, a, direction);
                    for b in &keys[j + 1..] {
                        let b_code = code(base, b, direction);
                        assert!(a_code <= b_code, "{base:?} {a:?} {b:?}");
                        if a_code < b_code {
                            assert_eq!(code(a, b, direction), b_code, "{base:?} {a:?} {b:?}");
                        }
                    }
                }
            }
            for pair in keys.windows(2) {
                assert!(first_code(&pair[0], direction) <= first_code(&pair[1], direction));
            }
        }
    }
}
