//! Keys that cut a tree into parts with about the same number of messages each.
//!
//! The search takes O(parts * height). It uses counts alone: it reads block indexes and no data.
//! Callers use the keys to take samples that represent the whole tree, wherever its keys lie, and
//! to divide work into parts.

use frondb_core::Result;
use frondb_trunk::{Node, View};

use crate::estimate::counts::messages;
use crate::estimate::key_range::Range;
use crate::estimate::key_space::KeySpace;
use crate::estimate::share::share;
use crate::version::Version;

/// Maximum number of parts.
const PARTS_MAX: usize = 1024;

/// Returns up to `parts - 1` different keys in ascending order. Returns fewer if the tree has too
/// few messages, if so many keys share their first bytes that these cannot separate the parts, or
/// if `parts` is above 1024.
///
/// # Errors
/// `Corruption` or a device error of a block index.
pub fn split_keys(version: &Version, parts: usize) -> Result<Vec<Vec<u8>>> {
    let whole = Range::whole();
    let Some((first, last)) = key_bounds(version) else { return Ok(Vec::new()) };
    let all = messages(version, &whole)?;
    let parts = (parts.min(PARTS_MAX) as u64).min(all).max(1);
    // A cut may be off from its ideal position by 1/8 of a part.
    let near = all / (parts * 8);
    let space = KeySpace::between(&first, &last);
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut lowest = space.from;
    for part in 1..parts {
        let wanted = share(all, part, parts);
        let below = |key| messages(version, &Range::below(key));
        let (from, to) = space.find(lowest, wanted, near, below)?;
        lowest = from;
        let key = space.key(to);
        if key > first && key <= last && keys.last().is_none_or(|last| *last < key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Returns the smallest and the largest key of all messages; `None` if there are not two different
/// keys.
fn key_bounds(version: &Version) -> Option<(Vec<u8>, Vec<u8>)> {
    let root = &version.trunk.root;
    let mut first = first_key(root).map(<[u8]>::to_vec);
    let mut last = root.max_key().map(<[u8]>::to_vec);
    let mut extend = |low: Option<Vec<u8>>, high: Option<Vec<u8>>| {
        first = match (first.take(), low) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        last = last.take().max(high);
    };
    for source in version.sources() {
        extend(source.memtable.first_key(), source.memtable.last_key());
        for run in source.runs() {
            let meta = run.meta();
            extend(Some(meta.first_key.to_vec()), Some(meta.last_key.to_vec()));
        }
    }
    let (first, last) = (first?, last?);
    (first < last).then_some((first, last))
}

/// Returns the smallest key in a node and the nodes below it.
fn first_key(node: &Node) -> Option<&[u8]> {
    let own = node.views().map(View::first_key).min();
    let below = node.children().iter().find_map(|child| first_key(child));
    match (own, below) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
