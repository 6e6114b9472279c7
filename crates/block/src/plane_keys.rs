//! Keys in planes: searching them where they lie, and turning them back into rows.
//!
//! A search narrows a range of rows column by column, because rows that agree up to a column are
//! sorted by it. Doing only that would touch a few cache lines in every plane, one after the other.
//! So the first eight columns that vary make a *head* of each row, a number in key order, and the
//! heads of every 16th row are kept as *marks*: a search is one among the marks, then one look at
//! the 16 heads behind a mark, all of whose loads are independent, and rarely more.
//!
//! ```text
//!   key       00 00 07 1a | 00 00 00 00 00 2b 9c 40 | 00 01 11 70 | 00 00 00 00 00 a1 b2 c3
//!   varies             x                     x  x       x  x  x                  x  x  x
//!   head               1a                    9c 40      01 11 70                 a1 b2      (c3)
//! ```

use std::cmp::Ordering;
use std::ops::Range;

use frondb_core::mem::Array;

use crate::format::PLANES_KEY_BYTES_MAX;
use crate::planes::{NO_PLANE, PlaneMap, ROW_SLACK, Tile, eight_of, transpose};

/// Most tiles across a key.
const TILES_MAX: usize = PLANES_KEY_BYTES_MAX / 8;

/// Rows from one mark to the next.
const MARK_INTERVAL: usize = 16;

/// The keys of a block in planes, with what searching them needs.
#[derive(Debug)]
pub(crate) struct PlaneKeys {
    pub(crate) map: PlaneMap,
    /// Where the planes of the head's columns begin; [`NO_PLANE`] behind the last.
    head: [u32; 8],
    /// Heads of the rows 0, 16, 32 and so on.
    marks: Box<[u64]>,
}

impl PlaneKeys {
    /// The keys whose planes lie in `payload`.
    pub(crate) fn new(map: PlaneMap, payload: &[u8], count: usize) -> Self {
        let mut head = [NO_PLANE; 8];
        let planes = map.plane_at.iter().filter(|&&at| at != NO_PLANE);
        for (slot, &at) in head.iter_mut().zip(planes) {
            *slot = at;
        }
        let mark = |row: usize| {
            let byte = |at: u32| if at == NO_PLANE { 0 } else { payload[at as usize + row] };
            u64::from_be_bytes(head.map(byte))
        };
        let marks = (0..count).step_by(MARK_INTERVAL).map(mark).collect();
        Self { map, head, marks }
    }

    /// Memory it takes, bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.map.memory_bytes() + size_of_val(&*self.marks)
    }
}

/// What is known of a key that was compared with the columns of a block.
enum Target {
    /// Rows that agree with the head so far are all above the key.
    Below,
    /// They are all below it.
    Above,
    /// They are equal to it.
    Equal,
    /// The columns from this one on are to be compared.
    More(usize),
}

/// A verified key area in planes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planes<'a> {
    /// Where the planes lie.
    pub(crate) keys: &'a PlaneKeys,
    /// The buffer in which they lie.
    pub(crate) payload: &'a [u8],
    /// Number of keys.
    pub(crate) count: usize,
}

impl Planes<'_> {
    /// Replaces `out` by key `row`.
    pub(crate) fn key_into(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.keys.map.first());
        for (byte, &at) in out.iter_mut().zip(&self.keys.map.plane_at) {
            if at != NO_PLANE {
                *byte = self.payload[at as usize + row];
            }
        }
    }

    /// The rows with keys not below `key` begin at the first number, those with keys above it at
    /// the second.
    pub(crate) fn equal_range(&self, key: &[u8]) -> (usize, usize) {
        let (head, target, used) = self.head_of(key);
        // Columns of the head that the key has nothing for may hold anything.
        let any = if used < 8 { u64::MAX >> (used * 8) } else { 0 };
        let lo = self.partition_point(|row_head| row_head < head);
        match target {
            Target::Below => return (lo, lo),
            Target::Equal | Target::Above | Target::More(_) => {}
        }
        let hi = self.partition_point(|row_head| row_head <= head | any).max(lo);
        match target {
            Target::Above => (hi, hi),
            Target::More(column) => self.narrow(key, column, lo, hi),
            Target::Equal | Target::Below => (lo, hi),
        }
    }

    /// The key's head, what became of the comparison with the constant columns on the way, and how
    /// many columns of the head it covers.
    fn head_of(&self, key: &[u8]) -> (u64, Target, usize) {
        let map = &self.keys.map;
        let mut head = [0; 8];
        let mut used = 0;
        for (column, (&at, &first)) in map.plane_at.iter().zip(map.first()).enumerate() {
            if used == 8 {
                return (u64::from_be_bytes(head), Target::More(column), used);
            }
            let target = match key.get(column) {
                None => Target::Below,
                Some(&byte) if at != NO_PLANE => {
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
        let target = if key.len() > map.plane_at.len() { Target::Above } else { Target::Equal };
        (u64::from_be_bytes(head), target, used)
    }

    /// The first row whose head does not satisfy `before`, which the first so many rows do.
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

    /// Heads of eight rows; those from `end` on are arbitrary.
    #[inline(always)]
    fn heads(&self, row: usize, end: usize) -> [u64; 8] {
        // Loops, because `array::map` is not inlined in every build, and this is most of a search.
        let mut columns = [0; 8];
        for (column, &at) in columns.iter_mut().zip(&self.keys.head) {
            if at != NO_PLANE {
                *column = eight_of(self.payload, at as usize + row, end - row);
            }
        }
        let mut heads = transpose(columns);
        for head in &mut heads {
            *head = head.swap_bytes();
        }
        heads
    }

    /// Narrows rows `lo..hi`, which agree with `key` before `column`, by the columns from there.
    fn narrow(&self, key: &[u8], column: usize, mut lo: usize, mut hi: usize) -> (usize, usize) {
        let map = &self.keys.map;
        for (column, &at) in map.plane_at.iter().enumerate().skip(column) {
            let Some(&byte) = key.get(column) else {
                return (lo, lo);
            };
            if at == NO_PLANE {
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
        if key.len() > map.plane_at.len() { (hi, hi) } else { (lo, hi) }
    }

    /// Writes keys `start..end` as rows into `keys` and their 8-byte prefixes into `prefixes`
    /// (both are replaced; `keys` gets [`ROW_SLACK`] bytes of slack behind the last row).
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
        // The number of tiles as a constant, so that all words of eight rows are in registers.
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
                // In order: what a short last tile writes too much, the next row overwrites.
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
    use crate::planes::PlaneBuilder;

    /// Sorted keys of `width` bytes with up to `vary` varying columns and some equal neighbours.
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
                PlaneBuilder::default().encode(
                    &rows,
                    width,
                    count,
                    false,
                    &mut payload,
                    &mut Vec::new(),
                );
                let (mut at, mut tail) = (0, payload.len());
                let map = PlaneMap::read(&mut payload, width, count, &mut at, &mut tail).unwrap();
                let plane_keys = PlaneKeys::new(map, &payload, count);
                check(&Planes { keys: &plane_keys, payload: &payload, count }, &keys);
            }
        }
    }

    fn check(planes: &Planes<'_>, keys: &[Vec<u8>]) {
        let (mut prefixes, mut rows, mut out) = (Array::new(), Array::new(), Vec::new());
        for (i, key) in keys.iter().enumerate() {
            planes.key_into(i, &mut out);
            assert_eq!(out, *key);
            planes.rows(i, keys.len(), &mut prefixes, &mut rows);
            assert_eq!(rows[..rows.len() - ROW_SLACK], keys[i..].concat());
            assert_eq!(prefixes[0], frondb_core::chunk::key_prefix(key));
            for cut in 0..=key.len() {
                for change in [None, Some(0), Some(0x53), Some(0x55), Some(0x57), Some(0xff)] {
                    let mut sought = key[..cut].to_vec();
                    sought.extend(change);
                    let lo = keys.partition_point(|key| *key < sought);
                    let hi = keys.partition_point(|key| *key <= sought);
                    assert_eq!(planes.equal_range(&sought), (lo, hi), "{sought:02x?}");
                }
            }
        }
    }
}
