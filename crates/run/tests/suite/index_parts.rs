//! The block index is read in parts, so a lookup reads little however large the run is and however
//! little of its index is in the cache.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::{Fixture, get, options, put, scan};
use frondb_cache::CacheKey;
use frondb_core::budget::Part;
use frondb_core::prng::Prng;
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source, TreeId};
use frondb_run::{Cached, INDEX_PART_BLOCKS, ReadMode, Run, RunCursor, RunOptions, RunWriter};

const KEYS: u32 = 60_000;

/// A run of about 6,000 blocks, without a filter.
fn run_of(fixture: &Fixture, index_part_blocks: u32, reads: u64) -> Arc<Run> {
    run_with(fixture, KEYS, index_part_blocks, reads)
}

/// A run with a block for ten keys, without a filter.
fn run_with(fixture: &Fixture, keys: u32, index_part_blocks: u32, reads: u64) -> Arc<Run> {
    let mut output = fixture.output(0);
    let options =
        RunOptions { filter: frondb_filter::FilterKind::None, index_part_blocks, ..options(150) };
    let writer = RunWriter::new(fixture.next_id(), TreeId(3), options, false);
    let mut writer = writer.warming_cache(&fixture.env, reads, &Arc::default());
    for i in 0..keys {
        writer.add(&mut output, &key(i), SeqNo(1), MessageKind::Put, b"value 12345").unwrap();
    }
    let meta = writer.finish(&mut output).unwrap().unwrap();
    output.finish().unwrap();
    fixture.open(meta, None)
}

fn key(i: u32) -> [u8; 4] {
    (3 * i).to_be_bytes()
}

/// Reads of lookups and scans so far, and their bytes.
fn reads(fixture: &Fixture) -> (u64, u64) {
    let stats = &fixture.env.stats;
    (stats.reads.load(Ordering::Relaxed), stats.read_bytes.load(Ordering::Relaxed))
}

/// The reads of `read`, and their bytes.
fn reads_of(fixture: &Fixture, read: impl FnOnce()) -> (u64, u64) {
    let before = reads(fixture);
    read();
    let after = reads(fixture);
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_lookup_reads_one_part_and_one_block() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, INDEX_PART_BLOCKS, 0);
    let parts = run.meta().index_parts;
    assert!((6..=9).contains(&parts), "{parts} parts of {} blocks", run.meta().blocks);
    let part_bytes = u64::from(run.meta().index_bytes / parts);
    assert!((500..5000).contains(&part_bytes), "{part_bytes} bytes a part");
    let top = u64::from(run.meta().top_index_bytes);
    assert!(top < 300, "{top} bytes of the top index");
    let mut prng = Prng::new(1);
    for lookup in 0..500 {
        fixture.env.cache.clear();
        let i = prng.below(u64::from(KEYS)) as u32;
        let (reads, bytes) = reads_of(&fixture, || {
            assert_eq!(get(&run, &key(i), 9).unwrap().len(), 1);
        });
        // The first lookup reads the top index, too, which the run keeps.
        assert_eq!(reads, if lookup == 0 { 3 } else { 2 });
        assert!(bytes < 2 * part_bytes + top + 1000, "{bytes} bytes");
    }
    assert!(fixture.env.budget.used_by(Part::Index) >= 48 * u64::from(parts));
    fixture.env.cache.clear();
    let again = reads_of(&fixture, || drop(get(&run, &key(KEYS / 2), 9).unwrap()));
    let next = reads_of(&fixture, || drop(get(&run, &key(KEYS / 2 + 100), 9).unwrap()));
    assert_eq!((again.0, next.0), (2, 1), "the part is in the cache");
    drop(run);
    assert_eq!(fixture.env.budget.used_by(Part::Index), 0);
}

/// The index of an earlier version has one part, whatever its size.
#[test]
fn an_index_in_one_frame_is_read_as_before() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, u32::MAX, 0);
    assert_eq!((run.meta().index_parts, run.meta().top_index_bytes), (1, 0));
    let (reads, bytes) = reads_of(&fixture, || {
        (0..KEYS).step_by(700).for_each(|i| assert_eq!(get(&run, &key(i), 9).unwrap().len(), 1));
    });
    assert_eq!(reads, 1 + u64::from(KEYS.div_ceil(700)));
    assert!(bytes > u64::from(run.meta().index_bytes));
    run.verify().unwrap();
}

/// Where not all parts fit into the cache, a lookup reads little more than where all fit.
#[test]
fn lookups_degrade_gracefully_with_little_memory() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, 128, 0);
    let index = run.index().unwrap().memory_bytes() as u64;
    let mut prng = Prng::new(1);
    let mut lookups = |memory: u64| {
        fixture.env.budget.set_total(memory);
        fixture.env.cache.clear();
        let (reads, bytes) = reads_of(&fixture, || {
            for _ in 0..5000 {
                let i = prng.below(u64::from(KEYS)) as u32;
                assert_eq!(get(&run, &key(i), 9).unwrap().len(), 1);
            }
        });
        (reads as f64 / 5000.0, bytes / 5000)
    };
    let (much, much_bytes) = lookups(3 * index);
    let (half, half_bytes) = lookups(index);
    let (little, little_bytes) = lookups(index / 4);
    println!("{much:.2}, {half:.2} and {little:.2} reads a lookup");
    println!("{much_bytes}, {half_bytes} and {little_bytes} bytes a lookup");
    assert!(much < 1.2 && half < 1.8 && little < 2.01, "{much}, {half} and {little} reads");
    assert!(little_bytes < 2000, "{little_bytes} bytes a lookup");
}

/// The parts of these indexes fit into the cache as they are on disk, but not decoded.
#[test]
fn parts_are_cached_as_they_are_on_disk_where_they_do_not_fit() {
    let keys = 400_000;
    let fixture = Fixture::new();
    for (part_blocks, keys_of_run, count) in [(128, keys, 1), (u32::MAX, keys / 400, 400)] {
        let runs: Vec<_> =
            (0..count).map(|_| run_with(&fixture, keys_of_run, part_blocks, 0)).collect();
        let decoded: u64 = runs.iter().map(|run| run.index().unwrap().memory_bytes() as u64).sum();
        let mut prng = Prng::new(3);
        let mut look_up = |lookups: u32| {
            let (reads, _) = reads_of(&fixture, || {
                for _ in 0..lookups {
                    let run = &runs[prng.below(runs.len() as u64) as usize];
                    let i = prng.below(u64::from(keys_of_run)) as u32;
                    assert_eq!(get(run, &key(i), 9).unwrap().len(), 1);
                }
            });
            reads as f64 / f64::from(lookups)
        };
        let frames = || {
            let keys_of = |run: &Arc<Run>| {
                let id = run.meta().id;
                let parts = (0..run.meta().index_parts).map(move |p| CacheKey::index_part(id, p));
                parts.chain([CacheKey::index(id)])
            };
            let cached = runs.iter().flat_map(keys_of).filter_map(|key| fixture.env.cache.get(key));
            cached.filter(|cached| matches!(cached, Cached::IndexFrame(_))).count()
        };
        fixture.env.cache.clear();
        fixture.env.budget.set_total(decoded * 9 / 8);
        let early = look_up(1_000);
        look_up(20_000);
        let late = look_up(20_000);
        let found = frames();
        println!("{early:.2} reads a lookup, then {late:.2}; {found} frames");
        assert!(found > 20, "{found} frames");
        assert!(late < 1.25 && late < early - 0.2, "{early:.2} reads a lookup, then {late:.2}");
        fixture.env.budget.set_total(64 << 20);
        look_up(20_000);
        assert_eq!(frames(), 0, "the memory has grown");
        fixture.env.budget.set_total(decoded * 9 / 8);
    }
}

/// The top indexes that runs keep take at most a thirty-second of the memory.
#[test]
fn top_indexes_that_find_no_memory_are_in_the_cache() {
    let fixture = Fixture::new();
    let runs: Vec<_> = (0..6).map(|_| run_of(&fixture, 32, 0)).collect();
    fixture.env.budget.set_total(1 << 20);
    let read_all = || {
        for run in &runs {
            (0..KEYS).step_by(997).for_each(|i| assert_eq!(get(run, &key(i), 9).unwrap().len(), 1));
        }
    };
    read_all();
    let kept = fixture.env.budget.used_by(Part::Index);
    assert!(kept <= (1 << 20) / 32 && kept > 5_000, "{kept} bytes");
    // With more memory the others are kept, too.
    fixture.env.budget.set_total(64 << 20);
    read_all();
    let all = fixture.env.budget.used_by(Part::Index);
    assert!(all > kept * 3 / 2, "{all} bytes");
    let is_cached =
        |run: &Arc<Run>| fixture.env.cache.get(CacheKey::index(run.meta().id)).is_some();
    assert!(!runs.iter().any(is_cached), "kept by the run and cached");
}

#[test]
fn a_scan_takes_each_part_once_and_a_merge_leaves_none_in_the_cache() {
    for direction in [Direction::Forward, Direction::Backward] {
        let fixture = Fixture::new();
        let run = run_of(&fixture, INDEX_PART_BLOCKS, 0);
        let parts = u64::from(run.meta().index_parts);
        assert_eq!(
            scan(&run, direction, ReadMode::Merge, None, None).unwrap().len(),
            KEYS as usize
        );
        assert_eq!(fixture.env.cache.stats().items, 0, "a merge inserts nothing");
        assert_eq!(reads(&fixture).0, 1, "the top index is for all");
        let merge_reads = fixture.env.stats.merge_reads.load(Ordering::Relaxed);
        let windows = run.meta().blocks_bytes / (128 << 10);
        assert!(merge_reads <= 2 * parts + windows + 1, "{merge_reads} reads");

        let misses = || fixture.env.cache.stats().misses;
        let before = misses();
        assert_eq!(scan(&run, direction, ReadMode::Scan, None, None).unwrap().len(), KEYS as usize);
        let of_parts = misses() - before - u64::from(run.meta().blocks);
        assert!(of_parts <= 2 * parts, "{of_parts} misses of {parts} parts");
        // A short scan reads the part in which it begins, and no more.
        fixture.env.cache.clear();
        let (lo, hi) = (key(KEYS / 2), key(KEYS - 5));
        let (lo, hi) = (Some(&lo[..]), Some(&hi[..]));
        let mut cursor =
            frondb_run::RunCursor::new(Arc::clone(&run), direction, lo, hi, ReadMode::Scan);
        let begun = reads_of(&fixture, || {
            let mut chunk = frondb_core::Chunk::new();
            let cursor = cursor.as_mut().unwrap();
            assert!(frondb_core::Source::next_chunk(cursor, &mut chunk).unwrap());
        });
        assert_eq!(begun.0, 1);
    }
}

/// Versions of one key fill whole parts.
#[test]
fn versions_continue_over_blocks_and_parts() {
    for part_blocks in [1, 2, 3, 50] {
        let fixture = Fixture::new();
        let versions = |i: u32| [1, 90, 3, 1, 200, 1, 1][i as usize % 7];
        let entries: Vec<_> = (0..30u32)
            .flat_map(|i| (1..=versions(i)).rev().map(move |version| (i, version)))
            .map(|(i, version)| put(&key(i), version, &[7; 40]))
            .collect();
        let options = RunOptions { index_part_blocks: part_blocks, ..options(100) };
        let run = fixture.run(options, true, &entries);
        assert!(run.meta().index_parts > 5, "{} parts", run.meta().index_parts);
        run.verify().unwrap();
        for i in 0..30 {
            for snapshot in [versions(i), 60] {
                let found = get(&run, &key(i), snapshot).unwrap().len() as u64;
                assert_eq!(found, versions(i).min(snapshot), "key {i}");
            }
            let (lo, hi) = (key(i), key(i + 1));
            let (lo, hi) = (&lo[..], Some(&hi[..]).filter(|_| i < 29));
            assert_eq!(run.count_between(lo, hi, u64::MAX).unwrap(), Some(versions(i)));
            for (direction, mode) in
                [(Direction::Forward, ReadMode::Scan), (Direction::Backward, ReadMode::Merge)]
            {
                let found = scan(&run, direction, mode, Some(lo), hi).unwrap();
                assert_eq!(found.len() as u64, versions(i));
            }
        }
    }
}

#[test]
fn a_job_caches_the_parts_that_it_writes() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, INDEX_PART_BLOCKS, 1_000_000);
    let lookups = || {
        (0..KEYS).step_by(700).for_each(|i| assert_eq!(get(&run, &key(i), 9).unwrap().len(), 1));
    };
    assert_eq!(reads_of(&fixture, lookups), (0, 0));
    assert!(fixture.env.budget.used_by(Part::Index) > 0, "the run has taken the top index");
    drop(run);
}

/// A skip to a key outside the bounds of a cursor ends the cursor: no block between the bound and
/// that key is read.
#[test]
fn a_skip_beyond_the_bounds_of_a_cursor_reads_nothing() {
    for parts in [u32::MAX, 128] {
        for (direction, lo, hi, target) in [
            (Direction::Backward, Some(key(50_000)), None, key(40_000)),
            (Direction::Forward, None, Some(key(10_000)), key(30_000)),
        ] {
            let fixture = Fixture::new();
            let run = run_of(&fixture, parts, 0);
            let (lo, hi) =
                (lo.as_ref().map(<[u8; 4]>::as_slice), hi.as_ref().map(<[u8; 4]>::as_slice));
            let mut cursor =
                RunCursor::new(Arc::clone(&run), direction, lo, hi, ReadMode::Scan).unwrap();
            let mut chunk = Chunk::new();
            assert!(cursor.next_chunk(&mut chunk).unwrap());
            let (reads, _) = reads_of(&fixture, || {
                cursor.skip(&target).unwrap();
                assert!(!cursor.next_chunk(&mut chunk).unwrap());
            });
            assert_eq!(reads, 0, "{direction:?}, parts of {parts} blocks");
        }
    }
}

/// If the lower bound of a backward cursor lies in another part of the index than its first block,
/// the cursor reads no block below the bound.
#[test]
fn a_backward_cursor_ends_at_a_bound_in_another_part() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, 128, 0);
    let (lo, target) = (key(50_000), key(50_010));
    let mut cursor =
        RunCursor::new(Arc::clone(&run), Direction::Backward, Some(&lo), None, ReadMode::Scan)
            .unwrap();
    let mut chunk = Chunk::new();
    assert!(cursor.next_chunk(&mut chunk).unwrap());
    let (reads, _) = reads_of(&fixture, || {
        cursor.skip(&target).unwrap();
        while cursor.next_chunk(&mut chunk).unwrap() {}
    });
    assert!(reads <= 3, "{reads} reads: a part of the index and the block of the bound");
}
