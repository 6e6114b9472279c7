//! Point lookups.

use std::ops::Bound;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Error, ErrorKind, RangeDelete, Result, SeqNo, Source};
use frondb_merge::{Found, Lookup};
use frondb_run::{ReadMode, RunCursor};

use crate::context::ReadContext;
use crate::source::MemSource;
use crate::tree::TreeCore;
use crate::value::{Values, read_value};
use crate::version::Version;

/// The value of `key` at `snapshot`, or as of now.
pub fn get(
    context: &ReadContext,
    tree: &TreeCore,
    key: &[u8],
    snapshot: Option<SeqNo>,
) -> Result<Option<Vec<u8>>> {
    get_under(context, tree, key, snapshot, Lookup::new())
}

/// The same below what `lookup` was fed already.
pub fn get_under(
    context: &ReadContext,
    tree: &TreeCore,
    key: &[u8],
    snapshot: Option<SeqNo>,
    lookup: Lookup,
) -> Result<Option<Vec<u8>>> {
    // The version first, the SeqNo then: what the version has folded away is invisible at it.
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| context.oracle.visible());
    let found = find_under(context, tree, &version, key, seq, lookup)?;
    let hit = u64::from(found.is_some());
    context.counters.add_gets(hit, 1 - hit);
    match found {
        None => Ok(None),
        Some(Found::Value(value)) => Ok(Some(value)),
        Some(Found::Reference(reference)) => read_value(&context.runs.space, &reference).map(Some),
    }
}

/// Whether `key` has a value; a large one is not read.
pub fn exists(
    context: &ReadContext,
    tree: &TreeCore,
    key: &[u8],
    snapshot: Option<SeqNo>,
) -> Result<bool> {
    exists_under(context, tree, key, snapshot, Lookup::new())
}

/// The same below what `lookup` was fed already.
pub fn exists_under(
    context: &ReadContext,
    tree: &TreeCore,
    key: &[u8],
    snapshot: Option<SeqNo>,
    lookup: Lookup,
) -> Result<bool> {
    context.counters.add_gets(0, 1);
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| context.oracle.visible());
    Ok(find_under(context, tree, &version, key, seq, lookup)?.is_some())
}

/// Whether `key` was written by a commit after `snapshot`, which is live: so no merge has put the
/// messages before and after it together.
pub fn changed_since(
    context: &ReadContext,
    tree: &TreeCore,
    key: &[u8],
    snapshot: SeqNo,
) -> Result<bool> {
    // What was committed is there: a commit says so before it is published.
    if tree.newest_commit() <= snapshot {
        return Ok(false);
    }
    let version = version_of(tree)?;
    let visible = context.oracle.visible();
    for slot in version.sources().filter(|slot| slot.max_seq() > snapshot) {
        let mut lookup = Lookup::new();
        gather_in_slot(slot, key, visible, &mut lookup)?;
        // Sources come newest first, so the first message of the key is the newest.
        if lookup.newest() > SeqNo::MIN {
            return Ok(lookup.newest() > snapshot);
        }
    }
    let hi = [key, &[0]].concat();
    version.trunk.changed_in(key, Some(&hi), snapshot, visible)
}

/// The same for any key of `[lo, hi)`.
pub fn range_changed_since(
    context: &ReadContext,
    tree: &TreeCore,
    lo: &[u8],
    hi: Option<&[u8]>,
    snapshot: SeqNo,
) -> Result<bool> {
    let version = version_of(tree)?;
    let visible = context.oracle.visible();
    let newer = |seq: SeqNo| snapshot < seq && seq <= visible;
    let bounds = (Bound::Included(lo), hi.map_or(Bound::Unbounded, Bound::Excluded));
    for slot in version.sources().filter(|slot| slot.max_seq() > snapshot) {
        let memtable = &slot.memtable;
        let touches = |rd: &RangeDelete| {
            newer(rd.seq)
                && hi.is_none_or(|hi| *rd.lo < *hi)
                && rd.hi.as_ref().is_none_or(|end| *lo < **end)
        };
        if memtable.range_delete_sets().iter().flat_map(RangeDeletes::iter).any(touches) {
            return Ok(true);
        }
        let cursor = memtable.cursor(Direction::Forward, bounds.0, bounds.1, visible);
        if any_message(cursor, &newer)? {
            return Ok(true);
        }
        for run in slot.runs() {
            let (run, all) = (Arc::clone(run), (Direction::Forward, ReadMode::Scan));
            if any_message(RunCursor::new(run, all.0, Some(lo), hi, all.1)?, &newer)? {
                return Ok(true);
            }
        }
    }
    version.trunk.changed_in(lo, hi, snapshot, visible)
}

fn any_message(mut source: impl Source, is: &dyn Fn(SeqNo) -> bool) -> Result<bool> {
    let mut chunk = Chunk::new();
    while source.next_chunk(&mut chunk)? {
        if chunk.seqs.iter().any(|&seq| is(seq)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The values of several keys as of one moment, in the order of the keys.
pub fn multi_get(
    context: &ReadContext,
    tree: &TreeCore,
    keys: &[&[u8]],
    snapshot: Option<SeqNo>,
) -> Result<Vec<Option<Vec<u8>>>> {
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| context.oracle.visible());
    // In key order neighbours find their block in the cache.
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|&i| keys[i]);
    let mut values = vec![None; keys.len()];
    for i in order {
        values[i] = match find(context, tree, &version, keys[i], seq)? {
            None => None,
            Some(Found::Value(value)) => Some(value),
            Some(Found::Reference(reference)) => Some(read_value(&context.runs.space, &reference)?),
        };
    }
    let found = values.iter().flatten().count() as u64;
    context.counters.add_gets(found, keys.len() as u64 - found);
    Ok(values)
}

/// The newest version. A dropped tree's is empty: whether the tree was dropped is asked after it
/// was taken, or a read that races with the drop would find nothing and say so.
fn version_of(tree: &TreeCore) -> Result<Arc<Version>> {
    let version = tree.version();
    if tree.is_dropped() {
        let message = format!("tree {:?} was dropped", &*tree.name.read());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    Ok(version)
}

fn find(
    context: &ReadContext,
    tree: &TreeCore,
    version: &Version,
    key: &[u8],
    seq: SeqNo,
) -> Result<Option<Found>> {
    find_under(context, tree, version, key, seq, Lookup::new())
}

fn find_under(
    context: &ReadContext,
    tree: &TreeCore,
    version: &Version,
    key: &[u8],
    seq: SeqNo,
    mut lookup: Lookup,
) -> Result<Option<Found>> {
    if lookup.wants_more() {
        gather(version, key, seq, &mut lookup)?;
    }
    let values = Values(Arc::clone(&context.runs));
    lookup.finish(key, tree.update.as_deref(), Some(&values))
}

/// Feeds what `seq` sees of `key` to a lookup.
fn gather(version: &Version, key: &[u8], seq: SeqNo, lookup: &mut Lookup) -> Result<()> {
    for slot in version.sources() {
        if slot.is_empty() {
            continue;
        }
        gather_in_slot(slot, key, seq, lookup)?;
        if !lookup.wants_more() {
            break;
        }
    }
    if lookup.wants_more() {
        version.trunk.get(key, seq, lookup)?;
    }
    Ok(())
}

fn gather_in_slot(slot: &MemSource, key: &[u8], seq: SeqNo, lookup: &mut Lookup) -> Result<()> {
    let memtable = &slot.memtable;
    lookup.hide_below(memtable.newest_range_delete(key, seq));
    memtable.get(key, seq, &mut |seq, kind, value| lookup.feed(seq, kind, value));
    for run in slot.runs() {
        if !lookup.wants_more() {
            break;
        }
        run.get(key, seq, &mut |seq, kind, value| Ok(lookup.feed(seq, kind, value)))?;
    }
    Ok(())
}
