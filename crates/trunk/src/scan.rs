//! The sources of a scan over one leaf's range: what the nodes on its path buffer, its runs and
//! its base.

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Direction, Result, SeqNo, Source};
use frondb_run::{ReadMode, RunCursor};

use crate::node::{Key, Node, Trunk};

/// What a scan reads within one leaf's range.
pub struct Segment {
    /// The leaf.
    pub leaf: Arc<Node>,
    /// Sources of runs, newest first; bounded to the leaf's range and the scan's.
    pub sources: Vec<Box<dyn Source>>,
    /// Range deletes of all nodes on the path.
    pub range_deletes: RangeDeletes,
    /// First key of the range scanned.
    pub lo: Key,
    /// First key beyond it.
    pub hi: Option<Key>,
}

/// The segment for the leaf that holds `at` (forward), or the keys just below `at` (backward;
/// `None` is the end of the tree), within `[lo, hi)`.
pub fn segment(
    trunk: &Trunk,
    direction: Direction,
    at: Option<&[u8]>,
    lo: &[u8],
    hi: Option<&[u8]>,
    snapshot: SeqNo,
) -> Result<Segment> {
    let mut path = vec![&trunk.root];
    while let Some(child) = step(path[path.len() - 1], direction, at) {
        path.push(child);
    }
    let leaf = Arc::clone(path[path.len() - 1]);
    let (mut lo, mut hi) = (Key::from(lo.max(&leaf.lo)), min_hi(hi, leaf.hi.as_deref()));
    match (direction, at) {
        (Direction::Forward, Some(at)) if *at > *lo => lo = at.into(),
        (Direction::Backward, Some(at)) if hi.as_ref().is_none_or(|hi| *at < **hi) => {
            hi = Some(at.into());
        }
        _ => {}
    }
    let mut segment =
        Segment { leaf, sources: Vec::new(), range_deletes: RangeDeletes::default(), lo, hi };
    let mut deletes = Vec::new();
    for node in path {
        if !node.range_deletes.is_empty() {
            deletes.extend(node.range_deletes.iter().cloned());
        }
        for view in node.views() {
            segment.add(view, direction, snapshot)?;
        }
    }
    segment.range_deletes = RangeDeletes::new(deletes);
    Ok(segment)
}

/// The child to go on with.
fn step<'a>(node: &'a Arc<Node>, direction: Direction, at: Option<&[u8]>) -> Option<&'a Arc<Node>> {
    match (direction, at) {
        (Direction::Forward, at) => node.child_for(at.unwrap_or(b"")),
        (Direction::Backward, None) => node.children().last(),
        (Direction::Backward, Some(at)) => {
            let children = node.children();
            let below = children.partition_point(|child| *child.lo < *at);
            children.get(below.saturating_sub(1))
        }
    }
}

fn min_hi(a: Option<&[u8]>, b: Option<&[u8]>) -> Option<Key> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b).into()),
        (a, b) => a.or(b).map(Into::into),
    }
}

impl Segment {
    fn add(&mut self, view: &crate::View, direction: Direction, snapshot: SeqNo) -> Result<()> {
        if view.run.meta().min_seq > snapshot {
            return Ok(());
        }
        let Some(cut) = view.cut(&self.lo, self.hi.as_ref(), 1) else { return Ok(()) };
        let (lo, hi) = cut.bounds();
        let run = Arc::clone(&view.run);
        self.sources.push(Box::new(RunCursor::new(run, direction, lo, hi, ReadMode::Scan)?));
        Ok(())
    }
}
