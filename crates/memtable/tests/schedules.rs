//! Explores the schedules of one writer and readers:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p frondb-memtable --test schedules`.
#![cfg(shuttle)]

use std::ops::Bound;

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source};
use frondb_memtable::{Entry, Memtable};
use shuttle::thread;

const SCHEDULES: usize = 500;

/// Two keys of every commit must always have the same value. Commits are small ones that go into
/// the tail, and one that is large enough to become an array together with it.
fn write(table: &Memtable, published: &AtomicU64) {
    let mut seq = 1;
    for (n, fillers) in [(1u64, 0u64), (2, 1), (3, 300), (4, 0), (5, 300)] {
        let value = n.to_be_bytes();
        let keys: Vec<Vec<u8>> = [b"a".to_vec(), b"z".to_vec()]
            .into_iter()
            .chain((0..fillers).map(|i| i.to_be_bytes().to_vec()))
            .collect();
        let entries: Vec<Entry<'_>> = keys
            .iter()
            .enumerate()
            .map(|(i, key)| Entry {
                key,
                seq: SeqNo(seq + i as u64),
                kind: MessageKind::Put,
                value: &value,
            })
            .collect();
        table.insert_batch(&entries);
        seq += keys.len() as u64;
        published.store(seq - 1, Ordering::Release);
    }
}

fn value_of(table: &Memtable, key: &[u8], snapshot: SeqNo) -> Option<Vec<u8>> {
    let mut found = None;
    table.get(key, snapshot, &mut |seq, _, value| {
        assert!(seq <= snapshot);
        found = Some(value.to_vec());
        false
    });
    found
}

fn read(table: &Memtable, published: &AtomicU64) {
    for _ in 0..3 {
        let snapshot = SeqNo(published.load(Ordering::Acquire));
        let first = value_of(table, b"a", snapshot);
        assert_eq!(first.is_some(), snapshot > SeqNo(0), "a published commit is not there");
        let from = Bound::Included(&b"a"[..]);
        let mut cursor = table.cursor(Direction::Forward, from, Bound::Unbounded, snapshot);
        let mut chunk = Chunk::new();
        let (mut a, mut z) = (None, None);
        while cursor.next_chunk(&mut chunk).expect("memory does not fail") {
            for i in 0..chunk.len() {
                let newest = if chunk.key(i) == b"a" { &mut a } else { &mut z };
                newest.get_or_insert(chunk.value(i).to_vec());
            }
        }
        assert_eq!((&a, &z), (&first, &first), "half a commit at {snapshot}");
        assert_eq!(value_of(table, b"z", snapshot), first);
    }
}

#[test]
fn a_reader_sees_whole_commits_in_every_schedule() {
    let schedule = || {
        let table = Arc::new(Memtable::new(Budget::new(1 << 30)));
        let published = Arc::new(AtomicU64::new(0));
        let reader = {
            let (table, published) = (Arc::clone(&table), Arc::clone(&published));
            thread::spawn(move || read(&table, &published))
        };
        write(&table, &published);
        reader.join().expect("the reader ends");
    };
    shuttle::check_random(schedule, SCHEDULES);
}
