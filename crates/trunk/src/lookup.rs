//! Point lookups below the memtables.

use frondb_core::{Result, SeqNo};
use frondb_merge::Lookup;

use crate::node::{Node, Trunk};

/// Counts what reads met; added up by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Runs asked, filters' refusals not counted.
    pub runs: u64,
}

impl Trunk {
    /// Feeds the messages for `key` that `snapshot` sees to `lookup`, newest first, until it is
    /// resolved.
    ///
    /// # Errors
    /// `Corruption` or a device error of a block that may hold the key.
    pub fn get(&self, key: &[u8], snapshot: SeqNo, lookup: &mut Lookup) -> Result<()> {
        let mut node = &self.root;
        loop {
            if !get_in_node(node, key, snapshot, lookup)? {
                return Ok(());
            }
            match node.child_for(key) {
                Some(child) => node = child,
                None => return Ok(()),
            }
        }
    }
}

/// Returns whether older nodes are still to be asked.
fn get_in_node(node: &Node, key: &[u8], snapshot: SeqNo, lookup: &mut Lookup) -> Result<bool> {
    if !node.range_deletes.is_empty() {
        lookup.hide_below(node.range_deletes.newest_covering(key, snapshot));
    }
    for view in node.views() {
        if view.covers(key) {
            let more = view
                .run
                .get(key, snapshot, &mut |seq, kind, value| Ok(lookup.feed(seq, kind, value)))?;
            if !more {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
