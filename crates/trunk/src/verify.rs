//! Checks the invariants of a trunk's shape (see the module documentation of `node`) without
//! reading a data block.

use frondb_core::{Error, RangeDelete, Result};

use crate::node::{Node, Trunk};
use crate::view::View;

/// Checks every node of a trunk.
///
/// # Errors
/// `Corruption`, naming the first node that breaks an invariant.
pub fn verify(trunk: &Trunk) -> Result<()> {
    if !trunk.root.lo.is_empty() || trunk.root.hi.is_some() {
        return Err(broken(&trunk.root, "the root does not span all keys"));
    }
    if !trunk.root.is_leaf() && trunk.root.views().next().is_some() {
        return Err(broken(&trunk.root, "the root buffers messages although it is an inner node"));
    }
    let height = trunk.height();
    check(&trunk.root, height)
}

fn check(node: &Node, height: usize) -> Result<()> {
    for view in node.views() {
        let inside = *view.lo >= *node.lo
            && match (&view.hi, &node.hi) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(a), Some(b)) => a <= b,
            };
        if !inside {
            return Err(broken(node, "a view reaches outside its node"));
        }
        if !view.is_visible() {
            return Err(broken(node, "a view shows nothing of its run"));
        }
    }
    let by_age = node.runs.windows(2).all(|pair| {
        let (newer, older) = (pair[0].run.meta().max_seq, pair[1].run.meta().max_seq);
        newer > older || newer == older && !overlap(&pair[0], &pair[1])
    });
    if !by_age {
        return Err(broken(node, "runs are not ordered by age"));
    }
    let ascending = node
        .base()
        .windows(2)
        .all(|pair| !overlap(&pair[0], &pair[1]) && pair[0].first_key() < pair[1].first_key());
    if !ascending {
        return Err(broken(node, "base views overlap or are out of order"));
    }
    let inside = |delete: &RangeDelete| {
        *delete.lo >= *node.lo
            && match (&delete.hi, &node.hi) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(a), Some(b)) => **a <= **b,
            }
    };
    if !node.range_deletes.iter().all(inside) {
        return Err(broken(node, "a range delete reaches outside its node"));
    }
    if node.is_leaf() {
        return if height == 1 {
            Ok(())
        } else {
            Err(broken(node, "a leaf is not at the lowest level"))
        };
    }
    let children = node.children();
    let (Some(first), Some(last)) = (children.first(), children.last()) else {
        return Err(broken(node, "an inner node has no children"));
    };
    let adjacent = children.windows(2).all(|pair| pair[0].hi.as_ref() == Some(&pair[1].lo));
    if !adjacent || first.lo != node.lo || last.hi != node.hi {
        return Err(broken(node, "children do not make up the node's range"));
    }
    children.iter().try_for_each(|child| check(child, height - 1))
}

/// Whether two views can show the same key.
fn overlap(a: &View, b: &View) -> bool {
    let ends_below = |a: &View, b: &View| {
        let first = b.first_key();
        *a.run.meta().last_key < *first || a.hi.as_ref().is_some_and(|hi| **hi <= *first)
    };
    !ends_below(a, b) && !ends_below(b, a)
}

fn broken(node: &Node, what: &str) -> Error {
    Error::corruption("MANIFEST", 0, "trunk", format!("node {}: {what}", node.id))
}
