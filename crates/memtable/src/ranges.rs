//! The range deletes of a memtable, and the sets of them that readers search.
//!
//! ```text
//!   tail   the newest range deletes, in order of arrival, until a reader builds a set of them
//!   sets   immutable, each at least twice as large as the next
//! ```
//!
//! A set is sorted and cut into fragments ([`frondb_core::range_delete`]); building it takes time
//! in proportion to its size. So a commit only appends its range deletes to the tail. A reader that
//! takes the sets, or a lookup that finds the tail too long, builds a set of the tail and merges
//! sets of similar size. So each of n range deletes is sorted O(log n) times, whatever the order of
//! commits and reads. A reader searches every set: a handful of searches.
//!
//! Thread safety: any thread may call any function. The lock is held to push, to copy the tail and
//! a pointer, or to search a short tail and the sets, and never while a set is built.

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::{Arc, RwLock};
use frondb_core::{RangeDelete, SeqNo};

/// Longest tail that a point lookup searches linearly.
const TAIL_MAX: usize = 16;

/// The range deletes of a memtable.
#[derive(Default)]
pub(crate) struct Ranges(RwLock<Layers>);

#[derive(Default)]
struct Layers {
    tail: Vec<RangeDelete>,
    /// Largest first.
    sets: Arc<[RangeDeletes]>,
}

impl Ranges {
    pub(crate) fn add(&self, range: RangeDelete) {
        self.0.write().tail.push(range);
    }

    /// Returns the SeqNo of the newest range delete that covers `key` and is visible at `snapshot`;
    /// 0 if there is none.
    pub(crate) fn newest_covering(&self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let newest_of = |sets: &[RangeDeletes]| {
            let newest = sets.iter().map(|set| set.newest_covering(key, snapshot));
            newest.max().unwrap_or(SeqNo(0))
        };
        {
            let layers = self.0.read();
            if layers.tail.len() <= TAIL_MAX {
                let covers = |range: &&RangeDelete| range.seq <= snapshot && range.covers(key);
                let tail = layers.tail.iter().filter(covers).map(|range| range.seq).max();
                return tail.unwrap_or(SeqNo(0)).max(newest_of(&layers.sets));
            }
        }
        newest_of(&self.sets())
    }

    pub(crate) fn sets(&self) -> Arc<[RangeDeletes]> {
        let (tail, seen) = {
            let layers = self.0.read();
            if layers.tail.is_empty() {
                return Arc::clone(&layers.sets);
            }
            (layers.tail.clone(), Arc::clone(&layers.sets))
        };
        let taken = tail.len();
        let sets = with(&seen, RangeDeletes::new(tail));
        let mut layers = self.0.write();
        // If another reader has replaced the sets since, keep that reader's sets. The sets built
        // here are still correct for this call.
        if Arc::ptr_eq(&layers.sets, &seen) {
            layers.tail.drain(..taken);
            layers.sets = Arc::clone(&sets);
        }
        sets
    }
}

/// Adds `new` to `sets` and merges sets of similar size into one.
fn with(sets: &[RangeDeletes], new: RangeDeletes) -> Arc<[RangeDeletes]> {
    let mut kept = sets.len();
    let mut size = new.len();
    while kept > 0 && sets[kept - 1].len() < 2 * size {
        kept -= 1;
        size += sets[kept].len();
    }
    let last = if kept == sets.len() {
        new
    } else {
        let small = sets[kept..].iter().chain([&new]);
        RangeDeletes::new(small.flat_map(RangeDeletes::iter).cloned())
    };
    let last = (!last.is_empty()).then_some(last);
    sets[..kept].iter().cloned().chain(last).collect()
}

#[cfg(test)]
mod tests {
    use frondb_core::prng::Prng;

    use super::*;

    fn range(prng: &mut Prng, seq: u64) -> RangeDelete {
        let mut key = || vec![prng.below(16) as u8];
        let (lo, hi) = (key(), key());
        RangeDelete { lo: lo.into(), hi: Some(hi.into()), seq: SeqNo(seq) }
    }

    #[test]
    fn lookups_and_sets_agree_with_the_list_however_they_are_mixed() {
        for seed in 0..20 {
            let mut prng = Prng::new(seed);
            let (ranges, mut list) = (Ranges::default(), Vec::new());
            for seq in 1..400 {
                let new = range(&mut prng, seq);
                list.push(new.clone());
                ranges.add(new);
                let (key, at) = ([prng.below(16) as u8], SeqNo(prng.below(seq + 1)));
                let covering = list.iter().filter(|rd| rd.seq <= at && rd.covers(&key));
                let expected = covering.map(|rd| rd.seq).max().unwrap_or(SeqNo(0));
                if prng.chance(1, 4) {
                    assert_eq!(ranges.newest_covering(&key, at), expected, "seed {seed}");
                }
                if prng.chance(1, 4) {
                    let sets = ranges.sets();
                    let newest = sets.iter().map(|set| set.newest_covering(&key, at)).max();
                    assert_eq!(newest.unwrap_or(SeqNo(0)), expected, "seed {seed}");
                }
            }
        }
    }

    /// Reads that alternate with range deletes must not sort all range deletes each time. The test
    /// adds up the sizes of new sets.
    #[test]
    fn readers_sort_each_range_delete_a_few_times() {
        let (ranges, mut sorted) = (Ranges::default(), 0);
        let count = 4_096u32;
        for i in 0..count {
            let (lo, hi) = ((2 * i).to_be_bytes(), (2 * i + 1).to_be_bytes());
            let seq = SeqNo(u64::from(i) + 1);
            ranges.add(RangeDelete { lo: lo.into(), hi: Some(hi.into()), seq });
            let sets = ranges.sets();
            assert!(sets.len() <= 13, "{} sets of {i}", sets.len());
            sorted += sets.last().map_or(0, RangeDeletes::len);
        }
        assert!(sorted <= 13 * count as usize, "{sorted} sorted for {count}");
        assert_eq!(ranges.sets().iter().map(RangeDeletes::len).sum::<usize>(), count as usize);
    }
}
