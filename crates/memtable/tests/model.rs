//! Random histories against a `BTreeMap`: point reads, cursors both ways with bounds and
//! snapshots, counts. Every failure prints its seed.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a failed test shows what it printed")]

mod common;

use std::ops::Bound;

use common::{Message, Model, Shape, collect, random_entry, table};
use frondb_core::prng::Prng;
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source};
use frondb_memtable::{Entry, MemCursor, Memtable};

/// Grows a memtable and its model by one batch.
fn grow(table: &Memtable, model: &mut Model, shape: &Shape, prng: &mut Prng) {
    let n = shape.batch_len(prng);
    let mut batch = Vec::new();
    for i in 0..n {
        let seq = SeqNo(model.last_seq() + 1 + i as u64);
        batch.push(random_entry(shape, seq, prng));
    }
    if prng.chance(1, 2) {
        prng.shuffle(&mut batch);
    }
    let entries: Vec<Entry<'_>> = batch
        .iter()
        .map(|m| Entry { key: &m.key, seq: m.seq, kind: m.kind, value: &m.value })
        .collect();
    table.insert_batch(&entries);
    for message in batch {
        model.insert(message);
    }
}

fn bound<'a>(key: &'a [u8], prng: &mut Prng) -> Bound<&'a [u8]> {
    match prng.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

fn check(table: &Memtable, model: &Model, shape: &Shape, prng: &mut Prng) {
    for _ in 0..20 {
        let key = shape.key(prng);
        let snapshot = model.some_snapshot(prng);
        let limit = prng.index(4) + 1;
        let mut got = Vec::new();
        table.get(&key, snapshot, &mut |seq, kind, value| {
            got.push((seq, kind, value.to_vec()));
            got.len() < limit
        });
        assert_eq!(got, model.versions(&key, snapshot, limit));
        assert_eq!(table.approximate_rank(&key), model.rank(&key));
    }
    for _ in 0..4 {
        let (lo, hi) = (shape.key(prng), shape.key(prng));
        let (from, to) = (bound(&lo, prng), bound(&hi, prng));
        let snapshot = model.some_snapshot(prng);
        let expected = model.range(from, to, snapshot);
        for direction in [Direction::Forward, Direction::Backward] {
            let got = collect(table.cursor(direction, from, to, snapshot), direction);
            assert!(got == expected, "{direction:?} {from:?} {to:?} {snapshot}");
            let cursor = table.visible_cursor(direction, from, to, snapshot);
            let got = collect(cursor, direction);
            let what = format!("visible, {direction:?} {from:?} {to:?} {snapshot}");
            assert!(visible(&got) == visible(&expected), "{what}");
            let mut all = expected.iter();
            assert!(got.iter().all(|message| all.any(|other| other == message)), "{what}");
            let key = shape.key(prng);
            let has_begun = prng.chance(1, 2);
            let is_wanted = |message: &&Message| match direction {
                Direction::Forward => message.key >= key,
                Direction::Backward => message.key < key,
            };
            let rest: Vec<Message> = expected.iter().filter(is_wanted).cloned().collect();
            let cursor = table.cursor(direction, from, to, snapshot);
            let got = skipped(cursor, direction, &key, has_begun, &rest);
            assert!(got == rest, "{direction:?} {from:?} {to:?} {snapshot}, from {key:?}");
            let cursor = table.visible_cursor(direction, from, to, snapshot);
            let got = skipped(cursor, direction, &key, has_begun, &rest);
            assert!(visible(&got) == visible(&rest), "{what}, from {key:?}");
        }
    }
    assert_eq!(table.len(), model.len());
    assert_eq!(table.deletes(), model.deletes());
    assert_eq!(table.data_bytes(), model.data_bytes());
    assert_eq!((table.first_key(), table.last_key()), (model.first_key(), model.last_key()));
    assert_eq!(table.max_seq(), Some(SeqNo(model.last_seq())));
}

/// The messages from `key` on that a cursor returns when it skips to `key`, immediately or after
/// its first chunk; `rest` if the first chunk went beyond the key.
fn skipped(
    mut cursor: MemCursor,
    direction: Direction,
    key: &[u8],
    has_begun: bool,
    rest: &[Message],
) -> Vec<Message> {
    let mut chunk = Chunk::new();
    if has_begun && cursor.next_chunk(&mut chunk).unwrap() {
        let is_past = match direction {
            Direction::Forward => chunk.key(chunk.len() - 1) >= key,
            Direction::Backward => chunk.key(0) < key,
        };
        if is_past {
            return rest.to_vec();
        }
    }
    cursor.skip(key).unwrap();
    let mut got = collect(cursor, direction);
    got.retain(|message| match direction {
        Direction::Forward => *message.key >= *key,
        Direction::Backward => *message.key < *key,
    });
    got
}

/// For each key, the messages down to the first that decides its value.
fn visible(messages: &[Message]) -> Vec<Message> {
    let mut kept: Vec<Message> = Vec::new();
    let mut decided = false;
    for message in messages {
        decided &= kept.last().is_some_and(|last| last.key == message.key);
        if !decided {
            decided = message.kind != MessageKind::Update;
            kept.push(message.clone());
        }
    }
    kept
}

fn history(seed: u64, shape: &Shape, batches: usize) {
    println!("seed {seed} shape {shape:?}");
    let mut prng = Prng::new(seed);
    let (table, mut model) = (table(), Model::default());
    for round in 0..batches {
        grow(&table, &mut model, shape, &mut prng);
        for _ in 0..prng.below(shape.readers + 1) {
            let key = shape.key(&mut prng);
            drop(table.cursor(
                Direction::Forward,
                Bound::Included(&key),
                Bound::Unbounded,
                SeqNo::MAX,
            ));
        }
        if round % 8 == 0 || round + 1 == batches {
            check(&table, &model, shape, &mut prng);
        }
    }
    let all = collect(table.scan_all(), Direction::Forward);
    assert!(all == model.range(Bound::Unbounded, Bound::Unbounded, SeqNo::MAX));
}

#[test]
fn small_commits_match_the_model() {
    for seed in 0..12 {
        history(seed, &Shape { keys: 500, batch: 6, ..Shape::default() }, 400);
    }
}

#[test]
fn large_batches_match_the_model() {
    for seed in 0..3 {
        history(seed, &Shape { keys: 20_000, batch: 1500, ..Shape::default() }, 60);
    }
}

#[test]
fn batches_of_every_size_match_the_model() {
    for seed in 0..5 {
        let shape = Shape { keys: 5_000, batch: 2000, skewed: true, ..Shape::default() };
        history(seed, &shape, 100);
    }
}

/// All keys share their first bytes: the memtable reads the keys themselves to compare them, until
/// its first array leaves these bytes out of the slots (`order.rs`).
#[test]
fn keys_with_one_prefix_match_the_model() {
    for seed in 0..6 {
        let shape = Shape { keys: 3_000, batch: 400, shared_prefix: true, ..Shape::default() };
        history(seed, &shape, 60);
    }
}

/// Few keys with thousands of messages each: they span pieces, chunks and arrays.
#[test]
fn hot_keys_match_the_model() {
    for seed in 0..6 {
        history(seed, &Shape { keys: 3, batch: 300, ..Shape::default() }, 60);
    }
}

#[test]
fn ascending_keys_match_the_model() {
    for seed in 0..4 {
        let shape = Shape { ascending: true, batch: 700, ..Shape::default() };
        history(seed, &shape, 60);
    }
}

/// The probes of readers cause merges of the newest arrays, of a few slots and of many.
#[test]
fn a_memtable_that_is_read_much_matches_the_model() {
    for seed in 0..8 {
        let readers = [10, 100, 1000, 3000][seed as usize % 4];
        let shape = Shape { keys: 3_000, batch: 1000, skewed: true, readers, ..Shape::default() };
        history(seed, &shape, 100);
    }
}

/// A scan of rows that are overwritten many times reads each of them about once, in both directions
/// and at an old snapshot.
#[test]
fn a_reader_skips_messages_that_it_cannot_see() {
    const KEYS: u64 = 200;
    const ROUNDS: u64 = 500;
    let table = table();
    for seq in 1..=KEYS * ROUNDS {
        let key = (seq % KEYS).to_be_bytes();
        let kind = MessageKind::Put;
        table.insert_batch(&[Entry { key: &key, seq: SeqNo(seq), kind, value: b"value" }]);
    }
    for direction in [Direction::Forward, Direction::Backward] {
        for snapshot in [SeqNo::MAX, SeqNo(KEYS * ROUNDS / 2)] {
            let all = (Bound::Unbounded, Bound::Unbounded);
            let cursor = table.visible_cursor(direction, all.0, all.1, snapshot);
            let got = collect(cursor, direction);
            assert_eq!(visible(&got).len() as u64, KEYS);
            assert!((got.len() as u64) < 2 * KEYS, "{} messages for {KEYS} keys", got.len());
        }
    }
}
