//! Transposed keys: searched in place, or turned back into rows.
//!
//! A search narrows a range of rows column by column: rows that agree in all columns before a
//! column are sorted by that column. That alone would touch a few cache lines in every column, one
//! after the other. So the first eight varying columns form a *head* of each row, a number in key
//! order, and the heads of every 16th row are stored as *marks*. A search is then one search among
//! the marks and one pass over the 16 heads after a mark, whose loads are all independent, and
//! rarely more.
//!
//! ```text
//!   key       00 00 07 1a | 00 00 00 00 00 2b 9c 40 | 00 01 11 70 | 00 00 00 00 00 a1 b2 c3
//!   varies             x                     x  x       x  x  x                  x  x  x
//!   head               1a                    9c 40      01 11 70                 a1 b2      (c3)
//! ```

use std::cmp::Ordering;
use std::ops::Range;

use frondb_core::mem::Array;

use crate::format::TRANSPOSED_KEY_BYTES_MAX;
use crate::transpose::transpose;
use crate::transposed::{CONSTANT, ROW_SLACK, Tile, TransposedMap, eight_bytes};

/// Maximum number of tiles across a key.
const TILES_MAX: usize = TRANSPOSED_KEY_BYTES_MAX / 8;

/// Distance between marks, in rows.
const MARK_INTERVAL: usize = 16;

/// The transposed keys of a block, with the data for searching them.
#[derive(Clone, Debug)]
pub(crate) struct TransposedKeys {
    pub(crate) map: TransposedMap,
    /// Offsets of the head's columns; [`CONSTANT`] after the last of them.
    head: [u32; 8],
    /// Heads of the rows 0, 16, 32 and so on.
    marks: Box<[u64]>,
}

impl TransposedKeys {
    /// Derives the search data of the keys whose columns are in `payload`.
    pub(crate) fn new(map: TransposedMap, payload: &[u8], count: usize) -> Self {
        let mut head = [CONSTANT; 8];
        let columns = map.column_at.iter().filter(|&&at| at != CONSTANT);
        for (slot, &at) in head.iter_mut().zip(columns) {
            *slot = at;
        }
        let rows = (0..count).step_by(MARK_INTERVAL);
        let marks = rows.map(|row| row_head(&head, payload, row)).collect();
        Self { map, head, marks }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.map.memory_bytes() + size_of_val(&*self.marks)
    }
}

/// Returns the head of one row.
#[inline]
fn row_head(columns: &[u32; 8], payload: &[u8], row: usize) -> u64 {
    let mut head = [0; 8];
    for (byte, &at) in head.iter_mut().zip(columns) {
        if at != CONSTANT {
            *byte = payload[at as usize + row];
        }
    }
    u64::from_be_bytes(head)
}

/// How a sought key compares with the rows that have the same head.
enum Target {
    /// The key is below these rows.
    Below,
    /// The key is above these rows.
    Above,
    /// The key equals the keys of these rows.
    Equal,
    /// The columns from this one on have still to be compared.
    More(usize),
}

/// A verified transposed key area.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransposedView<'a> {
    /// The places of the columns.
    pub(crate) keys: &'a TransposedKeys,
    /// The buffer with the columns.
    pub(crate) payload: &'a [u8],
    /// Number of keys.
    pub(crate) count: usize,
}

impl TransposedView<'_> {
    /// Replaces the contents of `out` by key `row`.
    pub(crate) fn key_into(&self, row: usize, out: &mut Vec<u8>) {
        self.keys.map.row_into(self.payload, row, out);
    }

    /// Returns the first row whose key is not below `key`, and the first row whose key is above it.
    pub(crate) fn equal_range(&self, key: &[u8]) -> (usize, usize) {
        let (head, target, used) = self.head_of(key);
        // Head columns beyond the end of the key may have any value.
        let any = if used < 8 { u64::MAX >> (used * 8) } else { 0 };
        let lo = self.partition_point(|row_head| row_head < head);
        match target {
            Target::Below => return (lo, lo),
            Target::Equal | Target::Above | Target::More(_) => {}
        }
        let is_above =
            |row| row == self.count || row_head(&self.keys.head, self.payload, row) > head | any;
        // Usually at most one row has the head. Testing two rows costs less than a second search.
        let hi = if is_above(lo) {
            lo
        } else if is_above(lo + 1) {
            lo + 1
        } else {
            self.partition_point(|row_head| row_head <= head | any).max(lo)
        };
        match target {
            Target::Above => (hi, hi),
            Target::More(column) => self.narrow(key, column, lo, hi),
            Target::Equal | Target::Below => (lo, hi),
        }
    }

    /// Returns the key's head, the result of comparing the key with the constant columns before the
    /// end of the head, and the number of varying columns that the head covers.
    fn head_of(&self, key: &[u8]) -> (u64, Target, usize) {
        let map = &self.keys.map;
        let mut head = [0; 8];
        let mut used = 0;
        for (column, (&at, &first)) in map.column_at.iter().zip(map.first()).enumerate() {
            if used == 8 {
                return (u64::from_be_bytes(head), Target::More(column), used);
            }
            let target = match key.get(column) {
                None => Target::Below,
                Some(&byte) if at != CONSTANT => {
                    head[used] = byte;
                    used += 1;
                    continue;
                }
                Some(byte) => match first.cmp(byte) {
                    Ordering::Equal => continue,
                    Ordering::Less => Target::Above,
                    Ordering::Greater => Target::Below,
                },
            };
            return (u64::from_be_bytes(head), target, used);
        }
        let target = if key.len() > map.column_at.len() { Target::Above } else { Target::Equal };
        (u64::from_be_bytes(head), target, used)
    }

    /// Returns the first row whose head (its first eight varying key bytes as a number) does not
    /// satisfy `before`. Heads ascend, so the heads of all earlier rows satisfy `before`.
    #[inline(always)]
    fn partition_point(&self, before: impl Fn(u64) -> bool) -> usize {
        let Some(mark) = self.keys.marks.partition_point(|&mark| before(mark)).checked_sub(1)
        else {
            return 0;
        };
        let start = mark * MARK_INTERVAL;
        let end = (start + MARK_INTERVAL).min(self.count);
        let mut rows = start;
        for eight in (start..end).step_by(8) {
            let heads = self.heads(eight, end);
            let inside = heads.iter().take(end - eight);
            rows += inside.filter(|&&head| before(head)).count();
        }
        rows
    }

    /// Returns the heads of eight rows. The heads of rows from `end` on are arbitrary.
    #[inline(always)]
    fn heads(&self, row: usize, end: usize) -> [u64; 8] {
        // Loops, because `array::map` is not inlined in every build, and this is most of a search's
        // time.
        let mut columns = [0; 8];
        for (column, &at) in columns.iter_mut().zip(&self.keys.head) {
            if at != CONSTANT {
                *column = eight_bytes(self.payload, at as usize + row, end - row);
            }
        }
        let mut heads = transpose(columns);
        for head in &mut heads {
            *head = head.swap_bytes();
        }
        heads
    }

    /// Narrows the range of rows `lo..hi`, which agree with `key` before `column`, by comparing the
    /// columns from `column` on.
    fn narrow(&self, key: &[u8], column: usize, mut lo: usize, mut hi: usize) -> (usize, usize) {
        let map = &self.keys.map;
        for (column, &at) in map.column_at.iter().enumerate().skip(column) {
            let Some(&byte) = key.get(column) else {
                return (lo, lo);
            };
            if at == CONSTANT {
                match map.first()[column].cmp(&byte) {
                    Ordering::Less => return (hi, hi),
                    Ordering::Equal => {}
                    Ordering::Greater => return (lo, lo),
                }
                continue;
            }
            let bytes = &self.payload[at as usize + lo..at as usize + hi];
            let below = bytes.partition_point(|&b| b < byte);
            let equal = bytes[below..].partition_point(|&b| b == byte);
            (lo, hi) = (lo + below, lo + below + equal);
            if equal == 0 {
                return (lo, lo);
            }
        }
        if key.len() > map.column_at.len() { (hi, hi) } else { (lo, hi) }
    }

    /// Writes keys `start..end` as rows into `keys` and their 8-byte prefixes into `prefixes`.
    /// Replaces the contents of both. `keys` gets [`ROW_SLACK`] bytes of slack after the last row.
    pub(crate) fn rows(
        &self,
        start: usize,
        end: usize,
        prefixes: &mut Array<u64>,
        keys: &mut Array<u8>,
    ) {
        let count = end - start;
        prefixes.resize(count, 0);
        keys.resize(count * self.keys.map.first().len() + ROW_SLACK, 0);
        let rows = start..end;
        // The number of tiles is a constant, so that all words of eight rows stay in registers.
        match self.keys.map.first().len().div_ceil(8) {
            1 => self.rows_of::<1>(rows, prefixes, keys),
            2 => self.rows_of::<2>(rows, prefixes, keys),
            3 => self.rows_of::<3>(rows, prefixes, keys),
            4 => self.rows_of::<4>(rows, prefixes, keys),
            5 => self.rows_of::<5>(rows, prefixes, keys),
            6 => self.rows_of::<6>(rows, prefixes, keys),
            7 => self.rows_of::<7>(rows, prefixes, keys),
            _ => self.rows_of::<TILES_MAX>(rows, prefixes, keys),
        }
    }

    fn rows_of<const TILES: usize>(
        &self,
        rows: Range<usize>,
        prefixes: &mut [u64],
        keys: &mut [u8],
    ) {
        let key_len = self.keys.map.first().len();
        let tiles: [Tile; TILES] = std::array::from_fn(|tile| Tile::new(&self.keys.map, tile * 8));
        let prefix_mask = if key_len < 8 { (1u64 << (key_len * 8)) - 1 } else { u64::MAX };
        for (eight, prefixes) in prefixes.chunks_mut(8).enumerate() {
            let row = rows.start + eight * 8;
            let mut words = [[0u64; 8]; TILES];
            for (words, tile) in words.iter_mut().zip(&tiles) {
                *words = tile.rows(self.payload, row, rows.end);
            }
            let at = eight * 8 * key_len;
            let keys = &mut keys[at..at + prefixes.len() * key_len + ROW_SLACK];
            for (r, prefix) in prefixes.iter_mut().enumerate() {
                *prefix = (words[0][r & 7] & prefix_mask).swap_bytes();
                // Rows are written in order, because a short last tile writes surplus bytes, which
                // the next row overwrites.
                for (tile, words) in words.iter().enumerate() {
                    let at = r * key_len + tile * 8;
                    keys[at..at + 8].copy_from_slice(&words[r & 7].to_le_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transposed::Transposer;

    /// Returns sorted keys of `width` bytes with up to `vary` varying columns; some are equal.
    fn keys(width: usize, vary: usize, count: usize) -> Vec<Vec<u8>> {
        let mut state = (width * 100 + vary * 10 + count) as u64 + 1;
        let mut random = |n: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % n
        };
        let mut keys: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let mut key = vec![0x55; width];
                for i in 0..vary.min(width) {
                    let column = i * width / vary.min(width);
                    key[column] = 0x54 + random(3) as u8;
                }
                key
            })
            .collect();
        keys.sort();
        keys
    }

    #[test]
    fn searching_and_reading_agree_with_the_rows() {
        for (width, vary) in [(1, 1), (3, 2), (8, 8), (9, 9), (24, 5), (24, 12), (64, 30)] {
            for count in [1, 2, 15, 16, 17, 100, 257] {
                let keys = keys(width, vary, count);
                let mut rows = keys.concat();
                rows.extend_from_slice(&[0; ROW_SLACK]);
                let mut payload = Vec::new();
                Transposer::default().encode(
                    &rows,
                    width,
                    count,
                    false,
                    &mut payload,
                    &mut Vec::new(),
                );
                let (mut at, mut tail) = (0, payload.len());
                let map =
                    TransposedMap::read(&mut payload, width, count, &mut at, &mut tail).unwrap();
                let transposed_keys = TransposedKeys::new(map, &payload, count);
                check(&TransposedView { keys: &transposed_keys, payload: &payload, count }, &keys);
            }
        }
    }

    fn check(view: &TransposedView<'_>, keys: &[Vec<u8>]) {
        let (mut prefixes, mut rows, mut out) = (Array::new(), Array::new(), Vec::new());
        for (i, key) in keys.iter().enumerate() {
            view.key_into(i, &mut out);
            assert_eq!(out, *key);
            view.rows(i, keys.len(), &mut prefixes, &mut rows);
            assert_eq!(rows[..rows.len() - ROW_SLACK], keys[i..].concat());
            assert_eq!(prefixes[0], frondb_core::chunk::key_prefix(key));
            for cut in 0..=key.len() {
                for change in [None, Some(0), Some(0x53), Some(0x55), Some(0x57), Some(0xff)] {
                    let mut sought = key[..cut].to_vec();
                    sought.extend(change);
                    let lo = keys.partition_point(|key| *key < sought);
                    let hi = keys.partition_point(|key| *key <= sought);
                    assert_eq!(view.equal_range(&sought), (lo, hi), "{sought:02x?}");
                }
            }
        }
    }
}
