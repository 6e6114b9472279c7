//! Compares the memtable with two other structures: an ordered map of the standard library (a
//! B-tree) behind a lock, and a concurrent skiplist. The numbers are in
//! docs/decisions/archive/0002-memtable.md.
//!
//! `cargo bench -p frondb-memtable -- [entries] [rounds] [words of a case's name]`; with
//! `ONLY_OURS=1` in the environment it measures the memtable alone, for a profile.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_skiplist::SkipMap;
use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::sync::RwLock;
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source};
use frondb_memtable::{Entry, Memtable};
use rustix::time::{ClockId, clock_gettime};

type Key = [u8; 24];

thread_local! {
    static SCRATCH: Cell<Chunk> = const { Cell::new(Chunk::new()) };
}

/// Processor time of this thread in nanoseconds. Other processes of the machine do not count.
fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// A structure that is measured.
trait Structure: Send + Sync {
    fn name(&self) -> &'static str;
    fn insert(&self, keys: &[Key], first: u64, value: &[u8]);
    fn holds(&self, key: &Key) -> bool;
    /// Reads `n` entries from `key` on, and returns how many there were.
    fn scan(&self, key: &Key, n: usize) -> usize;
    /// Bytes of memory, if the structure counts them.
    fn bytes(&self) -> Option<u64>;
}

struct Ours(Arc<Memtable>);

impl Structure for Ours {
    fn name(&self) -> &'static str {
        "memtable"
    }

    fn insert(&self, keys: &[Key], first: u64, value: &[u8]) {
        let batch: Vec<Entry<'_>> = keys
            .iter()
            .enumerate()
            .map(|(i, key)| Entry {
                key,
                seq: SeqNo(first + i as u64),
                kind: MessageKind::Put,
                value,
            })
            .collect();
        self.0.insert_batch(&batch);
    }

    fn holds(&self, key: &Key) -> bool {
        let mut found = false;
        self.0.get(key, SeqNo::MAX, &mut |_, _, _| {
            found = true;
            false
        });
        found
    }

    fn scan(&self, key: &Key, n: usize) -> usize {
        let from = Bound::Included(&key[..]);
        let mut cursor = if n == usize::MAX {
            self.0.scan_all()
        } else {
            self.0.cursor(Direction::Forward, from, Bound::Unbounded, SeqNo::MAX)
        };
        // A reader keeps its chunk from one cursor to the next.
        let mut chunk = SCRATCH.take();
        let mut seen = 0;
        while seen < n && matches!(cursor.next_chunk(&mut chunk), Ok(true)) {
            seen += chunk.len();
        }
        SCRATCH.set(chunk);
        seen.min(n)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.0.bytes())
    }
}

/// Key order, newest first within a key.
type Place = (Key, Reverse<u64>);

/// A B-tree behind one lock, taken once per batch.
struct Locked(RwLock<BTreeMap<Place, Box<[u8]>>>);

impl Structure for Locked {
    fn name(&self) -> &'static str {
        "b-tree, locked"
    }

    fn insert(&self, keys: &[Key], first: u64, value: &[u8]) {
        let mut sorted: Vec<_> =
            keys.iter().enumerate().map(|(i, key)| (*key, Reverse(first + i as u64))).collect();
        sorted.sort_unstable();
        let mut map = self.0.write();
        for key in sorted {
            map.insert(key, value.into());
        }
    }

    fn holds(&self, key: &Key) -> bool {
        let map = self.0.read();
        map.range((*key, Reverse(u64::MAX))..).next().is_some_and(|(found, _)| found.0 == *key)
    }

    fn scan(&self, key: &Key, n: usize) -> usize {
        let map = self.0.read();
        map.range((*key, Reverse(u64::MAX))..).take(n).fold(0, |seen, entry| {
            black_box(entry);
            seen + 1
        })
    }

    fn bytes(&self) -> Option<u64> {
        None
    }
}

struct Skiplist(SkipMap<Place, Box<[u8]>>);

impl Structure for Skiplist {
    fn name(&self) -> &'static str {
        "skiplist"
    }

    fn insert(&self, keys: &[Key], first: u64, value: &[u8]) {
        let mut sorted: Vec<_> =
            keys.iter().enumerate().map(|(i, key)| (*key, Reverse(first + i as u64))).collect();
        sorted.sort_unstable();
        for key in sorted {
            self.0.insert(key, value.into());
        }
    }

    fn holds(&self, key: &Key) -> bool {
        self.0.range((*key, Reverse(u64::MAX))..).next().is_some_and(|e| e.key().0 == *key)
    }

    fn scan(&self, key: &Key, n: usize) -> usize {
        self.0.range((*key, Reverse(u64::MAX))..).take(n).fold(0, |seen, entry| {
            black_box(entry.key().1);
            seen + 1
        })
    }

    fn bytes(&self) -> Option<u64> {
        None
    }
}

fn structures() -> Vec<Box<dyn Structure>> {
    vec![
        Box::new(Ours(Arc::new(Memtable::new(Budget::new(u64::MAX))))),
        Box::new(Locked(RwLock::new(BTreeMap::new()))),
        Box::new(Skiplist(SkipMap::new())),
    ]
}

fn random_keys(n: usize, shared: usize) -> Vec<Key> {
    let mut prng = Prng::new(7);
    let key = |_| {
        let mut key = [b'k'; 24];
        prng.fill(&mut key[shared..]);
        key
    };
    (0..n).map(key).collect()
}

fn ascending_keys(n: usize) -> Vec<Key> {
    let key = |i: usize| {
        let mut key = [0; 24];
        key[..8].copy_from_slice(&(i as u64).to_be_bytes());
        key
    };
    (0..n).map(key).collect()
}

/// Fills each structure and prints what an insert costs, batch by batch.
fn inserts(what: &str, keys: &[Key], batch: usize, value: &[u8], rounds: usize, reader: bool) {
    for which in 0..structures().len() {
        if std::env::var_os("ONLY_OURS").is_some() && which > 0 {
            break;
        }
        let mut best = (f64::MAX, 0.0, 0.0, 0.0);
        let (mut name, mut bytes, mut reads) = ("", None, 0);
        for _ in 0..rounds {
            let structure = structures().swap_remove(which);
            name = structure.name();
            let stop = AtomicBool::new(false);
            let count = AtomicU64::new(0);
            let mut times = Vec::new();
            std::thread::scope(|scope| {
                if reader {
                    scope.spawn(|| {
                        let mut prng = Prng::new(3);
                        while !stop.load(Ordering::Relaxed) {
                            black_box(structure.holds(&keys[prng.index(keys.len())]));
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                // Single inserts are timed in groups of 64: reading the clock costs more than an
                // insert.
                let timed = batch.max(64);
                for (i, part) in keys.chunks(timed).enumerate() {
                    let start = cpu_ns();
                    for (j, part) in part.chunks(batch).enumerate() {
                        structure.insert(part, 1 + (i * timed + j * batch) as u64, value);
                    }
                    times.push((cpu_ns() - start) / 1000.0);
                }
                stop.store(true, Ordering::Relaxed);
            });
            let total: f64 = times.iter().sum::<f64>() / keys.len() as f64;
            times.sort_unstable_by(f64::total_cmp);
            let at = |q: f64| times[(times.len() as f64 * q) as usize];
            if total < best.0 {
                best = (total, at(0.5), at(0.99), times[times.len() - 1]);
                bytes = structure.bytes();
                reads = count.load(Ordering::Relaxed);
            }
        }
        let overhead = bytes.map_or("-".into(), |b| {
            format!("{:.1}", b as f64 / keys.len() as f64 - 24.0 - value.len() as f64)
        });
        println!(
            "{what:34} {name:15} {:7.3} us/entry  batch p50 {:8.1} p99 {:8.1} max {:8.1} us  \
             overhead {overhead} B/entry  reads/entry {:.2}",
            best.0,
            best.1,
            best.2,
            best.3,
            reads as f64 / keys.len() as f64
        );
    }
}

/// Fills each structure and prints what reading costs.
fn reads(what: &str, keys: &[Key], batch: usize, rounds: usize) {
    let mut prng = Prng::new(11);
    let absent = random_keys(keys.len() + 100_000, 0).split_off(keys.len());
    for structure in structures() {
        if std::env::var_os("ONLY_OURS").is_some() && structure.bytes().is_none() {
            break;
        }
        for (i, part) in keys.chunks(batch).enumerate() {
            structure.insert(part, 1 + (i * batch) as u64, b"");
        }
        let n = 50_000;
        // The best of several rounds: other processes of the machine disturb the caches too.
        let time = |work: &mut dyn FnMut(usize)| {
            let round = |_| {
                let start = cpu_ns();
                (0..n).for_each(&mut *work);
                (cpu_ns() - start) / n as f64
            };
            (0..rounds).map(round).fold(f64::MAX, f64::min)
        };
        let hit = time(&mut |_| assert!(structure.holds(&keys[prng.index(keys.len())])));
        let miss = time(&mut |i| assert!(!structure.holds(&absent[i])));
        let seek = time(&mut |i| {
            black_box(structure.scan(&absent[i], 1));
        });
        let short = time(&mut |i| {
            black_box(structure.scan(&absent[i], 10));
        });
        let scan = |_| {
            let start = cpu_ns();
            let seen = structure.scan(&[0; 24], usize::MAX);
            (cpu_ns() - start) / seen as f64
        };
        let all = (0..rounds).map(scan).fold(f64::MAX, f64::min);
        println!(
            "{what:34} {:15} hit {hit:6.0} ns  miss {miss:6.0} ns  seek+1 {seek:6.0} ns  seek+10 \
             {short:6.0} ns  full scan {all:5.1} ns/entry",
            structure.name()
        );
    }
}

/// One measurement: its name and what runs it.
type Case<'a> = (&'a str, Box<dyn Fn(&str) + 'a>);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let numbers: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let wanted = args.iter().find(|arg| arg.parse::<usize>().is_err());
    let n = numbers.first().copied().unwrap_or(400_000);
    let rounds = numbers.get(1).copied().unwrap_or(5);
    let (random, shared, ascending) = (random_keys(n, 0), random_keys(n, 8), ascending_keys(n));
    let insert = |keys, batch, value: &'static [u8], reader| -> Box<dyn Fn(&str)> {
        Box::new(move |what| inserts(what, keys, batch, value, rounds, reader))
    };
    let cases: Vec<Case<'_>> = vec![
        ("random, batches of 1000", insert(&random, 1000, b"", false)),
        ("random, batches of 100", insert(&random, 100, b"", false)),
        ("random, single", insert(&random, 1, b"", false)),
        ("ascending, batches of 1000", insert(&ascending, 1000, b"", false)),
        ("ascending, single", insert(&ascending, 1, b"", false)),
        ("one prefix, batches of 1000", insert(&shared, 1000, b"", false)),
        ("100-byte values, batches of 1000", insert(&random, 1000, &[7; 100], false)),
        ("random, batches of 1000, a reader", insert(&random, 1000, b"", true)),
        ("random, single, a reader", insert(&random, 1, b"", true)),
        ("read, after batches of 1000", Box::new(|what| reads(what, &random, 1000, rounds))),
        ("read, after single inserts", Box::new(|what| reads(what, &random, 1, rounds))),
        ("read, after one large batch", Box::new(|what| reads(what, &random, n, rounds))),
    ];
    for (what, run) in &cases {
        if wanted.is_none_or(|wanted| what.contains(wanted.as_str())) {
            run(what);
        }
    }
}
