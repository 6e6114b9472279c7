//! The sources of a scan over the range of one leaf: the runs that nodes on the path buffer, and
//! the leaf's runs and base.

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Direction, Result, SeqNo, Source};
use frondb_run::{RangeAnswer, ReadMode, Run, RunCursor};

use crate::base::BaseCursor;
use crate::node::{Key, Node, Trunk};
use crate::view::View;

/// Number of entries assumed for a reader that does not say how many it needs, and the fewest
/// entries of a base's first chunk for a reader that says it.
const EXPECTED_ENTRIES: u64 = 32;

/// Largest number of expected entries that affects the first chunk of a run above the base.
const EXPECTED_ENTRIES_MAX: usize = 1024;

/// The data that a scan reads within one leaf's range.
pub struct Segment {
    /// The leaf whose range contains the segment.
    pub leaf: Arc<Node>,
    /// Sources over runs, newest first, bounded to the range of the leaf and of the scan.
    pub sources: Vec<Box<dyn Source>>,
    /// Number of sources over runs of the leaf above its base.
    pub leaf_runs: usize,
    /// Range deletes, of the nodes on the path and of the memtables, that may hide entries of the
    /// scan. A range delete may extend beyond the segment's range.
    pub range_deletes: Vec<RangeDeletes>,
    /// First key of the segment's range.
    pub lo: Key,
    /// First key after the range; `None` for no bound.
    pub hi: Option<Key>,
}

/// The position, the range and the snapshot of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// Whether the scan reads keys in ascending or in descending order.
    pub direction: Direction,
    /// Selects the leaf of the segment: the leaf with this key (forward), or the leaf with the keys
    /// just below this key (backward). `None` selects the first leaf (forward) or the last leaf
    /// (backward).
    pub at: Option<&'a [u8]>,
    /// First key of the scan.
    pub lo: &'a [u8],
    /// First key after the scan; `None` for no bound.
    pub hi: Option<&'a [u8]>,
    /// The SeqNo up to which the scan sees messages.
    pub snapshot: SeqNo,
    /// Estimated number of entries that the reader needs; 0 if unknown.
    pub expected: usize,
}

/// Returns the segment of a scan. `above` are the range deletes of memtables. A run that one of
/// them hides completely is not read, whether or not the range delete has been flushed.
///
/// # Errors
/// `Corruption` or a device error of a run's block index or filter.
pub fn segment(trunk: &Trunk, scan: &Scan<'_>, above: &[RangeDeletes]) -> Result<Segment> {
    let Scan { direction, at, lo, hi, snapshot, expected } = *scan;
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
    let deletes = above.iter().chain(path.iter().map(|node| &*node.range_deletes));
    let deletes = deletes.filter(|set| set.touches(&lo, hi.as_deref(), snapshot));
    let range_deletes = deletes.cloned().collect();
    let mut segment = Segment { leaf, sources: Vec::new(), leaf_runs: 0, range_deletes, lo, hi };
    let share = Share::new(&segment.leaf, expected);
    for node in path {
        for view in &node.runs {
            if let Some(part) = segment.visible_part(view, snapshot)
                && let Some(mut cursor) = unless_excluded(&part, direction)?
            {
                if let Some(messages) = share.of(node, view) {
                    cursor.expect(messages);
                }
                segment.leaf_runs += usize::from(node.is_leaf());
                segment.sources.push(Box::new(cursor));
            }
        }
        let base = node.base().iter().filter_map(|view| segment.visible_part(view, snapshot));
        let base: Vec<View> = base.collect();
        match &base[..] {
            [] => {}
            views => {
                let mut source: Box<dyn Source> = match views {
                    [one] => Box::new(one.cursor(direction, ReadMode::Scan)?),
                    _ => Box::new(BaseCursor::new(base, direction, ReadMode::Scan)),
                };
                if expected > 0 {
                    source.expect(expected.max(EXPECTED_ENTRIES as usize));
                }
                segment.sources.push(source);
            }
        }
    }
    Ok(segment)
}

/// Estimates how many messages of each run a reader of a leaf needs.
#[derive(Clone, Copy)]
struct Share {
    /// Messages in the leaf's base.
    base: u64,
    /// Entries that the reader needs; 0 if unknown.
    expected: u64,
}

impl Share {
    fn new(leaf: &Node, expected: usize) -> Self {
        let base = leaf.base().iter().map(View::entries).sum();
        Self { base, expected: expected.min(EXPECTED_ENTRIES_MAX) as u64 }
    }

    /// Returns the number of messages of a view to decode first; `node`, which holds the view, is
    /// the leaf or a node above it. The number is 1.5 times the view's share, by entries, of the
    /// entries that the reader needs. Decoding more of a small run would cost more than reading the
    /// base. `None` if nothing is known.
    fn of(self, node: &Node, view: &View) -> Option<usize> {
        if self.base == 0 {
            return (self.expected > 0).then_some(self.expected as usize);
        }
        let wanted = if self.expected == 0 { EXPECTED_ENTRIES } else { self.expected };
        let here = view.entries() / node.totals.leaves.max(1);
        let share = here.min(self.base) * wanted / self.base;
        Some((share + share / 2).min(wanted) as usize)
    }
}

/// Returns a cursor over a part of a run above the base; `None` if the run's filter excludes the
/// part.
fn unless_excluded(part: &View, direction: Direction) -> Result<Option<RunCursor>> {
    let answer = part.run.ask_range(&part.lo, part.hi.as_deref())?;
    if answer == RangeAnswer::Excluded {
        return Ok(None);
    }
    let cursor = part.cursor(direction, ReadMode::Scan)?;
    Ok(Some(if answer == RangeAnswer::Unprobed { cursor.unprobed() } else { cursor }))
}

/// Returns the child in which the walk down to the leaf continues; `None` at the leaf.
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
    /// Returns a source over a run that is newer than the whole trunk and not part of it yet;
    /// `None` if the scan can see none of its messages.
    ///
    /// # Errors
    /// `Corruption` or a device error of the run's block index or filter.
    pub fn source_of(
        &self,
        run: &Arc<Run>,
        direction: Direction,
        snapshot: SeqNo,
    ) -> Result<Option<Box<dyn Source>>> {
        let whole = View::whole(Arc::clone(run), Key::from([]), None);
        let Some(part) = self.visible_part(&whole, snapshot) else { return Ok(None) };
        let cursor = unless_excluded(&part, direction)?;
        Ok(cursor.map(|cursor| Box::new(cursor) as Box<dyn Source>))
    }

    /// Returns the part of `view` in which the scan may see something: cuts it to the segment's
    /// bounds, and cuts off its beginning and end as far as range deletes hide all messages there.
    /// `None` if nothing is left.
    fn visible_part(&self, view: &View, snapshot: SeqNo) -> Option<View> {
        let meta = view.run.meta();
        if meta.min_seq > snapshot {
            return None;
        }
        let mut part = view.cut(&self.lo, self.hi.as_ref(), 1)?;
        let (hidden, sets) = (meta.max_seq, &self.range_deletes);
        if sets.is_empty() {
            return part.is_visible().then_some(part);
        }
        while let Some(end) =
            sets.iter().find_map(|set| set.hidden_until(&part.lo, hidden, snapshot))
        {
            part.lo = Key::from(end?);
        }
        // If the part extends beyond the run's last key, search from just after that key, because
        // no message follows it.
        while part.is_visible() {
            let last = &*meta.last_key;
            let ends_inside = part.hi.as_ref().is_none_or(|hi| *last < **hi);
            let after_last = ends_inside.then(|| [last, &[0]].concat());
            let hi = after_last.as_deref().or(part.hi.as_deref());
            match sets.iter().find_map(|set| set.hidden_from(hi, hidden, snapshot)) {
                Some(from) => part.hi = Some(Key::from(from)),
                None => break,
            }
        }
        part.is_visible().then_some(part)
    }
}
