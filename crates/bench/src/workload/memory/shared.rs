//! Parts that all cases share: the bound on memory, the keys, and the peak memory of each part of
//! the engine.

use frondb::Db;

/// Largest resident memory above the empty process, without the allowance of connections, as a
/// multiple of the memory option.
pub(super) const RATIO_MAX: f64 = 1.15;

pub(super) const MIB: f64 = 1_048_576.0;

pub(super) const BATCH_ROWS: u64 = 1000;

/// Returns the peak memory of each part of the engine, as a line of text.
pub(super) fn account(db: &Db) -> String {
    let parts = db.memory_parts().into_iter().filter(|(_, _, peak)| *peak > 0);
    let parts: Vec<String> =
        parts.map(|(name, _, peak)| format!("{name} {:.1}", peak as f64 / MIB)).collect();
    format!("peaks, MiB: {}", parts.join(", "))
}

/// Returns the key of a row. Rows in sequence have keys in random order, so that every memtable
/// covers the whole key range.
pub(super) fn key(row: u64, seed: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(row ^ seed).to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

/// Maps numbers to numbers, no two to the same (the finalizer of splitmix64).
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
