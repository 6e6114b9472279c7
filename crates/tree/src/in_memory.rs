//! Point lookups that answer only from memory: memtables, cached rows and cached blocks. A caller
//! that must not wait for the device tries such a lookup first.
//!
//! A lookup searches the same sources in the same order as [`get`](crate::get), and counts as one
//! if it answers. It takes the same short locks, and never waits for a thread that reads.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::{Error, Result, SeqNo};
use frondb_merge::{Lookup, ValueReader, VisibleValue};
use frondb_run::Run;
use frondb_trunk::Asked;

use crate::context::ReadContext;
use crate::get::version_of;
use crate::read_debt::add_lookup;
use crate::tree::TreeCore;
use crate::version::Version;

/// Works as [`get`](crate::get::get), but returns `None` if the answer needs the device.
///
/// # Errors
/// `NotFound` if the tree was dropped; the error of the update function.
pub fn get_in_memory(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    key: &[u8],
    snapshot: Option<SeqNo>,
) -> Result<Option<Option<Vec<u8>>>> {
    let begun = context.begin_get();
    // The version is taken before the SeqNo, as for any lookup.
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| context.oracle.visible());
    let mut lookup = Lookup::new();
    let Some(asked) = gather_in_memory(&version, key, seq, &mut lookup)? else { return Ok(None) };
    let values = OnDevice::default();
    let found = lookup.finish(key, tree.update().map(|update| &**update), Some(&values));
    let value = match found {
        _ if values.is_wanted() => return Ok(None),
        Ok(Some(VisibleValue::Reference(_))) => return Ok(None),
        Ok(Some(VisibleValue::Value(value))) => Some(value),
        Ok(None) => None,
        Err(error) => return Err(error),
    };
    if let Some(asked) = asked {
        add_lookup(context, tree, asked);
    }
    let hit = u64::from(value.is_some());
    context.counters.add_gets(hit, 1 - hit);
    context.end_get(begun);
    Ok(Some(value))
}

/// Feeds the messages of `key` that `seq` sees to a lookup, newest first. Returns the leaf that the
/// lookup reached, if it reached one; `None` if a source needs the device.
fn gather_in_memory<'v>(
    version: &'v Version,
    key: &[u8],
    seq: SeqNo,
    lookup: &mut Lookup,
) -> Result<Option<Option<Asked<'v>>>> {
    for source in version.sources().filter(|source| !source.is_empty()) {
        let memtable = &source.memtable;
        lookup.hide_below(memtable.newest_range_delete(key, seq));
        memtable.get(key, seq, &mut |seq, kind, value| lookup.feed(seq, kind, value));
        for run in source.runs() {
            if lookup.wants_more() && !feed_from(run, key, seq, lookup)? {
                return Ok(None);
            }
        }
        if !lookup.wants_more() {
            return Ok(Some(None));
        }
    }
    let mut path = version.trunk.lookup_path();
    while lookup.wants_more() {
        let Some(run) = path.next_run(key, seq, lookup) else { break };
        if !feed_from(run, key, seq, lookup)? {
            return Ok(None);
        }
    }
    Ok(Some(path.asked()))
}

/// Feeds the messages of `key` in a run to a lookup. Returns `false` if the run needs the device.
fn feed_from(run: &Run, key: &[u8], seq: SeqNo, lookup: &mut Lookup) -> Result<bool> {
    let mut visit = |seq, kind, value: &[u8]| Ok(lookup.feed(seq, kind, value));
    Ok(run.get_in_memory(key, seq, &mut visit)?.is_some())
}

/// Refuses to read a large value for an update function, and notes that one was wanted.
#[derive(Default)]
struct OnDevice(AtomicBool);

impl OnDevice {
    fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl ValueReader for OnDevice {
    fn read(&self, _reference: &[u8]) -> Result<Vec<u8>> {
        self.0.store(true, Ordering::Relaxed);
        Err(Error::internal("the value is on the device"))
    }
}
