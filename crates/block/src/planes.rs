//! Matrices in planes: keys, SeqNos or values of one width, stored column by column.
//!
//! Encoding and decoding are transpositions of a byte matrix (rows = keys, columns = planes), done
//! in tiles of 8 x 8 bytes, at about a nanosecond a row. Columns that do not vary have no plane.

use crate::format::{MODE_CONSTANT, MODE_DELTA, MODE_PLAIN, MODE_TAIL};

/// Bytes beyond the last key that the row buffers must have, so that a tile is loaded and stored
/// whole.
pub(crate) const ROW_SLACK: usize = 8;

/// Transposes an 8 x 8 matrix of bytes: byte `c` of word `r` becomes byte `r` of word `c`.
#[inline(always)]
pub(crate) fn transpose(w: [u64; 8]) -> [u64; 8] {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { transpose_sse2(w) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        transpose_portable(w)
    }
}

/// [`transpose`] of words that lie here and there. They go from there into registers: written to memory one by
/// one and read from it two at a time, which is what becomes of an array of them, they make the processor wait.
#[inline(always)]
fn transpose_from(places: [&[u8; 8]; 8]) -> [u64; 8] {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { transpose_places_sse2(places) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        transpose_portable(places.map(|bytes| u64::from_le_bytes(*bytes)))
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn transpose_places_sse2(places: [&[u8; 8]; 8]) -> [u64; 8] {
    use std::arch::x86_64::{__m128i, _mm_loadl_epi64};
    // SAFETY: the instruction reads eight bytes, wherever they are, and there are eight.
    let rows = places.map(|bytes| unsafe { _mm_loadl_epi64(bytes.as_ptr().cast::<__m128i>()) });
    transpose_rows_sse2(rows)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn transpose_sse2(w: [u64; 8]) -> [u64; 8] {
    use std::arch::x86_64::_mm_cvtsi64_si128;
    transpose_rows_sse2(w.map(|word| _mm_cvtsi64_si128(word as i64)))
}

/// [`transpose`] with 12 instructions that interleave, instead of 72 that shift and mask.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn transpose_rows_sse2(w: [std::arch::x86_64::__m128i; 8]) -> [u64; 8] {
    use std::arch::x86_64::{
        _mm_cvtsi128_si64 as low_half, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
        _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
    };
    // Interleaving rows by bytes, pairs by words and fours by double words leaves two columns in
    // each register. Written out, because a closure here would not be inlined.
    let rows_01 = _mm_unpacklo_epi8(w[0], w[1]);
    let rows_23 = _mm_unpacklo_epi8(w[2], w[3]);
    let rows_45 = _mm_unpacklo_epi8(w[4], w[5]);
    let rows_67 = _mm_unpacklo_epi8(w[6], w[7]);
    let (top_0123, top_4567) =
        (_mm_unpacklo_epi16(rows_01, rows_23), _mm_unpackhi_epi16(rows_01, rows_23));
    let (end_0123, end_4567) =
        (_mm_unpacklo_epi16(rows_45, rows_67), _mm_unpackhi_epi16(rows_45, rows_67));
    let columns_01 = _mm_unpacklo_epi32(top_0123, end_0123);
    let columns_23 = _mm_unpackhi_epi32(top_0123, end_0123);
    let columns_45 = _mm_unpacklo_epi32(top_4567, end_4567);
    let columns_67 = _mm_unpackhi_epi32(top_4567, end_4567);
    [
        low_half(columns_01) as u64,
        low_half(_mm_unpackhi_epi64(columns_01, columns_01)) as u64,
        low_half(columns_23) as u64,
        low_half(_mm_unpackhi_epi64(columns_23, columns_23)) as u64,
        low_half(columns_45) as u64,
        low_half(_mm_unpackhi_epi64(columns_45, columns_45)) as u64,
        low_half(columns_67) as u64,
        low_half(_mm_unpackhi_epi64(columns_67, columns_67)) as u64,
    ]
}

/// [`transpose`] with shifts and masks, for any machine.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn transpose_portable(mut w: [u64; 8]) -> [u64; 8] {
    // Swap 4 x 4 quadrants, then 2 x 2, then single bytes: three passes of four exchanges.
    const M4: u64 = 0x0000_0000_ffff_ffff;
    const M2: u64 = 0x0000_ffff_0000_ffff;
    const M1: u64 = 0x00ff_00ff_00ff_00ff;
    for r in 0..4 {
        let t = ((w[r] >> 32) ^ w[r + 4]) & M4;
        w[r] ^= t << 32;
        w[r + 4] ^= t;
    }
    for r in [0, 1, 4, 5] {
        let t = ((w[r] >> 16) ^ w[r + 2]) & M2;
        w[r] ^= t << 16;
        w[r + 2] ^= t;
    }
    for r in [0, 2, 4, 6] {
        let t = ((w[r] >> 8) ^ w[r + 1]) & M1;
        w[r] ^= t << 8;
        w[r + 1] ^= t;
    }
    w
}

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Cuts matrices into planes; keeps its memory from block to block.
#[derive(Debug, Default)]
pub(crate) struct PlaneBuilder {
    /// The planes of the varying columns, one after the other.
    planes: Vec<u8>,
    /// For each tile, the OR of the differences of all rows from the first.
    differ: Vec<u64>,
}

/// What became of the columns of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Columns {
    /// That are constant or look random: no codec has anything to gain from them.
    pub(crate) settled: usize,
    /// All.
    pub(crate) all: usize,
}

impl PlaneBuilder {
    /// Cuts `count` rows (at least one) of `width` bytes (at least one) into planes; `rows` has
    /// [`ROW_SLACK`] bytes of any content behind the last row. Appends modes, constants and the
    /// planes to be compressed to `out`, those to be stored to `tail`.
    ///
    /// Without `compress` all planes are stored as they are, none of them in the tail.
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
        let mut settled = width;
        let mut planes = self.planes.chunks_exact(count);
        for column in (0..width).filter(|&column| varies(column)) {
            let Some(plane) = planes.next() else { break };
            let mode = if compress { choose_mode(plane) } else { MODE_PLAIN };
            match mode {
                MODE_TAIL => tail.extend_from_slice(plane),
                MODE_DELTA => push_deltas(plane, out),
                _ => out.extend_from_slice(plane),
            }
            settled -= usize::from(mode != MODE_TAIL);
            out[modes_at + column] = mode;
        }
        Columns { settled, all: width }
    }

    /// Fills `differ`.
    fn compare(&mut self, rows: &[u8], width: usize, count: usize) {
        self.differ.clear();
        for at in (0..width).step_by(8) {
            let first = load(rows, at);
            let mut or = 0;
            for row in 0..count {
                or |= first ^ load(rows, row * width + at);
            }
            // The last tile of a row reaches into the next one.
            let inside = width - at;
            self.differ.push(if inside < 8 { or & ((1 << (inside * 8)) - 1) } else { or });
        }
    }

    /// Fills `planes`.
    fn cut(&mut self, rows: &[u8], width: usize, count: usize) {
        self.planes.clear();
        let varying = |word: u64| (0..8).filter(|c| word >> (c * 8) & 0xff != 0).count();
        let total: usize = self.differ.iter().map(|&word| varying(word)).sum();
        self.planes.resize(total * count, 0);
        let mut rest = &mut self.planes[..];
        for (tile, &differ) in self.differ.iter().enumerate() {
            if differ == 0 {
                continue;
            }
            let (here, others) = rest.split_at_mut(varying(differ) * count);
            rest = others;
            // Which columns of the tile have a plane, in order.
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
                for (plane, &c) in columns.iter().enumerate() {
                    let at = plane * count + row;
                    here[at..at + 8].copy_from_slice(&words[c & 7].to_le_bytes());
                }
                row += 8;
            }
            for row in row..count {
                for (plane, &c) in columns.iter().enumerate() {
                    here[plane * count + row] = rows[row * width + tile * 8 + c];
                }
            }
        }
    }
}

/// Rows looked at to choose a mode.
const SAMPLE_ROWS: usize = 64;

/// Chooses how a plane is stored, from how often two sampled bytes (or two differences of
/// neighbours) are equal: random bytes collide in 1 of 256 pairs. Compressing those costs time and
/// gains nothing, and keeping them out leaves the codec one alphabet to model; bytes that ascend
/// slowly, as the high bytes of a sorted column do, are nearly constant once they are differences.
fn choose_mode(plane: &[u8]) -> u8 {
    let sampled = plane.len().min(SAMPLE_ROWS);
    let start = (plane.len() - sampled) / 2;
    let sample = &plane[start..start + sampled];
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

/// A plane counts as random if at most one of so many pairs is equal. Measured on secondary index
/// keys: anything from 60 to 100 is within half a percent.
const RANDOM_PAIRS: u32 = 80;

/// Appends the first byte and then the difference of each from the one before.
fn push_deltas(plane: &[u8], out: &mut Vec<u8>) {
    out.push(plane[0]);
    out.extend(plane.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])));
}

/// Undoes [`push_deltas`] in place.
pub(crate) fn add_up(plane: &mut [u8]) {
    let mut sum = 0u8;
    for byte in plane {
        sum = sum.wrapping_add(*byte);
        *byte = sum;
    }
}

/// Where the planes of a matrix lie in a buffer, and its first row.
#[derive(Debug, Clone)]
pub(crate) struct PlaneMap {
    /// The first row.
    first: Box<[u8]>,
    /// For each column, where its plane begins; [`NO_PLANE`] if constant.
    pub(crate) plane_at: Box<[u32]>,
}

/// Marks a constant column.
pub(crate) const NO_PLANE: u32 = u32::MAX;

impl PlaneMap {
    /// Reads the matrix of `count` rows (at least one) of `width` bytes that begins at `*at` and
    /// has its tail planes from `*tail_at` on; both then stand behind it. Differences are turned
    /// into what they stand for. `None` if it reaches beyond the payload.
    pub(crate) fn read(
        payload: &mut [u8],
        width: usize,
        count: usize,
        at: &mut usize,
        tail_at: &mut usize,
    ) -> Option<Self> {
        let modes = payload.get(*at..at.checked_add(width)?)?.to_vec();
        let mut constant_at = *at + width;
        *at = constant_at + modes.iter().filter(|&&mode| mode == MODE_CONSTANT).count();
        let mut first = Vec::with_capacity(width);
        let mut plane_at = Vec::with_capacity(width);
        for mode in modes {
            let begin = match mode {
                MODE_CONSTANT => {
                    first.push(*payload.get(constant_at)?);
                    constant_at += 1;
                    plane_at.push(NO_PLANE);
                    continue;
                }
                MODE_PLAIN | MODE_DELTA => &mut *at,
                MODE_TAIL => &mut *tail_at,
                _ => return None,
            };
            let plane = payload.get_mut(*begin..begin.checked_add(count)?)?;
            if mode == MODE_DELTA {
                add_up(plane);
            }
            first.push(*plane.first()?);
            plane_at.push(u32::try_from(*begin).ok()?);
            *begin += count;
        }
        Some(Self { first: first.into(), plane_at: plane_at.into() })
    }

    /// The first row.
    pub(crate) fn first(&self) -> &[u8] {
        &self.first
    }

    /// Memory it takes, bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.first) + size_of_val(&*self.plane_at)
    }

    /// Bytes of all planes of `count` rows.
    pub(crate) fn plane_bytes(&self, count: usize) -> usize {
        self.plane_at.iter().filter(|&&at| at != NO_PLANE).count() * count
    }

    /// Copies the planes of `count` rows one after the other to `to[at..]`, where they are from
    /// then on.
    pub(crate) fn relocate(&mut self, from: &[u8], count: usize, to: &mut [u8], mut at: usize) {
        for plane_at in self.plane_at.iter_mut().filter(|at| **at != NO_PLANE) {
            let plane = &from[*plane_at as usize..][..count];
            to[at..at + count].copy_from_slice(plane);
            *plane_at = at as u32;
            at += count;
        }
    }

    /// Writes all `count` rows of the matrix whose planes lie in `payload` to `out`, which they
    /// fill.
    pub(crate) fn to_rows(&self, payload: &[u8], count: usize, out: &mut [u8]) {
        let width = self.first.len();
        if width < 8 {
            return self.to_narrow_rows(payload, count, out);
        }
        // The last tile is aligned to the end of the row, so that none reaches into the next.
        for tile in 0..width.div_ceil(8) {
            let column = (tile * 8).min(width - 8);
            let tile = Tile::new(self, column);
            for row in (0..count).step_by(8) {
                let words = tile.rows(payload, row, count);
                for (r, word) in words.iter().enumerate().take(count - row) {
                    let at = (row + r) * width + column;
                    out[at..at + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }

    fn to_narrow_rows(&self, payload: &[u8], count: usize, out: &mut [u8]) {
        let width = self.first.len();
        for (column, (&first, &at)) in self.first.iter().zip(&self.plane_at).enumerate() {
            let cells = out[column..].iter_mut().step_by(width);
            if at == NO_PLANE {
                cells.for_each(|cell| *cell = first);
            } else {
                let plane = &payload[at as usize..][..count];
                cells.zip(plane).for_each(|(cell, &byte)| *cell = byte);
            }
        }
    }
}

/// Eight neighbouring columns.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// Each column's byte in the first row, eight times.
    constant: [[u8; 8]; 8],
    /// Where each column's plane begins; [`NO_PLANE`] if constant.
    plane_at: [u32; 8],
    /// Whether any column varies.
    varies: bool,
}

impl Tile {
    /// The tile that begins at `column`; columns beyond the matrix count as constant zeros.
    pub(crate) fn new(map: &PlaneMap, column: usize) -> Self {
        let byte = |c: usize| map.first.get(column + c).copied().unwrap_or(0);
        let plane_at: [u32; 8] =
            std::array::from_fn(|c| map.plane_at.get(column + c).copied().unwrap_or(NO_PLANE));
        Self {
            constant: std::array::from_fn(|c| [byte(c); 8]),
            plane_at,
            varies: plane_at.iter().any(|&at| at != NO_PLANE),
        }
    }

    /// The tile of eight rows from `row`; those from `end` on are arbitrary.
    #[inline(always)]
    pub(crate) fn rows(&self, payload: &[u8], row: usize, end: usize) -> [u64; 8] {
        if !self.varies {
            return self.constant_rows();
        }
        let mut columns = [&self.constant[0]; 8];
        for (c, column) in columns.iter_mut().enumerate() {
            *column = match self.plane_at[c] {
                NO_PLANE => &self.constant[c],
                at => match payload[at as usize + row..].first_chunk() {
                    Some(eight) => eight,
                    None => return self.last_rows(payload, row, end),
                },
            };
        }
        transpose_from(columns)
    }

    /// [`rows`](Self::rows) where a plane at the end of the payload has fewer than eight.
    #[cold]
    fn last_rows(&self, payload: &[u8], row: usize, end: usize) -> [u64; 8] {
        transpose(std::array::from_fn(|c| match self.plane_at[c] {
            NO_PLANE => u64::from_le_bytes(self.constant[c]),
            at => eight_of(payload, at as usize + row, end - row),
        }))
    }

    fn constant_rows(&self) -> [u64; 8] {
        let first: [u8; 8] = std::array::from_fn(|c| self.constant[c][0]);
        [u64::from_le_bytes(first); 8]
    }
}

/// Eight bytes of a plane; those beyond the `rows` it still has are arbitrary.
#[inline(always)]
pub(crate) fn eight_of(payload: &[u8], at: usize, rows: usize) -> u64 {
    match payload.get(at..at + 8) {
        Some(bytes) => load(bytes, 0),
        None => last_rows(&payload[at..], rows),
    }
}

/// Up to eight bytes at the end of the payload.
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
    fn transposing_moves_each_byte() {
        let mut words = [0u64; 8];
        for (r, word) in words.iter_mut().enumerate() {
            *word = u64::from_le_bytes(std::array::from_fn(|c| (r * 8 + c) as u8));
        }
        for transposed in [transpose(words), transpose_portable(words)] {
            for (c, word) in transposed.into_iter().enumerate() {
                assert_eq!(word.to_le_bytes(), std::array::from_fn(|r| (r * 8 + c) as u8));
            }
        }
    }

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
        let mut builder = PlaneBuilder::default();
        let columns = builder.encode(rows, key_len, count, compress, &mut payload, &mut tail);
        assert_eq!(columns.all, key_len);
        let (mut at, mut tail_at) = (0, payload.len());
        payload.extend_from_slice(&tail);
        let map = PlaneMap::read(&mut payload, key_len, count, &mut at, &mut tail_at).unwrap();
        assert_eq!((at, tail_at), (payload.len() - tail.len(), payload.len()));
        let mut back = vec![0; expected.len()];
        map.to_rows(&payload, count, &mut back);
        assert_eq!(back, expected);
    }

    #[test]
    fn planes_are_stored_as_they_compress_best() {
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
