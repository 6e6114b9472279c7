//! [`Stowed`]: the trunk of a tree that nothing uses, encoded as the manifest encodes it, with the
//! hints of its node.
//!
//! ```text
//!   flushes                       number of flushes of the version
//!   the root                      a leaf: `NodeImage`
//!   which hints are not 0         10 bits, then the compaction hints that are not 0
//!   run count, then each run      `RunMeta`
//! ```
//!
//! In memory only. Numbers are varints.
//!
//! Invariant: nothing else refers to the version, its node or its runs. So a run never has two
//! handles, one of which could release the run's extents while the other is read. Opening a stowed
//! tree gives exactly the version that was stowed: [`Stowed::of`] decodes the bytes and compares.

use std::collections::HashMap;

use frondb_core::codec::{Reader, Truncated, put_varint};
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{RunId, TreeId};
use frondb_run::{Run, RunEnv, RunMeta};
use frondb_space::Hold;
use frondb_trunk::format::{BodyImage, NodeImage, ViewImage};
use frondb_trunk::{Body, CompactionHints, Node, Trunk, View};

use crate::source::MemSource;
use crate::version::Version;

/// A leaf with more views than this is not stowed, so that opening a tree takes microseconds.
const VIEWS_MAX: usize = 8;
/// A leaf that needs more bytes than this is not stowed. With so few views, most of the bytes are
/// keys.
const BYTES_MAX: usize = 2048;

/// A tree without memtables whose trunk is a small leaf. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stowed(Arc<[u8]>);

/// The decoded parts of a stowed tree.
#[derive(PartialEq, Eq, Debug)]
pub struct StowedParts {
    flushes: u64,
    hints: [u64; 10],
    /// The root, which is a leaf.
    pub root: NodeImage,
    /// The runs of the root's views, each once.
    pub runs: Vec<RunMeta>,
}

/// The shared objects that a stowed tree needs when it is opened.
pub(crate) struct Surroundings<'a> {
    pub(crate) tree: TreeId,
    pub(crate) empty: &'a Arc<MemSource>,
    pub(crate) env: &'a Arc<RunEnv>,
    /// From the tree's options.
    pub(crate) filter_prefix: Option<u16>,
}

impl Stowed {
    /// Stows a version to which the caller has the only reference. `None` if the version has
    /// memtables, noted damage or more than a small leaf, if something else refers to a part of the
    /// version, or if [`open`](Self::open) would not restore it exactly.
    pub(crate) fn of(version: &mut Version, around: &Surroundings<'_>) -> Option<Self> {
        if !Arc::ptr_eq(&version.active, around.empty)
            || !version.frozen.is_empty()
            || !Hold::is_unused(&version.hold)
        {
            return None;
        }
        let flushes = version.flushes;
        let root = Arc::get_mut(&mut version.trunk.root)?;
        if !root.is_leaf() || root.views().count() > VIEWS_MAX {
            return None;
        }
        let hints = Arc::get_mut(&mut root.hints)?.numbers()?;
        let mut runs: Vec<&Arc<Run>> = Vec::new();
        for view in root.views() {
            if runs.iter().all(|run| run.meta().id != view.run.meta().id) {
                runs.push(&view.run);
            }
        }
        let all_own = runs.iter().all(|run| {
            let views = root.views().filter(|view| Arc::ptr_eq(&view.run, run));
            run.can_be_made_again(views.count()) && run.filter_prefix() == around.filter_prefix
        });
        if !all_own {
            return None;
        }
        let runs = runs.iter().map(|run| run.meta().clone()).collect();
        let parts = StowedParts { flushes, hints, root: NodeImage::of(root), runs };
        let bytes = parts.encode();
        let is_same = StowedParts::decode(&bytes) == Ok(parts);
        debug_assert!(is_same, "tree {}: what is stowed is not what was there", around.tree);
        (is_same && bytes.len() <= BYTES_MAX).then(|| Self(bytes.into()))
    }

    /// Returns the number of bytes of memory that the stowed tree takes.
    pub(crate) fn bytes(&self) -> u64 {
        // The two reference counts, and rounding of the allocator.
        self.0.len() as u64 + 24
    }

    /// Returns the decoded parts of the tree.
    #[must_use]
    pub fn parts(&self) -> StowedParts {
        // The bytes were decoded once when they were made, and are immutable.
        StowedParts::decode(&self.0).unwrap_or_else(|_| unreachable!("they were decoded before"))
    }

    /// Returns the version that was stowed.
    pub(crate) fn open(&self, around: &Surroundings<'_>) -> Version {
        let StowedParts { flushes, hints, root, runs } = self.parts();
        let make =
            |meta: RunMeta| (meta.id, Run::new(meta, around.filter_prefix, Arc::clone(around.env)));
        let runs: HashMap<RunId, Arc<Run>> = runs.into_iter().map(make).collect();
        let views = |images: Vec<ViewImage>| -> Vec<View> {
            let view = |ViewImage { run, lo, hi, shares }: ViewImage| {
                // `of` stowed every run together with its views.
                let run = runs.get(&run).unwrap_or_else(|| unreachable!("run {run} is stowed"));
                View { run: Arc::clone(run), lo, hi, shares }
            };
            images.into_iter().map(view).collect()
        };
        let NodeImage { id, lo, hi, runs: newer, range_deletes, body } = root;
        let BodyImage::Leaf(base) = body else { unreachable!("only leaves are stowed") };
        let (newer, body) = (views(newer), Body::Leaf { base: views(base) });
        let range_deletes = Arc::new(RangeDeletes::new(range_deletes));
        let hints = Arc::new(CompactionHints::from_numbers(hints));
        Version {
            active: Arc::clone(around.empty),
            frozen: Vec::new(),
            trunk: Trunk {
                tree: around.tree,
                root: Node::new(id, lo, hi, newer, range_deletes, body, hints),
            },
            hold: Hold::new(&around.env.space),
            flushes,
        }
    }
}

impl StowedParts {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        put_varint(&mut out, self.flushes);
        self.root.encode(&mut out);
        let bits = (0..10).filter(|&at| self.hints[at] != 0).fold(0, |bits, at| bits | 1 << at);
        put_varint(&mut out, bits);
        for number in self.hints.into_iter().filter(|number| *number != 0) {
            put_varint(&mut out, number);
        }
        put_varint(&mut out, self.runs.len() as u64);
        for run in &self.runs {
            run.encode(&mut out);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, Truncated> {
        let mut input = Reader::new(bytes);
        let flushes = input.varint()?;
        let root = NodeImage::decode(&mut input)?;
        let (mut hints, bits) = ([0; 10], input.varint()?);
        for number in hints.iter_mut().enumerate().filter(|(at, _)| bits >> at & 1 == 1) {
            *number.1 = input.varint()?;
        }
        let mut runs = Vec::new();
        for _ in 0..input.varint()? {
            runs.push(RunMeta::decode(&mut input)?);
        }
        Ok(Self { flushes, hints, root, runs })
    }
}
