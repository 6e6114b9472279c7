//! Short ranges, whose entries are counted key by key.
//!
//! A memtable consists of sorted arrays, and a key that is written all the time has messages in
//! every array. In a range with many such messages, the estimate counts only the first keys and
//! assumes that the other keys are alike. Counting reads a block or two of each source.

use frondb_core::sync::Arc;
use frondb_core::{Direction, MessageKind, Result, SeqNo};
use frondb_memtable::{MemCursor, Memtable};

use crate::estimate::counts::consolidated;
use crate::estimate::leaf::{LeafMessages, bounds, is_hidden};
use crate::estimate::positions::{Bounds, Found, count_by_positions};
use crate::estimate::share::share;
use crate::version::Version;

/// Maximum number of keys that an estimate counts one by one.
pub(super) const COUNTED_KEYS_MAX: u64 = 128;

/// If, by the counts of nodes, the range has more keys than `max_keys` times this factor, no key is
/// counted.
const KEYS_KNOWN_FACTOR: u64 = 4;

/// A range is hot if the memtables have more messages in it than `max_keys` times this factor.
const HOT_FACTOR: u64 = 2;

/// In a hot range, `max_keys / HOT_SHARE - 1` keys are counted: 15 if `max_keys` is 128. The cursor
/// must read a sixteenth key to know that the fifteenth is complete, and the first chunk of a
/// memtable has sixteen messages.
const HOT_SHARE: u64 = 8;

/// Do not extrapolate from fewer keys: a caller that passes one or two as `max_keys` wants to know
/// whether the range has any.
const EXTRAPOLATED_KEYS_MIN: u64 = 8;

/// How closely a short range is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// Keys are counted one by one, unless positions give the exact number.
    Counted,
    /// Where nearly all messages are in the bases of leaves, the number of base entries suffices.
    FactorOfTwo,
}

/// Entries at the beginning of a key range, counted one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FirstEntries {
    /// Entries among the keys that were counted; with `is_estimate`, an estimate for the whole
    /// range.
    pub count: u64,
    /// Whether the range has no other keys, so `count` is exact.
    pub is_all: bool,
    /// Whether `count` is an estimate for the whole range. Either the range has many messages, and
    /// only the first keys were counted; or nearly all messages are consolidated, and only the
    /// consolidated entries were counted.
    pub is_estimate: bool,
}

impl FirstEntries {
    /// Returns the result for an empty range.
    #[must_use]
    pub fn none() -> Self {
        Self { is_all: true, ..Self::default() }
    }
}

/// Counts the entries among the first `max_keys` keys of `[lo, hi)`. Counts none, and reads at most
/// the blocks at the ends of the range, if block indexes show that there are far more keys. Where
/// memtables have many messages in the range, counts an eighth of the keys and extrapolates, but
/// never from fewer than 8 keys.
///
/// # Errors
/// `Corruption` or a device error of a run.
pub fn count_first(
    version: &Version,
    snapshot: SeqNo,
    lo: &[u8],
    hi: Option<&[u8]>,
    max_keys: u64,
    precision: Precision,
) -> Result<FirstEntries> {
    let cursors = memtable_cursors(version, snapshot, lo, hi);
    let (most, hot) =
        (KEYS_KNOWN_FACTOR.saturating_mul(max_keys), HOT_FACTOR.saturating_mul(max_keys));
    let is_hot = messages_in(&cursors) > hot;
    match count_by_positions(version, snapshot, &cursors, Bounds { lo, hi }, (most, hot))? {
        Found::Exactly(count) => {
            return Ok(FirstEntries { count, is_all: true, is_estimate: false });
        }
        Found::About(count)
            if precision == Precision::FactorOfTwo && max_keys >= EXTRAPOLATED_KEYS_MIN =>
        {
            return Ok(FirstEntries { count, is_all: false, is_estimate: true });
        }
        Found::FarMore => return Ok(FirstEntries::default()),
        Found::Unknown if has_far_more(version, lo, hi, max_keys)? => {
            return Ok(FirstEntries::default());
        }
        Found::About(_) | Found::Unknown => {}
    }
    let range = InMemory { cursors, lo, hi };
    if is_hot && max_keys > EXTRAPOLATED_KEYS_MIN * HOT_SHARE {
        let few = max_keys / HOT_SHARE - 1;
        let first = count_or_extrapolate(version, snapshot, &range, few)?;
        if first.is_all || first.is_estimate {
            return Ok(first);
        }
    }
    count_or_extrapolate(version, snapshot, &range, max_keys)
}

/// Returns the number of entries of `[lo, hi)`, if the range has at most `max_keys` keys.
pub(super) fn count_short(
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

/// A range with a cursor over it in each memtable, so that the memtables are searched only once.
/// Without cursors, each leaf searches them again.
struct InMemory<'a> {
    cursors: Vec<MemCursor>,
    lo: &'a [u8],
    hi: Option<&'a [u8]>,
}

impl InMemory<'_> {
    /// Returns a cursor over `[lo, hi)` in the memtable with this index.
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

/// Counts the entries among the first `max_keys` keys, and extrapolates where these keys are
/// typical of the others.
fn count_or_extrapolate(
    version: &Version,
    snapshot: SeqNo,
    range: &InMemory<'_>,
    max_keys: u64,
) -> Result<FirstEntries> {
    let (first, next) = count_keys(version, snapshot, range, max_keys)?;
    let Some(next) = next else { return Ok(first) };
    let in_memory = messages_in(&range.cursors);
    let seen = range.cursors.iter().map(|cursor| cursor.messages_below(&next)).sum::<u64>();
    // If the keys have few messages in memory, or many are deleted, they say little about the
    // others.
    if max_keys < EXTRAPOLATED_KEYS_MIN || seen < max_keys || 2 * first.count < max_keys {
        return Ok(first);
    }
    // Assumes that the other keys have as many messages each.
    let count = share(first.count, in_memory, seen);
    Ok(FirstEntries { count, is_all: false, is_estimate: true })
}

/// Returns whether, by the counts of nodes, the range has several times `max_keys` keys. Where the
/// range has a part of a block, the count is an estimate.
fn has_far_more(version: &Version, lo: &[u8], hi: Option<&[u8]>, max_keys: u64) -> Result<bool> {
    Ok(consolidated(version, lo, hi)? > KEYS_KNOWN_FACTOR.saturating_mul(max_keys))
}

/// Returns a cursor over `[lo, hi)` in each memtable.
fn memtable_cursors(
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

/// Returns the number of messages that these cursors have to read.
fn messages_in(cursors: &[MemCursor]) -> u64 {
    cursors.iter().map(MemCursor::messages).sum()
}

/// Counts the entries among the first `max_keys` keys. Also returns the next key, if there is one.
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
        let LeafMessages { mut merge, above, in_nodes, end } =
            LeafMessages::open(version, snapshot, &at, range.hi, &visible)?;
        let mut is_decided = false;
        while merge.next()? {
            let (seq, kind) = (merge.seq(), merge.kind());
            // The newest visible message of a key decides whether the key has a value.
            is_decided &= merge.same_key();
            if is_decided || seq > snapshot {
                continue;
            }
            is_decided = true;
            if keys == max_keys {
                let first = FirstEntries { count, ..FirstEntries::default() };
                return Ok((first, Some(merge.key().to_vec())));
            }
            keys += 1;
            let is_gone = seq < above.newest_covering(merge.key(), snapshot)
                || is_hidden(&in_nodes, merge.key(), seq, snapshot);
            count += u64::from(kind != MessageKind::Delete && !is_gone);
        }
        match end {
            // The next leaf begins here.
            Some(end) if Some(&*end) != range.hi => at = end,
            _ => return Ok((FirstEntries { count, is_all: true, is_estimate: false }, None)),
        }
    }
}
