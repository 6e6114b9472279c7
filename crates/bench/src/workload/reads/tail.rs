//! The number of entries that a scan must find. A scan finds fewer entries than its limit only if
//! it begins near the end of the tree.

use crate::rows::TableRow;

/// Number of rows in the sample. All of them were acknowledged, so a scan that begins at or before
/// the key of one must find that row. In a table with more rows than the sample, the bound of a
/// scan near the end of the tree is too low, because other rows are there too. All other bounds are
/// exact.
const SAMPLE_ROWS: u64 = 100_000;

/// The last keys of a secondary tree, as the eight bytes with which a scan begins.
pub(super) struct Tail {
    /// Sorted; as many as the limit of a scan, fewer if there are fewer rows.
    last: Vec<[u8; 8]>,
}

impl Tail {
    /// Computes the last `limit` keys of the sample of a table with `rows` rows.
    pub(super) fn new(seed: u64, rows: u64, limit: u64, key: fn(&TableRow) -> [u8; 8]) -> Self {
        let sample = rows.min(SAMPLE_ROWS);
        let mut keys: Vec<_> = (0..sample).map(|id| key(&TableRow::new(seed, id, 0))).collect();
        keys.sort_unstable();
        let surplus = keys.len().saturating_sub(limit as usize);
        Self { last: keys.split_off(surplus) }
    }

    /// Returns the least number of entries that a scan from `from` finds.
    pub(super) fn least(&self, from: &[u8; 8]) -> u64 {
        (self.last.len() - self.last.partition_point(|key| key < from)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_scan_near_the_end_may_find_fewer_entries() {
        let keys = |rows: u64| {
            let key = |id| TableRow::new(3, id, 0).price_customer();
            let mut keys: Vec<_> = (0..rows).map(key).collect();
            keys.sort_unstable();
            keys
        };
        let (all, tail) = (keys(500), Tail::new(3, 500, 10, TableRow::price_customer));
        assert_eq!(tail.least(&[0; 8]), 10);
        for (place, key) in all.iter().enumerate() {
            assert_eq!(tail.least(key), 10.min(500 - place as u64), "{place}");
        }
        assert_eq!(tail.least(&[0xFF; 8]), 0);
        assert_eq!(Tail::new(3, 4, 10, TableRow::price_customer).least(&[0; 8]), 4);
    }
}
