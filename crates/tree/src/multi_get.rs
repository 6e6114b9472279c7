//! Point lookups of several keys, which read their blocks concurrently.
//!
//! ```text
//!   all keys:           walk from the newest source to the oldest, up to a block not in the cache
//!   a key is decided:   its walk ends
//!   the other keys:     read all their missing blocks at once, then continue their walks
//! ```
//!
//! A round reads at most one block for each key, so the number of rounds is the largest number of
//! blocks that a key needs. Blocks are in memory only during a round (`run/src/needed.rs`); a walk
//! keeps a position and the messages found. Keys are looked up in groups, so that the walks of very
//! many keys take little memory, which is charged.

mod walk;

use frondb_core::budget::Part;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result, SeqNo};
use frondb_merge::{Lookup, VisibleValue};
use frondb_run::{NeededBlock, RunEnv, read_needed};

use crate::context::ReadContext;
use crate::get::version_of;
use crate::read_debt::add_lookup;
use crate::tree::TreeCore;
use crate::value::{Values, read_value};
use walk::{Sources, Walk};

/// Maximum number of keys of a group.
const GROUP_KEYS_MAX: u64 = 1024;

/// A group has at most one key for this many bytes of the memory budget: with little memory, the
/// blocks of more keys would not be read at once anyway.
const BUDGET_BYTES_OF_KEY: u64 = 512 << 10;

/// Memory charged for a key, in bytes: its walk, and the memory for reading its block, without the
/// block itself.
const WALK_BYTES: u64 = 480;

/// Returns the values of several keys, in the order of `keys`, at `snapshot` or, without a
/// snapshot, at one common moment.
///
/// # Errors
/// As [`get`](crate::get::get); if several keys fail, the error of the first of them in key order.
pub fn multi_get(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    keys: &[&[u8]],
    snapshot: Option<SeqNo>,
) -> Result<Vec<Option<Vec<u8>>>> {
    multi_get_under(context, tree, keys, snapshot, |_| Ok(Lookup::new()))
}

/// Works as [`multi_get`], but the lookups already have newer messages: `lookup_of` returns the
/// lookup of the key with this index, and is called at most once for each key.
///
/// # Errors
/// As [`multi_get`]; the errors of `lookup_of`.
pub fn multi_get_under(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    keys: &[&[u8]],
    snapshot: Option<SeqNo>,
    mut lookup_of: impl FnMut(usize) -> Result<Lookup>,
) -> Result<Vec<Option<Vec<u8>>>> {
    // The version is taken before the SeqNo, as for a single get.
    let version = version_of(tree)?;
    let seq = snapshot.unwrap_or_else(|| context.oracle.visible());
    let above = version.sources().map(|source| &**source).collect();
    let sources = Sources { above, trunk: &version.trunk, seq };
    // In key order, keys of one block are in the same group.
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|&i| keys[i]);
    let values_of_references = Values(context.runs.clone());
    let mut values = vec![None; keys.len()];
    let budget = &context.runs.budget;
    let group_keys = (budget.total() / BUDGET_BYTES_OF_KEY).clamp(1, GROUP_KEYS_MAX);
    for group in order.chunks(group_keys as usize) {
        let _charged = budget.reserve(Part::Work, group.len() as u64 * WALK_BYTES);
        let walk = |&i: &usize| Ok(Walk::new(keys[i], lookup_of(i)?));
        let mut walks = group.iter().map(walk).collect::<Result<Vec<Walk<'_, '_>>>>()?;
        let mut failed = settle(&context.runs, &sources, &mut walks);
        for (at, (walk, &i)) in walks.into_iter().zip(group).enumerate() {
            if let Some((_, error)) = failed.take_if(|(failed, _)| *failed == at) {
                return Err(error);
            }
            if let Some(asked) = walk.asked() {
                add_lookup(context, tree, asked);
            }
            let update = tree.update().map(|update| &**update);
            values[i] = match walk.lookup.finish(walk.key, update, Some(&values_of_references))? {
                None => None,
                Some(VisibleValue::Value(value)) => Some(value),
                Some(VisibleValue::Reference(reference)) => {
                    Some(read_value(&context.runs, &reference)?)
                }
            };
        }
    }
    let found = values.iter().flatten().count() as u64;
    context.counters.add_gets(found, keys.len() as u64 - found);
    Ok(values)
}

/// Advances every walk to its end. Returns the index of the first walk that failed, with its error;
/// all walks before it have reached their ends.
fn settle<'v>(
    runs: &RunEnv,
    sources: &Sources<'v>,
    walks: &mut [Walk<'v, '_>],
) -> Option<(usize, Error)> {
    let mut failed: Option<(usize, Error)> = None;
    let mut open: Vec<usize> = (0..walks.len()).collect();
    loop {
        let mut needed = Vec::new();
        for &at in &open {
            match walks[at].advance(sources) {
                Ok(None) => {}
                Ok(Some((run, block))) => needed.push(NeededBlock { run, block, lookup: at }),
                Err(error) => {
                    failed = Some((at, error));
                    break;
                }
            }
        }
        if needed.is_empty() {
            return failed;
        }
        read_needed(runs, &mut needed, &mut |needed, read| {
            let at = needed.lookup;
            let taken = read.and_then(|read| walks[at].take(&needed.block, &read, sources.seq));
            if let Err(error) = taken
                && failed.as_ref().is_none_or(|(first, _)| at < *first)
            {
                failed = Some((at, error));
            }
        });
        open.clear();
        open.extend(needed.iter().map(|needed| needed.lookup));
        open.sort_unstable();
        // The results of the keys after a failed one are not needed.
        if let Some((first, _)) = &failed {
            open.retain(|at| at < first);
        }
    }
}
