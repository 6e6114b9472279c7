//! Keys that cut a tree into parts that hold about as many messages each, found in
//! O(parts * height) by counts alone: no data is read, only indexes of blocks.
//!
//! For samples that stand for the whole of a tree, wherever its keys lie, and for work in parts.

use frondb_core::Result;

use crate::estimate::range::{KeySpace, Range, ends, messages, share};
use crate::version::Version;

/// Most parts that are made.
const PARTS_MAX: usize = 1024;

/// Up to `parts - 1` keys, ascending and different. Fewer if there are not so many to tell apart.
pub fn split_keys(version: &Version, parts: usize) -> Result<Vec<Vec<u8>>> {
    let whole = Range::whole();
    let Some((least, most)) = ends(version, &whole) else { return Ok(Vec::new()) };
    let all = messages(version, &whole)?;
    let parts = (parts.min(PARTS_MAX) as u64).min(all).max(1);
    // Nearer than this to its place a cut need not be.
    let near = all / (parts * 8);
    let space = KeySpace::between(&least, &most);
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut lowest = space.from;
    for part in 1..parts {
        let wanted = share(all, part, parts);
        let below = |key| messages(version, &Range::below(key));
        let (from, to) = space.find(lowest, wanted, near, below)?;
        lowest = from;
        let key = space.key(to);
        if key > least && key <= most && keys.last().is_none_or(|last| *last < key) {
            keys.push(key);
        }
    }
    Ok(keys)
}
