//! Explores the schedules of one writer and readers:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p frondb-memtable --test shuttle`.
#![cfg(shuttle)]

use std::ops::Bound;

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source};
use frondb_memtable::{Entry, Memtable};
use shuttle::thread;

const SCHEDULES: usize = 500;

/// For each commit, the number of keys that it writes besides `a` and `z`. Small commits go into
/// the tail; a large commit and the tail become an array.
const COMMITS: [u64; 5] = [0, 1, 300, 0, 300];

/// Writes the commits. Each gives the keys `a` and `z` the same value, so a reader that finds
/// different values has seen half a commit.
fn write(table: &Memtable, published: &AtomicU64) {
    let mut seq = 1;
    for (n, fillers) in COMMITS.into_iter().enumerate() {
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
    let last = COMMITS.iter().map(|fillers| 2 + fillers).sum::<u64>();
    loop {
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
        if snapshot == SeqNo(last) {
            return;
        }
    }
}

#[test]
fn a_reader_sees_whole_commits_under_shuttle() {
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
