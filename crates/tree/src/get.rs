//! Point lookups, and checks whether keys were written since a snapshot.
//!
//! A lookup searches the sources of one version from the newest to the oldest and stops at the
//! first message that decides the value of the key.

use std::ops::Bound;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Error, ErrorKind, RangeDelete, Result, SeqNo, Source};
use frondb_merge::{Lookup, VisibleValue};
use frondb_run::{ReadMode, RunCursor};
use frondb_trunk::Asked;

use crate::context::ReadContext;
use crate::read_debt::add_lookup;
use crate::source::MemSource;
use crate::tree::TreeCore;
use crate::value::{Values, read_value};
use crate::version::Version;

/// Returns the value of `key` at `snapshot`, or the newest visible value without a snapshot.
///
/// # Errors
/// `NotFound` if the tree was dropped; the error of the update function; `Corruption` or a device
/// error of a run.
pub fn get(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    key: &[u8],
    snapshot: Option<SeqNo>,
) -> Result<Option<Vec<u8>>> {
    get_under(context, tree, key, snapshot, Lookup::new())
}

/// Works as [`get`], but `lookup` already has newer messages: a transaction's own writes and its
/// overlay.
///
/// # Errors
/// As [`get`].
pub fn get_under(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    key: &[u8],
    snapshot: Option<SeqNo>,
    lookup: Lookup,
) -> Result<Option<Vec<u8>>> {
    let begun = context.begin_get();
    let value = value_under(context, tree, key, snapshot, lookup);
    context.end_get(begun);
    value
}

/// Works as [`get`], with memory of the caller: replaces the contents of `value` (empty if the key
/// has no value) and returns whether the key has a value.
///
/// # Errors
/// As [`get`].
pub fn get_into(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    key: &[u8],
    snapshot: Option<SeqNo>,
    value: &mut Vec<u8>,
) -> Result<bool> {
    let begun = context.begin_get();
    let found = value_into(context, tree, key, snapshot, value);
    context.end_get(begun);
    found
}

fn value_into(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    key: &[u8],
    snapshot: Option<SeqNo>,
    value: &mut Vec<u8>,
) -> Result<bool> {
    let mut lookup = Lookup::reusing(std::mem::take(value));
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| context.oracle.visible());
    if let Some(asked) = gather(&version, key, seq, &mut lookup)? {
        add_lookup(context, tree, asked);
    }
    if let Some(memory) = lookup.unused_memory() {
        context.counters.add_gets(0, 1);
        *value = memory;
        return Ok(false);
    }
    let values = Values(Arc::clone(&context.runs));
    let found = lookup.finish(key, tree.update().map(|update| &**update), Some(&values))?;
    let hit = u64::from(found.is_some());
    context.counters.add_gets(hit, 1 - hit);
    *value = match found {
        None => return Ok(false),
        Some(VisibleValue::Value(found)) => found,
        Some(VisibleValue::Reference(reference)) => read_value(&context.runs, &reference)?,
    };
    Ok(true)
}

fn value_under(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    key: &[u8],
    snapshot: Option<SeqNo>,
    lookup: Lookup,
) -> Result<Option<Vec<u8>>> {
    // The version is taken before the SeqNo: the merges that made the version may have folded away
    // messages that only an older SeqNo would see.
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| context.oracle.visible());
    let found = find_under(context, tree, &version, key, seq, lookup)?;
    let hit = u64::from(found.is_some());
    context.counters.add_gets(hit, 1 - hit);
    match found {
        None => Ok(None),
        Some(VisibleValue::Value(value)) => Ok(Some(value)),
        Some(VisibleValue::Reference(reference)) => read_value(&context.runs, &reference).map(Some),
    }
}

/// Returns whether `key` has a value at `snapshot`, or now without a snapshot. Reads a large value
/// only if an update applies to it.
///
/// # Errors
/// As [`get`].
pub fn exists(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    key: &[u8],
    snapshot: Option<SeqNo>,
) -> Result<bool> {
    exists_under(context, tree, key, snapshot, Lookup::new())
}

/// Works as [`exists`], but `lookup` already has newer messages, as in [`get_under`].
///
/// # Errors
/// As [`get`].
pub fn exists_under(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    key: &[u8],
    snapshot: Option<SeqNo>,
    lookup: Lookup,
) -> Result<bool> {
    let begun = context.begin_get();
    context.counters.add_gets(0, 1);
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| context.oracle.visible());
    let found = find_under(context, tree, &version, key, seq, lookup);
    context.end_get(begun);
    Ok(found?.is_some())
}

/// Returns whether a commit after `snapshot` has written `key`. The snapshot must be live:
/// otherwise a merge may have folded messages before and after the snapshot into one.
///
/// # Errors
/// `NotFound` if the tree was dropped; `Corruption` or a device error of a run.
pub fn changed_since(
    context: &ReadContext,
    tree: &TreeCore,
    key: &[u8],
    snapshot: SeqNo,
) -> Result<bool> {
    // A commit is recorded in the tree before it becomes visible, so this check misses no visible
    // commit.
    if tree.newest_commit() <= snapshot {
        return Ok(false);
    }
    let version = version_of(tree)?;
    let visible = context.oracle.visible();
    for source in version.sources().filter(|source| source.max_seq() > snapshot) {
        let mut lookup = Lookup::new();
        gather_in_source(source, key, visible, &mut lookup)?;
        // Sources are visited newest first, so the first message of the key is the newest.
        if lookup.newest() > SeqNo::MIN {
            return Ok(lookup.newest() > snapshot);
        }
    }
    let hi = [key, &[0]].concat();
    version.trunk.changed_in(key, Some(&hi), snapshot, visible)
}

/// Returns whether a commit after `snapshot`, which must be live, has written a key of `[lo, hi)`.
///
/// # Errors
/// As [`changed_since`].
pub fn range_changed_since(
    context: &ReadContext,
    tree: &TreeCore,
    lo: &[u8],
    hi: Option<&[u8]>,
    snapshot: SeqNo,
) -> Result<bool> {
    // As in `changed_since`.
    if tree.newest_commit() <= snapshot {
        return Ok(false);
    }
    let version = version_of(tree)?;
    let visible = context.oracle.visible();
    let newer = |seq: SeqNo| snapshot < seq && seq <= visible;
    let (from, to) = (Bound::Included(lo), hi.map_or(Bound::Unbounded, Bound::Excluded));
    let forward = Direction::Forward;
    for source in version.sources().filter(|source| source.max_seq() > snapshot) {
        let memtable = &source.memtable;
        let touches = |rd: &RangeDelete| {
            newer(rd.seq)
                && hi.is_none_or(|hi| *rd.lo < *hi)
                && rd.hi.as_ref().is_none_or(|end| *lo < **end)
        };
        if memtable.range_delete_sets().iter().flat_map(RangeDeletes::iter).any(touches) {
            return Ok(true);
        }
        let cursor = memtable.cursor(forward, from, to, visible);
        if any_message(cursor, &newer)? {
            return Ok(true);
        }
        for run in source.runs() {
            let cursor = RunCursor::new(Arc::clone(run), forward, Some(lo), hi, ReadMode::Scan)?;
            if any_message(cursor, &newer)? {
                return Ok(true);
            }
        }
    }
    version.trunk.changed_in(lo, hi, snapshot, visible)
}

/// Returns whether `is_wanted` holds for the SeqNo of any message of `source`.
fn any_message(mut source: impl Source, is_wanted: &dyn Fn(SeqNo) -> bool) -> Result<bool> {
    let mut chunk = Chunk::new();
    while source.next_chunk(&mut chunk)? {
        if chunk.seqs.iter().any(|&seq| is_wanted(seq)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the newest version of a tree, or `NotFound` if the tree was dropped. The check comes
/// after the version is taken: the version of a dropped tree is empty, so a read that races with
/// the drop would otherwise find no entry.
pub(crate) fn version_of(tree: &TreeCore) -> Result<Arc<Version>> {
    let version = tree.version();
    if tree.is_dropped() {
        let message = format!("tree {:?} was dropped", &*tree.name.read());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    Ok(version)
}

fn find_under(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    version: &Version,
    key: &[u8],
    seq: SeqNo,
    mut lookup: Lookup,
) -> Result<Option<VisibleValue>> {
    if lookup.wants_more() {
        let asked = gather(version, key, seq, &mut lookup)?;
        if let Some(asked) = asked {
            add_lookup(context, tree, asked);
        }
    }
    let values = Values(Arc::clone(&context.runs));
    lookup.finish(key, tree.update().map(|update| &**update), Some(&values))
}

/// Feeds the messages of `key` that `seq` sees to a lookup, newest first. Returns the leaf that the
/// lookup reached, with its cost there; `None` if newer messages decided the value.
fn gather<'v>(
    version: &'v Version,
    key: &[u8],
    seq: SeqNo,
    lookup: &mut Lookup,
) -> Result<Option<Asked<'v>>> {
    for source in version.sources() {
        if source.is_empty() {
            continue;
        }
        gather_in_source(source, key, seq, lookup)?;
        if !lookup.wants_more() {
            break;
        }
    }
    if lookup.wants_more() {
        return version.trunk.get(key, seq, lookup);
    }
    Ok(None)
}

/// Feeds the messages of `key` that `seq` sees in one source above the trunk to a lookup.
fn gather_in_source(source: &MemSource, key: &[u8], seq: SeqNo, lookup: &mut Lookup) -> Result<()> {
    let memtable = &source.memtable;
    lookup.hide_below(memtable.newest_range_delete(key, seq));
    memtable.get(key, seq, &mut |seq, kind, value| lookup.feed(seq, kind, value));
    for run in source.runs() {
        if !lookup.wants_more() {
            break;
        }
        run.get(key, seq, &mut |seq, kind, value| Ok(lookup.feed(seq, kind, value)))?;
    }
    Ok(())
}
