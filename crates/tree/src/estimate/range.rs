//! How many entries and bytes a key range holds, estimated in O(height).
//!
//! # What is counted, and what is sampled
//! Counts are cheap: totals of nodes, block indexes at the ends of the range, and ranks in
//! memtables give the puts `P` and deletes `D` of the range. Updates count as puts. What cannot be
//! known from counts is how many puts a newer message of the same key makes obsolete, and how many
//! deletes meet anything: a delete of an absent key leaves no trace but itself. So the estimate is
//!
//! ```text
//!   entries = P * (1 - o) - D * h        o: share of puts that a newer put overwrites
//!                                        h: share of deletes that meet a put
//! ```
//!
//! with `o` and `h` taken from samples in strata of the messages in the range (`sample.rs`), and at its ends: a
//! sample reads a block of each source there. If they differ much, as where one end is deleted, more
//! samples look for where that changes (`strata.rs`). Where the counts alone leave little room, as in a tree that has
//! been merged, nothing is sampled and no data is read. What a short range holds, which an optimizer asks
//! before each of many short queries, is counted.
//!
//! Range deletes in memtables take away what their ranges hold in older sources, and of their own
//! memtable the part that was inserted before, by SeqNo. Those in nodes show in the samples.
//!
//! It is within a factor of two where keys are written much alike across the range, or in one way up to some
//! place and in another behind it; nothing bounds the error when a small part in the middle is overwritten or
//! deleted in quite another way.

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Result, SeqNo};
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_trunk::Node;

use crate::estimate::sample::{COUNTED_KEYS, count_short};
use crate::estimate::strata::{Found, look};
use crate::version::Version;

/// An estimate of what a key range holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RangeEstimate {
    /// Entries: keys that have a value.
    pub entries: u64,
    /// Bytes on disk, those of obsolete messages included, and what the range's messages in memory
    /// will take there.
    pub disk_bytes: u64,
}

/// How many messages a key range has, by counts alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RangeMessages {
    /// Puts, deletes and updates, obsolete ones too.
    pub all: u64,
    /// Those of them that are consolidated: each the only one of its key there.
    pub base: u64,
}

/// Range deletes of a memtable that an estimate looks at; more are taken for nothing.
const RANGE_DELETES_MAX: usize = 256;

/// Estimates `[lo, hi)` as of `snapshot`, which must not be older than the version.
pub fn estimate(
    version: &Version,
    snapshot: SeqNo,
    lo: &[u8],
    hi: Option<&[u8]>,
) -> Result<RangeEstimate> {
    if hi.is_some_and(|hi| hi <= lo) {
        return Ok(RangeEstimate::default());
    }
    let range = Range::new(lo, hi);
    let sum = count(version, &range)?;
    let entries = match sum.live() {
        Some(live) => live,
        None => match count_short(version, snapshot, lo, hi, COUNTED_KEYS)? {
            Some(count) => count,
            None => sampled(version, snapshot, &range, sum)?,
        },
    };
    Ok(RangeEstimate { entries, disk_bytes: sum.disk_bytes })
}

/// The entries of a range with these messages, by samples.
fn sampled(version: &Version, snapshot: SeqNo, range: &Range, sum: Sum) -> Result<u64> {
    let sample = match look(version, snapshot, range)? {
        Found::Entries(entries) => return Ok(entries),
        Found::Alike(sample) => sample,
    };
    Ok(if sample.is_empty() && sum.range_deletes {
        // Runs of which a range delete hides all are no sources.
        0
    } else if sum.rough {
        let deletes = sample.deletes_of(sum.entries);
        sample.live(sum.entries - deletes, deletes)
    } else {
        sample.live(sum.entries.saturating_sub(sum.deletes), sum.deletes)
    })
}

/// A key range; of a range delete with its SeqNo.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Range {
    pub(crate) lo: Vec<u8>,
    pub(crate) hi: Option<Vec<u8>>,
    seq: SeqNo,
}

impl Range {
    pub(crate) fn new(lo: &[u8], hi: Option<&[u8]>) -> Self {
        Self { lo: lo.to_vec(), hi: hi.map(<[u8]>::to_vec), seq: SeqNo::MIN }
    }

    pub(crate) fn whole() -> Self {
        Self { lo: Vec::new(), hi: None, seq: SeqNo::MIN }
    }

    pub(crate) fn up_to(self, hi: Vec<u8>) -> Self {
        Self { hi: Some(hi), ..self }
    }

    pub(crate) fn below(hi: Vec<u8>) -> Self {
        Self::whole().up_to(hi)
    }
}

#[derive(Clone, Copy, Default)]
struct Sum {
    /// Messages.
    entries: u64,
    /// Deletes among them, about.
    deletes: u64,
    /// As few and as many as there may be: of a source that is in it in part all of its deletes may lie in
    /// that part, or outside. A run that was appended to a base, of a queue say, is dead at its beginning and
    /// live at its end.
    deletes_least: u64,
    deletes_most: u64,
    /// Messages of bases, each the only one of its key there.
    base: u64,
    disk_bytes: u64,
    /// Some node has range deletes, whose effect is not in the sums.
    range_deletes: bool,
    /// A source that has deletes is in it in part: how many of them is a guess.
    rough: bool,
}

impl Sum {
    /// Entries, where the counts leave little room for them.
    fn live(&self) -> Option<u64> {
        let puts = self.entries.saturating_sub(self.deletes);
        // If every delete there may be met a put of the bases, or is one of their messages; and if none did.
        let least = self.base.saturating_sub(self.deletes_most);
        let most = self.entries.saturating_sub(self.deletes_least).max(least);
        // Off by half at most then, and samples are not much better.
        let is_near = !self.range_deletes && most / 2 <= least;
        is_near.then(|| u64::midpoint(puts.clamp(least, most), least))
    }

    /// Takes away what a range delete hides.
    fn hide(&mut self, hidden: Self) {
        self.entries = self.entries.saturating_sub(hidden.entries);
        self.deletes = self.deletes.saturating_sub(hidden.deletes);
        self.deletes_least = self.deletes_least.saturating_sub(hidden.deletes_most);
        self.deletes_most = self.deletes_most.saturating_sub(hidden.deletes_least);
        self.base = self.base.saturating_sub(hidden.base);
    }

    /// Adds messages of a source that holds `whole` in all, `deletes` of which are deletes.
    fn add_part(&mut self, entries: u64, deletes: u64, whole: u64) {
        self.entries += entries;
        self.deletes += share(deletes, entries, whole);
        self.deletes_least += entries.saturating_sub(whole.saturating_sub(deletes));
        self.deletes_most += entries.min(deletes);
        self.rough |= deletes > 0 && entries < whole;
    }

    /// Adds messages that come with their deletes.
    fn join(&mut self, other: Self) {
        self.entries += other.entries;
        self.deletes += other.deletes;
        self.deletes_least += other.deletes_least;
        self.deletes_most += other.deletes_most;
        self.rough |= other.rough;
    }

    fn part(self, of: u64, whole: u64) -> Self {
        let entries = share(self.entries, of, whole);
        Self {
            entries,
            deletes: share(self.deletes, of, whole),
            deletes_least: 0,
            deletes_most: self.deletes_most.min(entries),
            base: share(self.base, of, whole),
            ..self
        }
    }
}

/// What the range holds that no range delete of a memtable hides.
fn count(version: &Version, range: &Range) -> Result<Sum> {
    let (lo, hi) = (&range.lo[..], range.hi.as_deref());
    let mut sum = Sum::default();
    let mut data_bytes = 0;
    // Ranges that a memtable newer than the next source deletes.
    let mut hidden: Vec<Range> = Vec::new();
    for slot in version.sources() {
        let memtable = &slot.memtable;
        let mut here = in_memtable(memtable, range);
        data_bytes += share(memtable.data_bytes(), here.entries, memtable.len());
        for range in &hidden {
            here.hide(in_memtable(memtable, range));
        }
        let mut runs = in_runs(slot.runs(), range, SeqNo::MAX)?;
        hide_of_runs(slot.runs(), &hidden, &mut runs)?;
        let deletes = memtable.range_deletes();
        if !deletes.is_empty() {
            let own = ranges_of(&deletes, lo, hi);
            for range in &own {
                let (before, all) = inserted_before(memtable, range.seq);
                here.hide(in_memtable(memtable, range).part(before, all));
            }
            hide_of_runs(slot.runs(), &own, &mut runs)?;
            hidden.extend(own);
            hidden = disjoint(hidden);
        }
        sum.disk_bytes += runs.disk_bytes;
        sum.join(here);
        sum.join(runs);
    }
    let root = &version.trunk.root;
    let mut trunk = Sum::default();
    add(root, lo, hi, &mut trunk)?;
    for range in &hidden {
        let mut below = Sum::default();
        add(root, &range.lo, range.hi.as_deref(), &mut below)?;
        trunk.hide(below);
    }
    sum.join(trunk);
    sum.base = trunk.base;
    sum.range_deletes = trunk.range_deletes;
    // Compressed as well as what is there already.
    let (raw, disk) = (root.totals.raw_bytes, root.totals.disk_bytes);
    let to_come = if raw == 0 { data_bytes } else { share(data_bytes, disk, raw).min(data_bytes) };
    sum.disk_bytes += trunk.disk_bytes + to_come;
    Ok(sum)
}

/// Messages of a memtable in a range.
fn in_memtable(memtable: &Memtable, range: &Range) -> Sum {
    let end = range.hi.as_deref().map_or(memtable.len(), |hi| memtable.approximate_rank(hi));
    let begin = if range.lo.is_empty() { 0 } else { memtable.approximate_rank(&range.lo) };
    let entries = end.saturating_sub(begin);
    let mut sum = Sum::default();
    sum.add_part(entries, memtable.deletes(), memtable.len());
    sum
}

/// Messages of runs above the trunk in a range, about, that are older than `before`: a range delete
/// may have come between those of one commit.
fn in_runs(runs: &[Arc<Run>], range: &Range, before: SeqNo) -> Result<Sum> {
    let mut sum = Sum::default();
    for run in runs {
        let meta = run.meta();
        let end = range.hi.as_deref().map_or(Ok(meta.entries), |hi| run.rank(hi))?;
        let entries = end.saturating_sub(run.rank(&range.lo)?);
        let (first, last) = (meta.min_seq.get(), meta.max_seq.get());
        let older = before.get().clamp(first, last + 1) - first;
        let entries = share(entries, older, last + 1 - first);
        sum.add_part(entries, meta.deletes, meta.entries);
        sum.disk_bytes += share(meta.disk_bytes(), entries, meta.entries);
    }
    Ok(sum)
}

/// Takes away what range deletes hide of runs.
fn hide_of_runs(runs: &[Arc<Run>], deletes: &[Range], sum: &mut Sum) -> Result<()> {
    if !runs.is_empty() {
        for range in deletes {
            sum.hide(in_runs(runs, range, range.seq)?);
        }
    }
    Ok(())
}

/// How far into the memtable's life a message at `seq` came: so much of so much.
fn inserted_before(memtable: &Memtable, seq: SeqNo) -> (u64, u64) {
    let first = memtable.min_seq().unwrap_or(seq).get();
    let last = memtable.max_seq().unwrap_or(seq).get().max(seq.get());
    (seq.get().saturating_sub(first), last.saturating_sub(first).max(1))
}

/// The range deletes within `[lo, hi)`, as disjoint ranges.
fn ranges_of(deletes: &RangeDeletes, lo: &[u8], hi: Option<&[u8]>) -> Vec<Range> {
    let within = deletes.clip(lo, hi);
    let ranges = within.iter().take(RANGE_DELETES_MAX).map(|delete| Range {
        lo: delete.lo.to_vec(),
        hi: delete.hi.as_ref().map(|hi| hi.to_vec()),
        seq: delete.seq,
    });
    disjoint(ranges.filter(|range| range.hi.as_ref().is_none_or(|hi| range.lo < *hi)).collect())
}

/// Joins ranges that overlap; the newest SeqNo stands for all of them.
fn disjoint(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort();
    let mut joined: Vec<Range> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.hi.as_ref().is_none_or(|hi| range.lo <= *hi) => {
                last.seq = last.seq.max(range.seq);
                last.hi = match (last.hi.take(), range.hi) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    _ => None,
                };
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// Adds what the trunk holds in `[lo, hi)`.
fn add(node: &Node, lo: &[u8], hi: Option<&[u8]>, sum: &mut Sum) -> Result<()> {
    let outside =
        hi.is_some_and(|hi| *hi <= *node.lo) || node.hi.as_ref().is_some_and(|end| **end <= *lo);
    if outside {
        return Ok(());
    }
    sum.range_deletes |= !node.range_deletes.is_empty();
    let whole = *lo <= *node.lo
        && match (hi, node.hi.as_deref()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(hi), Some(end)) => end <= hi,
        };
    if whole {
        let totals = &node.totals;
        sum.entries += totals.entries;
        sum.deletes += totals.deletes;
        sum.deletes_least += totals.deletes;
        sum.deletes_most += totals.deletes;
        sum.base += totals.base_keys;
        sum.disk_bytes += totals.disk_bytes;
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
        let entries = end.saturating_sub(view.run.rank(from)?);
        sum.add_part(entries, meta.deletes, meta.entries);
        sum.base += if i >= above && meta.one_a_key { entries } else { 0 };
        sum.disk_bytes += share(meta.disk_bytes(), entries, meta.entries);
    }
    for child in node.children() {
        add(child, lo, hi, sum)?;
    }
    Ok(())
}

pub(crate) fn share(whole: u64, part: u64, of: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(of.max(1))) as u64
}

/// Messages in the range, hidden ones too.
pub(crate) fn messages(version: &Version, range: &Range) -> Result<u64> {
    Ok(range_messages(version, &range.lo, range.hi.as_deref())?.all)
}

/// About how many messages of the range are consolidated: each has a key of its own. Those of
/// bases with several for a key, which open snapshots kept, are not among them.
pub(crate) fn consolidated(version: &Version, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
    let mut sum = Sum::default();
    add(&version.trunk.root, lo, hi, &mut sum)?;
    Ok(sum.base)
}

/// The same, with those of bases.
pub fn range_messages(version: &Version, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeMessages> {
    let range = &Range::new(lo, hi);
    let mut sum = Sum::default();
    add(&version.trunk.root, &range.lo, range.hi.as_deref(), &mut sum)?;
    for slot in version.sources() {
        sum.entries += in_memtable(&slot.memtable, range).entries;
        sum.entries += in_runs(slot.runs(), range, SeqNo::MAX)?.entries;
    }
    Ok(RangeMessages { all: sum.entries, base: sum.base.min(sum.entries) })
}

/// Bounds of the keys that there are in the range.
pub(crate) fn ends(version: &Version, range: &Range) -> Option<(Vec<u8>, Vec<u8>)> {
    let root = &version.trunk.root;
    let mut least = least_key(root).map(<[u8]>::to_vec);
    let mut most = root.max_key().map(<[u8]>::to_vec);
    let mut reach = |first: Option<Vec<u8>>, last: Option<Vec<u8>>| {
        least = match (least.take(), first) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        most = most.take().max(last);
    };
    for slot in version.sources() {
        reach(slot.memtable.first_key(), slot.memtable.last_key());
        for run in slot.runs() {
            let meta = run.meta();
            reach(Some(meta.first_key.to_vec()), Some(meta.last_key.to_vec()));
        }
    }
    let most = match &range.hi {
        Some(hi) => most?.min(hi.clone()),
        None => most?,
    };
    let least = least?.max(range.lo.clone());
    (least < most).then_some((least, most))
}

fn least_key(node: &Node) -> Option<&[u8]> {
    let own = node.views().map(frondb_trunk::View::first_key).min();
    let below = node.children().iter().find_map(|child| least_key(child));
    match (own, below) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Halvings of the key space in search of a place among the messages: enough for its 16 bytes.
const HALVINGS: usize = 128;

/// The keys between two others as numbers: the sixteen bytes behind what both begin with.
pub(crate) struct KeySpace {
    prefix: Vec<u8>,
    pub(crate) from: u128,
    pub(crate) to: u128,
}

impl KeySpace {
    pub(crate) fn between(least: &[u8], most: &[u8]) -> Self {
        let common = least.iter().zip(most).take_while(|(a, b)| a == b).count();
        let number = |key: &[u8]| {
            let mut bytes = [0; 16];
            let rest = &key[common..];
            let n = rest.len().min(16);
            bytes[..n].copy_from_slice(&rest[..n]);
            u128::from_be_bytes(bytes)
        };
        Self { prefix: least[..common].to_vec(), from: number(least), to: number(most) }
    }

    pub(crate) fn key(&self, number: u128) -> Vec<u8> {
        [&self.prefix[..], &number.to_be_bytes()].concat()
    }

    /// Halves what lies from `lowest` on until a key has `wanted` messages below it, or up to `near` more or
    /// fewer. Returns the last number with fewer, and that of the key.
    pub(crate) fn find(
        &self,
        lowest: u128,
        wanted: u64,
        near: u64,
        below: impl Fn(Vec<u8>) -> Result<u64>,
    ) -> Result<(u128, u128)> {
        let (mut from, mut to) = (lowest, self.to);
        for _ in 0..HALVINGS {
            if to.saturating_sub(from) <= 1 {
                break;
            }
            let middle = u128::midpoint(from, to);
            let found = below(self.key(middle))?;
            if found < wanted {
                from = middle
            } else {
                to = middle
            }
            if found.abs_diff(wanted) <= near {
                to = middle;
                break;
            }
        }
        Ok((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base of a queue's last leaf ends with a run that was appended: 11,000 deletes, then 3,000 rows. A
    /// range of rows has no delete, and the run's share of deletes would make 321 of its 1,500 rows.
    #[test]
    fn a_part_of_a_run_does_not_have_the_share_of_deletes_of_the_whole() {
        let mut sum = Sum { base: 1500, ..Sum::default() };
        sum.add_part(1500, 11_000, 14_000);
        assert_eq!(sum.live(), None, "only samples can tell");
    }

    #[test]
    fn a_part_that_must_have_rows_has_them() {
        // Ten deletes at most: 1,490 to 1,500 rows.
        let mut sum = Sum { base: 1500, ..Sum::default() };
        sum.add_part(1500, 10, 14_000);
        let live = sum.live().unwrap();
        assert!((1490..=1500).contains(&live), "{live}");
        // And 1,400 deletes at least, of which the base's messages may have been met.
        let mut sum = Sum { base: 1500, ..Sum::default() };
        sum.add_part(1500, 13_900, 14_000);
        assert_eq!(sum.live(), None);
    }
}
