//! How many entries and bytes a key range holds, estimated in O(height) from the trunk's totals
//! and the block indexes of the leaves at its ends.

use frondb_core::Result;
use frondb_trunk::Node;

use crate::tree::{TreeCore, Version};

/// An estimate of what a key range holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RangeEstimate {
    /// Entries: messages less those known to be garbage.
    pub entries: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
}

/// Range deletes of memtables that an estimate looks at; more are taken for nothing.
const RANGE_DELETES_MAX: usize = 256;

/// Estimates `[lo, hi)`.
pub(crate) fn estimate(tree: &TreeCore, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeEstimate> {
    let version = tree.version();
    let mut sum = count(&version, lo, hi)?;
    // What range deletes hide that did not reach the trunk yet. Later puts into their ranges are
    // taken for hidden too: this is an estimate.
    for (lo, hi) in hidden_ranges(&version, lo, hi) {
        let hidden = count(&version, &lo, hi.as_deref())?;
        sum.entries = sum.entries.saturating_sub(hidden.entries);
        sum.deletes = sum.deletes.saturating_sub(hidden.deletes);
    }
    // A delete takes itself and the entry it meets away.
    let entries = sum.entries.saturating_sub(sum.deletes * 2);
    Ok(RangeEstimate { entries, disk_bytes: sum.disk_bytes })
}

fn count(version: &Version, lo: &[u8], hi: Option<&[u8]>) -> Result<Sum> {
    let mut sum = Sum::default();
    add(&version.trunk.root, lo, hi, &mut sum)?;
    for memtable in version.memtables() {
        let below = |key: &[u8]| memtable.approximate_rank(key);
        let end = hi.map_or_else(|| memtable.len(), below);
        let messages = end.saturating_sub(below(lo));
        sum.entries += messages;
        sum.deletes += share(memtable.deletes(), messages, memtable.len());
    }
    Ok(sum)
}

type KeyRange = (Vec<u8>, Option<Vec<u8>>);

/// The memtables' range deletes within `[lo, hi)`, as disjoint ranges.
fn hidden_ranges(version: &Version, lo: &[u8], hi: Option<&[u8]>) -> Vec<KeyRange> {
    let mut ranges: Vec<KeyRange> = Vec::new();
    for memtable in version.memtables() {
        for rd in memtable.range_deletes().clip(lo, hi).iter().take(RANGE_DELETES_MAX) {
            ranges.push((rd.lo.to_vec(), rd.hi.as_ref().map(|hi| hi.to_vec())));
        }
    }
    ranges.sort();
    let mut disjoint: Vec<KeyRange> = Vec::new();
    for (lo, hi) in ranges {
        match disjoint.last_mut() {
            Some((_, None)) => break,
            Some((_, Some(end))) if lo <= *end => match hi {
                Some(hi) if hi <= *end => {}
                Some(hi) => *end = hi,
                None => {
                    if let Some(last) = disjoint.last_mut() {
                        last.1 = None;
                    }
                }
            },
            _ => disjoint.push((lo, hi)),
        }
    }
    disjoint
}

#[derive(Default)]
struct Sum {
    entries: u64,
    deletes: u64,
    disk_bytes: u64,
}

fn add(node: &Node, lo: &[u8], hi: Option<&[u8]>, sum: &mut Sum) -> Result<()> {
    let outside =
        hi.is_some_and(|hi| *hi <= *node.lo) || node.hi.as_ref().is_some_and(|end| **end <= *lo);
    if outside {
        return Ok(());
    }
    let whole = *lo <= *node.lo
        && match (hi, &node.hi) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(hi), Some(end)) => **end <= *hi,
        };
    if whole {
        sum.entries += node.totals.entries;
        sum.deletes += node.totals.deletes;
        sum.disk_bytes += node.totals.disk_bytes;
        return Ok(());
    }
    for view in node.views() {
        let meta = view.run.meta();
        let from = if *view.lo > *lo { &*view.lo } else { lo };
        let to = match (hi, view.hi.as_deref()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let end = to.map_or(Ok(meta.entries), |to| view.run.rank(to))?;
        let entries = end.saturating_sub(view.run.rank(from)?);
        sum.entries += entries;
        sum.deletes += share(meta.deletes, entries, meta.entries);
        sum.disk_bytes += share(meta.disk_bytes(), entries, meta.entries);
    }
    for child in node.children() {
        add(child, lo, hi, sum)?;
    }
    Ok(())
}

fn share(whole: u64, part: u64, of: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(of.max(1))) as u64
}
