//! Point lookups and snapshots.

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result, SeqNo};
use frondb_merge::{Found, Lookup, ValueReader};
use frondb_run::RunEnv;

use crate::blob::read_value;
use crate::env::Env;
use crate::stats::Counters;
use crate::tree::{TreeCore, Version};

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
    Counters::add(&env.counters.gets, 1);
    // The version first, the SeqNo then: what the version has folded away is invisible at it.
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| env.oracle.visible());
    match find(env, tree, &version, key, seq)? {
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
    Counters::add(&env.counters.gets, 1);
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| env.oracle.visible());
    Ok(find(env, tree, &version, key, seq)?.is_some())
}

/// The values of several keys as of one moment, in the order of the keys.
pub(crate) fn multi_get(
    env: &Env,
    tree: &TreeCore,
    keys: &[&[u8]],
    snapshot: Option<SeqNo>,
) -> Result<Vec<Option<Vec<u8>>>> {
    Counters::add(&env.counters.gets, keys.len() as u64);
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
    let mut lookup = Lookup::new();
    for memtable in version.memtables() {
        if memtable.is_empty() {
            continue;
        }
        lookup.hide_below(memtable.newest_range_delete(key, seq));
        memtable.get(key, seq, &mut |seq, kind, value| lookup.feed(seq, kind, value));
        if !lookup.wants_more() {
            break;
        }
    }
    if lookup.wants_more() {
        version.trunk.get(key, seq, &mut lookup)?;
    }
    let values = Values(Arc::clone(&env.runs));
    lookup.finish(key, tree.update.as_deref(), Some(&values))
}
