//! Point lookups and snapshots.

use std::ops::Bound;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Chunk, Direction, Error, ErrorKind, RangeDelete, Result, SeqNo, Source};
use frondb_merge::{Found, Lookup, ValueReader};
use frondb_run::{ReadMode, RunCursor, RunEnv};

use crate::blob::read_value;
use crate::env::Env;
use crate::stats::Counters;
use crate::tree::{MemSlot, TreeCore, Version};

/// A fixed state of the whole database to read at. Cheap to take, clone and drop; while it lives,
/// merges keep what it sees.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) held: frondb_locks::Snapshot,
    pub(crate) engine: u64,
}

impl Snapshot {
    /// The SeqNo it reads at.
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.held.seq()
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({})", self.seq())
    }
}

/// Reads values in extents of their own for updates upon them.
pub(crate) struct Values(pub(crate) Arc<RunEnv>);

impl ValueReader for Values {
    fn read(&self, reference: &[u8]) -> Result<Vec<u8>> {
        read_value(&self.0.space, reference)
    }
}

/// The value of `key` at `snapshot`, or as of now.
pub(crate) fn get(
    env: &Env,
    tree: &TreeCore,
    key: &[u8],
    snapshot: Option<SeqNo>,
) -> Result<Option<Vec<u8>>> {
    get_under(env, tree, key, snapshot, Lookup::new())
}

/// The same below what `lookup` was fed already.
pub(crate) fn get_under(
    env: &Env,
    tree: &TreeCore,
    key: &[u8],
    snapshot: Option<SeqNo>,
    lookup: Lookup,
) -> Result<Option<Vec<u8>>> {
    // The version first, the SeqNo then: what the version has folded away is invisible at it.
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| env.oracle.visible());
    let found = find_under(env, tree, &version, key, seq, lookup)?;
    let counters = &env.counters;
    Counters::add(if found.is_some() { &counters.gets } else { &counters.checks }, 1);
    match found {
        None => Ok(None),
        Some(Found::Value(value)) => Ok(Some(value)),
        Some(Found::Reference(reference)) => read_value(&env.runs.space, &reference).map(Some),
    }
}

/// Whether `key` has a value; a large one is not read.
pub(crate) fn exists(
    env: &Env,
    tree: &TreeCore,
    key: &[u8],
    snapshot: Option<SeqNo>,
) -> Result<bool> {
    exists_under(env, tree, key, snapshot, Lookup::new())
}

/// The same below what `lookup` was fed already.
pub(crate) fn exists_under(
    env: &Env,
    tree: &TreeCore,
    key: &[u8],
    snapshot: Option<SeqNo>,
    lookup: Lookup,
) -> Result<bool> {
    Counters::add(&env.counters.checks, 1);
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| env.oracle.visible());
    Ok(find_under(env, tree, &version, key, seq, lookup)?.is_some())
}

/// Whether `key` was written by a commit after `snapshot`, which is live: so no merge has put the
/// messages before and after it together.
pub(crate) fn changed_since(
    env: &Env,
    tree: &TreeCore,
    key: &[u8],
    snapshot: SeqNo,
) -> Result<bool> {
    // What was committed is there: a commit says so before it is published.
    if tree.newest_commit.load(Ordering::Acquire) <= snapshot.get() {
        return Ok(false);
    }
    let version = version_of(tree)?;
    let visible = env.oracle.visible();
    for slot in version.slots().filter(|slot| slot.max_seq() > snapshot) {
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
pub(crate) fn range_changed_since(
    env: &Env,
    tree: &TreeCore,
    lo: &[u8],
    hi: Option<&[u8]>,
    snapshot: SeqNo,
) -> Result<bool> {
    let version = version_of(tree)?;
    let visible = env.oracle.visible();
    let newer = |seq: SeqNo| snapshot < seq && seq <= visible;
    let bounds = (Bound::Included(lo), hi.map_or(Bound::Unbounded, Bound::Excluded));
    for slot in version.slots().filter(|slot| slot.max_seq() > snapshot) {
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
pub(crate) fn multi_get(
    env: &Env,
    tree: &TreeCore,
    keys: &[&[u8]],
    snapshot: Option<SeqNo>,
) -> Result<Vec<Option<Vec<u8>>>> {
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| env.oracle.visible());
    // In key order neighbours find their block in the cache.
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|&i| keys[i]);
    let mut values = vec![None; keys.len()];
    for i in order {
        values[i] = match find(env, tree, &version, keys[i], seq)? {
            None => None,
            Some(Found::Value(value)) => Some(value),
            Some(Found::Reference(reference)) => Some(read_value(&env.runs.space, &reference)?),
        };
    }
    let found = values.iter().flatten().count() as u64;
    Counters::add(&env.counters.gets, found);
    Counters::add(&env.counters.checks, keys.len() as u64 - found);
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
    env: &Env,
    tree: &TreeCore,
    version: &Version,
    key: &[u8],
    seq: SeqNo,
) -> Result<Option<Found>> {
    find_under(env, tree, version, key, seq, Lookup::new())
}

fn find_under(
    env: &Env,
    tree: &TreeCore,
    version: &Version,
    key: &[u8],
    seq: SeqNo,
    mut lookup: Lookup,
) -> Result<Option<Found>> {
    if lookup.wants_more() {
        gather(version, key, seq, &mut lookup)?;
    }
    let values = Values(Arc::clone(&env.runs));
    lookup.finish(key, tree.update.as_deref(), Some(&values))
}

/// Feeds what `seq` sees of `key` to a lookup.
fn gather(version: &Version, key: &[u8], seq: SeqNo, lookup: &mut Lookup) -> Result<()> {
    for slot in version.slots() {
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

fn gather_in_slot(slot: &MemSlot, key: &[u8], seq: SeqNo, lookup: &mut Lookup) -> Result<()> {
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
