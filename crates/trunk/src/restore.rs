//! Builds a trunk at open from the node images and runs of the manifest, and checks that they fit
//! together. The bytes have passed their checksum. These checks detect an inconsistent manifest
//! before it causes a wrong answer.

use std::collections::{HashMap, HashSet};

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Error, NodeId, Result, RunId, TreeId};
use frondb_run::Run;

use crate::format::{BodyImage, NodeImage, ViewImage};
use crate::node::{Body, Node, Trunk};
use crate::view::View;

/// A trunk and the number of views of each run.
pub struct Restored {
    /// The trunk.
    pub trunk: Trunk,
    /// Number of views of each run.
    pub views: HashMap<RunId, u32>,
}

/// Builds the trunk whose root is the node `root`. `run_for` returns the run with an id.
///
/// # Errors
/// `Corruption` if a node or run is missing, a node is reached twice, or the trunk breaks an
/// invariant of nodes.
pub fn restore(
    tree: TreeId,
    root: NodeId,
    images: &HashMap<NodeId, NodeImage>,
    run_for: &mut dyn FnMut(RunId) -> Option<Arc<Run>>,
) -> Result<Restored> {
    let (mut views, mut seen) = (HashMap::new(), HashSet::new());
    let mut builder = Builder { tree, images, run_for, views: &mut views, seen: &mut seen };
    let root = builder.node(root)?;
    let trunk = Trunk { tree, root };
    crate::verify(&trunk).map_err(|error| damaged(tree, error.message()))?;
    Ok(Restored { trunk, views })
}

struct Builder<'a> {
    tree: TreeId,
    images: &'a HashMap<NodeId, NodeImage>,
    run_for: &'a mut dyn FnMut(RunId) -> Option<Arc<Run>>,
    views: &'a mut HashMap<RunId, u32>,
    /// Nodes reached so far. A node that is reached twice is damage. Without this check, a cycle
    /// would cause an endless loop.
    seen: &'a mut HashSet<NodeId>,
}

impl Builder<'_> {
    fn node(&mut self, id: NodeId) -> Result<Arc<Node>> {
        let image = self
            .images
            .get(&id)
            .ok_or_else(|| damaged(self.tree, &format!("node {id} is missing")))?;
        if !self.seen.insert(id) {
            return Err(damaged(self.tree, &format!("node {id} is reached twice")));
        }
        let runs = self.views_of(&image.runs)?;
        let body = match &image.body {
            BodyImage::Leaf(base) => Body::Leaf { base: self.views_of(base)? },
            BodyImage::Inner(children) => {
                let children = children.iter().map(|child| self.node(*child));
                Body::Inner { children: children.collect::<Result<_>>()? }
            }
        };
        let deletes = Arc::new(RangeDeletes::new(image.range_deletes.iter().cloned()));
        let (lo, hi) = (Arc::clone(&image.lo), image.hi.clone());
        Ok(Node::new(id, lo, hi, runs, deletes, body, Arc::default()))
    }

    fn views_of(&mut self, images: &[ViewImage]) -> Result<Vec<View>> {
        let mut views = Vec::with_capacity(images.len());
        for image in images {
            let run = (self.run_for)(image.run)
                .ok_or_else(|| damaged(self.tree, &format!("run {} is missing", image.run)))?;
            *self.views.entry(image.run).or_insert(0) += 1;
            let (lo, hi) = (Arc::clone(&image.lo), image.hi.clone());
            views.push(View { run, lo, hi, shares: image.shares });
        }
        Ok(views)
    }
}

fn damaged(tree: TreeId, message: &str) -> Error {
    Error::corruption("MANIFEST", 0, "trunk", format!("tree {tree}: {message}"))
}
