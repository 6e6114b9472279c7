//! If the cache has no room for a block, the lookup that reads the block keeps the row in the row
//! cache. Later lookups return the same from the row cache as from the block.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::{Entry, Fixture, get, options, put};
use frondb_core::prng::Prng;
use frondb_core::{MessageKind, SeqNo};
use frondb_run::Run;

const KEYS: u32 = 20_000;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// A fixture whose cache has room for a small part of the run, and the run.
fn small_cache(per_entry_seqs: bool, entries: &[Entry]) -> (Fixture, Arc<Run>) {
    let fixture = Fixture::with_memory(1 << 20);
    let run = fixture.run(options(4096), per_entry_seqs, entries);
    (fixture, run)
}

fn values(n: u32) -> Vec<u8> {
    n.to_le_bytes().repeat(25)
}

fn reads(run: &Run) -> u64 {
    run.env().stats.reads.load(Ordering::Relaxed)
}

#[test]
fn a_row_is_read_once() {
    let entries: Vec<Entry> = (0..KEYS).map(|n| put(&key(n), 1, &values(n))).collect();
    let (_fixture, run) = small_cache(false, &entries);
    let hot: Vec<u32> = (0..KEYS).step_by(50).collect();
    let look_up = |n: u32| {
        assert_eq!(get(&run, &key(n), u64::MAX).unwrap(), [entries[n as usize].clone()]);
    };
    (0..KEYS).step_by(37).for_each(look_up);
    assert!(!run.env().rows.is_empty());
    hot.iter().copied().for_each(look_up);
    let before = reads(&run);
    for n in (1..KEYS).step_by(61) {
        look_up(n);
        hot.iter().copied().for_each(look_up);
    }
    let (lookups, reads) = ((KEYS / 61) as u64, reads(&run) - before);
    let most = lookups + 2 * hot.len() as u64;
    assert!(reads <= most, "{reads} reads, for {lookups} lookups of other rows");
    assert!(run.env().rows.stats().hits > 10_000);
}

#[test]
fn while_the_cache_has_room_there_are_no_rows() {
    let fixture = Fixture::new();
    let entries: Vec<Entry> = (0..KEYS).map(|n| put(&key(n), 1, &values(n))).collect();
    let run = fixture.run(options(4096), false, &entries);
    for n in 0..KEYS {
        assert_eq!(get(&run, &key(n), u64::MAX).unwrap().len(), 1);
    }
    assert!(run.env().rows.is_empty());
}

/// Compares lookups with the list of entries, for random versions, kinds and snapshots. Some keys
/// fill several blocks.
#[test]
fn every_snapshot_sees_what_the_blocks_have() {
    let seed = 12;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let mut entries = Vec::new();
    for n in 0..12_000 {
        let versions = if n % 300 == 0 { 100 } else { 1 + prng.below(4) / 3 };
        for version in 0..versions {
            let kind = MessageKind::from_u8(prng.below(3) as u8).unwrap();
            let value = if kind == MessageKind::Delete { Vec::new() } else { values(n) };
            let seq = SeqNo(1000 - version * 3 - prng.below(3));
            entries.push(Entry { key: key(n).to_vec(), seq, kind, value });
        }
    }
    let (_fixture, run) = small_cache(true, &entries);
    for _ in 0..20_000 {
        // A few keys are looked up often.
        let n = if prng.chance(1, 2) { prng.below(300) * 40 } else { prng.below(12_100) } as u32;
        let snapshot = if prng.chance(1, 3) { 990 + prng.below(20) } else { u64::MAX };
        let sees = |entry: &&Entry| entry.key == key(n) && entry.seq.get() <= snapshot;
        let expected: Vec<Entry> = entries.iter().filter(sees).cloned().collect();
        assert_eq!(get(&run, &key(n), snapshot).unwrap(), expected, "key {n} at {snapshot}");
    }
    assert!(run.env().rows.stats().hits > 1_000);
}

/// The SeqNos of a run that a transaction wrote depend on the handle, whether its messages have one
/// each or share one.
#[test]
fn an_attached_run_has_its_own_seqnos() {
    for per_entry_seqs in [false, true] {
        let entries: Vec<Entry> =
            (0..KEYS).map(|n| put(&key(n), 1 + u64::from(n % 5), &values(n))).collect();
        let (_fixture, private) = small_cache(per_entry_seqs, &entries);
        let attached = Arc::clone(&private).attached(SeqNo(1000));
        let shifted = |entries: Vec<Entry>| -> Vec<Entry> {
            let shift = |entry: Entry| Entry { seq: SeqNo(entry.seq.get() + 1000), ..entry };
            entries.into_iter().map(shift).collect()
        };
        for n in (0..KEYS).step_by(41).chain((0..KEYS).step_by(41)) {
            let own = get(&private, &key(n), u64::MAX).unwrap();
            assert_eq!(own.len(), 1);
            assert_eq!(get(&attached, &key(n), u64::MAX).unwrap(), shifted(own));
            assert!(get(&attached, &key(n), 1000).unwrap().is_empty());
        }
        assert!(private.env().rows.stats().hits > 100);
    }
}
