//! Samples of a tree's messages: what an estimate (`estimate.rs`) cannot know from counts.
//!
//! At some places of a long range (`strata.rs`) all messages are looked at, to learn which share of them is
//! obsolete. In a short one the entries are counted, or, where keys are written all the time and so lie in every array
//! of a memtable, the first of them, which stand for the others. Either reads a block or two of each
//! source.

use std::ops::Bound;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Direction, MessageKind, Result, SeqNo, Source};
use frondb_memtable::{MemCursor, Memtable};
use frondb_merge::Merger;
use frondb_trunk::segment;

use crate::estimate::range::{consolidated, share};
use crate::estimate::single::count_single;
use crate::version::Version;

/// Messages of a sample of a long range.
pub(crate) const PROBE_MESSAGES: u64 = 256;

/// Keys of a range that are counted one by one for an estimate, at most.
pub(crate) const COUNTED_KEYS: u64 = 128;

/// How many times as many keys as asked for counts must show, so that none are counted one by one.
const KEYS_KNOWN_FACTOR: u64 = 4;

/// Messages in memory for each key asked for, with more of which keys are not all looked at.
const HOT_FACTOR: u64 = 2;

/// Of so many keys one is looked at then. The last of these only ends the others: of 128 keys there are
/// sixteen, which is what a memtable hands out at first.
const HOT_SHARE: u64 = 8;

/// Fewer keys than this stand for no others: who asks for one or two wants to know whether there are any.
const LEAST_SAMPLE: u64 = 8;

/// What samples found of complete keys.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sample {
    puts: u64,
    overwritten: u64,
    deletes: u64,
    met: u64,
    /// Messages that a range delete hides.
    hidden: u64,
}

/// The messages of one key in a sample.
#[derive(Clone, Copy, Default)]
struct OneKey {
    puts: u64,
    deletes: u64,
    /// The newest is a put that nothing hides.
    live: bool,
}

impl Sample {
    fn add(&mut self, key: OneKey) {
        self.puts += key.puts;
        self.deletes += key.deletes;
        if key.live {
            self.overwritten += key.puts - 1;
        } else if key.puts > 0 && key.deletes > 0 {
            self.overwritten += key.puts - 1;
            self.met += 1;
        } else {
            // All of them lie below a range delete.
            self.overwritten += key.puts;
        }
    }

    pub(crate) fn join(&mut self, other: Self) {
        let Self { puts, overwritten, deletes, met, hidden } = other;
        self.puts += puts;
        self.overwritten += overwritten;
        self.deletes += deletes;
        self.met += met;
        self.hidden += hidden;
    }

    /// Entries for each message; `None` if it has seen no message.
    pub(crate) fn live_a_message(&self) -> Option<f64> {
        let messages = self.puts + self.deletes + self.hidden;
        let live = self.puts.saturating_sub(self.overwritten + self.met);
        (messages > 0).then(|| live as f64 / messages as f64)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.puts + self.deletes == 0
    }

    /// How many of so many messages are deletes.
    pub(crate) fn deletes_of(&self, messages: u64) -> u64 {
        share(messages, self.deletes, self.puts + self.deletes)
    }

    /// How many of so many puts and deletes are entries.
    pub(crate) fn live(&self, puts: u64, deletes: u64) -> u64 {
        let overwritten = share(puts, self.overwritten, self.puts);
        // A delete usually has something to delete.
        let met = if self.deletes == 0 { deletes } else { share(deletes, self.met, self.deletes) };
        puts.saturating_sub(overwritten).saturating_sub(met)
    }
}

/// Entries at the beginning of a key range, counted one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FirstEntries {
    /// How many there are among the keys that were looked at, or what `is_estimate` says.
    pub count: u64,
    /// Whether those are all keys of the range.
    pub is_all: bool,
    /// Whether `count` is about how many entries the range has: there are many messages, and only
    /// the first keys were looked at.
    pub is_estimate: bool,
}

impl FirstEntries {
    /// Of an empty range.
    #[must_use]
    pub fn none() -> Self {
        Self { is_all: true, ..Self::default() }
    }
}

/// Counts the entries among the first `max_keys` keys of `[lo, hi)`; none, and reads nothing, if counts
/// tell that there are far more keys. Where the range has many messages in memory it looks at an eighth as
/// many and estimates; by fewer than `LEAST_SAMPLE` keys never.
pub fn count_first(
    version: &Version,
    snapshot: SeqNo,
    lo: &[u8],
    hi: Option<&[u8]>,
    max_keys: u64,
) -> Result<FirstEntries> {
    if has_far_more(version, lo, hi, max_keys)? {
        return Ok(FirstEntries::default());
    }
    let cursors = cursors_in_memory(version, snapshot, lo, hi);
    let is_hot = to_go_over(&cursors) > HOT_FACTOR.saturating_mul(max_keys);
    if !is_hot && let Some(count) = count_single(version, &cursors, lo, hi)? {
        return Ok(FirstEntries { count, is_all: true, is_estimate: false });
    }
    let range = InMemory { cursors, lo, hi };
    // Keys that lie in many arrays: a few of them may do.
    if is_hot && max_keys > LEAST_SAMPLE * HOT_SHARE {
        let few = max_keys / HOT_SHARE - 1;
        let first = count_or_estimate(version, snapshot, &range, few)?;
        if first.is_all || first.is_estimate {
            return Ok(first);
        }
    }
    count_or_estimate(version, snapshot, &range, max_keys)
}

/// A range, and a cursor over it in each memtable: what searching costs is then paid once.
struct InMemory<'a> {
    cursors: Vec<MemCursor>,
    lo: &'a [u8],
    hi: Option<&'a [u8]>,
}

impl InMemory<'_> {
    /// A cursor over part of the range in one of the memtables.
    fn cursor(
        &self,
        i: usize,
        memtable: &Memtable,
        lo: &[u8],
        hi: Option<&[u8]>,
        snapshot: SeqNo,
    ) -> MemCursor {
        if let Some(cursor) = self.cursors.get(i).filter(|_| (self.lo, self.hi) == (lo, hi)) {
            return cursor.clone();
        }
        let (from, to) = bounds(lo, hi);
        memtable.visible_cursor(Direction::Forward, from, to, snapshot)
    }
}

/// Counts the entries among the first `max_keys` keys, and estimates by them where they stand for the
/// others.
fn count_or_estimate(
    version: &Version,
    snapshot: SeqNo,
    range: &InMemory<'_>,
    max_keys: u64,
) -> Result<FirstEntries> {
    let (first, next) = count_keys(version, snapshot, range, max_keys)?;
    let Some(next) = next else { return Ok(first) };
    let in_memory = to_go_over(&range.cursors);
    let seen = range.cursors.iter().map(|cursor| cursor.messages_below(&next)).sum::<u64>();
    // What lies in memory may say little about the others, and what was deleted about the rest.
    if max_keys < LEAST_SAMPLE || seen < max_keys || 2 * first.count < max_keys {
        return Ok(first);
    }
    // As if the others had as many messages each.
    let count = share(first.count, in_memory, seen);
    Ok(FirstEntries { count, is_all: false, is_estimate: true })
}

/// How many entries `[lo, hi)` has, if its keys are no more than `max_keys`.
pub(crate) fn count_short(
    version: &Version,
    snapshot: SeqNo,
    lo: &[u8],
    hi: Option<&[u8]>,
    max_keys: u64,
) -> Result<Option<u64>> {
    if has_far_more(version, lo, hi, max_keys)? {
        return Ok(None);
    }
    let range = InMemory { cursors: Vec::new(), lo, hi };
    let (first, _) = count_keys(version, snapshot, &range, max_keys)?;
    Ok(first.is_all.then_some(first.count))
}

/// Whether counts tell that the range has several times as many keys. They are estimates within blocks.
fn has_far_more(version: &Version, lo: &[u8], hi: Option<&[u8]>, max_keys: u64) -> Result<bool> {
    Ok(consolidated(version, lo, hi)? > KEYS_KNOWN_FACTOR.saturating_mul(max_keys))
}

/// What a reader has to go over in each memtable.
fn cursors_in_memory(
    version: &Version,
    snapshot: SeqNo,
    lo: &[u8],
    hi: Option<&[u8]>,
) -> Vec<MemCursor> {
    let (from, to) = bounds(lo, hi);
    let cursor =
        |memtable: &Arc<Memtable>| memtable.visible_cursor(Direction::Forward, from, to, snapshot);
    version.memtables().map(cursor).collect()
}

pub(crate) fn bounds<'a>(lo: &'a [u8], hi: Option<&'a [u8]>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (Bound::Included(lo), hi.map_or(Bound::Unbounded, Bound::Excluded))
}

fn to_go_over(cursors: &[MemCursor]) -> u64 {
    cursors.iter().map(MemCursor::messages).sum()
}

/// Counts the entries among the first `max_keys` keys, and says which key comes next.
fn count_keys(
    version: &Version,
    snapshot: SeqNo,
    range: &InMemory<'_>,
    max_keys: u64,
) -> Result<(FirstEntries, Option<Vec<u8>>)> {
    let (mut keys, mut count) = (0, 0);
    let mut at = range.lo.to_vec();
    loop {
        let visible = |i, memtable: &Memtable, lo: &[u8], hi: Option<&[u8]>| {
            range.cursor(i, memtable, lo, hi, snapshot).for_counting()
        };
        let Ahead { mut merge, gone, hidden, end } =
            ahead(version, snapshot, &at, range.hi, &visible)?;
        let mut seen = false;
        while merge.next()? {
            let (seq, kind) = (merge.seq(), merge.kind());
            // The newest that is visible says what a key has.
            seen &= merge.same_key();
            if seen || seq > snapshot {
                continue;
            }
            seen = true;
            if keys == max_keys {
                let first = FirstEntries { count, ..FirstEntries::default() };
                return Ok((first, Some(merge.key().to_vec())));
            }
            keys += 1;
            let is_gone = seq < gone.newest_covering(merge.key(), snapshot)
                || covers(&hidden, merge.key(), seq, snapshot);
            count += u64::from(kind != MessageKind::Delete && !is_gone);
        }
        match end {
            // The next leaf.
            Some(end) if Some(&*end) != range.hi => at = end,
            _ => return Ok((FirstEntries { count, is_all: true, is_estimate: false }, None)),
        }
    }
}

/// The messages from a key on, within the leaf there.
struct Ahead {
    merge: Merger,
    /// Range deletes of memtables.
    gone: RangeDeletes,
    /// And those of the nodes.
    hidden: Vec<RangeDeletes>,
    /// First key beyond them.
    end: Option<Vec<u8>>,
}

/// Makes a cursor over part of the memtable with this place in the list.
type InMemtable<'a> = &'a dyn Fn(usize, &Memtable, &[u8], Option<&[u8]>) -> MemCursor;

fn ahead(
    version: &Version,
    snapshot: SeqNo,
    at: &[u8],
    hi: Option<&[u8]>,
    in_memtable: InMemtable<'_>,
) -> Result<Ahead> {
    let part = segment(&version.trunk, Direction::Forward, Some(at), at, hi, snapshot, &[])?;
    // Those of memtables were taken from the counts: what they hide counts nowhere.
    let mut gone = Vec::new();
    let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(part.sources.len() + 2);
    for (i, slot) in version.sources().enumerate() {
        gone.extend(slot.memtable.range_deletes().iter().cloned());
        sources.push(Box::new(in_memtable(i, &slot.memtable, &part.lo, part.hi.as_deref())));
        for run in slot.runs() {
            sources.extend(part.source_of(run, Direction::Forward, snapshot)?);
        }
    }
    let gone = RangeDeletes::new(gone);
    sources.extend(part.sources);
    let end = part.hi.as_deref().map(<[u8]>::to_vec);
    let merge = Merger::new(sources, Direction::Forward);
    Ok(Ahead { merge, gone, hidden: part.range_deletes, end })
}

/// Whether one of the range deletes hides a message from `snapshot`.
fn covers(hidden: &[RangeDeletes], key: &[u8], seq: SeqNo, snapshot: SeqNo) -> bool {
    hidden.iter().any(|set| seq < set.newest_covering(key, snapshot))
}

/// Looks at the messages from `at` on, within the leaf there.
pub(crate) fn probe(
    version: &Version,
    snapshot: SeqNo,
    at: &[u8],
    hi: Option<&[u8]>,
    sample: &mut Sample,
) -> Result<()> {
    let all = |_, memtable: &Memtable, lo: &[u8], hi: Option<&[u8]>| {
        let (from, to) = bounds(lo, hi);
        memtable.cursor(Direction::Forward, from, to, snapshot)
    };
    let Ahead { mut merge, gone, hidden, .. } = ahead(version, snapshot, at, hi, &all)?;
    let mut key: Option<OneKey> = None;
    for seen in 0.. {
        let more = merge.next()?;
        if (!more || !merge.same_key())
            && let Some(key) = key.take()
        {
            sample.add(key);
        }
        if !more {
            return Ok(());
        }
        if seen >= PROBE_MESSAGES {
            break;
        }
        let (seq, kind) = (merge.seq(), merge.kind());
        if seq > snapshot {
            continue;
        }
        if seq < gone.newest_covering(merge.key(), snapshot) {
            sample.hidden += 1;
            continue;
        }
        let put = kind != MessageKind::Delete;
        let first = key.is_none();
        let key = key.get_or_insert_default();
        key.puts += u64::from(put);
        key.deletes += u64::from(!put);
        if first {
            key.live = put && !covers(&hidden, merge.key(), seq, snapshot);
        }
    }
    // A key of which not all was seen, unless it is one that has hundreds of messages.
    if let Some(key) = key
        && key.puts + key.deletes >= PROBE_MESSAGES / 2
    {
        sample.add(key);
    }
    Ok(())
}
