//! Blocks for which the cache has no room keep their values as columns; they get rows when there is
//! room, or when reads find them often. Lookups and scans return the same for both forms.

use std::sync::Arc;

use crate::support::{Entry, Fixture, get, options, put, scan};
use frondb_block::{Block, Codec};
use frondb_cache::CacheKey;
use frondb_core::Direction;
use frondb_core::prng::Prng;
use frondb_run::{Cached, ReadMode, Run, RunOptions};

const KEYS: u32 = 20_000;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// A value of 100 bytes. Every second byte is random, the others are constant.
fn value(n: u32) -> Vec<u8> {
    let mut prng = Prng::new(u64::from(n));
    let mut value = vec![7; 100];
    value.iter_mut().step_by(2).for_each(|byte| *byte = prng.next_u32() as u8);
    value
}

/// A run of 20,000 rows with values of one length.
fn fixture(per_entry_seqs: bool) -> (Fixture, Arc<Run>, Vec<Entry>) {
    let fixture = Fixture::with_memory(1 << 20);
    let entries: Vec<Entry> =
        (0..KEYS).map(|n| put(&key(n), 1 + u64::from(n % 7), &value(n))).collect();
    let options = RunOptions { codec: Codec::Zstd(1), ..options(4096) };
    let run = fixture.run(options, per_entry_seqs, &entries);
    (fixture, run, entries)
}

/// The blocks of the run that are in the cache.
fn cached(run: &Run) -> Vec<Block> {
    let block = |n| match run.env().cache.get(CacheKey::block(run.meta().id, n)) {
        Some(Cached::Block(block)) => Some(block),
        _ => None,
    };
    (0..run.meta().blocks).filter_map(block).collect()
}

/// The number of cached blocks with columns, and of those with rows.
fn forms(run: &Run) -> (usize, usize) {
    let blocks = cached(run);
    let columns = blocks.iter().filter(|block| block.has_columns()).count();
    (columns, blocks.len() - columns)
}

fn look_up(run: &Run, entries: &[Entry], keys: impl Iterator<Item = u32>) {
    for n in keys {
        assert_eq!(get(run, &key(n), u64::MAX).unwrap(), [entries[n as usize].clone()]);
    }
}

#[test]
fn a_full_cache_has_columns_and_a_larger_one_rows() {
    let (fixture, run, entries) = fixture(true);
    // The first blocks find room.
    look_up(&run, &entries, (0..KEYS).step_by(3_000));
    assert_eq!(forms(&run), (0, 7));
    look_up(&run, &entries, (0..KEYS).step_by(37));
    let (columns, rows) = forms(&run);
    assert!(columns > 20 && rows < columns, "{columns} blocks with columns, {rows} with rows");
    // Blocks with columns take less memory.
    let (with, without): (Vec<_>, Vec<_>) = cached(&run).into_iter().partition(Block::has_columns);
    if let (Some(with), Some(without)) = (with.first(), without.first()) {
        assert!(with.memory_bytes() < without.memory_bytes());
    }
    fixture.env.budget.set_total(64 << 20);
    look_up(&run, &entries, 0..KEYS);
    assert_eq!(forms(&run).0, 0, "every block was found, or read, with room in the cache");
}

#[test]
fn blocks_that_scans_find_often_get_rows() {
    let (_fixture, run, entries) = fixture(true);
    look_up(&run, &entries, (0..KEYS).step_by(37));
    let has_columns = || {
        let mut blocks = cached(&run).into_iter();
        let block = blocks.find(|block| !block.find(&key(19_010)).is_empty());
        block.expect("a block that was just read is in the cache").has_columns()
    };
    let scan_hot = || {
        let (lo, hi) = (key(19_000), key(19_030));
        let (forward, mode) = (Direction::Forward, ReadMode::Scan);
        let found = scan(&run, forward, mode, Some(&lo), Some(&hi)).unwrap();
        assert_eq!(found, entries[19_000..19_030]);
    };
    scan_hot();
    assert!(has_columns());
    (0..6).for_each(|_| scan_hot());
    assert!(!has_columns());
    scan_hot();
}

#[test]
fn scans_and_merges_return_all_entries_with_and_without_columns() {
    for per_entry_seqs in [false, true] {
        let (fixture, run, entries) = fixture(per_entry_seqs);
        let seqs = |entries: &[Entry]| -> Vec<Entry> {
            let of_run = |entry: &Entry| Entry { seq: run.meta().max_seq, ..entry.clone() };
            match per_entry_seqs {
                true => entries.to_vec(),
                false => entries.iter().map(of_run).collect(),
            }
        };
        let expected = seqs(&entries);
        for memory in [1 << 20, 64 << 20] {
            fixture.env.budget.set_total(memory);
            for mode in [ReadMode::Scan, ReadMode::Merge] {
                let found = scan(&run, Direction::Forward, mode, None, None).unwrap();
                assert!(found == expected, "{memory} {mode:?}");
                let mut found = scan(&run, Direction::Backward, mode, None, None).unwrap();
                found.reverse();
                assert!(found == expected, "{memory} {mode:?}");
            }
        }
    }
}
