//! With low memory, the blocks that readers' cursors hold are charged, because the cache no longer
//! counts a block that it has evicted. They take at most a fraction of the memory budget (rule 24).

use std::sync::Arc;

use crate::support::{Entry, Fixture, drain, entry_of, options, put, scan};
use frondb_core::budget::Part;
use frondb_core::{Chunk, Direction, Source};
use frondb_run::{ReadMode, RunCursor};

fn entries() -> Vec<Entry> {
    (0..2000u32).map(|i| put(&i.to_be_bytes(), 1, &[i as u8; 100])).collect()
}

#[test]
fn cursors_charge_the_blocks_that_they_hold() {
    for (memory, is_charged) in [(16 << 20, true), (64 << 20, false)] {
        let fixture = Fixture::new();
        fixture.env.budget.set_total(memory);
        let run = fixture.run(options(16 << 10), false, &entries());
        let open = |direction| {
            let mut walk =
                RunCursor::new(Arc::clone(&run), direction, None, None, ReadMode::Scan).unwrap();
            let mut chunk = Chunk::new();
            assert!(walk.next_chunk(&mut chunk).unwrap());
            walk
        };
        let mut walks: Vec<_> = (0..20).map(|_| open(Direction::Forward)).collect();
        walks.extend((0..20).map(|_| open(Direction::Backward)));
        fixture.env.cache.clear();
        let work = || fixture.env.budget.used_by(Part::Work);
        // The last block of the run, which the backward cursors hold, is smaller.
        let expected = if is_charged { 40 * (10 << 10) } else { 0 };
        assert!((expected..=2 * expected).contains(&work()), "{memory}: {}", work());
        for walk in &mut walks {
            let mut chunk = Chunk::new();
            while walk.next_chunk(&mut chunk).unwrap() {}
        }
        assert_eq!(work(), 0, "{memory}: a walk at its end holds nothing");
        drop(walks);
        let all = scan(&run, Direction::Forward, ReadMode::Scan, None, None).unwrap();
        assert_eq!((all, work()), (entries(), 0));
    }
}

/// With many cursors, some hold a block and the others fetch it again; all return all entries, also
/// after a skip and after the cache was cleared.
#[test]
fn many_cursors_hold_a_part_of_the_memory_and_return_all_entries() {
    let fixture = Fixture::new();
    fixture.env.budget.set_total(16 << 20);
    let all = entries();
    let run = fixture.run(options(16 << 10), false, &all);
    let mut walks = Vec::new();
    for i in 0..400 {
        let direction = [Direction::Forward, Direction::Backward][i % 2];
        let mut walk =
            RunCursor::new(Arc::clone(&run), direction, None, None, ReadMode::Scan).unwrap();
        let mut chunk = Chunk::new();
        assert!(walk.next_chunk(&mut chunk).unwrap());
        let first: Vec<Entry> = (0..chunk.len()).map(|i| entry_of(&chunk, i)).collect();
        let expected = match direction {
            Direction::Forward => &all[..first.len()],
            Direction::Backward => &all[all.len() - first.len()..],
        };
        assert_eq!(first, expected, "walk {i}");
        walks.push((walk, direction, first.len()));
    }
    let work = fixture.env.budget.used_by(Part::Work);
    assert!((1 << 20..=2 << 20).contains(&work), "{work} bytes are held");
    for (i, (mut walk, direction, seen)) in walks.into_iter().enumerate() {
        if i % 3 == 0 {
            fixture.env.cache.clear();
        }
        // No skip, a skip within the block, and a skip to another block.
        let skipped = [seen, seen + 5, all.len() / 2][i % 3];
        let mut expected: Vec<Entry> = match direction {
            Direction::Forward => {
                walk.skip(&all[skipped].key).unwrap();
                all[skipped..].to_vec()
            }
            Direction::Backward => {
                walk.skip(&all[all.len() - skipped].key).unwrap();
                all[..all.len() - skipped].to_vec()
            }
        };
        if direction == Direction::Backward {
            expected.reverse();
        }
        if i % 5 == 0 {
            walk.keep_small(7);
        }
        assert_eq!(drain(&mut walk, direction).unwrap(), expected, "walk {i}");
    }
    assert_eq!(fixture.env.budget.used_by(Part::Work), 0);
}
