//! A short history that executes all unsafe code, small enough for an interpreter:
//! `cargo +nightly miri test -p frondb-memtable --test undefined`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{collect, table};
use frondb_core::{Direction, MessageKind, SeqNo};
use frondb_memtable::{Entry, Memtable};

fn insert(table: &Memtable, first: u64, n: u64) {
    let keys: Vec<[u8; 8]> = (0..n).map(|i| (first * 7 + i * 13).to_be_bytes()).collect();
    let entry = |(i, key)| Entry {
        key,
        seq: SeqNo(first + i as u64),
        kind: MessageKind::Put,
        value: b"a value",
    };
    let batch: Vec<_> = keys.iter().map(|key| &key[..]).enumerate().map(entry).collect();
    table.insert_batch(&batch);
}

#[test]
fn a_writer_and_readers_share_chunks() {
    let table = table();
    std::thread::scope(|scope| {
        let reader = || {
            for i in 0..6_u64 {
                table.get(&(i * 7).to_be_bytes(), SeqNo::MAX, &mut |_, _, value| {
                    assert_eq!(value, b"a value");
                    true
                });
                let messages = collect(table.scan_all(), Direction::Forward);
                assert!(messages.iter().all(|message| message.value == b"a value"));
            }
        };
        scope.spawn(reader);
        let mut seq = 1;
        for n in [1, 2, 5, 40, 300, 1, 60, 300] {
            insert(&table, seq, n);
            seq += n;
        }
    });
    assert_eq!(collect(table.scan_all(), Direction::Forward).len() as u64, table.len());
}
