//! How many entries and bytes a key range holds, estimated in O(height).
//!
//! # Counts and samples
//! Counts are cheap (`counts.rs`): the totals of nodes, the block indexes at the ends of the range
//! and the ranks in memtables give the puts `P` and the deletes `D` of the range. Updates count as
//! puts. Counts cannot tell how many puts a newer message of the same key makes obsolete, nor how
//! many deletes remove a put: a delete of an absent key looks like any other. So the estimate is
//!
//! ```text
//!   entries = P * (1 - o) - D * h        o: share of puts that a newer put overwrites
//!                                        h: share of deletes that remove a put
//! ```
//!
//! `o` and `h` come from samples at the ends of the range and in strata of its messages
//! (`sample.rs`). A sample reads a block of each source. If the samples differ much, for example
//! because one end of the range is deleted, further samples locate the change (`strata.rs`).
//!
//! Two cases need no samples. If the counts alone bound the result closely, as in a tree that has
//! been merged, the estimate reads no data. And the entries of a short range, which an optimizer
//! estimates before each of many short queries, are counted one by one (`short.rs`).
//!
//! Range deletes in memtables remove the messages of older sources in their ranges. Of the messages
//! in its own memtable, a range delete removes those that were inserted earlier; their share is
//! estimated from SeqNos. The effect of range deletes in nodes shows only in the samples.
//!
//! # Error
//! The estimate is within a factor of two if keys are written in the same way across the range, or
//! in one way up to some key and in another way after that key. There is no bound if a small part
//! in the middle is overwritten or deleted in quite another way than the rest.

use frondb_core::{Result, SeqNo};

use crate::estimate::counts::{Counts, count};
use crate::estimate::key_range::Range;
use crate::estimate::short::{COUNTED_KEYS_MAX, count_short};
use crate::estimate::strata::{StrataSample, sample_strata};
use crate::version::Version;

/// The estimated content of a key range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RangeEstimate {
    /// Entries: keys that have a value.
    pub entries: u64,
    /// Bytes on disk, obsolete messages included, plus the bytes that the range's messages in
    /// memory will take on disk.
    pub disk_bytes: u64,
}

/// Estimates the entries and bytes of `[lo, hi)` at `snapshot`, which must not be older than the
/// version.
///
/// # Errors
/// `Corruption` or a device error of a run.
pub fn estimate(
    version: &Version,
    snapshot: SeqNo,
    lo: &[u8],
    hi: Option<&[u8]>,
) -> Result<RangeEstimate> {
    if hi.is_some_and(|hi| hi <= lo) {
        return Ok(RangeEstimate::default());
    }
    let range = Range::new(lo, hi);
    let counts = count(version, &range)?;
    let entries = match counts.live() {
        Some(live) => live,
        None => match count_short(version, snapshot, lo, hi, COUNTED_KEYS_MAX)? {
            Some(count) => count,
            None => sampled(version, snapshot, &range, counts)?,
        },
    };
    Ok(RangeEstimate { entries, disk_bytes: counts.disk_bytes })
}

/// Estimates the entries of a range from its counts, corrected by samples.
fn sampled(version: &Version, snapshot: SeqNo, range: &Range, counts: Counts) -> Result<u64> {
    let sample = match sample_strata(version, snapshot, range)? {
        StrataSample::Entries(entries) => return Ok(entries),
        StrataSample::Alike(sample) => sample,
    };
    Ok(if sample.is_empty() && counts.has_range_deletes {
        // A sample has no source for a run that a range delete hides completely.
        0
    } else if counts.is_rough {
        let deletes = sample.deletes_of(counts.messages);
        sample.live(counts.messages - deletes, deletes)
    } else {
        sample.live(counts.messages.saturating_sub(counts.deletes), counts.deletes)
    })
}
