//! The filter of a run is built and read in parts, so it takes little memory and few reads however
//! large the run is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::{Fixture, get, options, put};
use frondb_core::budget::Part;
use frondb_core::{MessageKind, SeqNo, TreeId};
use frondb_filter::FilterKind;
use frondb_run::{Run, RunOptions, RunWriter};

const KEYS: u32 = 200_000;

/// A run whose keys are even numbers.
fn run_of(fixture: &Fixture, kind: FilterKind) -> Arc<Run> {
    let mut output = fixture.output(0);
    // All of the block index is in memory after the first lookup.
    let options = RunOptions { filter: kind, index_part_blocks: u32::MAX, ..options(1000) };
    let writer = RunWriter::new(fixture.next_id(), TreeId(3), options, false);
    let mut writer = writer.warming_cache(&fixture.env, 0, &Arc::default());
    for i in 0..KEYS {
        let key = (2 * i).to_be_bytes();
        writer.add(&mut output, &key, SeqNo(1), MessageKind::Put, b"value").unwrap();
    }
    let meta = writer.finish(&mut output).unwrap().unwrap();
    output.finish().unwrap();
    fixture.open(meta, None)
}

/// The number of entries found for `key`, the reads that this took, and their bytes.
fn lookup(run: &Run, key: u32) -> (usize, u64, u64) {
    let stats = &run.env().stats;
    let counts = || (stats.reads.load(Ordering::Relaxed), stats.read_bytes.load(Ordering::Relaxed));
    let (reads, bytes) = counts();
    let found = get(run, &key.to_be_bytes(), u64::MAX).unwrap().len();
    let (reads_after, bytes_after) = counts();
    (found, reads_after - reads, bytes_after - bytes)
}

const KINDS: [FilterKind; 2] = [FilterKind::BlockedBloom, FilterKind::BinaryFuse8];

#[test]
fn a_large_filter_is_built_in_little_memory() {
    for kind in KINDS {
        let fixture = Fixture::new();
        fixture.env.budget.set_total(8 << 20);
        let run = run_of(&fixture, kind);
        let (parts, bytes) = (run.meta().filter_parts, u64::from(run.meta().filter_bytes));
        assert!((20..=25).contains(&parts), "{kind:?}: {parts} parts");
        assert!(bytes * 8 < 11 * u64::from(KEYS), "{kind:?}: {bytes} bytes");
        let peak = fixture.env.budget.peak_of(Part::Work);
        assert!(peak <= (8 << 20) / 16 && peak > bytes / 2, "{kind:?}: {peak} of {bytes}");
        assert_eq!(fixture.env.budget.used_by(Part::Work), 0, "{kind:?}");
        let expected = put(&2000u32.to_be_bytes(), 1, b"value");
        assert_eq!(get(&run, &2000u32.to_be_bytes(), u64::MAX).unwrap(), [expected]);
        run.verify().unwrap();
    }
}

#[test]
fn a_filter_that_takes_more_than_a_sixteenth_of_the_memory_is_not_built() {
    for kind in KINDS {
        let fixture = Fixture::new();
        fixture.env.budget.set_total(2 << 20);
        let run = run_of(&fixture, kind);
        assert_eq!((run.meta().filter_parts, run.meta().filter_bytes), (0, 0), "{kind:?}");
        let peak = fixture.env.budget.peak_of(Part::Work);
        assert!(peak <= (2 << 20) / 16 + (64 << 10), "{kind:?}: {peak}");
        assert_eq!(fixture.env.budget.used_by(Part::Work), 0, "{kind:?}");
        assert_eq!(lookup(&run, 2000).0, 1);
        assert_eq!(lookup(&run, 2001).0, 0);
        run.verify().unwrap();
    }
}

/// Versions of one key fill many blocks, and lie on both sides of the boundary of two parts.
#[test]
fn no_key_is_excluded_where_it_lies_in_two_parts() {
    let part_keys = 64;
    for (kind, prefix) in KINDS.into_iter().flat_map(|kind| [(kind, None), (kind, Some(3))]) {
        let fixture = Fixture::new();
        let options = RunOptions { filter: kind, filter_prefix: prefix, ..options(200) };
        let index_part_blocks = if prefix.is_some() { 10 } else { 512 };
        let options = RunOptions { filter_part_keys: part_keys, index_part_blocks, ..options };
        let versions = |i: u32| if i as usize % part_keys < 6 { 40 } else { 1 + u64::from(i % 3) };
        let key = |i: u32| [&(300 * i).to_be_bytes()[..], &b"xy"[..2 * (i % 2) as usize]].concat();
        let entries: Vec<_> = (0..1000)
            .flat_map(|i| (1..=versions(i)).rev().map(move |version| (i, version)))
            .map(|(i, version)| put(&key(i), version, &version.to_be_bytes()))
            .collect();
        let run = fixture.run(options, true, &entries);
        assert!(run.meta().filter_parts > 8, "{} parts", run.meta().filter_parts);
        run.verify().unwrap();
        for i in 0..1000 {
            // Enough absent keys before each, so that the filter is asked.
            for n in 0..2u32 {
                let absent = [&key(i)[..3], &[key(i)[3] | 1, b'a'], &n.to_be_bytes()].concat();
                get(&run, &absent, u64::MAX).unwrap();
            }
            let found = get(&run, &key(i), u64::MAX).unwrap().len() as u64;
            assert_eq!(found, versions(i), "{kind:?}, {prefix:?}, key {i}");
        }
    }
}

#[test]
fn a_lookup_reads_one_part_and_the_next_one_there_nothing() {
    for kind in KINDS {
        let fixture = Fixture::new();
        let run = run_of(&fixture, kind);
        run.index().unwrap();
        let negatives = || fixture.env.stats.filter_negatives.load(Ordering::Relaxed);
        let (mut first, mut second) = (0, 0);
        for part in 0..10 {
            let key = part * 40_000 + 1;
            let (found, _, bytes) = lookup(&run, key);
            assert!(found == 0 && bytes <= 16 << 10, "{kind:?}: {bytes} bytes");
            first += bytes;
            second += lookup(&run, key + 2).2;
        }
        assert!(negatives() >= 18, "{kind:?}: {}", negatives());
        assert!(first > 50_000 && second < 5_000, "{kind:?}: {first} and {second} bytes");
    }
}

/// If the key is present, reading the filter saves no read of a block.
#[test]
fn no_filter_is_read_where_keys_are_found() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, FilterKind::BinaryFuse8);
    run.index().unwrap();
    assert_eq!(lookup(&run, 0).0, 1);
    for part in 1..10 {
        let (found, reads, bytes) = lookup(&run, part * 40_000);
        assert!((found, reads) == (1, 1) && bytes < 2000, "{found}, {reads} reads, {bytes} bytes");
    }
    // The filter is read again once keys are missing.
    let missing = || (0..100).map(|i| lookup(&run, i * 3_900 + 1).2).sum::<u64>();
    assert!(missing() > 50_000);
    let negatives = fixture.env.stats.filter_negatives.load(Ordering::Relaxed);
    assert!(negatives > 80, "{negatives}");
}

#[test]
fn a_block_in_the_cache_needs_no_filter() {
    let fixture = Fixture::new();
    let run = run_of(&fixture, FilterKind::BinaryFuse8);
    crate::support::scan(
        &run,
        frondb_core::Direction::Forward,
        frondb_run::ReadMode::Scan,
        Some(&80_000u32.to_be_bytes()),
        Some(&80_002u32.to_be_bytes()),
    )
    .unwrap();
    assert_eq!(lookup(&run, 80_001), (0, 0, 0));
}

/// Parts of that size exist in runs of earlier versions, whose filters have one part.
#[test]
fn a_part_that_takes_much_of_the_memory_is_not_read() {
    for kind in KINDS {
        let fixture = Fixture::new();
        let run = run_of(&fixture, kind);
        fixture.env.budget.set_total(256 << 10);
        let negatives = || fixture.env.stats.filter_negatives.load(Ordering::Relaxed);
        (0..20).for_each(|i| assert_eq!(lookup(&run, i * 10_000 + 1).0, 0));
        assert_eq!(negatives(), 0, "{kind:?}");
        fixture.env.budget.set_total(64 << 20);
        (0..20).for_each(|i| assert_eq!(lookup(&run, i * 10_000 + 5_001).0, 0));
        assert!(negatives() > 10, "{kind:?}: it is read again with more memory");
    }
}
