//! One writer and readers at the same time: a reader sees exactly the commits up to the SeqNo
//! that was published before it began.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{collect, table};
use frondb_core::prng::Prng;
use frondb_core::{Direction, MessageKind, SeqNo};
use frondb_memtable::{Entry, Memtable};

const KEYS: u64 = 64;
const COMMITS: u64 = 3000;

/// Commit `n` writes `n` to a window of keys that moves on with each commit, so the newest commit
/// that any reader may see of a key can be computed.
fn commit(table: &Memtable, n: u64, first_seq: u64, window: u64) {
    let keys: Vec<[u8; 8]> = (0..window).map(|i| ((n + i) % KEYS).to_be_bytes()).collect();
    let value = n.to_be_bytes();
    let batch: Vec<Entry<'_>> = keys
        .iter()
        .enumerate()
        .map(|(i, key)| Entry {
            key,
            seq: SeqNo(first_seq + i as u64),
            kind: MessageKind::Put,
            value: &value,
        })
        .collect();
    table.insert_batch(&batch);
}

/// The last commit up to `n` that wrote `key`.
fn newest(key: u64, n: u64, window: u64) -> Option<u64> {
    (1..=n).rev().take(KEYS as usize).find(|commit| (key + KEYS - commit % KEYS) % KEYS < window)
}

fn stress(window: u64) {
    let table = table();
    // Commit n has the SeqNos from (n - 1) * window + 1 to n * window.
    let published = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (table, published) = (&table, &published);
            scope.spawn(move || {
                let mut prng = Prng::new(seed);
                loop {
                    let n = published.load(Ordering::Acquire);
                    let snapshot = SeqNo(n * window);
                    let key = prng.below(KEYS);
                    let mut got = None;
                    table.get(&key.to_be_bytes(), snapshot, &mut |_, _, value| {
                        got = Some(u64::from_be_bytes(value.try_into().unwrap()));
                        false
                    });
                    assert_eq!(got, newest(key, n, window), "key {key} at commit {n}");
                    if prng.chance(1, 64) {
                        scan(table, n, window, snapshot, &mut prng);
                    }
                    if n == COMMITS {
                        break;
                    }
                }
            });
        }
        for n in 1..=COMMITS {
            commit(&table, n, (n - 1) * window + 1, window);
            published.store(n, Ordering::Release);
        }
    });
}

fn scan(table: &Memtable, n: u64, window: u64, snapshot: SeqNo, prng: &mut Prng) {
    let direction = *prng.pick(&[Direction::Forward, Direction::Backward]).unwrap();
    let lo = prng.below(KEYS);
    let from = lo.to_be_bytes();
    let cursor = table.cursor(direction, Bound::Included(&from), Bound::Unbounded, snapshot);
    let mut messages = collect(cursor, direction);
    messages.dedup_by(|b, a| a.key == b.key);
    let expected: Vec<_> = (lo..KEYS).filter_map(|key| newest(key, n, window)).collect();
    let got: Vec<_> = messages
        .iter()
        .map(|message| u64::from_be_bytes(message.value[..].try_into().unwrap()))
        .collect();
    assert_eq!(got, expected);
}

#[test]
fn readers_beside_small_commits_see_whole_commits() {
    stress(3);
}

#[test]
fn readers_beside_large_commits_see_whole_commits() {
    stress(60);
}
