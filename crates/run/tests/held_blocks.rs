//! With little memory, the blocks that readers' walks hold are charged: a cache that has evicted them does not
//! count them any more (rule 24).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use frondb_core::budget::Part;
use frondb_core::{Chunk, Direction, Source};
use frondb_run::{ReadMode, RunCursor};
use support::{Entry, Fixture, options, put, scan};

fn entries() -> Vec<Entry> {
    (0..2000u32).map(|i| put(&i.to_be_bytes(), 1, &[i as u8; 100])).collect()
}

#[test]
fn walks_that_hold_blocks_have_charged_them() {
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
        // The last block of the run, which the backward ones hold, is smaller.
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
