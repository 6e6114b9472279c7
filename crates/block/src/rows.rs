//! The rows layout of keys: each key as the length of the prefix that it shares with its
//! predecessor, and its remaining bytes.
//!
//! Used for keys of different lengths, and for keys of one length that is 0 or above 64. Every
//! `interval`-th key is a restart: it is stored whole, so a reader can begin there. Lengths and
//! suffixes are stored in areas of their own. The validation of a block derives the offsets of the
//! restarts' suffixes.

use std::ops::Range;

use frondb_core::Chunk;
use frondb_core::chunk::key_prefix;
use frondb_core::limits::KEY_BYTES_MAX;

/// Returns the length of the common prefix of two byte strings; compares eight bytes at a time.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    for (i, (x, y)) in a_words.iter().zip(b_words).enumerate() {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return i * 8 + (differ.trailing_zeros() / 8) as usize;
        }
    }
    let rest = a_rest.iter().zip(b_rest).take_while(|(x, y)| x == y).count();
    a_words.len() * 8 + rest
}

/// Reads the little-endian number of `width` bytes (0 to 8; 0 reads zero) at `index` of an array.
#[inline]
pub(crate) fn read_uint(array: &[u8], width: usize, index: usize) -> u64 {
    let mut word = [0; 8];
    word[..width].copy_from_slice(&array[index * width..(index + 1) * width]);
    u64::from_le_bytes(word)
}

/// Appends the low `width` bytes of `number`, little-endian.
#[inline]
pub(crate) fn push_uint(out: &mut Vec<u8>, width: usize, number: u64) {
    out.extend_from_slice(&number.to_le_bytes()[..width]);
}

/// Returns the width of each number in an array of lengths whose largest is `longest`: 1, 2 or 4
/// bytes.
pub(crate) fn length_width(longest: usize) -> usize {
    match longest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// Returns the number of bytes that `number` needs, 0 to 8.
pub(crate) fn uint_width(number: u64) -> usize {
    8 - number.leading_zeros() as usize / 8
}

/// A restart: a key that is stored whole, so that a reader may begin there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Restart {
    /// The [`key_prefix`] of the restart's key.
    pub(crate) prefix: u64,
    /// Offset of the restart's suffix, which is the whole key.
    pub(crate) suffix_at: u32,
    /// Length of the restart's key.
    pub(crate) key_len: u32,
}

/// The key areas of a block in the rows layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) shared: &'a [u8],
    /// Suffix lengths; empty if keys have one length.
    pub(crate) suffix_lens: &'a [u8],
    /// Bytes of each length in `shared` and `suffix_lens`, 1 or 2.
    pub(crate) width: usize,
    /// The length of every key if all have the same length.
    pub(crate) key_len: Option<usize>,
    pub(crate) suffixes: &'a [u8],
    /// Number of keys.
    pub(crate) count: usize,
    /// Distance between restarts.
    pub(crate) interval: usize,
}

impl Rows<'_> {
    /// Returns the shared length and the suffix length of key `row`.
    #[inline]
    pub(crate) fn lengths(&self, row: usize) -> (usize, usize) {
        let number = |array: &[u8]| {
            if self.width == 1 {
                usize::from(array[row])
            } else {
                usize::from(u16::from_le_bytes([array[row * 2], array[row * 2 + 1]]))
            }
        };
        let shared = number(self.shared);
        let suffix = match self.key_len {
            // `validate` checks the result. A wrong shared length must not panic here.
            Some(key_len) => key_len.wrapping_sub(shared),
            None => number(self.suffix_lens),
        };
        (shared, suffix)
    }

    /// Checks that the lengths describe keys that fill the suffix area exactly, and returns the
    /// restarts; `None` if the lengths are wrong. All expanded keys together must not exceed
    /// `expanded_max` bytes, so that a few hostile bytes cannot fill a reader's memory.
    pub(crate) fn validate(&self, expanded_max: usize) -> Option<Box<[Restart]>> {
        let mut restarts = Vec::with_capacity(self.count.div_ceil(self.interval));
        let mut at = 0usize;
        let mut previous = 0usize;
        let mut expanded = 0usize;
        for row in 0..self.count {
            let (shared, suffix) = self.lengths(row);
            let restart = row % self.interval == 0;
            if shared > previous || (restart && shared != 0) || suffix > KEY_BYTES_MAX {
                return None;
            }
            let key_len = shared + suffix;
            let end = at + suffix;
            expanded += key_len;
            if key_len > KEY_BYTES_MAX || end > self.suffixes.len() || expanded > expanded_max {
                return None;
            }
            if restart {
                restarts.push(Restart {
                    prefix: key_prefix(&self.suffixes[at..end]),
                    suffix_at: at as u32,
                    key_len: key_len as u32,
                });
            }
            (at, previous) = (end, key_len);
        }
        (at == self.suffixes.len()).then(|| restarts.into_boxed_slice())
    }

    fn restart_key(&self, restart: &Restart) -> &[u8] {
        &self.suffixes[restart.suffix_at as usize..][..restart.key_len as usize]
    }

    /// Returns the first row whose key is not below `key`, and whether that row's key equals `key`.
    pub(crate) fn lower_bound(&self, restarts: &[Restart], key: &[u8]) -> (usize, bool) {
        let prefix = key_prefix(key);
        // Begin at the last restart whose key is below `key`. A restart whose key equals `key`
        // would be too late, because rows with the same key may precede it.
        let after = restarts.partition_point(|restart| {
            restart.prefix < prefix || (restart.prefix == prefix && self.restart_key(restart) < key)
        });
        let Some(begin) = after.checked_sub(1) else {
            let equal = restarts.first().is_some_and(|first| self.restart_key(first) == key);
            return (0, equal);
        };
        let first = begin * self.interval;
        let mut at = restarts[begin].suffix_at as usize + restarts[begin].key_len as usize;
        // Every passed row is below `key`; `matched` is the length of the prefix that the last
        // passed row has in common with `key`. If the next row shares more than `matched` bytes
        // with its predecessor, it is below `key`, too. If it shares less, it is above `key`. Only
        // if it shares exactly `matched` bytes are bytes compared.
        let mut matched = common_prefix(self.restart_key(&restarts[begin]), key);
        let end = (first + self.interval).min(self.count);
        for row in first + 1..end {
            let (shared, suffix_len) = self.lengths(row);
            let suffix = &self.suffixes[at..at + suffix_len];
            at += suffix_len;
            if shared > matched {
                continue;
            }
            if shared < matched {
                return (row, false);
            }
            let rest = &key[matched..];
            let same = common_prefix(suffix, rest);
            matched += same;
            match (suffix.get(same), rest.get(same)) {
                (Some(a), Some(b)) if a < b => {}
                (None, Some(_)) => {}
                (None, None) => return (row, true),
                _ => return (row, false),
            }
        }
        let equal = restarts.get(after).is_some_and(|next| self.restart_key(next) == key);
        (end, equal)
    }

    /// Returns the first row after the rows that equal `key`. `row` is the first of these rows.
    pub(crate) fn end_of_equal(&self, restarts: &[Restart], row: usize, key: &[u8]) -> usize {
        let mut end = row + 1;
        while end < self.count {
            let equal = if end.is_multiple_of(self.interval) {
                self.restart_key(&restarts[end / self.interval]) == key
            } else {
                self.lengths(end) == (key.len(), 0)
            };
            if !equal {
                break;
            }
            end += 1;
        }
        end
    }

    /// Replaces the contents of `out` by key `row`.
    pub(crate) fn key_into(&self, restarts: &[Restart], row: usize, out: &mut Vec<u8>) {
        let mut at = restarts[row / self.interval].suffix_at as usize;
        out.clear();
        for row in row / self.interval * self.interval..=row {
            let (shared, suffix) = self.change(row, at);
            out.truncate(shared);
            out.extend_from_slice(suffix);
            at += suffix.len();
        }
    }

    /// Returns the difference between key `row`, whose suffix begins at `at`, and its predecessor:
    /// the length of the prefix that both share, and the bytes of key `row` after this prefix.
    #[inline]
    fn change(&self, row: usize, at: usize) -> (usize, &[u8]) {
        let (shared, suffix_len) = self.lengths(row);
        (shared, &self.suffixes[at..at + suffix_len])
    }

    /// Appends the keys of `entries`, their ends and their prefixes to an empty chunk.
    pub(crate) fn keys(&self, restarts: &[Restart], entries: &Range<usize>, chunk: &mut Chunk) {
        let Chunk { prefixes, key_ends, keys, .. } = chunk;
        let (start, end) = (entries.start, entries.end);
        let begin = start / self.interval;
        let mut at = restarts[begin].suffix_at as usize;
        // Keys before `start` are built in place, each over its predecessor.
        for row in begin * self.interval..start {
            let (shared, suffix) = self.change(row, at);
            keys.truncate(shared);
            keys.extend_from_slice(suffix);
            at += suffix.len();
        }
        let mut previous = 0;
        for row in start..end {
            let (shared, suffix) = self.change(row, at);
            let key_at = if row == start {
                keys.truncate(shared);
                0
            } else {
                let key_at = keys.len();
                keys.extend_from_within(previous..previous + shared);
                key_at
            };
            keys.extend_from_slice(suffix);
            at += suffix.len();
            prefixes.push(key_prefix(&keys[key_at..]));
            key_ends.push(keys.len() as u32);
            previous = key_at;
        }
    }
}

/// Appends the shared lengths and the suffix lengths of `count` keys to `lengths`, and the suffixes
/// to `suffixes`. `key` returns the key of a row. If `fixed` is set, all keys have one length, and
/// no suffix lengths are appended. Returns the width of a length.
pub(crate) fn encode<'a>(
    key: impl Fn(usize) -> &'a [u8],
    count: usize,
    fixed: bool,
    interval: usize,
    lengths: &mut Vec<u8>,
    suffixes: &mut Vec<u8>,
) -> usize {
    let longest = (0..count).map(|row| key(row).len()).max().unwrap_or(0);
    let width = if longest <= usize::from(u8::MAX) { 1 } else { 2 };
    let mut suffix_lens = Vec::with_capacity(if fixed { 0 } else { count * width });
    let mut previous: &[u8] = &[];
    for row in 0..count {
        let this = key(row);
        let shared = if row % interval == 0 { 0 } else { common_prefix(previous, this) };
        push_uint(lengths, width, shared as u64);
        if !fixed {
            push_uint(&mut suffix_lens, width, (this.len() - shared) as u64);
        }
        suffixes.extend_from_slice(&this[shared..]);
        previous = this;
    }
    lengths.extend_from_slice(&suffix_lens);
    width
}
