//! Short ranges whose entries all come from one source, counted without merging.
//!
//! A table that was loaded and is only read lies in one memtable or in the bases of leaves. If
//! these have one message for each key and no other source has anything in the range, the number of
//! entries is the distance between two positions. An optimizer needs this number before each short
//! query (`short.rs`).
//!
//! The result is exact, or `None` if another source may add, hide or overwrite entries in the
//! range.

use frondb_core::Result;
use frondb_memtable::MemCursor;
use frondb_run::Run;
use frondb_trunk::{Node, View};

use crate::version::Version;

/// The number of entries of `[lo, hi)`. `in_memory` are cursors over the range, one for each
/// memtable, with at most a few hundred messages: counting their keys goes over them.
pub(super) fn count_single(
    version: &Version,
    in_memory: &[MemCursor],
    lo: &[u8],
    hi: Option<&[u8]>,
) -> Result<Option<u64>> {
    let mut counts = Vec::new();
    for (source, cursor) in version.sources().zip(in_memory) {
        let memtable = &source.memtable;
        let may_hide = memtable.range_delete_count() > 0;
        if may_hide || source.runs().iter().any(|run| reaches(run, lo, hi)) {
            return Ok(None);
        }
        if cursor.messages() > 0 {
            let keys = if memtable.deletes() == 0 { cursor.count_keys() } else { None };
            let Some(keys) = keys else { return Ok(None) };
            counts.push(keys);
        }
    }
    let Some(in_bases) = count_bases(&version.trunk.root, lo, hi)? else { return Ok(None) };
    if in_bases > 0 {
        counts.push(in_bases);
    }
    Ok((counts.len() <= 1).then(|| counts.first().copied().unwrap_or(0)))
}

/// Whether the keys of the run and `[lo, hi)` overlap.
fn reaches(run: &Run, lo: &[u8], hi: Option<&[u8]>) -> bool {
    let meta = run.meta();
    *lo <= *meta.last_key && hi.is_none_or(|hi| *meta.first_key < *hi)
}

/// The number of entries in bases, if the trunk has nothing else in the range.
fn count_bases(node: &Node, lo: &[u8], hi: Option<&[u8]>) -> Result<Option<u64>> {
    let ends_before = node.hi.as_ref().is_some_and(|end| **end <= *lo);
    if ends_before || hi.is_some_and(|hi| *hi <= *node.lo) {
        return Ok(Some(0));
    }
    let above = node.views().count() - node.base().len();
    let has_buffered = node.views().take(above).any(|view| reaches(&view.run, lo, hi));
    if has_buffered || !node.range_deletes.is_empty() {
        return Ok(None);
    }
    let mut entries = 0;
    for view in node.base() {
        let meta = view.run.meta();
        if meta.deletes > 0 || !meta.unique_keys {
            return Ok(None);
        }
        entries += count_view(view, lo, hi)?;
    }
    for child in node.children() {
        let Some(below) = count_bases(child, lo, hi)? else { return Ok(None) };
        entries += below;
    }
    Ok(Some(entries))
}

/// The number of messages of a view in `[lo, hi)`.
fn count_view(view: &View, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
    let run = &view.run;
    let lo = lo.max(&view.lo);
    let hi = match (hi, view.hi.as_deref()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    if !reaches(run, lo, hi) || hi.is_some_and(|hi| hi <= lo) {
        return Ok(0);
    }
    run.count_between(lo, hi)
}
