//! The sources of a scan over one leaf's range: what the nodes on its path buffer, its runs and
//! its base.

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Direction, RangeDelete, Result, SeqNo, Source};
use frondb_run::ReadMode;

use crate::base::BaseCursor;
use crate::node::{Key, Node, Trunk};
use crate::view::View;

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
    let deletes = path.iter().flat_map(|node| node.range_deletes.iter().cloned());
    let range_deletes = RangeDeletes::new(deletes);
    let mut segment = Segment { leaf, sources: Vec::new(), range_deletes, lo, hi };
    for node in path {
        for view in &node.runs {
            if let Some(part) = segment.visible_part(view, snapshot) {
                let cursor = part.cursor(direction, ReadMode::Scan)?;
                segment.sources.push(Box::new(cursor));
            }
        }
        let base = node.base().iter().filter_map(|view| segment.visible_part(view, snapshot));
        let base: Vec<View> = base.collect();
        match &base[..] {
            [] => {}
            [one] => segment.sources.push(Box::new(one.cursor(direction, ReadMode::Scan)?)),
            _ => segment.sources.push(Box::new(BaseCursor::new(base, direction, ReadMode::Scan))),
        }
    }
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
    /// The part of `view` in which the scan may see something: within its bounds, and not where a
    /// range delete hides all of the run.
    fn visible_part(&self, view: &View, snapshot: SeqNo) -> Option<View> {
        let meta = view.run.meta();
        if meta.min_seq > snapshot {
            return None;
        }
        let mut part = view.cut(&self.lo, self.hi.as_ref(), 1)?;
        let hides = |delete: &&RangeDelete| delete.seq <= snapshot && meta.max_seq < delete.seq;
        // Deletes are in the order of their first keys, so one pass finds how far they reach
        // from the left without a gap.
        for delete in self.range_deletes.iter().filter(hides) {
            if delete.covers(&part.lo) {
                part.lo = Key::from(delete.hi.as_deref()?);
            }
        }
        while let Some(delete) = self.range_deletes.iter().filter(hides).find(|delete| {
            let beyond = match (&part.hi, &delete.hi) {
                (_, None) => true,
                (None, Some(end)) => *meta.last_key < **end,
                (Some(hi), Some(end)) => **hi <= **end,
            };
            beyond && part.hi.as_ref().is_none_or(|hi| *delete.lo < **hi)
        }) {
            part.hi = Some(Key::from(&*delete.lo));
        }
        part.is_visible().then_some(part)
    }
}
