//! Tests of the list of known-empty ranges against a set of keys. Cursors that skip ranges are
//! tested in `frondb/tests/deletes/empty_ranges.rs`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use super::super::empty_list::after;
use super::super::testing::delete;
use super::*;
use frondb_core::budget::Budget;
use frondb_core::prng::Prng;

fn k(n: u64) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

fn around(ranges: &EmptyRanges, direction: Direction, at: Option<u64>, seq: u64) -> Around {
    let at = at.map(k);
    ranges.around(direction, at.as_deref(), SeqNo(seq), &|_, _| true)
}

fn probe(ranges: &EmptyRanges, lo: u64, hi: u64, since: u64, deletes: u64) {
    let probe = ranges.begin_probe(Direction::Forward, &k(lo), None).unwrap();
    ranges.end_probe(probe, Some((k(lo), k(hi))), SeqNo(since), deletes);
}

/// Returns the keys that a forward walk shows when it skips ranges, and the number of ranges it
/// skipped.
fn forward(
    ranges: &EmptyRanges,
    keys: &BTreeSet<Vec<u8>>,
    at: u64,
    seq: u64,
) -> (Vec<Vec<u8>>, u64) {
    let (mut at, mut shown, mut used) = (k(at), Vec::new(), 0);
    loop {
        let around = ranges.around(Direction::Forward, Some(&at), SeqNo(seq), &|_, _| true);
        used += u64::from(around.at.is_some());
        at = around.at.unwrap_or(at);
        let Some(hi) = around.hi else {
            shown.extend(keys.range(at..).cloned());
            return (shown, used);
        };
        assert!(at < hi, "a walk must get on");
        shown.extend(keys.range(at..hi.clone()).cloned());
        at = hi;
    }
}

fn backward(
    ranges: &EmptyRanges,
    keys: &BTreeSet<Vec<u8>>,
    at: Option<u64>,
    seq: u64,
) -> Vec<Vec<u8>> {
    let (mut at, mut shown) = (at.map(k), Vec::new());
    loop {
        let around = ranges.around(Direction::Backward, at.as_deref(), SeqNo(seq), &|_, _| true);
        at = around.at.or(at);
        let lo = around.lo.clone().unwrap_or_default();
        let below = |key: &&Vec<u8>| at.as_ref().is_none_or(|at| *key < at);
        let part: Vec<_> = keys.range(lo.clone()..).take_while(below).cloned().collect();
        shown.extend(part.into_iter().rev());
        if around.lo.is_none() {
            return shown;
        }
        at = Some(lo);
    }
}

/// Lets a reader at one of the last states report a range that it finds empty.
fn find(ranges: &EmptyRanges, states: &[BTreeSet<Vec<u8>>], prng: &mut Prng, keys: u64) {
    let seq = states.len() as u64 - 1 - prng.below(states.len().min(10) as u64);
    let (seen, at, deletes) = (&states[seq as usize], k(prng.below(keys)), prng.below(600));
    let (lo, hi, is_first, is_last) = match prng.below(3) {
        0 => match seen.range(at.clone()..).next() {
            Some(next) => (at, next.clone(), false, false),
            None => (at, k(keys), false, true),
        },
        1 => match seen.range(..at.clone()).next_back() {
            Some(before) => (after(before), at, false, false),
            None => (k(prng.below(3)), at, true, false),
        },
        _ => (seen.last().map_or_else(|| k(0), |key| after(key)), k(keys), false, true),
    };
    let found = FoundEmpty { lo: &lo, hi: &hi, is_first, is_last, deletes };
    ranges.found(found, SeqNo(seq));
}

/// Puts, deletes, probes and reports of readers in random order, with puts during probes. Every
/// committed state must be shown completely, in both directions and from any key.
#[test]
fn no_reader_misses_a_key() {
    const KEYS: u64 = 96;
    let mut used = 0;
    for seed in 0..200 {
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        let ranges = EmptyRanges::default();
        let deletes = Memtable::new(Budget::new(1 << 30));
        delete(&deletes, 20);
        let mut states = vec![(0..KEYS).map(k).collect::<BTreeSet<_>>()];
        let mut under_way = None;
        for _ in 0..300 {
            let mut state = states[states.len() - 1].clone();
            if prng.below(10) == 0 {
                ranges.watch_deletes(&deletes, SeqNo(states.len() as u64 - 1));
            }
            if prng.below(3) == 0 {
                find(&ranges, &states, &mut prng, KEYS);
            }
            match prng.below(8) {
                0 | 1 => {
                    let key = k(prng.below(KEYS));
                    ranges.note_puts([&*key].into_iter(), SeqNo(states.len() as u64));
                    state.insert(key);
                    states.push(state);
                }
                2..5 => {
                    let (lo, n) = (prng.below(KEYS), prng.below(KEYS / 2));
                    state.retain(|key| *key < k(lo) || k(lo + n) <= *key);
                    states.push(state);
                }
                5 | 6 => match under_way.take() {
                    None => {
                        let at = prng.below(KEYS + 1);
                        let (direction, lo, hi) = if prng.below(2) == 0 {
                            (Direction::Forward, k(at), None)
                        } else {
                            (Direction::Backward, Vec::new(), Some(k(at)))
                        };
                        let probe = ranges.begin_probe(direction, &lo, hi.as_deref());
                        under_way = probe.map(|probe| (probe, direction, k(at), states.len() - 1));
                    }
                    Some((probe, direction, at, state)) => {
                        let (keys, since) = (&states[state], SeqNo(state as u64));
                        let range = match direction {
                            Direction::Forward => {
                                let next = keys.range(at.clone()..).next().cloned();
                                (at, next.unwrap_or_else(|| k(KEYS)))
                            }
                            Direction::Backward => {
                                let below = keys.range(..at.clone()).next_back();
                                (below.map_or_else(|| k(0), |key| after(key)), at)
                            }
                        };
                        ranges.end_probe(probe, Some(range), since, 1 << 40);
                    }
                },
                _ if prng.below(20) == 0 => ranges.clear(SeqNo(states.len() as u64 - 1)),
                _ => {}
            }
            let seq = states.len() as u64 - 1 - prng.below(states.len().min(10) as u64);
            let (keys, at) = (&states[seq as usize], prng.below(KEYS));
            let (shown, skipped) = forward(&ranges, keys, at, seq);
            used += skipped;
            assert_eq!(shown, keys.range(k(at)..).cloned().collect::<Vec<_>>());
            let shown = backward(&ranges, keys, Some(at), seq);
            assert_eq!(shown, keys.range(..k(at)).rev().cloned().collect::<Vec<_>>());
            let shown = backward(&ranges, keys, None, seq);
            assert_eq!(shown, keys.iter().rev().cloned().collect::<Vec<_>>());
        }
    }
    assert!(used > 1000, "ranges were used {used} times only");
}

#[test]
fn neighbours_become_one_and_a_put_cuts_it() {
    let ranges = EmptyRanges::default();
    assert!(!ranges.is_watched());
    probe(&ranges, 10, 20, 5, 1000);
    probe(&ranges, 20, 30, 9, 1000);
    let old = |at, seq| around(&ranges, Direction::Forward, Some(at), seq).at;
    assert_eq!((old(10, 8), old(10, 4)), (Some(k(20)), None), "what it was for an old reader");
    assert_eq!(around(&ranges, Direction::Forward, Some(10), 9).at, Some(k(30)));
    assert_eq!(around(&ranges, Direction::Forward, Some(0), 9).hi, Some(k(10)));
    assert_eq!(around(&ranges, Direction::Backward, Some(30), 9).at, Some(k(10)));
    assert_eq!(around(&ranges, Direction::Backward, None, 9).lo, Some(k(30)));
    assert_eq!(ranges.end_before(&k(31)), Some(k(30)));

    ranges.note_puts([&*k(15)].into_iter(), SeqNo(1));
    assert_eq!(around(&ranges, Direction::Forward, Some(10), 9).at, Some(k(15)));
    assert_eq!(around(&ranges, Direction::Forward, Some(15), 9).at, None);
    assert_eq!(around(&ranges, Direction::Forward, Some(16), 9).at, Some(k(30)));
    // Ranges with too few deletes are forgotten, and without ranges commits need not report puts.
    let ranges = EmptyRanges::default();
    probe(&ranges, 1000, 2000, 1, 256);
    for step in [500, 250, 125, 62] {
        assert!(ranges.is_watched());
        for key in (1000 + step..2000).step_by(2 * step as usize) {
            ranges.note_puts([&*k(key)].into_iter(), SeqNo(1));
        }
    }
    assert!(!ranges.is_watched());
}

/// A range at which a walk ends needs [`DELETES_MIN`](super::super::empty_list::DELETES_MIN)
/// deletes. Adjacent ranges add their deletes; a range already counts the deletes of a range inside
/// it.
#[test]
fn the_deletes_of_neighbours_add_up() {
    let found = |ranges: &EmptyRanges, lo, hi, deletes| {
        let (lo, hi) = (k(lo), k(hi));
        let found = FoundEmpty { lo: &lo, hi: &hi, is_first: false, is_last: false, deletes };
        ranges.found(found, SeqNo(5));
    };
    let end = |ranges: &EmptyRanges| around(ranges, Direction::Forward, Some(0), 9).hi;
    let watched = || {
        let (ranges, deletes) = (EmptyRanges::default(), Memtable::new(Budget::new(1 << 30)));
        delete(&deletes, 20);
        ranges.watch_deletes(&deletes, SeqNo(1));
        ranges
    };
    let ranges = watched();
    for (lo, hi) in [(10, 20), (20, 30), (30, 40)] {
        assert_eq!(end(&ranges), None);
        found(&ranges, lo, hi, 100);
    }
    assert_eq!(end(&ranges), Some(k(10)));
    let ranges = watched();
    found(&ranges, 20, 30, 200);
    found(&ranges, 10, 40, 210);
    assert_eq!(end(&ranges), None);
}

#[test]
fn a_cancelled_probe_leaves_no_range() {
    let ranges = EmptyRanges::default();
    let old = ranges.begin_probe(Direction::Forward, &k(0), None).unwrap();
    assert!(ranges.begin_probe(Direction::Forward, &k(5), None).is_none(), "one at a time");
    ranges.clear(SeqNo(2));
    let new = ranges.begin_probe(Direction::Forward, &k(5), None).unwrap();
    ranges.end_probe(old, Some((k(0), k(9))), SeqNo(3), 1000);
    assert_eq!(around(&ranges, Direction::Forward, Some(0), 9), Around::default());
    // The range of a probe ends at a key that gets a value during the probe.
    ranges.note_puts([&*k(7)].into_iter(), SeqNo(3));
    ranges.end_probe(new, Some((k(5), k(9))), SeqNo(3), 1000);
    assert_eq!(around(&ranges, Direction::Forward, Some(5), 9).at, Some(k(7)));
}

#[test]
fn a_probe_is_overdue_when_too_many_deletes_wait_for_it() {
    let ranges = EmptyRanges::default();
    // The deletes of several memtables count together, because each is flushed when it has a few
    // thousand.
    let mut requests = 0;
    while !ranges.is_overdue() {
        let memtable = Memtable::new(Budget::new(1 << 30));
        delete(&memtable, 1);
        assert_eq!(ranges.due(&memtable), None, "a new memtable");
        delete(&memtable, 3 * PROBE_EVERY);
        assert!(ranges.due(&memtable).is_some());
        assert_eq!(ranges.due(&memtable), None, "requested already");
        requests += 1;
    }
    assert_eq!(requests, UNPROBED_MAX / (3 * PROBE_EVERY) + 1);
    ranges.note_probe();
    assert!(!ranges.is_overdue());
}
