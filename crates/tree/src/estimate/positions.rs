//! Short ranges, counted by positions of their bounds, without merging.
//!
//! An optimizer asks for the number of entries before each short query (`short.rs`). Opening a
//! cursor in each source and merging a hundred keys costs as much as the query itself: 33 of 190 us
//! in a table that is updated all the time. Searching the bounds in each source costs a fraction of
//! that, and suffices in two cases:
//! - All entries come from one source, which has one message for each key and no delete. Their
//!   number is the distance between two positions.
//! - Most entries come from the bases of leaves, which have one put for each key. The newer
//!   messages in other sources change the number of entries by at most their own number.
//!
//! The search reads the blocks that a merge would read first.

use frondb_core::{Result, SeqNo};
use frondb_memtable::MemCursor;
use frondb_run::Run;
use frondb_trunk::{Node, View};
use smallvec::SmallVec;

use crate::version::Version;

/// The number of base entries serves as an estimate for the range if the messages above the bases
/// can remove at most 1/4 of these entries. The messages above may add as many entries as the bases
/// have, so the estimate is at least half of the true number and at most 4/3 of it.
const REMOVED_DIVISOR: u64 = 4;

/// The result of counting a range by positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// The number of entries.
    Exactly(u64),
    /// An estimate of the number of entries: between half of the true number and 4/3 of it.
    About(u64),
    /// The bases alone have more entries than the limit.
    FarMore,
    /// Only a merge can decide.
    Unknown,
}

/// Smallest count of base entries for an estimate: merging fewer keys is cheap.
const ABOUT_MIN: u64 = 8;

#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) lo: &'a [u8],
    pub(super) hi: Option<&'a [u8]>,
}

impl<'a> Bounds<'a> {
    /// Returns the part of the range that a view covers.
    fn of_view(self, view: &'a View) -> Self {
        let hi = match (self.hi, view.hi.as_deref()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { lo: self.lo.max(&view.lo), hi }
    }
}

/// The entries and runs of a trunk's nodes in a range.
struct Trunk<'a> {
    bounds: Bounds<'a>,
    snapshot: SeqNo,
    /// Counting stops above this number of entries.
    most: u64,
    /// Entries of bases.
    base: u64,
    /// The runs above the bases, with the part of the range that each view covers.
    above: SmallVec<[(&'a Run, Bounds<'a>); 8]>,
}

/// Returns whether every message of the run is a put or an update that the snapshot sees, and no
/// two have the same key.
fn has_one_value_a_key(run: &Run, snapshot: SeqNo) -> bool {
    let meta = run.meta();
    meta.deletes == 0 && meta.unique_keys && meta.max_seq <= snapshot
}

impl<'a> Trunk<'a> {
    /// Counts the entries of the bases in `node` and the nodes below it, and collects their other
    /// runs. Returns a result if the count can end here.
    fn add(&mut self, node: &'a Node) -> Result<Option<Found>> {
        let Bounds { lo, hi } = self.bounds;
        let ends_before = node.hi.as_ref().is_some_and(|end| **end <= *lo);
        if ends_before || hi.is_some_and(|hi| *hi <= *node.lo) {
            return Ok(None);
        }
        if !node.range_deletes.is_empty() {
            return Ok(Some(Found::Unknown));
        }
        for view in node.base() {
            let Bounds { lo, hi } = self.bounds.of_view(view);
            let entries = view.run.count_between(lo, hi, self.most)?;
            let Some(base) = entries.map(|n| self.base + n).filter(|&n| n <= self.most) else {
                return Ok(Some(Found::FarMore));
            };
            if base > self.base && !has_one_value_a_key(&view.run, self.snapshot) {
                return Ok(Some(Found::Unknown));
            }
            self.base = base;
        }
        let above = node.views().count() - node.base().len();
        let views = node.views().take(above);
        self.above.extend(views.map(|view| (&*view.run, self.bounds.of_view(view))));
        for child in node.children() {
            if let Some(found) = self.add(child)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Messages of the sources above the bases.
#[derive(Default)]
struct Above {
    messages: u64,
    /// The number of sources with messages in the range.
    sources: u64,
    /// The number of messages that may be deletes.
    deletes: u64,
    /// Whether a run may have fewer entries in the range than messages.
    has_doubt: bool,
}

impl Above {
    fn add(&mut self, messages: u64) {
        self.messages = self.messages.saturating_add(messages);
        self.sources += u64::from(messages > 0);
    }

    /// Adds the messages of a run; stops counting above `most`.
    fn add_run(&mut self, run: &Run, bounds: Bounds<'_>, snapshot: SeqNo, most: u64) -> Result<()> {
        let messages = run.count_between(bounds.lo, bounds.hi, most)?.unwrap_or(u64::MAX);
        if messages > 0 {
            self.has_doubt |= messages > most || !has_one_value_a_key(run, snapshot);
            let may_delete = run.meta().deletes > 0;
            self.deletes = self.deletes.saturating_add(if may_delete { messages } else { 0 });
            self.add(messages);
        }
        Ok(())
    }
}

/// Counts the entries of a range by searching its bounds in all sources. `in_memory` has a cursor
/// over the range for each memtable. If all messages are in one memtable, and at most `sorted`,
/// their keys may be counted by sorting. Stops above `most` entries of bases.
pub(super) fn count_by_positions(
    version: &Version,
    snapshot: SeqNo,
    in_memory: &[MemCursor],
    bounds: Bounds<'_>,
    (most, sorted): (u64, u64),
) -> Result<Found> {
    if version.memtables().any(|memtable| memtable.range_delete_count() > 0) {
        return Ok(Found::Unknown);
    }
    let mut trunk = Trunk { bounds, snapshot, most, base: 0, above: SmallVec::new() };
    if let Some(found) = trunk.add(&version.trunk.root)? {
        return Ok(found);
    }
    let mut above = Above::default();
    for (source, cursor) in version.sources().zip(in_memory) {
        above.add(cursor.messages());
        for run in source.runs() {
            above.add_run(run, bounds, snapshot, most)?;
        }
    }
    for &(run, bounds) in &trunk.above {
        above.add_run(run, bounds, snapshot, most)?;
    }
    let base = trunk.base;
    if above.messages == 0 {
        return Ok(Found::Exactly(base));
    }
    let memtables = || version.memtables().zip(in_memory);
    if base == 0 && above.sources == 1 && !above.has_doubt {
        let single = memtables().find(|(_, cursor)| cursor.messages() > 0);
        let count = match single {
            None => Some(above.messages),
            Some((memtable, _)) if memtable.deletes() > 0 || above.messages > sorted => None,
            Some((_, cursor)) => cursor.count_keys(),
        };
        return Ok(count.map_or(Found::Unknown, Found::Exactly));
    }
    if base < ABOUT_MIN || above.messages > base {
        return Ok(Found::Unknown);
    }
    let may_delete = memtables().filter(|(memtable, _)| memtable.deletes() > 0);
    let deletes = above.deletes + may_delete.map(|(_, cursor)| cursor.deletes()).sum::<u64>();
    Ok(if deletes > base / REMOVED_DIVISOR { Found::Unknown } else { Found::About(base) })
}
