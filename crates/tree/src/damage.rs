//! Finds the key ranges of a tree that salvage must discard, because a block or a large value
//! cannot be read.
//!
//! A damaged block may have held a newer message of any key in its range, so an older entry in
//! another run may be obsolete. The whole range is lost, also if other runs have entries there. A
//! damaged large value loses only its key.

use frondb_core::sync::Arc;
use frondb_core::{Error, Result};
use frondb_trunk::View;

use crate::context::ReadContext;
use crate::tree::TreeCore;
use crate::value::check_value;
use crate::verify::{references_in_memory, runs_of};

/// A key range of a tree that is lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DamagedRange {
    /// The first key of the range.
    pub lo: Vec<u8>,
    /// The first key after the range; `None` for a range that ends with the tree.
    pub hi: Option<Vec<u8>>,
    /// Why the range is lost, and where the damage is.
    pub error: Error,
}

impl DamagedRange {
    /// Returns the range of all keys of a tree.
    #[must_use]
    pub fn whole(error: Error) -> Self {
        Self { lo: Vec::new(), hi: None, error }
    }

    /// Returns the range `[lo, hi)`.
    #[must_use]
    pub fn from(lo: Vec<u8>, hi: Option<Vec<u8>>, error: Error) -> Self {
        Self { lo, hi, error }
    }
}

/// Reads all of a tree and returns the damaged ranges in the order of their first keys; they may
/// overlap. Calls `progress` with the bytes of runs read so far, and the bytes of all runs.
///
/// # Errors
/// `Closed`; `NotFound` if the tree was dropped or is still being loaded; `Invalid` for a tree of
/// another database.
pub fn damaged_ranges(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<DamagedRange>> {
    tree.check(context.engine)?;
    context.health.while_open(|| {
        let version = tree.version();
        let runs = runs_of(&version);
        let total = runs.values().map(|(run, _)| run.meta().disk_bytes()).sum();
        let (mut ranges, mut done) = (Vec::new(), 0);
        for (run, views) in runs.values() {
            let parts = run.damaged_parts(&mut |key, reference| {
                if views.iter().any(|view| view.covers(key)) {
                    ranges.extend(damaged_value(context, key, reference));
                }
            });
            for part in parts {
                // A part includes its last key; a range ends before `hi`.
                let hi = part.hi.map(|key| after(&key));
                let shown = views.iter().filter_map(|view| shown(view, &part.lo, hi.as_deref()));
                ranges.extend(shown.map(|(lo, hi)| DamagedRange {
                    lo,
                    hi,
                    error: part.error.clone(),
                }));
            }
            done += run.meta().disk_bytes();
            progress(done, total);
        }
        for (key, reference) in references_in_memory(&version, context.oracle.visible())? {
            ranges.extend(damaged_value(context, &key, &reference));
        }
        ranges.sort_by(|a, b| a.lo.cmp(&b.lo));
        Ok(ranges)
    })
}

/// Returns the range of the single key whose large value cannot be read; `None` if the value can be
/// read.
fn damaged_value(context: &ReadContext, key: &[u8], reference: &[u8]) -> Option<DamagedRange> {
    let error = check_value(&context.runs.space, reference).err()?;
    Some(DamagedRange { lo: key.to_vec(), hi: Some(after(key)), error })
}

/// Returns the smallest key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}

/// Returns the part of `[lo, hi)` that is in the range of a view; `None` if they do not overlap.
fn shown(view: &View, lo: &[u8], hi: Option<&[u8]>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let lo = lo.max(&*view.lo);
    let hi = match (hi, view.hi.as_deref()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    hi.is_none_or(|hi| lo < hi).then(|| (lo.to_vec(), hi.map(<[u8]>::to_vec)))
}
