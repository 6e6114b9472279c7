//! Behaviour that the model does not cover, one test for each.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::ops::Bound;

use common::{Message, collect, table};
use frondb_core::budget::{Budget, Part};
use frondb_core::{Chunk, Direction, MessageKind, RangeDelete, SeqNo, Source};
use frondb_memtable::{Entry, Memtable};

fn put(table: &Memtable, seq: u64, keys: &[&[u8]]) {
    let entry =
        |(i, &key)| Entry { key, seq: SeqNo(seq + i as u64), kind: MessageKind::Put, value: b"v" };
    table.insert_batch(&keys.iter().enumerate().map(entry).collect::<Vec<_>>());
}

fn number(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// Ascending puts or deletes, in batches.
fn fill(table: &Memtable, kind: MessageKind, from: u64, to: u64, batch: usize) {
    let keys: Vec<_> = (from..to).map(number).collect();
    let mut seq = table.max_seq().map_or(1, |seq| seq.get() + 1);
    for part in keys.chunks(batch) {
        let entry = |(i, key)| Entry { key, seq: SeqNo(seq + i as u64), kind, value: b"" };
        let entries: Vec<_> = part.iter().map(|key| &key[..]).enumerate().map(entry).collect();
        table.insert_batch(&entries);
        seq += part.len() as u64;
    }
}

#[test]
fn an_empty_memtable_answers_all_calls_and_holds_no_memory() {
    let budget = Budget::new(1 << 20);
    let table = Memtable::new(budget.clone());
    table.insert_batch(&[]);
    assert!(table.is_empty());
    assert_eq!((table.min_seq(), table.max_seq()), (None, None));
    assert_eq!((table.first_key(), table.last_key()), (None, None));
    assert_eq!((table.bytes(), table.approximate_rank(b"a")), (0, 0));
    table.get(b"a", SeqNo::MAX, &mut |_, _, _| unreachable!());
    assert!(!table.scan_all().next_chunk(&mut Chunk::new()).unwrap());
    assert!(table.range_deletes().is_empty());
    table.seal();
    assert_eq!(budget.used(), 0);
}

/// Rule 10: ten thousand trees with one message each must stay small.
#[test]
fn a_memtable_with_one_message_takes_little_memory() {
    let budget = Budget::new(1 << 20);
    let table = Memtable::new(budget.clone());
    put(&table, 1, &[b"k"]);
    assert!(table.bytes() < 2560, "{} bytes", table.bytes());
    assert_eq!(budget.used_by(Part::Memtable), table.bytes());
    drop(table);
    assert_eq!(budget.used(), 0);
}

#[test]
fn overhead_per_message_is_bounded() {
    let table = table();
    fill(&table, MessageKind::Put, 0, 100_000, 1000);
    table.seal();
    let overhead = (table.bytes() - table.data_bytes()) / table.len();
    assert!(overhead <= 30, "{overhead} bytes a message");
}

#[test]
fn keys_and_values_of_every_length_come_back() {
    let table = table();
    let lengths = [0, 1, 7, 8, 9, 300, 16_382, 16_383, 16_384, 32 << 10, 64 << 10];
    let mut seq = 0;
    let mut expected = Vec::new();
    for key_len in lengths.into_iter().filter(|&len| len <= 32 << 10) {
        for value_len in lengths {
            seq += 1;
            let key = vec![b'k'; key_len];
            let value = vec![seq as u8; value_len];
            let kind = MessageKind::PutRef;
            table.insert_batch(&[Entry { key: &key, seq: SeqNo(seq), kind, value: &value }]);
            expected.push(Message { key, seq: SeqNo(seq), kind, value });
        }
    }
    expected.sort_by(|a, b| (&a.key, b.seq).cmp(&(&b.key, a.seq)));
    assert!(collect(table.scan_all(), Direction::Forward) == expected);
    let backward =
        table.cursor(Direction::Backward, Bound::Unbounded, Bound::Unbounded, SeqNo::MAX);
    assert!(collect(backward, Direction::Backward) == expected);
}

/// Message headers in the arena store SeqNos relative to the first one, in 32 bits.
#[test]
fn seqs_far_from_the_first_and_below_it_come_back() {
    let table = table();
    let base = 1 << 40;
    let seqs = [base, base + u64::from(u32::MAX) - 1, base + u64::from(u32::MAX), u64::MAX >> 8];
    for (i, seq) in seqs.into_iter().enumerate() {
        put(&table, seq, &[&number(i as u64)]);
        table.get(&number(i as u64), SeqNo(seq), &mut |found, _, _| {
            assert_eq!(found, SeqNo(seq));
            true
        });
    }
    let late = common::table();
    late.add_range_delete(RangeDelete { lo: [].into(), hi: None, seq: SeqNo(100) });
    put(&late, 50, &[b"a"]);
    assert_eq!((late.min_seq(), late.max_seq()), (Some(SeqNo(50)), Some(SeqNo(100))));
    assert_eq!(collect(late.scan_all(), Direction::Forward)[0].seq, SeqNo(50));
}

#[test]
fn a_cursor_shows_the_memtable_as_it_was() {
    let table = table();
    fill(&table, MessageKind::Put, 0, 5_000, 700);
    put(&table, 5_001, &[b"tail"]);
    let cursor = table.cursor(Direction::Forward, Bound::Unbounded, Bound::Unbounded, SeqNo::MAX);
    let before = collect(table.scan_all(), Direction::Forward);
    fill(&table, MessageKind::Delete, 0, 5_000, 700);
    drop(table);
    assert!(collect(cursor, Direction::Forward) == before);
}

#[test]
fn a_callback_may_use_the_memtable() {
    let table = table();
    put(&table, 1, &[b"a"]);
    table.get(b"a", SeqNo::MAX, &mut |_, _, _| {
        put(&table, 2, &[b"b"]);
        table.len() == 2
    });
    assert_eq!(table.last_key(), Some(b"b".to_vec()));
}

#[test]
fn range_deletes_are_listed_and_counted() {
    let table = table();
    let range = |lo: &[u8], seq| RangeDelete { lo: lo.into(), hi: None, seq: SeqNo(seq) };
    table.add_range_delete(range(b"m", 7));
    assert!(!table.is_empty());
    assert_eq!(table.stats().messages, 0);
    let before = table.range_deletes();
    table.add_range_delete(range(b"a", 9));
    table.add_range_delete(range(b"z", 12));
    let now = table.range_deletes();
    assert_eq!((before.len(), now.len(), table.stats().range_deletes), (1, 3, 3));
    assert_eq!(now.newest_covering(b"n", SeqNo::MAX), SeqNo(9));
    assert_eq!(now.newest_covering(b"n", SeqNo(8)), SeqNo(7));
    assert_eq!((table.min_seq(), table.max_seq()), (Some(SeqNo(7)), Some(SeqNo(12))));
}

/// Rule 15: deletes from the left must be counted, even if rows are inserted at the right.
#[test]
fn a_long_tombstone_run_is_counted() {
    let table = table();
    for i in 0..70 {
        fill(&table, MessageKind::Put, 1_000_000 + i * 1000, 1_001_000 + i * 1000, 1000);
        fill(&table, MessageKind::Delete, i * 1000, (i + 1) * 1000, 500);
    }
    assert_eq!(table.tombstone_run(), 70_000);
    assert_eq!(table.deletes(), 70_000);
}

/// A reader merges a bounded number of arrays, whatever the sizes of the commits.
#[test]
fn the_number_of_arrays_stays_bounded() {
    for batch in [1, 10, 300, 1000, 5000] {
        let table = table();
        let mut most = 0;
        for i in 0..20 {
            fill(&table, MessageKind::Put, i * 5000, (i + 1) * 5000, batch);
            most = most.max(table.stats().arrays);
        }
        assert!(most <= 24, "{most} arrays after commits of {batch}");
    }
}

/// Probes of cursors justify merges: the more cursors between commits, the fewer arrays the next
/// ones merge.
#[test]
fn frequent_readers_meet_few_arrays() {
    let most_arrays = |readers| {
        let table = table();
        let mut most = 0;
        for i in 0..400 {
            fill(&table, MessageKind::Put, i * 257, (i + 1) * 257, 1);
            most = most.max(table.stats().arrays);
            for _ in 0..readers {
                drop(table.scan_all());
            }
        }
        most
    };
    let [none, some, many] = [0, 500, 10_000].map(most_arrays);
    assert!(none > 12, "{none} arrays without readers");
    assert!(some * 2 <= none, "{some} arrays with readers, {none} without");
    // The array into which all were merged, and the arrays that were added while it was being
    // built.
    assert!(many <= 4, "{many} arrays with many readers");
}

/// A table is filled and then read: no writer merges, so the readers do, and the data that they
/// read during the merges stays unchanged.
#[test]
fn readers_merge_arrays_that_are_no_longer_written() {
    let table = table();
    let mut prng = frondb_core::prng::Prng::new(7);
    let mut seq = 1;
    for _ in 0..60 {
        let keys: Vec<_> = (0..500).map(|_| number(prng.below(1 << 40))).collect();
        put(&table, seq, &keys.iter().map(|key| &key[..]).collect::<Vec<_>>());
        seq += 500;
    }
    let all = || (Bound::Unbounded, Bound::Unbounded);
    let before = collect(table.scan_all(), Direction::Forward);
    assert!(table.stats().arrays > 4, "{}", table.stats().arrays);
    let bytes = table.bytes();
    let old = table.cursor(Direction::Forward, all().0, all().1, SeqNo::MAX);
    let mut scans = 0;
    while table.stats().arrays > 1 {
        scans += 1;
        assert!(scans < 100, "{} arrays are left", table.stats().arrays);
        let cursor = table.visible_cursor(Direction::Forward, all().0, all().1, SeqNo::MAX);
        assert!(collect(cursor, Direction::Forward) == before);
    }
    assert!(collect(old, Direction::Forward) == before);
    assert!(table.bytes() < bytes + bytes / 8, "{} bytes, {bytes} before", table.bytes());
}

/// A frozen memtable stays as it is, however often it is read.
#[test]
fn readers_of_a_sealed_memtable_merge_nothing() {
    let table = table();
    for i in 0..40 {
        fill(&table, MessageKind::Put, i * 1000, (i + 1) * 1000, 1000);
    }
    table.seal();
    let (arrays, bytes) = (table.stats().arrays, table.bytes());
    for _ in 0..10_000 {
        drop(table.scan_all());
    }
    assert!(arrays > 1);
    assert_eq!((table.stats().arrays, table.bytes()), (arrays, bytes));
}

#[test]
#[should_panic(expected = "frozen")]
fn a_sealed_memtable_rejects_inserts() {
    let table = table();
    put(&table, 1, &[b"a"]);
    table.seal();
    put(&table, 2, &[b"b"]);
}

#[test]
fn sealing_frees_memory_and_changes_no_message() {
    let table = table();
    for i in 0..40 {
        fill(&table, MessageKind::Put, i * 1000, (i + 1) * 1000, 1000);
    }
    let (bytes, before) = (table.bytes(), collect(table.scan_all(), Direction::Forward));
    table.seal();
    assert!(table.bytes() < bytes);
    assert!(collect(table.scan_all(), Direction::Forward) == before);
}

#[test]
fn the_first_chunk_has_the_expected_messages() {
    let table = Memtable::new(Budget::new(1 << 20));
    fill(&table, MessageKind::Put, 0, 300, 50);
    let all = (Bound::Unbounded, Bound::Unbounded);
    for (expected, first) in [(100, 100), (0, 16), (8, 8), (1, 4)] {
        let mut cursor = table.visible_cursor(Direction::Forward, all.0, all.1, SeqNo::MAX);
        cursor.expect(expected);
        let mut chunk = Chunk::new();
        assert!(cursor.next_chunk(&mut chunk).unwrap());
        assert_eq!(chunk.len(), first);
    }
}

#[test]
fn a_cursor_counts_the_deletes_of_its_range() {
    let table = Memtable::new(Budget::new(1 << 20));
    fill(&table, MessageKind::Put, 0, 100, 7);
    fill(&table, MessageKind::Delete, 40, 60, 7);
    let count = |from: u64, to: u64| {
        let (from, to) = (number(from), number(to));
        let (from, to) = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        table.visible_cursor(Direction::Forward, from, to, SeqNo::MAX).deletes()
    };
    assert_eq!((count(0, 40), count(30, 50), count(45, 55), count(0, 100)), (0, 10, 10, 20));
}
