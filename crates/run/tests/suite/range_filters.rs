//! A filter of prefixes excludes ranges of one prefix: when the filter is asked, when a part of it
//! is read, and how much memory it takes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::{Fixture, drain, options, put};
use frondb_core::Direction;
use frondb_run::{RangeAnswer, ReadMode, Run, RunCursor, RunOptions};

const PREFIXES: u32 = 60_000;

fn bounds(prefix: u32) -> ([u8; 4], [u8; 4]) {
    (prefix.to_be_bytes(), (prefix + 1).to_be_bytes())
}

/// A run with several keys for each even prefix.
fn run_of(fixture: &Fixture, keys: u32, prefix: Option<u16>) -> Arc<Run> {
    let key = |i: u32| [(i / keys * 2).to_be_bytes(), (i % keys).to_be_bytes()].concat();
    let entries: Vec<_> = (0..PREFIXES).map(|i| put(&key(i), 1, b"a value of a row")).collect();
    let options = RunOptions { filter_prefix: prefix, ..options(1000) };
    let run = fixture.run(options, false, &entries);
    run.index().unwrap();
    run.verify().unwrap();
    run
}

fn ask(run: &Run, prefix: u32) -> RangeAnswer {
    let (lo, hi) = bounds(prefix);
    run.ask_range(&lo, Some(&hi)).unwrap()
}

/// What `work` reads from the device: reads and bytes.
fn read_by(run: &Run, work: impl FnOnce()) -> (u64, u64) {
    let stats = &run.env().stats;
    let counts = || (stats.reads.load(Ordering::Relaxed), stats.read_bytes.load(Ordering::Relaxed));
    let before = counts();
    work();
    let after = counts();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn an_absent_prefix_takes_no_read_once_its_part_of_the_filter_was_read() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, 1, Some(4));
    let parts = run.meta().filter_parts;
    assert!(parts > 4, "{parts} parts");
    let count = |prefix: u32| {
        let (lo, hi) = bounds(prefix);
        run.count_between(&lo, Some(&hi), u64::MAX).unwrap().unwrap()
    };
    let absent = || (0..400).map(|i| i * 290 + 1);
    let (reads, bytes) = read_by(&run, || assert_eq!(absent().map(count).sum::<u64>(), 0));
    // A false positive reads a block. The first lookups read the index.
    assert!(reads < u64::from(parts) + 15, "{reads} reads, {parts} parts");
    assert!(bytes < 150_000, "{bytes} bytes");
    let (reads, _) = read_by(&run, || assert!(absent().map(count).sum::<u64>() == 0));
    assert_eq!(reads, 0);
    // A filter of whole keys cannot exclude a range.
    let other = run_of(&fixture, 1, None);
    assert_eq!(ask(&other, 7), RangeAnswer::Passed);
}

/// Where ranges find keys, reading the filter saves nothing. The filter is read again once most
/// ranges find none.
#[test]
fn no_filter_is_read_where_most_ranges_find_keys() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, 1, Some(4));
    let scan = |prefix: u32, direction| {
        let (lo, hi) = bounds(prefix);
        let answer = run.ask_range(&lo, Some(&hi)).unwrap();
        if answer == RangeAnswer::Excluded {
            return 0;
        }
        let cursor =
            RunCursor::new(Arc::clone(&run), direction, Some(&lo), Some(&hi), ReadMode::Scan);
        let cursor = cursor.unwrap();
        let mut cursor = if answer == RangeAnswer::Unprobed { cursor.unprobed() } else { cursor };
        drain(&mut cursor, direction).unwrap().len()
    };
    assert_eq!(scan(0, Direction::Forward), 1);
    for i in 1..100 {
        let direction = if i % 2 == 0 { Direction::Forward } else { Direction::Backward };
        let (reads, bytes) = read_by(&run, || assert_eq!(scan(i * 1100, direction), 1));
        // Two blocks, if the key is the first of its block.
        assert!(reads <= 2 && bytes < 3_000, "{i}: {reads} reads, {bytes} bytes");
    }
    let missing = |from: u32| (0..60).map(move |i| from + i * 1_900);
    missing(1).for_each(|prefix| assert_eq!(scan(prefix, Direction::Forward), 0));
    let (reads, _) = read_by(&run, || {
        missing(501).for_each(|prefix| assert_eq!(scan(prefix, Direction::Backward), 0));
    });
    assert!(reads < 20, "{reads} reads");
}

/// A block in the cache answers without a read, so no part of the filter is read for it.
#[test]
fn a_block_in_the_cache_needs_no_filter() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, 1, Some(4));
    let (lo, hi) = bounds(1_000);
    let cursor =
        RunCursor::new(Arc::clone(&run), Direction::Forward, Some(&lo), Some(&hi), ReadMode::Scan);
    assert_eq!(drain(&mut cursor.unwrap(), Direction::Forward).unwrap().len(), 1);
    let (reads, _) = read_by(&run, || {
        assert_eq!(ask(&run, 1_001), RangeAnswer::Unprobed);
    });
    assert_eq!(reads, 0);
}

/// The filter has each prefix once, so that it takes less memory than one of whole keys.
#[test]
fn keys_with_one_prefix_take_the_room_of_one() {
    let fixture = Fixture::new();
    let bytes = |keys, prefix| run_of(&fixture, keys, prefix).meta().filter_bytes;
    let (whole, ten) = (bytes(10, None), bytes(10, Some(4)));
    assert!(ten * 8 < whole, "{ten} bytes, {whole} for whole keys");
    let one = bytes(1, Some(4));
    assert!(one <= whole + whole / 20, "{one} bytes, {whole} for whole keys");
}

/// Prefixes whose keys lie on both sides of the boundary of two parts of the filter.
#[test]
fn no_prefix_is_excluded_where_its_keys_lie_in_two_parts() {
    let key = |i: u32| [(i / 50 * 2).to_be_bytes(), (i % 50).to_be_bytes()].concat();
    let entries: Vec<_> = (0..5_000).map(|i| put(&key(i), 1, b"value")).collect();
    for index_part_blocks in [3, 40, 512] {
        let fixture = Fixture::new();
        let run_options = RunOptions {
            filter_prefix: Some(4),
            filter_part_keys: 2,
            index_part_blocks,
            ..options(200)
        };
        let run = fixture.run(run_options, false, &entries);
        assert!(run.meta().filter_parts > 20, "{} parts", run.meta().filter_parts);
        run.verify().unwrap();
        // Absent prefixes come first: the filter is asked only if most ranges have no keys.
        let is_excluded = |prefix: &u32| ask(&run, *prefix) == RangeAnswer::Excluded;
        let excluded = (1..200).step_by(2).filter(is_excluded).count();
        assert!(excluded > 20, "{excluded} ranges were excluded");
        for prefix in 0..200 {
            assert!(prefix % 2 == 1 || !is_excluded(&prefix), "{prefix}");
            let (lo, hi) = bounds(prefix);
            let expected = if prefix % 2 == 0 { 50 } else { 0 };
            assert_eq!(
                run.count_between(&lo, Some(&hi), u64::MAX).unwrap().unwrap(),
                expected,
                "{prefix}"
            );
            // The end of the range lies in another part than its beginning.
            let lo = [&lo[..], &49u32.to_be_bytes()].concat();
            let expected = if prefix % 2 == 0 { 1 } else { 0 };
            assert_eq!(
                run.count_between(&lo, Some(&hi), u64::MAX).unwrap().unwrap(),
                expected,
                "{prefix}"
            );
        }
    }
}
