//! The planes key layout: keys of one length stored byte position by byte position.
//!
//! Encoding and decoding are transpositions of a byte matrix (rows = keys, columns = planes), done
//! in tiles of 8 x 8 bytes, at about a nanosecond a row. Positions that do not vary have no plane; decoding fills them from the
//! first key.

use std::cmp::Ordering;
use std::ops::Range;

use crate::format::{MODE_CONSTANT, MODE_DELTA, MODE_PLAIN, MODE_TAIL, PLANES_KEY_BYTES_MAX};

/// Bytes beyond the last key that the row buffers must have, so that a tile is loaded and stored
/// whole.
pub(crate) const ROW_SLACK: usize = 8;

/// Most tiles across a key.
const TILES_MAX: usize = PLANES_KEY_BYTES_MAX / 8;

/// Transposes an 8 x 8 matrix of bytes: byte `c` of word `r` becomes byte `r` of word `c`.
#[inline(always)]
fn transpose(w: [u64; 8]) -> [u64; 8] {
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

/// [`transpose`] with 12 instructions that interleave, instead of 72 that shift and mask.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn transpose_sse2(w: [u64; 8]) -> [u64; 8] {
    use std::arch::x86_64::{
        __m128i, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_unpackhi_epi16, _mm_unpackhi_epi32,
        _mm_unpackhi_epi64, _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
    };
    // Interleaving rows by bytes, pairs by words and fours by double
    // words leaves two columns in each register.
    let row = |r: usize| _mm_cvtsi64_si128(w[r] as i64);
    let pairs: [__m128i; 4] =
        std::array::from_fn(|i| _mm_unpacklo_epi8(row(2 * i), row(2 * i + 1)));
    let low = [_mm_unpacklo_epi16(pairs[0], pairs[1]), _mm_unpacklo_epi16(pairs[2], pairs[3])];
    let high = [_mm_unpackhi_epi16(pairs[0], pairs[1]), _mm_unpackhi_epi16(pairs[2], pairs[3])];
    let columns = [
        _mm_unpacklo_epi32(low[0], low[1]),
        _mm_unpackhi_epi32(low[0], low[1]),
        _mm_unpacklo_epi32(high[0], high[1]),
        _mm_unpackhi_epi32(high[0], high[1]),
    ];
    let word = |c: usize| {
        let two = columns[c / 2];
        let one = if c & 1 == 0 { two } else { _mm_unpackhi_epi64(two, two) };
        _mm_cvtsi128_si64(one) as u64
    };
    std::array::from_fn(word)
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

/// For each tile, which bytes differ between any two of the `count` rows of `key_len` bytes, as
/// the OR of all differences from the first row.
fn differences(rows: &[u8], key_len: usize, count: usize) -> [u64; TILES_MAX] {
    let mut differ = [0u64; TILES_MAX];
    for (tile, differ) in differ.iter_mut().enumerate().take(key_len.div_ceil(8)) {
        let first = load(rows, tile * 8);
        let mut or = 0;
        for row in 0..count {
            or |= first ^ load(rows, row * key_len + tile * 8);
        }
        // The last tile of a key reaches into the next one.
        let inside = key_len - tile * 8;
        *differ = if inside < 8 { or & ((1 << (inside * 8)) - 1) } else { or };
    }
    differ
}

/// Planes of a block being built.
#[derive(Debug, Default)]
pub(crate) struct PlaneBuilder {
    /// The planes of the varying positions, one after the other.
    planes: Vec<u8>,
}

impl PlaneBuilder {
    /// Cuts `count` rows (at least one) of `key_len` bytes (1 to [`PLANES_KEY_BYTES_MAX`]) into
    /// planes; `rows` has [`ROW_SLACK`] bytes of any content behind the last row. Appends first key
    /// and modes to `out`, then the planes to be compressed, and to `tail` those to be stored.
    ///
    /// Without `compress` all planes are stored as they are, none of them in the tail.
    pub(crate) fn encode(
        &mut self,
        rows: &[u8],
        key_len: usize,
        count: usize,
        compress: bool,
        out: &mut Vec<u8>,
        tail: &mut Vec<u8>,
    ) {
        let differ = differences(rows, key_len, count);
        self.cut(rows, key_len, count, &differ);
        out.extend_from_slice(&rows[..key_len]);
        let modes_at = out.len();
        out.resize(modes_at + key_len, MODE_CONSTANT);
        let mut planes = self.planes.chunks_exact(count);
        for position in 0..key_len {
            if differ[position / 8] >> (position % 8 * 8) & 0xff == 0 {
                continue;
            }
            let Some(plane) = planes.next() else { break };
            let mode = if compress { choose_mode(plane) } else { MODE_PLAIN };
            match mode {
                MODE_TAIL => tail.extend_from_slice(plane),
                MODE_DELTA => push_deltas(plane, out),
                _ => out.extend_from_slice(plane),
            }
            out[modes_at + position] = mode;
        }
    }

    /// Fills `planes`.
    fn cut(&mut self, rows: &[u8], key_len: usize, count: usize, differ: &[u64; TILES_MAX]) {
        self.planes.clear();
        let varying = |word: u64| (0..8).filter(|c| word >> (c * 8) & 0xff != 0).count();
        let total: usize = differ.iter().map(|&word| varying(word)).sum();
        self.planes.resize(total * count, 0);
        let mut rest = &mut self.planes[..];
        for (tile, &differ) in differ.iter().enumerate() {
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
                let at = row * key_len + tile * 8;
                let words = transpose(std::array::from_fn(|r| load(rows, at + r * key_len)));
                for (plane, &c) in columns.iter().enumerate() {
                    let at = plane * count + row;
                    here[at..at + 8].copy_from_slice(&words[c & 7].to_le_bytes());
                }
                row += 8;
            }
            for row in row..count {
                for (plane, &c) in columns.iter().enumerate() {
                    here[plane * count + row] = rows[row * key_len + tile * 8 + c];
                }
            }
        }
    }
}

/// Rows looked at to choose a mode.
const SAMPLE_ROWS: usize = 128;

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

/// Where the planes of a payload lie.
#[derive(Debug, Clone)]
pub(crate) struct PlaneMap {
    /// For each key position, where its plane begins in the payload; [`NO_PLANE`] if constant.
    plane_at: Box<[u32]>,
    /// The planes that hold differences.
    pub(crate) deltas: Vec<Range<usize>>,
}

/// Marks a constant position.
const NO_PLANE: u32 = u32::MAX;

impl PlaneMap {
    /// Lays the planes of `modes` out from `head` and, those in the tail, from `tail`. `None` if
    /// they do not fill both areas exactly.
    pub(crate) fn new(
        modes: &[u8],
        count: usize,
        head: Range<usize>,
        tail: Range<usize>,
    ) -> Option<Self> {
        let (mut head_at, mut tail_at) = (head.start, tail.start);
        let mut deltas = Vec::new();
        let mut plane_at = Vec::with_capacity(modes.len());
        for &mode in modes {
            let at = match mode {
                MODE_CONSTANT => {
                    plane_at.push(NO_PLANE);
                    continue;
                }
                MODE_PLAIN | MODE_DELTA => &mut head_at,
                MODE_TAIL => &mut tail_at,
                _ => return None,
            };
            let end = at.checked_add(count)?;
            if mode == MODE_DELTA {
                deltas.push(*at..end);
            }
            plane_at.push(u32::try_from(*at).ok()?);
            *at = end;
        }
        let filled = head_at == head.end && tail_at == tail.end;
        filled.then(|| Self { plane_at: plane_at.into(), deltas })
    }

    /// Memory it takes, bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.plane_at)
    }
}

/// A verified key area in planes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planes<'a> {
    /// The first key.
    pub(crate) first_key: &'a [u8],
    /// Where the planes lie.
    pub(crate) map: &'a PlaneMap,
    /// The payload, in which they lie.
    pub(crate) payload: &'a [u8],
    /// Number of keys.
    pub(crate) count: usize,
}

impl Planes<'_> {
    /// Replaces `out` by key `row`.
    pub(crate) fn key_into(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.first_key);
        for (byte, &at) in out.iter_mut().zip(&self.map.plane_at) {
            if at != NO_PLANE {
                *byte = self.payload[at as usize + row];
            }
        }
    }

    /// The rows with keys not below `key` begin at the first number, those with keys above it at
    /// the second.
    pub(crate) fn equal_range(&self, key: &[u8]) -> (usize, usize) {
        let (mut lo, mut hi) = (0, self.count);
        // Rows lo..hi agree with `key` up to the position, so the plane is sorted among them.
        for (position, &at) in self.map.plane_at.iter().enumerate() {
            let Some(&byte) = key.get(position) else {
                return (lo, lo);
            };
            if at == NO_PLANE {
                match self.first_key[position].cmp(&byte) {
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
        if key.len() > self.first_key.len() { (hi, hi) } else { (lo, hi) }
    }

    /// Writes keys `start..end` as rows into `keys` and their 8-byte prefixes into `prefixes`
    /// (both are replaced; `keys` gets [`ROW_SLACK`] bytes of slack behind the last row).
    pub(crate) fn rows(
        &self,
        start: usize,
        end: usize,
        prefixes: &mut Vec<u64>,
        keys: &mut Vec<u8>,
    ) {
        let count = end - start;
        prefixes.resize(count, 0);
        keys.resize(count * self.first_key.len() + ROW_SLACK, 0);
        let rows = start..end;
        // The number of tiles as a constant, so that all words of eight rows are in registers.
        match self.first_key.len().div_ceil(8) {
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
        let key_len = self.first_key.len();
        let tiles: [Tile; TILES] = std::array::from_fn(|tile| Tile::new(self, tile));
        let prefix_mask = if key_len < 8 { (1u64 << (key_len * 8)) - 1 } else { u64::MAX };
        for (eight, prefixes) in prefixes.chunks_mut(8).enumerate() {
            let row = rows.start + eight * 8;
            let words: [[u64; 8]; TILES] =
                std::array::from_fn(|tile| tiles[tile].rows(self.payload, row, rows.end));
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

/// Eight neighbouring key positions.
#[derive(Clone, Copy)]
struct Tile {
    /// Each position's byte in the first key, eight times.
    constant: [u64; 8],
    /// Where each position's plane begins; [`NO_PLANE`] if constant.
    plane_at: [u32; 8],
    /// Whether any position varies.
    varies: bool,
}

impl Tile {
    fn new(planes: &Planes<'_>, tile: usize) -> Self {
        let byte = |c: usize| planes.first_key.get(tile * 8 + c).copied().unwrap_or(0);
        let plane_at: [u32; 8] = std::array::from_fn(|c| {
            planes.map.plane_at.get(tile * 8 + c).copied().unwrap_or(NO_PLANE)
        });
        Self {
            constant: std::array::from_fn(|c| u64::from_le_bytes([byte(c); 8])),
            plane_at,
            varies: plane_at.iter().any(|&at| at != NO_PLANE),
        }
    }

    /// The tile of eight rows from `row`; those from `end` on are arbitrary.
    #[inline(always)]
    fn rows(&self, payload: &[u8], row: usize, end: usize) -> [u64; 8] {
        let columns = std::array::from_fn(|c| match self.plane_at[c] {
            NO_PLANE => self.constant[c],
            at => {
                let at = at as usize + row;
                match payload.get(at..at + 8) {
                    Some(bytes) => load(bytes, 0),
                    None => last_rows(&payload[at..], end - row),
                }
            }
        });
        // A constant tile's columns are rows of equal bytes, to be transposed like any other.
        if self.varies { transpose(columns) } else { self.constant_rows() }
    }

    fn constant_rows(&self) -> [u64; 8] {
        let first: [u8; 8] = std::array::from_fn(|c| self.constant[c] as u8);
        [u64::from_le_bytes(first); 8]
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
    fn keys_of_every_length_and_count_come_back() {
        for key_len in 1..=PLANES_KEY_BYTES_MAX {
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
        builder.encode(rows, key_len, count, compress, &mut payload, &mut tail);
        let head = 2 * key_len..payload.len();
        payload.extend_from_slice(&tail);
        let modes = &payload[key_len..2 * key_len];
        let tail = head.end..payload.len();
        let map = PlaneMap::new(modes, count, head, tail).unwrap();
        for plane in &map.deltas {
            add_up(&mut payload[plane.clone()]);
        }
        let planes = Planes { first_key: &payload[..key_len], map: &map, payload: &payload, count };
        let (mut prefixes, mut keys, mut key) = (Vec::new(), Vec::new(), Vec::new());
        for start in 0..count {
            planes.rows(start, count, &mut prefixes, &mut keys);
            assert_eq!(keys[..keys.len() - ROW_SLACK], expected[start * key_len..]);
            let row = &expected[start * key_len..][..key_len];
            assert_eq!(prefixes[0], frondb_core::chunk::key_prefix(row));
            planes.key_into(start, &mut key);
            assert_eq!(key, row);
            assert_eq!(planes.equal_range(row), (start, start + 1));
        }
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
