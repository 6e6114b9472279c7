//! Amortised merges of a leaf's runs: due when reading the runs has cost as much as the merge.
//!
//! Each run above the base costs each scan of the leaf a cursor, and each lookup a filter probe. If
//! the same rows of a leaf are updated again and again, the leaf gets one small run after another.
//! The runs never reach the size of the base, and merging them costs far less than a rewrite. So
//! the debt for such a merge is counted separately from the debt for the rewrite.

use frondb_core::RunId;

use super::thresholds::SCAN_DEBT_FACTOR;

/// The fixed cost of a merge, in merged bytes: a merge writes a run and an edit of the manifest,
/// and syncs both.
const MERGE_BYTES_FIXED: u64 = 64 * 1024;

/// Divisor: an amortised merge reads at most 1/8 of the leaf. Larger runs wait for an amortised
/// rewrite, which removes all of them, because doing both would take twice the work.
const LEAF_PART: u64 = 8;

/// A merge of the newest runs of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReaderMerge {
    /// Number of the newest runs to merge.
    pub(crate) runs: usize,
    /// The run debt at which the merge is due, in bytes.
    pub(crate) due: u64,
}

/// Returns the amortised merge that is due first: the merge that costs least per removed run.
/// `sizes` are the runs of a leaf of `leaf_bytes` with their bytes, newest first. The merge reads
/// at most `most` of them, unless views of one run have to be merged together (rule 1). `None` if
/// there is nothing to merge.
pub(crate) fn merge_for_readers(
    sizes: impl ExactSizeIterator<Item = (RunId, u64)> + Clone,
    leaf_bytes: u64,
    most: usize,
) -> Option<ReaderMerge> {
    let removable = sizes.len().checked_sub(1).filter(|runs| *runs > 0)?;
    let mut next = sizes.clone().map(|(id, _)| id).skip(1);
    let (mut bytes, mut best) = (0u64, None::<ReaderMerge>);
    for (at, (id, size)) in sizes.enumerate() {
        bytes += size;
        if bytes > leaf_bytes / LEAF_PART {
            break;
        }
        let is_whole = next.next() != Some(id);
        if at == 0 || !is_whole {
            continue;
        }
        // Only the part of the debt that is due to the removed runs would have been saved.
        let cost = (bytes + MERGE_BYTES_FIXED) * SCAN_DEBT_FACTOR;
        let due = u128::from(cost) * removable as u128 / at as u128;
        let due = due.min(u128::from(u64::MAX - 1)) as u64 + 1;
        if best.is_none_or(|best| due < best.due && at < most) {
            best = Some(ReaderMerge { runs: at + 1, due });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes, `leaf` and the returned debt are in units of the fixed cost of a merge.
    fn merge_in(leaf: u64, sizes: &[(u64, u64)], most: usize) -> Option<(usize, u64)> {
        let sizes = sizes.iter().map(|&(id, size)| (RunId(id), size * MERGE_BYTES_FIXED));
        let merge = merge_for_readers(sizes, leaf * MERGE_BYTES_FIXED, most)?;
        Some((merge.runs, (merge.due - 1) / MERGE_BYTES_FIXED))
    }

    fn merge(sizes: &[(u64, u64)], most: usize) -> Option<(usize, u64)> {
        merge_in(1_000_000, sizes, most)
    }

    #[test]
    fn the_merge_is_the_cheapest_for_each_run_that_it_removes() {
        assert_eq!(merge(&[], 9), None);
        assert_eq!(merge(&[(1, 100)], 9), None);
        assert_eq!(merge(&[(2, 100), (1, 99)], 9), Some((2, 800)));
        assert_eq!(merge(&[(4, 100), (3, 100), (2, 100), (1, 99)], 9), Some((4, 1600)));
        // The old run is large, so a merge that includes it is due only at a larger debt.
        assert_eq!(merge(&[(3, 100), (2, 99), (1, 9000)], 9), Some((2, 1600)));
        assert_eq!(merge(&[(2, 0), (1, 0)], 9), Some((2, 4)), "the smallest merge costs something");
    }

    #[test]
    fn a_merge_for_readers_takes_at_most_the_allowed_runs_and_all_views_of_a_run() {
        assert_eq!(merge(&[(4, 100), (3, 100), (2, 99), (1, 100)], 3), Some((3, 1800)));
        assert_eq!(merge(&[(3, 100), (2, 100), (2, 99), (1, 900)], 9), Some((3, 1800)));
        assert_eq!(merge(&[(2, 100), (2, 99)], 9), Some((2, 800)));
    }

    #[test]
    fn a_merge_for_readers_takes_a_small_part_of_the_leaf() {
        assert_eq!(merge_in(1600, &[(2, 100), (1, 99)], 9), Some((2, 800)));
        assert_eq!(merge_in(1600, &[(2, 100), (1, 101)], 9), None);
        assert_eq!(merge_in(1600, &[(3, 100), (2, 99), (1, 100)], 9), Some((2, 1600)));
    }
}
