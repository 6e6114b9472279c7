//! Rows of the workload: a key of 16 random bytes, and a value of random letters, 4 bits of
//! information each.

use frondb_core::prng::Prng;

pub(in crate::workload) const KEY_BYTES: usize = 16;

/// Fewest and most bytes of a value in the large transaction and in the bulk load.
pub(in crate::workload) const VALUE_BYTES: (usize, usize) = (30, 100);

/// Generates the rows of a seed one after the other. The key is a function of seed and number, so
/// that reads can compute it.
pub(in crate::workload) struct Rows {
    seed: u64,
    next: u64,
    prng: Prng,
    /// Fewest and most bytes of a value.
    bytes: (usize, usize),
    value: Vec<u8>,
}

impl Rows {
    /// Begins at row 0, with values of `least` to `most` bytes.
    pub(in crate::workload) fn new(seed: u64, least: usize, most: usize) -> Self {
        let prng = Prng::new(seed ^ 0x0A11_7E57_ED0F_0001);
        Self { seed, next: 0, prng, bytes: (least, most), value: vec![0; most.next_multiple_of(8)] }
    }

    /// Generates the next row.
    pub(in crate::workload) fn next(&mut self) -> ([u8; KEY_BYTES], &[u8]) {
        let key = key(self.seed, self.next);
        self.next += 1;
        (key, self.value())
    }

    /// Generates a value without a key.
    pub(in crate::workload) fn value(&mut self) -> &[u8] {
        let (least, most) = self.bytes;
        let bytes = if least == most { least } else { least + self.prng.index(most - least + 1) };
        // Every figure includes the cost of generating rows, so this code makes eight letters at a
        // time.
        for word in self.value[..bytes.next_multiple_of(8)].as_chunks_mut().0 {
            let letters = (self.prng.next_u64() & 0x0F0F_0F0F_0F0F_0F0F) + 0x6161_6161_6161_6161;
            *word = letters.to_le_bytes();
        }
        &self.value[..bytes]
    }
}

/// Computes the key of row `number`.
pub(in crate::workload) fn key(seed: u64, number: u64) -> [u8; KEY_BYTES] {
    let (high, low) = (scramble(number ^ seed.rotate_left(32)), scramble(!number));
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&high.to_be_bytes());
    key[8..].copy_from_slice(&low.to_be_bytes());
    key
}

/// Spreads numbers evenly and maps no two to the same (one step of splitmix64).
fn scramble(n: u64) -> u64 {
    let z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_again_and_keep_their_sizes() {
        let (mut a, mut b) = (Rows::new(7, 30, 100), Rows::new(7, 30, 100));
        let mut sizes = Vec::new();
        for n in 0..1_000 {
            let (key_of_a, value) = a.next();
            assert_eq!((key_of_a, value), b.next());
            assert_eq!(key_of_a, key(7, n));
            sizes.push(value.len());
        }
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&30), Some(&100)));
        assert_ne!(key(7, 1), key(8, 1));
    }
}
