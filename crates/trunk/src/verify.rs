//! Checks the invariants of a trunk's shape (see the head of `node`); reads no data block.

use frondb_core::{Error, ErrorKind, Result};

use crate::node::{Node, Trunk};

/// Checks every node.
///
/// # Errors
/// `Internal`, naming the first node that breaks an invariant.
pub fn verify(trunk: &Trunk) -> Result<()> {
    if !trunk.root.lo.is_empty() || trunk.root.hi.is_some() {
        return Err(broken(&trunk.root, "the root does not span all keys"));
    }
    let height = trunk.height();
    check(&trunk.root, height)
}

fn check(node: &Node, height: usize) -> Result<()> {
    for view in node.views() {
        let inside = *view.lo >= *node.lo
            && match (&view.hi, &node.hi) {
                (_, None) => true,
                (None, Some(hi)) => *view.run.meta().last_key < **hi,
                (Some(a), Some(b)) => a <= b,
            };
        if !inside
            && view
                .cut(&node.lo, node.hi.as_ref(), 1)
                .is_some_and(|cut| cut.lo != view.lo || cut.hi != view.hi)
        {
            return Err(broken(node, "a view reaches outside its node"));
        }
    }
    let by_age = node.runs.windows(2).all(|pair| {
        let (newer, older) = (pair[0].run.meta(), pair[1].run.meta());
        newer.min_seq > older.max_seq || !overlap(&pair[0], &pair[1])
    });
    if !by_age {
        return Err(broken(node, "runs are not ordered by age"));
    }
    let disjoint = node.base().windows(2).all(|pair| {
        let upper = pair[0].hi.as_deref().filter(|hi| **hi <= *pair[0].run.meta().last_key);
        let lower: &[u8] = std::cmp::max(&*pair[1].lo, &*pair[1].run.meta().first_key);
        match upper {
            Some(upper) => *upper <= *lower,
            None => *pair[0].run.meta().last_key < *lower,
        }
    });
    if !disjoint {
        return Err(broken(node, "base views overlap"));
    }
    if node.is_leaf() {
        return if height == 1 { Ok(()) } else { Err(broken(node, "a leaf at another depth")) };
    }
    let children = node.children();
    let (Some(first), Some(last)) = (children.first(), children.last()) else {
        return Err(broken(node, "an inner node without children"));
    };
    let adjacent = children.windows(2).all(|pair| pair[0].hi.as_ref() == Some(&pair[1].lo));
    if !adjacent || first.lo != node.lo || last.hi != node.hi {
        return Err(broken(node, "children do not make up the node's range"));
    }
    children.iter().try_for_each(|child| check(child, height - 1))
}

fn overlap(a: &crate::View, b: &crate::View) -> bool {
    a.cut(&b.lo, b.hi.as_ref(), 1).is_some_and(|cut| {
        let (cut, other) = (cut.run.meta(), b.run.meta());
        cut.first_key <= other.last_key && other.first_key <= cut.last_key
    })
}

fn broken(node: &Node, what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("node {}: {what}", node.id))
}
