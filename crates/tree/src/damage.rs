//! Which keys of a tree cannot be trusted, because something that may say more of them cannot be read.
//!
//! A block that is damaged may hold a newer message of any key in its range, so an older row below it is no
//! answer: the whole range is given up, whatever other runs have there. A large value that is damaged
//! gives up its key.

use frondb_core::{Error, Result};
use frondb_trunk::View;

use crate::context::ReadContext;
use crate::tree::Tree;
use crate::value::check_value;
use crate::verify::{references_in_memory, runs_of};

/// Keys of a tree that are lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DamagedRange {
    /// First key.
    pub lo: Vec<u8>,
    /// Key before which it ends; `None` for the end of the tree.
    pub hi: Option<Vec<u8>>,
    /// Why, with the place of the damage.
    pub error: Error,
}

impl DamagedRange {
    /// All of a tree.
    #[must_use]
    pub fn whole(error: Error) -> Self {
        Self { lo: Vec::new(), hi: None, error }
    }

    /// Keys from `lo` on and before `hi`.
    #[must_use]
    pub fn from(lo: Vec<u8>, hi: Option<Vec<u8>>, error: Error) -> Self {
        Self { lo, hi, error }
    }
}

/// Reads all of a tree and gives the ranges that are damaged, by their first keys; they may overlap.
/// `progress` is given bytes done and to do.
///
/// # Errors
/// `Closed`; `NotFound` if the tree was dropped.
pub fn damaged_ranges(
    context: &ReadContext,
    tree: &Tree,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<DamagedRange>> {
    tree.check(context.engine)?;
    context.health.while_open(|| {
        let version = tree.core().version();
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
                // The last key of a part belongs to it.
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

/// The key of a large value that cannot be read.
fn damaged_value(context: &ReadContext, key: &[u8], reference: &[u8]) -> Option<DamagedRange> {
    let error = check_value(&context.runs.space, reference).err()?;
    Some(DamagedRange { lo: key.to_vec(), hi: Some(after(key)), error })
}

/// The smallest key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}

/// What a view shows of `[lo, hi)`.
fn shown(view: &View, lo: &[u8], hi: Option<&[u8]>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let lo = lo.max(&*view.lo);
    let hi = match (hi, view.hi.as_deref()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    hi.is_none_or(|hi| lo < hi).then(|| (lo.to_vec(), hi.map(<[u8]>::to_vec)))
}
