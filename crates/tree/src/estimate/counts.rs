//! [`Counts`]: the number of messages in a key range, from the counts of nodes, block indexes and
//! memtables. Reads block indexes, no data.

use frondb_core::sync::Arc;
use frondb_core::{Result, SeqNo};
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_trunk::Node;

use crate::estimate::key_range::{Range, disjoint, hidden_ranges};
use crate::estimate::share::share;
use crate::version::Version;

/// The number of messages in a key range, from counts alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RangeMessages {
    /// Puts, deletes and updates, obsolete ones included.
    pub all: u64,
    /// The messages of bases among `all`: each is the only message of its key in its base.
    pub base: u64,
}

/// Counts of a key range, or of a source in it.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) messages: u64,
    /// Estimated number of deletes among the messages.
    pub(super) deletes: u64,
    /// Bounds of `deletes`. If the range holds a part of a source, all deletes of the source may
    /// lie in that part, or none: a run that a queue appended to a base begins with deletes and
    /// ends with rows.
    deletes_least: u64,
    deletes_most: u64,
    /// Messages of bases, each the only message of its key in its base.
    base: u64,
    pub(super) disk_bytes: u64,
    /// Whether a node has range deletes, whose effect is not in the counts.
    pub(super) has_range_deletes: bool,
    /// Whether `deletes` is a guess: the range holds a part of a source with deletes.
    pub(super) is_rough: bool,
}

impl Counts {
    /// Returns the number of entries, if the counts bound it closely enough.
    pub(super) fn live(&self) -> Option<u64> {
        let puts = self.messages.saturating_sub(self.deletes);
        // Fewest entries: every possible delete removes a put of a base, or is itself a message of
        // a base.
        let least = self.base.saturating_sub(self.deletes_most);
        // Most entries: no put is obsolete, and no delete removes one.
        let most = self.messages.saturating_sub(self.deletes_least).max(least);
        // Close enough: the estimate is off by half at most, and samples are not much better.
        let is_near = !self.has_range_deletes && most / 2 <= least;
        is_near.then(|| u64::midpoint(puts.clamp(least, most), least))
    }

    /// Subtracts the messages that a range delete hides.
    fn hide(&mut self, hidden: Self) {
        self.messages = self.messages.saturating_sub(hidden.messages);
        self.deletes = self.deletes.saturating_sub(hidden.deletes);
        self.deletes_least = self.deletes_least.saturating_sub(hidden.deletes_most);
        self.deletes_most = self.deletes_most.saturating_sub(hidden.deletes_least);
        self.base = self.base.saturating_sub(hidden.base);
    }

    /// Adds `messages` messages of a source that has `whole` messages, of which `deletes` are
    /// deletes.
    fn add_part(&mut self, messages: u64, deletes: u64, whole: u64) {
        self.messages += messages;
        self.deletes += share(deletes, messages, whole);
        self.deletes_least += messages.saturating_sub(whole.saturating_sub(deletes));
        self.deletes_most += messages.min(deletes);
        self.is_rough |= deletes > 0 && messages < whole;
    }

    /// Adds the messages of other sources, with their deletes.
    fn join(&mut self, other: Self) {
        self.messages += other.messages;
        self.deletes += other.deletes;
        self.deletes_least += other.deletes_least;
        self.deletes_most += other.deletes_most;
        self.is_rough |= other.is_rough;
    }

    /// Returns the share `part / whole` of these counts.
    fn part(self, part: u64, whole: u64) -> Self {
        let messages = share(self.messages, part, whole);
        Self {
            messages,
            deletes: share(self.deletes, part, whole),
            deletes_least: 0,
            deletes_most: self.deletes_most.min(messages),
            base: share(self.base, part, whole),
            ..self
        }
    }
}

/// Counts the messages in a range that no range delete of a memtable hides.
pub(super) fn count(version: &Version, range: &Range) -> Result<Counts> {
    let (lo, hi) = (&range.lo[..], range.hi.as_deref());
    let mut counts = Counts::default();
    let mut data_bytes = 0;
    // Ranges hidden by the range deletes of the sources visited so far; the next source is older.
    let mut hidden: Vec<Range> = Vec::new();
    for source in version.sources() {
        let memtable = &source.memtable;
        let mut here = in_memtable(memtable, range);
        data_bytes += share(memtable.data_bytes(), here.messages, memtable.len());
        for range in &hidden {
            here.hide(in_memtable(memtable, range));
        }
        let mut runs = in_runs(source.runs(), range, SeqNo::MAX)?;
        hide_of_runs(source.runs(), &hidden, &mut runs)?;
        let deletes = memtable.range_deletes();
        if !deletes.is_empty() {
            let own = hidden_ranges(&deletes, lo, hi);
            for range in &own {
                let (before, all) = inserted_before(memtable, range.seq);
                here.hide(in_memtable(memtable, range).part(before, all));
            }
            hide_of_runs(source.runs(), &own, &mut runs)?;
            hidden.extend(own);
            hidden = disjoint(hidden);
        }
        counts.disk_bytes += runs.disk_bytes;
        counts.join(here);
        counts.join(runs);
    }
    let root = &version.trunk.root;
    let mut trunk = Counts::default();
    add_node(root, lo, hi, &mut trunk)?;
    for range in &hidden {
        let mut below = Counts::default();
        add_node(root, &range.lo, range.hi.as_deref(), &mut below)?;
        trunk.hide(below);
    }
    counts.join(trunk);
    counts.base = trunk.base;
    counts.has_range_deletes = trunk.has_range_deletes;
    // Assumes that messages in memory will compress as well as those on disk.
    let (raw, disk) = (root.totals.raw_bytes, root.totals.disk_bytes);
    let to_come = if raw == 0 { data_bytes } else { share(data_bytes, disk, raw).min(data_bytes) };
    counts.disk_bytes += trunk.disk_bytes + to_come;
    Ok(counts)
}

/// Counts the messages of a memtable in a range.
fn in_memtable(memtable: &Memtable, range: &Range) -> Counts {
    let end = range.hi.as_deref().map_or(memtable.len(), |hi| memtable.approximate_rank(hi));
    let begin = if range.lo.is_empty() { 0 } else { memtable.approximate_rank(&range.lo) };
    let messages = end.saturating_sub(begin);
    let mut counts = Counts::default();
    counts.add_part(messages, memtable.deletes(), memtable.len());
    counts
}

/// Estimates the messages of attached runs in a range with SeqNos below `before`: a range delete of
/// the same commit hides only the messages of the runs with smaller SeqNos.
fn in_runs(runs: &[Arc<Run>], range: &Range, before: SeqNo) -> Result<Counts> {
    let mut counts = Counts::default();
    for run in runs {
        let meta = run.meta();
        let end = range.hi.as_deref().map_or(Ok(meta.entries), |hi| run.rank(hi))?;
        let messages = end.saturating_sub(run.rank(&range.lo)?);
        let (first, last) = (meta.min_seq.get(), meta.max_seq.get());
        let older = before.get().clamp(first, last + 1) - first;
        let messages = share(messages, older, last + 1 - first);
        counts.add_part(messages, meta.deletes, meta.entries);
        counts.disk_bytes += share(meta.disk_bytes(), messages, meta.entries);
    }
    Ok(counts)
}

/// Subtracts the messages of attached runs that range deletes hide.
fn hide_of_runs(runs: &[Arc<Run>], deletes: &[Range], counts: &mut Counts) -> Result<()> {
    if !runs.is_empty() {
        for range in deletes {
            counts.hide(in_runs(runs, range, range.seq)?);
        }
    }
    Ok(())
}

/// Estimates the share of a memtable's messages with SeqNos below `seq`. Returns a fraction of
/// SeqNos: numerator and denominator.
fn inserted_before(memtable: &Memtable, seq: SeqNo) -> (u64, u64) {
    let first = memtable.min_seq().unwrap_or(seq).get();
    let last = memtable.max_seq().unwrap_or(seq).get().max(seq.get());
    (seq.get().saturating_sub(first), last.saturating_sub(first).max(1))
}

/// Adds the messages of a node and the nodes below it in `[lo, hi)`.
fn add_node(node: &Node, lo: &[u8], hi: Option<&[u8]>, counts: &mut Counts) -> Result<()> {
    let is_outside =
        hi.is_some_and(|hi| *hi <= *node.lo) || node.hi.as_ref().is_some_and(|end| **end <= *lo);
    if is_outside {
        return Ok(());
    }
    counts.has_range_deletes |= !node.range_deletes.is_empty();
    let is_inside = *lo <= *node.lo
        && match (hi, node.hi.as_deref()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(hi), Some(end)) => end <= hi,
        };
    if is_inside {
        let totals = &node.totals;
        counts.messages += totals.entries;
        counts.deletes += totals.deletes;
        counts.deletes_least += totals.deletes;
        counts.deletes_most += totals.deletes;
        counts.base += totals.base_keys;
        counts.disk_bytes += totals.disk_bytes;
        return Ok(());
    }
    let base = node.base().len();
    let above = node.views().count() - base;
    for (i, view) in node.views().enumerate() {
        let meta = view.run.meta();
        if view.is_hidden_by(&node.range_deletes, SeqNo::MAX) {
            continue;
        }
        let from = if *view.lo > *lo { &*view.lo } else { lo };
        let to = match (hi, view.hi.as_deref()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let end = to.map_or(Ok(meta.entries), |to| view.run.rank(to))?;
        let messages = end.saturating_sub(view.run.rank(from)?);
        counts.add_part(messages, meta.deletes, meta.entries);
        counts.base += if i >= above && meta.unique_keys { messages } else { 0 };
        counts.disk_bytes += share(meta.disk_bytes(), messages, meta.entries);
    }
    for child in node.children() {
        add_node(child, lo, hi, counts)?;
    }
    Ok(())
}

/// Estimates the messages of `[lo, hi)` in bases that have one message for each key. A base that
/// keeps several messages of a key for open snapshots does not count.
pub(super) fn consolidated(version: &Version, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
    let mut counts = Counts::default();
    add_node(&version.trunk.root, lo, hi, &mut counts)?;
    Ok(counts.base)
}

/// Returns the number of messages of a range, hidden messages included.
pub(super) fn messages(version: &Version, range: &Range) -> Result<u64> {
    Ok(range_messages(version, &range.lo, range.hi.as_deref())?.all)
}

/// Estimates the number of messages in `[lo, hi)`, hidden and obsolete ones included.
///
/// # Errors
/// `Corruption` or a device error of a block index.
pub fn range_messages(version: &Version, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeMessages> {
    let range = &Range::new(lo, hi);
    let mut counts = Counts::default();
    add_node(&version.trunk.root, &range.lo, range.hi.as_deref(), &mut counts)?;
    for source in version.sources() {
        counts.messages += in_memtable(&source.memtable, range).messages;
        counts.messages += in_runs(source.runs(), range, SeqNo::MAX)?.messages;
    }
    Ok(RangeMessages { all: counts.messages, base: counts.base.min(counts.messages) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base of a queue's last leaf ends with a run that was appended: 11,000 deletes, then
    /// 3,000 rows. A range of 1,500 rows has no delete; with the run's share of deletes, the
    /// estimate would be 321 rows.
    #[test]
    fn a_part_of_a_run_does_not_have_the_share_of_deletes_of_the_whole() {
        let mut counts = Counts { base: 1500, ..Counts::default() };
        counts.add_part(1500, 11_000, 14_000);
        assert_eq!(counts.live(), None, "only samples can tell");
    }

    #[test]
    fn a_part_that_must_have_rows_has_them() {
        // Ten deletes at most: 1,490 to 1,500 rows.
        let mut counts = Counts { base: 1500, ..Counts::default() };
        counts.add_part(1500, 10, 14_000);
        let live = counts.live().unwrap();
        assert!((1490..=1500).contains(&live), "{live}");
        // At least 1,400 deletes, which may have removed messages of the base.
        let mut counts = Counts { base: 1500, ..Counts::default() };
        counts.add_part(1500, 13_900, 14_000);
        assert_eq!(counts.live(), None);
    }
}
