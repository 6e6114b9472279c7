//! What all cases share: the bound on their memory, their keys, and an account of where the memory
//! went.

use frondb::Db;

/// Resident memory above the empty process, less what connections are allowed, may be this many
/// times the memory option.
pub(super) const RATIO_MAX: f64 = 1.15;

/// Bytes of a MiB.
pub(super) const MIB: f64 = 1_048_576.0;

pub(super) const BATCH_ROWS: u64 = 1000;

/// The peak of each part of the engine's memory, as a line of text.
pub(super) fn account(db: &Db) -> String {
    let parts = db.memory_parts().into_iter().filter(|(_, _, peak)| *peak > 0);
    let parts: Vec<String> =
        parts.map(|(name, _, peak)| format!("{name} {:.1}", peak as f64 / MIB)).collect();
    format!("peaks, MiB: {}", parts.join(", "))
}

/// The key of a row. Keys are in random order, so that every memtable and every leaf gets some.
pub(super) fn key(row: u64, seed: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(row ^ seed).to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

/// A permutation of the numbers.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_keys_of_their_own_in_no_order() {
        let mut keys: Vec<_> = (0..10_000).map(|row| key(row, 7)).collect();
        assert!(!keys.is_sorted());
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 10_000);
    }
}
