//! Filters that would take a large part of the memory budget are neither built nor read (rule 24).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use frondb_core::budget::Part;
use frondb_core::{MessageKind, SeqNo, TreeId};
use frondb_filter::FilterKind;
use frondb_run::{Run, RunOptions, RunWriter};
use support::{Fixture, get, options, put};

/// A run whose keys are even numbers.
fn run_of(fixture: &Fixture, kind: FilterKind, keys: u32) -> Arc<Run> {
    let mut output = fixture.output(0);
    let options = RunOptions { filter: kind, ..options(1000) };
    let writer = RunWriter::new(fixture.next_id(), TreeId(3), options, false);
    let mut writer = writer.warming_cache(&fixture.env, 0);
    for i in 0..keys {
        let key = (2 * i).to_be_bytes();
        writer.add(&mut output, &key, SeqNo(1), MessageKind::Put, b"value").unwrap();
    }
    let meta = writer.finish(&mut output).unwrap().unwrap();
    output.finish().unwrap();
    fixture.open(meta, None)
}

const KINDS: [FilterKind; 2] = [FilterKind::BlockedBloom, FilterKind::BinaryFuse8];

#[test]
fn hashes_take_at_most_an_eighth_of_the_memory() {
    for kind in KINDS {
        let fixture = Fixture::new();
        fixture.env.budget.set_total(4 << 20);
        let peak = || fixture.env.budget.peak_of(Part::Work);
        // 512 KiB of hashes.
        assert!(run_of(&fixture, kind, 64_000).meta().filter_bytes > 0, "{kind:?}");
        assert!(peak() < 1 << 20, "{kind:?}: {}", peak());
        let large = run_of(&fixture, kind, 200_000);
        assert_eq!(large.meta().filter_bytes, 0, "{kind:?}");
        assert!(peak() < 1 << 20, "{kind:?}: {}", peak());
        assert_eq!(fixture.env.budget.used_by(Part::Work), 0, "{kind:?}");
        let expected = put(&2000u32.to_be_bytes(), 1, b"value");
        assert_eq!(get(&large, &2000u32.to_be_bytes(), u64::MAX).unwrap(), [expected]);
        assert!(get(&large, &2001u32.to_be_bytes(), u64::MAX).unwrap().is_empty());
        large.verify().unwrap();
    }
}

#[test]
fn a_filter_built_with_more_memory_is_not_read_with_less() {
    for kind in KINDS {
        let fixture = Fixture::new();
        let run = run_of(&fixture, kind, 200_000);
        let asked = || fixture.env.stats.filter_negatives.load(Ordering::Relaxed);
        let reads_of = |key: u32| {
            let before = fixture.env.stats.read_bytes.load(Ordering::Relaxed);
            assert!(get(&run, &key.to_be_bytes(), u64::MAX).unwrap().is_empty());
            fixture.env.stats.read_bytes.load(Ordering::Relaxed) - before
        };
        let ask = || (0..20).map(|i| reads_of(2 * i + 1)).sum::<u64>();
        assert!(ask() > 0, "{kind:?}");
        let negatives = asked();
        assert!(negatives > 10, "{kind:?}");
        fixture.env.budget.set_total(4 << 20);
        fixture.env.cache.clear();
        assert!(reads_of(20_001) < u64::from(run.meta().filter_bytes), "{kind:?}");
        assert_eq!(asked(), negatives, "{kind:?}");
        fixture.env.budget.set_total(64 << 20);
        ask();
        assert!(asked() > negatives, "{kind:?}: it is read again with as much memory as before");
    }
}
