//! Point lookups below the memtables.

use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Result, SeqNo, Source};
use frondb_merge::Lookup;
use frondb_run::ReadMode;

use crate::node::{Key, Node, Trunk};
use crate::view::View;

impl Trunk {
    /// Feeds `lookup` with the messages for `key` that `snapshot` sees, newest first, until the
    /// lookup is resolved. Returns the leaf that the lookup reached; `None` if it was resolved
    /// above the leaves.
    ///
    /// # Errors
    /// `Corruption` or a device error of a block that may hold the key.
    pub fn get(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        lookup: &mut Lookup,
    ) -> Result<Option<Asked<'_>>> {
        let mut node = &self.root;
        loop {
            let mut runs = 0;
            let more = get_in_node(node, key, snapshot, lookup, &mut runs)?;
            match node.child_for(key) {
                Some(child) if more => node = child,
                Some(_) => return Ok(None),
                None => return Ok(Some(Asked { leaf: node, runs })),
            }
        }
    }
}

/// The leaf that a lookup reached, and what the lookup cost there.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The leaf.
    pub leaf: &'a Arc<Node>,
    /// Number of runs above the base that might have had the key.
    pub runs: usize,
}

/// Feeds `lookup` with the messages of one node. Adds to `asked` the number of searched runs above
/// a base that may have the key. Returns whether the lookup must continue in older nodes.
fn get_in_node(
    node: &Node,
    key: &[u8],
    snapshot: SeqNo,
    lookup: &mut Lookup,
    asked: &mut usize,
) -> Result<bool> {
    if !node.range_deletes.is_empty() {
        lookup.hide_below(node.range_deletes.newest_covering(key, snapshot));
    }
    for (at, view) in node.views().enumerate() {
        if view.covers(key) {
            *asked += usize::from(at < node.runs.len());
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

impl Trunk {
    /// Whether `[lo, hi)` contains a message or range delete with a SeqNo above `after` and at most
    /// `upto`. Does not read runs whose largest SeqNo rules this out.
    ///
    /// # Errors
    /// `Corruption` or a device error of a run that has to be read.
    pub fn changed_in(
        &self,
        lo: &[u8],
        hi: Option<&[u8]>,
        after: SeqNo,
        upto: SeqNo,
    ) -> Result<bool> {
        let range = (lo.into(), hi.map(Into::into));
        changed_in_node(&self.root, &range, &|seq| after < seq && seq <= upto, after)
    }
}

fn changed_in_node(
    node: &Arc<Node>,
    range: &(Key, Option<Key>),
    is: &dyn Fn(SeqNo) -> bool,
    after: SeqNo,
) -> Result<bool> {
    let (lo, hi) = range;
    let touches = |from: &[u8], to: Option<&[u8]>| {
        hi.as_ref().is_none_or(|hi| *from < **hi) && to.is_none_or(|to| **lo < *to)
    };
    if !touches(&node.lo, node.hi.as_deref()) {
        return Ok(false);
    }
    if node.range_deletes.iter().any(|rd| is(rd.seq) && touches(&rd.lo, rd.hi.as_deref())) {
        return Ok(true);
    }
    for view in node.views() {
        let may = view.run.meta().max_seq > after;
        if let Some(part) = view.cut(lo, hi.as_ref(), 1).filter(|_| may)
            && any_message(&part, is)?
        {
            return Ok(true);
        }
    }
    for child in node.children() {
        if changed_in_node(child, range, is, after)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn any_message(view: &View, is: &dyn Fn(SeqNo) -> bool) -> Result<bool> {
    let mut cursor = view.cursor(Direction::Forward, ReadMode::Scan)?;
    let mut chunk = Chunk::new();
    while cursor.next_chunk(&mut chunk)? {
        if chunk.seqs.iter().any(|&seq| is(seq)) {
            return Ok(true);
        }
    }
    Ok(false)
}
