//! [`KeySpace`]: numbers for the keys between two keys, for a binary search for a position.

use frondb_core::Result;

/// Maximum number of halvings: one for each bit of a number.
const HALVINGS: usize = 128;

/// Numbers for the keys between a first and a last key: the number of a key is its sixteen bytes
/// after the prefix that the first and the last key share.
pub(super) struct KeySpace {
    prefix: Vec<u8>,
    /// The number of the first key.
    pub(super) from: u128,
    to: u128,
}

impl KeySpace {
    pub(super) fn between(first: &[u8], last: &[u8]) -> Self {
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let number = |key: &[u8]| {
            let mut bytes = [0; 16];
            let rest = &key[common..];
            let n = rest.len().min(16);
            bytes[..n].copy_from_slice(&rest[..n]);
            u128::from_be_bytes(bytes)
        };
        Self { prefix: first[..common].to_vec(), from: number(first), to: number(last) }
    }

    pub(super) fn key(&self, number: u128) -> Vec<u8> {
        [&self.prefix[..], &number.to_be_bytes()].concat()
    }

    /// Searches from the number `lowest` on for a key with `wanted` messages below it, up to `near`
    /// more or fewer. `below` counts the messages below a key. Returns two numbers: the largest
    /// number tried whose key has fewer than `wanted` messages below it (`lowest` without one), and
    /// the number of the key found.
    pub(super) fn find(
        &self,
        lowest: u128,
        wanted: u64,
        near: u64,
        below: impl Fn(Vec<u8>) -> Result<u64>,
    ) -> Result<(u128, u128)> {
        let (mut from, mut to) = (lowest, self.to);
        for _ in 0..HALVINGS {
            if to.saturating_sub(from) <= 1 {
                break;
            }
            let middle = u128::midpoint(from, to);
            let found = below(self.key(middle))?;
            if found < wanted {
                from = middle
            } else {
                to = middle
            }
            if found.abs_diff(wanted) <= near {
                to = middle;
                break;
            }
        }
        Ok((from, to))
    }
}
