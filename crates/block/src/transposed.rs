//! Byte-transposed columns: keys, SeqNos or values of one width, stored column by column.
//!
//! Encoding and decoding transpose a byte matrix (one row per message) in tiles of 8 x 8 bytes, at
//! about a nanosecond per row. Constant columns store a single byte.

use std::ops::Range;

use frondb_core::SeqNo;

use crate::format::{MODE_CONSTANT, MODE_DELTA, MODE_PLAIN, MODE_TAIL};
use crate::transpose::{transpose, transpose_from};

/// Bytes that row buffers must have after the last row, so that whole tiles can be loaded and
/// stored.
pub(crate) const ROW_SLACK: usize = 8;

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Transposes matrices into columns. Keeps its memory from block to block.
#[derive(Debug, Default)]
pub(crate) struct Transposer {
    /// The bytes of the varying columns, one column after the other.
    transposed: Vec<u8>,
    /// For each tile, the OR of the differences of all rows from the first row.
    differ: Vec<u64>,
}

/// Statistics of the columns of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Columns {
    /// Number of columns that are constant or look random, so a codec gains nothing from them.
    pub(crate) incompressible: usize,
    /// Number of all columns.
    pub(crate) all: usize,
}

impl Transposer {
    /// Transposes `count` rows (at least one) of `width` bytes (at least one). `rows` has
    /// [`ROW_SLACK`] arbitrary bytes after the last row. Appends the modes, the constants and the
    /// columns to be compressed to `out`, and the columns that bypass the codec to `tail`.
    ///
    /// Without `compress`, appends all varying columns as they are to `out` and none to `tail`.
    pub(crate) fn encode(
        &mut self,
        rows: &[u8],
        width: usize,
        count: usize,
        compress: bool,
        out: &mut Vec<u8>,
        tail: &mut Vec<u8>,
    ) -> Columns {
        self.compare(rows, width, count);
        self.cut(rows, width, count);
        let modes_at = out.len();
        out.resize(modes_at + width, MODE_CONSTANT);
        let varies = |column: usize| self.differ[column / 8] >> (column % 8 * 8) & 0xff != 0;
        out.extend((0..width).filter(|&column| !varies(column)).map(|column| rows[column]));
        let mut incompressible = width;
        let mut transposed = self.transposed.chunks_exact(count);
        for column in (0..width).filter(|&column| varies(column)) {
            let Some(bytes) = transposed.next() else { break };
            let mode = if compress { choose_mode(bytes) } else { MODE_PLAIN };
            match mode {
                MODE_TAIL => tail.extend_from_slice(bytes),
                MODE_DELTA => push_deltas(bytes, out),
                _ => out.extend_from_slice(bytes),
            }
            incompressible -= usize::from(mode != MODE_TAIL);
            out[modes_at + column] = mode;
        }
        Columns { incompressible, all: width }
    }

    /// Fills `differ`: finds out which columns vary.
    fn compare(&mut self, rows: &[u8], width: usize, count: usize) {
        self.differ.clear();
        for at in (0..width).step_by(8) {
            let first = load(rows, at);
            let mut or = 0;
            for row in 0..count {
                or |= first ^ load(rows, row * width + at);
            }
            // The last tile of a row includes bytes of the next row, which do not count.
            let inside = width - at;
            self.differ.push(if inside < 8 { or & ((1 << (inside * 8)) - 1) } else { or });
        }
    }

    /// Fills `transposed` with the varying columns.
    fn cut(&mut self, rows: &[u8], width: usize, count: usize) {
        self.transposed.clear();
        let varying = |word: u64| (0..8).filter(|c| word >> (c * 8) & 0xff != 0).count();
        let total: usize = self.differ.iter().map(|&word| varying(word)).sum();
        self.transposed.resize(total * count, 0);
        let mut rest = &mut self.transposed[..];
        for (tile, &differ) in self.differ.iter().enumerate() {
            if differ == 0 {
                continue;
            }
            let (here, others) = rest.split_at_mut(varying(differ) * count);
            rest = others;
            // The varying columns of the tile, in order.
            let mut columns = [0usize; 8];
            let mut used = 0;
            for c in 0..8 {
                if differ >> (c * 8) & 0xff != 0 {
                    columns[used] = c;
                    used += 1;
                }
            }
            let columns = &columns[..used];
            let mut row = 0;
            while row + 8 <= count {
                let at = row * width + tile * 8;
                let mut words = [0; 8];
                for (r, word) in words.iter_mut().enumerate() {
                    *word = load(rows, at + r * width);
                }
                let words = transpose(words);
                for (nth, &c) in columns.iter().enumerate() {
                    let at = nth * count + row;
                    here[at..at + 8].copy_from_slice(&words[c & 7].to_le_bytes());
                }
                row += 8;
            }
            for row in row..count {
                for (nth, &c) in columns.iter().enumerate() {
                    here[nth * count + row] = rows[row * width + tile * 8 + c];
                }
            }
        }
    }
}

/// Rows sampled to choose a mode.
const SAMPLE_ROWS: usize = 64;

/// Chooses how a column is stored, by counting how many pairs of sampled bytes, and how many pairs
/// of differences of neighbours, are equal: random bytes are equal in 1 of 256 pairs. Compressing
/// random bytes costs time and gains nothing, and without them the codec has only one kind of bytes
/// to model. Bytes that ascend slowly, like the high bytes of a sorted column, become nearly
/// constant as differences.
fn choose_mode(bytes: &[u8]) -> u8 {
    let sampled = bytes.len().min(SAMPLE_ROWS);
    let start = (bytes.len() - sampled) / 2;
    let sample = &bytes[start..start + sampled];
    let (mut seen, mut seen_deltas) = ([0u8; 256], [0u8; 256]);
    let (mut equal, mut equal_deltas) = (0u32, 0u32);
    let mut before = sample[0];
    for &byte in sample {
        let delta = byte.wrapping_sub(before);
        before = byte;
        equal += u32::from(seen[usize::from(byte)]);
        equal_deltas += u32::from(seen_deltas[usize::from(delta)]);
        seen[usize::from(byte)] += 1;
        seen_deltas[usize::from(delta)] += 1;
    }
    let pairs = (sampled * (sampled - 1) / 2) as u32;
    if equal.max(equal_deltas) <= pairs / RANDOM_PAIRS {
        MODE_TAIL
    } else if equal_deltas > equal {
        MODE_DELTA
    } else {
        MODE_PLAIN
    }
}

/// A column counts as random if at most one pair in this many is equal. Measured on secondary index
/// keys: with any number from 60 to 100, the sizes are within half a percent.
const RANDOM_PAIRS: u32 = 80;

/// Appends the first byte, and then the difference of each byte from its predecessor.
fn push_deltas(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(bytes[0]);
    out.extend(bytes.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])));
}

/// Undoes [`push_deltas`] in place.
pub(crate) fn undo_deltas(bytes: &mut [u8]) {
    let mut sum = 0u8;
    for byte in bytes {
        sum = sum.wrapping_add(*byte);
        *byte = sum;
    }
}

/// The places of a matrix's columns in a buffer, and the first row of the matrix.
#[derive(Debug, Clone)]
pub(crate) struct TransposedMap {
    /// The first row.
    first: Box<[u8]>,
    /// Offset of each column's bytes; [`CONSTANT`] if the column does not vary.
    pub(crate) column_at: Box<[u32]>,
}

/// The offset of a constant column.
pub(crate) const CONSTANT: u32 = u32::MAX;

impl TransposedMap {
    /// Reads the matrix of `count` rows (at least one) of `width` bytes that begins at `*at` and
    /// whose tail columns begin at `*tail_at`. Moves both offsets past the matrix. Decodes
    /// differences in place. Returns `None` if the matrix reaches beyond the payload or has an
    /// unknown mode.
    pub(crate) fn read(
        payload: &mut [u8],
        width: usize,
        count: usize,
        at: &mut usize,
        tail_at: &mut usize,
    ) -> Option<Self> {
        let modes_at = *at;
        let modes = payload.get(modes_at..modes_at.checked_add(width)?)?;
        let mut constant_at = modes_at + width;
        *at = constant_at + modes.iter().filter(|&&mode| mode == MODE_CONSTANT).count();
        let mut first = Vec::with_capacity(width);
        let mut column_at = Vec::with_capacity(width);
        for column in 0..width {
            let mode = payload[modes_at + column];
            let begin = match mode {
                MODE_CONSTANT => {
                    first.push(*payload.get(constant_at)?);
                    constant_at += 1;
                    column_at.push(CONSTANT);
                    continue;
                }
                MODE_PLAIN | MODE_DELTA => &mut *at,
                MODE_TAIL => &mut *tail_at,
                _ => return None,
            };
            let bytes = payload.get_mut(*begin..begin.checked_add(count)?)?;
            if mode == MODE_DELTA {
                undo_deltas(bytes);
            }
            first.push(*bytes.first()?);
            column_at.push(u32::try_from(*begin).ok()?);
            *begin += count;
        }
        Some(Self { first: first.into(), column_at: column_at.into() })
    }

    pub(crate) fn first(&self) -> &[u8] {
        &self.first
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.first) + size_of_val(&*self.column_at)
    }

    /// Bytes of all varying columns if the matrix has `count` rows.
    pub(crate) fn column_bytes(&self, count: usize) -> usize {
        self.column_at.iter().filter(|&&at| at != CONSTANT).count() * count
    }

    /// Copies the columns of `count` rows, one after the other, to `to[at..]`, and makes the map
    /// refer to the copies.
    pub(crate) fn relocate(&mut self, from: &[u8], count: usize, to: &mut [u8], mut at: usize) {
        for column_at in self.column_at.iter_mut().filter(|at| **at != CONSTANT) {
            let bytes = &from[*column_at as usize..][..count];
            to[at..at + count].copy_from_slice(bytes);
            *column_at = at as u32;
            at += count;
        }
    }

    /// Writes `rows` of the matrix, whose columns are in `payload`, to `out`. REQUIRES: `out` has
    /// the length of these rows.
    pub(crate) fn to_rows(&self, payload: &[u8], rows: Range<usize>, out: &mut [u8]) {
        let width = self.first.len();
        if width < 8 {
            return self.to_narrow_rows(payload, rows, out);
        }
        let Range { start, end } = rows;
        // The last tile is aligned to the end of the row, so that no tile reaches into the next
        // row.
        for tile in 0..width.div_ceil(8) {
            let column = (tile * 8).min(width - 8);
            let tile = Tile::new(self, column);
            // Offset in `out` of this column in row 0; it wraps around if row 0 lies before `out`.
            let origin = column.wrapping_sub(start * width);
            for row in (start..end).step_by(8) {
                let words = tile.rows(payload, row, end);
                for (r, word) in words.iter().enumerate().take(end - row) {
                    let at = ((row + r) * width).wrapping_add(origin);
                    out[at..at + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }

    fn to_narrow_rows(&self, payload: &[u8], rows: Range<usize>, out: &mut [u8]) {
        let width = self.first.len();
        for (column, (&first, &at)) in self.first.iter().zip(&self.column_at).enumerate() {
            let cells = out[column..].iter_mut().step_by(width);
            if at == CONSTANT {
                cells.for_each(|cell| *cell = first);
            } else {
                let bytes = &payload[at as usize + rows.start..at as usize + rows.end];
                cells.zip(bytes).for_each(|(cell, &byte)| *cell = byte);
            }
        }
    }

    /// Replaces the contents of `out` by `row`.
    pub(crate) fn row_into(&self, payload: &[u8], row: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.first);
        for (byte, &at) in out.iter_mut().zip(&self.column_at) {
            if at != CONSTANT {
                *byte = payload[at as usize + row];
            }
        }
    }

    /// Adds each of `rows`, read as a little-endian number of at most eight bytes, to the
    /// corresponding number in `out`.
    pub(crate) fn add_numbers(&self, payload: &[u8], rows: Range<usize>, out: &mut [SeqNo]) {
        for (column, (&first, &at)) in self.first.iter().zip(&self.column_at).enumerate() {
            let add = |seq: &mut SeqNo, byte: u8| {
                *seq = SeqNo(seq.get().wrapping_add(u64::from(byte) << (column * 8)));
            };
            if at == CONSTANT {
                out.iter_mut().for_each(|seq| add(seq, first));
            } else {
                let bytes = &payload[at as usize + rows.start..at as usize + rows.end];
                out.iter_mut().zip(bytes).for_each(|(seq, &byte)| add(seq, byte));
            }
        }
    }
}

/// Eight neighbouring columns.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// Each column's byte in the first row, repeated eight times.
    constant: [[u8; 8]; 8],
    /// Offset of each column's bytes; [`CONSTANT`] if the column does not vary.
    column_at: [u32; 8],
    /// Whether any column varies.
    varies: bool,
}

impl Tile {
    /// Returns the tile that begins at `column`. Columns beyond the matrix count as constant zeros.
    pub(crate) fn new(map: &TransposedMap, column: usize) -> Self {
        let byte = |c: usize| map.first.get(column + c).copied().unwrap_or(0);
        let column_at: [u32; 8] =
            std::array::from_fn(|c| map.column_at.get(column + c).copied().unwrap_or(CONSTANT));
        Self {
            constant: std::array::from_fn(|c| [byte(c); 8]),
            column_at,
            varies: column_at.iter().any(|&at| at != CONSTANT),
        }
    }

    /// Returns this tile's bytes of eight rows from `row` on. The bytes of rows from `end` on are
    /// arbitrary.
    #[inline(always)]
    pub(crate) fn rows(&self, payload: &[u8], row: usize, end: usize) -> [u64; 8] {
        if !self.varies {
            return self.constant_rows();
        }
        let mut columns = [&self.constant[0]; 8];
        for (c, column) in columns.iter_mut().enumerate() {
            *column = match self.column_at[c] {
                CONSTANT => &self.constant[c],
                at => match payload[at as usize + row..].first_chunk() {
                    Some(eight) => eight,
                    None => return self.last_rows(payload, row, end),
                },
            };
        }
        transpose_from(columns)
    }

    /// [`rows`](Self::rows) if a column at the end of the payload has fewer than eight bytes left.
    #[cold]
    fn last_rows(&self, payload: &[u8], row: usize, end: usize) -> [u64; 8] {
        transpose(std::array::from_fn(|c| match self.column_at[c] {
            CONSTANT => u64::from_le_bytes(self.constant[c]),
            at => eight_bytes(payload, at as usize + row, end - row),
        }))
    }

    fn constant_rows(&self) -> [u64; 8] {
        let first: [u8; 8] = std::array::from_fn(|c| self.constant[c][0]);
        [u64::from_le_bytes(first); 8]
    }
}

/// Returns the next eight bytes of a column. If only `rows` bytes of the column are left, the bytes
/// after these are arbitrary.
#[inline(always)]
pub(crate) fn eight_bytes(payload: &[u8], at: usize, rows: usize) -> u64 {
    match payload.get(at..at + 8) {
        Some(bytes) => load(bytes, 0),
        None => last_rows(&payload[at..], rows),
    }
}

/// Returns the first `rows` bytes, at most eight, of `bytes`, the end of the payload.
#[cold]
fn last_rows(bytes: &[u8], rows: usize) -> u64 {
    let mut word = [0; 8];
    let n = rows.min(8);
    word[..n].copy_from_slice(&bytes[..n]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_width_and_count_come_back() {
        for key_len in 1..=70 {
            for count in [1, 2, 7, 8, 9, 31] {
                let mut rows = Vec::new();
                for row in 0..count {
                    let mut key = vec![0xee; key_len];
                    key[(key_len - 1) / 2] = row as u8 * 3;
                    key[key_len - 1] = if key_len > 1 { !(row as u8) } else { row as u8 * 3 };
                    rows.extend_from_slice(&key);
                }
                let expected = rows.clone();
                rows.extend_from_slice(&[0xaa; ROW_SLACK]);
                for compress in [false, true] {
                    check(&rows, &expected, key_len, count, compress);
                }
            }
        }
    }

    fn check(rows: &[u8], expected: &[u8], key_len: usize, count: usize, compress: bool) {
        let (mut payload, mut tail) = (Vec::new(), Vec::new());
        let mut builder = Transposer::default();
        let columns = builder.encode(rows, key_len, count, compress, &mut payload, &mut tail);
        assert_eq!(columns.all, key_len);
        let (mut at, mut tail_at) = (0, payload.len());
        payload.extend_from_slice(&tail);
        let map = TransposedMap::read(&mut payload, key_len, count, &mut at, &mut tail_at).unwrap();
        assert_eq!((at, tail_at), (payload.len() - tail.len(), payload.len()));
        let mut back = vec![0; expected.len()];
        map.to_rows(&payload, 0..count, &mut back);
        assert_eq!(back, expected);
    }

    #[test]
    fn columns_are_stored_as_they_compress_best() {
        let random: Vec<u8> =
            (0..500u32).map(|i| frondb_core::checksum::xxh3(&i.to_le_bytes()) as u8).collect();
        let ascending: Vec<u8> = (0..500).map(|i| (i / 3) as u8).collect();
        let few: Vec<u8> = random.iter().map(|byte| byte & 3).collect();
        assert_eq!(choose_mode(&random), MODE_TAIL);
        assert_eq!(choose_mode(&ascending), MODE_DELTA);
        assert_eq!(choose_mode(&few), MODE_PLAIN);
        for short in 1..20 {
            assert!(choose_mode(&random[..short]) <= MODE_TAIL);
        }
    }
}
