//! The planes key layout: keys of one length stored byte position by byte position.
//!
//! Encoding and decoding are transpositions of a byte matrix (rows = keys, columns = planes), done
//! in tiles of 8 x 8 bytes with shifts and masks on `u64`, which any 64-bit machine does at about
//! a nanosecond a row. Positions that do not vary have no plane; decoding fills them from the
//! first key.

use crate::format::PLANES_KEY_BYTES_MAX;

/// Bytes beyond the last key that the row buffers must have, so that a tile is loaded and stored
/// whole.
pub(crate) const ROW_SLACK: usize = 8;

/// Most tiles across a key.
const TILES_MAX: usize = PLANES_KEY_BYTES_MAX / 8;

/// Transposes an 8 x 8 matrix of bytes: byte `c` of word `r` becomes byte `r` of word `c`.
#[inline(always)]
pub(crate) fn transpose(mut w: [u64; 8]) -> [u64; 8] {
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

/// Appends first key, varying marks and planes of `count` rows (at least one) of `key_len` bytes
/// (1 to [`PLANES_KEY_BYTES_MAX`]), and returns the bytes of the planes. `rows` has [`ROW_SLACK`]
/// bytes of any content behind the last row.
pub(crate) fn encode(rows: &[u8], key_len: usize, count: usize, out: &mut Vec<u8>) -> usize {
    let differ = differences(rows, key_len, count);
    out.extend_from_slice(&rows[..key_len]);
    // Offset of each position's plane behind the first one; only those of varying ones are used.
    let mut plane_at = [0usize; PLANES_KEY_BYTES_MAX];
    let mut planes = 0;
    for position in 0..key_len {
        let varies = differ[position / 8] >> (position % 8 * 8) & 0xff != 0;
        out.push(u8::from(varies));
        plane_at[position] = planes * count;
        planes += usize::from(varies);
    }
    let start = out.len();
    out.resize(start + planes * count, 0);
    let area = &mut out[start..];
    for tile in 0..key_len.div_ceil(8) {
        if differ[tile] == 0 {
            continue;
        }
        for row in (0..count).step_by(8) {
            let rows_left = (count - row).min(8);
            let mut words = [0; 8];
            for (r, word) in words.iter_mut().enumerate().take(rows_left) {
                *word = load(rows, (row + r) * key_len + tile * 8);
            }
            for (c, column) in transpose(words).into_iter().enumerate() {
                if differ[tile] >> (c * 8) & 0xff != 0 {
                    let at = plane_at[tile * 8 + c] + row;
                    area[at..at + rows_left].copy_from_slice(&column.to_le_bytes()[..rows_left]);
                }
            }
        }
    }
    planes * count
}

/// A verified key area in planes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planes<'a> {
    /// `key_len` bytes.
    pub(crate) first_key: &'a [u8],
    /// `key_len` bytes, 1 where a plane exists.
    pub(crate) varying: &'a [u8],
    /// The planes, `count` bytes each.
    pub(crate) area: &'a [u8],
    /// Number of keys.
    pub(crate) count: usize,
}

impl Planes<'_> {
    /// Replaces `out` by key `row`.
    pub(crate) fn key_into(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.first_key);
        let mut at = row;
        for (byte, &varies) in out.iter_mut().zip(self.varying) {
            if varies != 0 {
                *byte = self.area[at];
                at += self.count;
            }
        }
    }

    /// The rows with keys not below `key` begin at the first number, those with keys above it at
    /// the second.
    pub(crate) fn equal_range(&self, key: &[u8]) -> (usize, usize) {
        let (mut lo, mut hi) = (0, self.count);
        let mut plane = 0;
        // Rows lo..hi agree with `key` up to the position, so the plane is sorted among them.
        for (position, &varies) in self.varying.iter().enumerate() {
            let Some(&byte) = key.get(position) else {
                return (lo, lo);
            };
            if varies == 0 {
                match self.first_key[position].cmp(&byte) {
                    std::cmp::Ordering::Less => return (hi, hi),
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Greater => return (lo, lo),
                }
                continue;
            }
            let bytes = &self.area[plane * self.count + lo..plane * self.count + hi];
            plane += 1;
            let above = lo + bytes.partition_point(|&b| b <= byte);
            lo += bytes.partition_point(|&b| b < byte);
            hi = above;
            if lo >= hi {
                return (lo, lo);
            }
        }
        if key.len() > self.varying.len() { (hi, hi) } else { (lo, hi) }
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
        let key_len = self.first_key.len();
        let count = end - start;
        prefixes.resize(count, 0);
        keys.resize(count * key_len + ROW_SLACK, 0);
        let tiles = self.tiles();
        let tiles = &tiles[..key_len.div_ceil(8)];
        let prefix_mask = if key_len < 8 { (1u64 << (key_len * 8)) - 1 } else { u64::MAX };
        let mut row = 0;
        while row < count {
            let rows_here = (count - row).min(8);
            let mut words = [[0u64; 8]; TILES_MAX];
            for (tile, words) in tiles.iter().zip(&mut words) {
                *words = if tile.varying == 0 {
                    [tile.first; 8]
                } else {
                    transpose(self.columns(tile, start + row, rows_here))
                };
            }
            for r in 0..rows_here {
                prefixes[row + r] = (words[0][r] & prefix_mask).swap_bytes();
                let mut at = (row + r) * key_len;
                // In order: what a short last tile writes too much, the next row overwrites.
                for words in words.iter().take(tiles.len()) {
                    keys[at..at + 8].copy_from_slice(&words[r].to_le_bytes());
                    at += 8;
                }
            }
            row += rows_here;
        }
        keys.truncate(count * key_len + ROW_SLACK);
    }

    /// The eight columns of a tile for eight rows, rows beyond the last as zeros.
    #[inline(always)]
    fn columns(&self, tile: &Tile, row: usize, rows: usize) -> [u64; 8] {
        let mut words = [0; 8];
        let mut plane_at = tile.plane * self.count + row;
        for (c, word) in words.iter_mut().enumerate() {
            if tile.varying >> c & 1 == 0 {
                *word = u64::from(tile.first.to_le_bytes()[c]) * 0x0101_0101_0101_0101;
                continue;
            }
            *word = match self.area.get(plane_at..plane_at + 8) {
                Some(bytes) => load(bytes, 0),
                None => {
                    let mut padded = [0; 8];
                    padded[..rows].copy_from_slice(&self.area[plane_at..plane_at + rows]);
                    u64::from_le_bytes(padded)
                }
            };
            plane_at += self.count;
        }
        words
    }

    fn tiles(&self) -> [Tile; TILES_MAX] {
        let mut tiles = [Tile::default(); TILES_MAX];
        let mut plane = 0;
        let chunks = self.first_key.chunks(8).zip(self.varying.chunks(8));
        for (tile, (first, varying)) in tiles.iter_mut().zip(chunks) {
            let mut padded = [0; 8];
            padded[..first.len()].copy_from_slice(first);
            tile.first = u64::from_le_bytes(padded);
            tile.plane = plane;
            for (c, &varies) in varying.iter().enumerate() {
                tile.varying |= (varies & 1) << c;
                plane += usize::from(varies & 1);
            }
        }
        tiles
    }
}

/// Eight neighbouring key positions.
#[derive(Clone, Copy, Default)]
struct Tile {
    /// Their bytes in the first key.
    first: u64,
    /// Bit `c`: position `c` of the tile has a plane.
    varying: u8,
    /// Planes before the tile's first.
    plane: usize,
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
        for (c, word) in transpose(words).into_iter().enumerate() {
            assert_eq!(word.to_le_bytes(), std::array::from_fn(|r| (r * 8 + c) as u8));
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
                let mut out = Vec::new();
                let bytes = encode(&rows, key_len, count, &mut out);
                let planes = Planes {
                    first_key: &out[..key_len],
                    varying: &out[key_len..2 * key_len],
                    area: &out[2 * key_len..],
                    count,
                };
                assert_eq!(planes.area.len(), bytes);
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
        }
    }
}
