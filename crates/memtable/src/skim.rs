//! What a reader may see of each key, found without a look at the rest.
//!
//! A row that is written over and over has as many messages in the memtable; for one snapshot only the
//! newest visible put or delete of a key counts, with the updates above it. So the next key is searched
//! for in every array by galloping, and of its messages the newest are looked at until one settles it.
//! That is slower than merging whole pieces (`gather.rs`) where keys have one message each, and a cursor
//! goes from one way to the other by what it meets.

use frondb_core::{MessageKind, SeqNo};
use smallvec::SmallVec;

use crate::arena::{Chunks, Probe, Slot};
use crate::gather::Rests;

/// Moves what `snapshot` may see of the next `keys` keys to the end of `out`, in order. Returns over how
/// many slots it went.
pub(crate) fn skim_first(
    rests: &mut Rests<'_>,
    keys: usize,
    snapshot: SeqNo,
    chunks: &Chunks,
    out: &mut Vec<Slot>,
) -> usize {
    let mut passed = 0;
    for _ in 0..keys {
        let firsts = rests.iter().filter_map(|rest| rest.first().copied());
        let Some(bits) = firsts.clone().map(Slot::bits).min() else { break };
        let keys = firsts.filter(|slot| slot.bits() == bits).map(|slot| chunks.key(slot));
        let Some(key) = keys.min() else { break };
        let (probe, mut settled) = (chunks.probe(key), false);
        for rest in rests.iter_mut() {
            let n = count_first(rest, &probe, chunks);
            let (same, left) = rest.split_at(n);
            settled = settled || take_visible(same, snapshot, chunks, |slot| out.push(slot));
            *rest = left;
            passed += n;
        }
    }
    passed
}

/// The same from the end: the last `keys` keys, which ascend in `out`.
pub(crate) fn skim_last(
    rests: &mut Rests<'_>,
    keys: usize,
    snapshot: SeqNo,
    chunks: &Chunks,
    out: &mut Vec<Slot>,
) -> usize {
    let (begin, mut passed) = (out.len(), 0);
    let mut visible: SmallVec<[Slot; 8]> = SmallVec::new();
    for _ in 0..keys {
        let lasts = rests.iter().filter_map(|rest| rest.last().copied());
        let Some(bits) = lasts.clone().map(Slot::bits).max() else { break };
        let keys = lasts.filter(|slot| slot.bits() == bits).map(|slot| chunks.key(slot));
        let Some(key) = keys.max() else { break };
        let (probe, mut settled) = (chunks.probe(key), false);
        visible.clear();
        for rest in rests.iter_mut() {
            let n = count_last(rest, &probe, chunks);
            let (left, same) = rest.split_at(rest.len() - n);
            settled = settled || take_visible(same, snapshot, chunks, |slot| visible.push(slot));
            *rest = left;
            passed += n;
        }
        // All is turned round at the end.
        out.extend(visible.iter().rev());
    }
    out[begin..].reverse();
    passed
}

/// Hands out messages of one key, newest first, up to the one that settles what the key has; whether
/// there was one.
fn take_visible(
    same: &[Slot],
    snapshot: SeqNo,
    chunks: &Chunks,
    mut take: impl FnMut(Slot),
) -> bool {
    let newer = same.partition_point(|&slot| chunks.seq(slot) > snapshot);
    for &slot in &same[newer..] {
        take(slot);
        if chunks.get(slot).kind != MessageKind::Update {
            return true;
        }
    }
    false
}

/// How many slots at the beginning have this key. (Most looks end at the slots' bits; those that do not are
/// a cache miss each.)
fn count_first(slots: &[Slot], key: &Probe<'_>, chunks: &Chunks) -> usize {
    let same = |&slot: &Slot| chunks.compare_key(slot, key).is_eq();
    let mut end = 1;
    while end <= slots.len() && same(&slots[end - 1]) {
        end *= 2;
    }
    let (known, end) = (end / 2, end.min(slots.len()));
    known + slots[known..end].partition_point(same)
}

/// How many slots at the end have it.
fn count_last(slots: &[Slot], key: &Probe<'_>, chunks: &Chunks) -> usize {
    let before = |&slot: &Slot| chunks.compare_key(slot, key).is_lt();
    let len = slots.len();
    let mut n = 1;
    while n <= len && !before(&slots[len - n]) {
        n *= 2;
    }
    let begin = len - n.min(len);
    len - begin - slots[begin..len - n / 2].partition_point(before)
}
