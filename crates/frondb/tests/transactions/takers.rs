//! Threads take rows of one queue in large transactions with little memory, so that their locks are
//! packed and joined all the time. Each row is taken exactly once.

use std::collections::BTreeMap;
use std::sync::Arc;

use frondb::testing::TestDb;
use frondb::{ErrorKind, Isolation, TransactionOptions, Tree, TreeOptions, Wait};
use frondb_core::prng::Prng;
use frondb_core::sync::Mutex;
use frondb_testkit::MemoryDevice;

use crate::support;

const ROWS: u64 = 3_000;

/// Returns the key of row `n`. Most keys are short, and a few are long.
fn key(n: u64) -> Vec<u8> {
    if n == 0 {
        return Vec::new();
    }
    let mut key = n.to_be_bytes().to_vec();
    key.resize(
        [8, 8, 8, 8, 30, 400, 3_000, 8][(n * 7 % 8) as usize]
            + n.is_multiple_of(97) as usize * 20_000,
        b'k',
    );
    key
}

#[test]
fn each_row_of_a_queue_is_taken_once() {
    for seed in 0..4 {
        let device = Arc::new(MemoryDevice::new());
        let db = TestDb::on(device).still().open().unwrap();
        let queue = db.create_tree("queue", TreeOptions::new()).unwrap();
        let done = db.create_tree("done", TreeOptions::new()).unwrap();
        for n in 0..ROWS {
            queue.put(key(n), n.to_be_bytes()).unwrap();
        }
        let taken = Mutex::new(BTreeMap::<u64, u64>::new());
        let take = |worker: u64| {
            let mut prng = Prng::new(seed * 10 + worker);
            let levels = [Isolation::ReadCommitted, Isolation::RepeatableRead];
            loop {
                let level = levels[prng.index(2)];
                let transaction = db.begin(TransactionOptions::new().isolation(level)).unwrap();
                let (mut own, mut ended) = (Vec::new(), false);
                let mut savepoint = None;
                for _ in 0..1 + prng.below(200) {
                    let from_end = worker % 2 == 1;
                    let pop = |queue: &Tree| match from_end {
                        true => transaction.pop_last(queue, Wait::SkipLocked),
                        false => transaction.pop_first(queue, Wait::SkipLocked),
                    };
                    match pop(&queue) {
                        Ok(Some((k, value))) => {
                            let n = u64::from_be_bytes(value.try_into().unwrap());
                            assert_eq!(k, key(n));
                            own.push(n);
                        }
                        Ok(None) => {
                            ended = true;
                            break;
                        }
                        Err(error) => {
                            let kind = error.kind();
                            assert!(
                                matches!(kind, ErrorKind::TooManyLocks | ErrorKind::Deadlock),
                                "{error}"
                            );
                            ended = kind == ErrorKind::Deadlock;
                            break;
                        }
                    }
                    match prng.below(40) {
                        0 => savepoint = Some((transaction.set_savepoint().unwrap(), own.len())),
                        1 => {
                            if let Some((at, len)) = savepoint.take() {
                                transaction.roll_back_to(at).unwrap();
                                own.truncate(len);
                            }
                        }
                        _ => {}
                    }
                }
                if prng.below(4) == 0 {
                    let _ = transaction.rollback();
                    continue;
                }
                let mut is_ok = true;
                for n in &own {
                    if let Err(error) = transaction.insert_or_share(&done, key(*n), b"") {
                        assert!(
                            matches!(
                                error.kind(),
                                ErrorKind::TooManyLocks
                                    | ErrorKind::LockTimeout
                                    | ErrorKind::Deadlock
                            ),
                            "{error}"
                        );
                        is_ok = false;
                        break;
                    }
                }
                if !is_ok {
                    let _ = transaction.rollback();
                    continue;
                }
                transaction.commit().unwrap();
                let mut all = taken.lock();
                for n in &own {
                    assert_eq!(all.insert(*n, worker), None, "seed {seed}: row {n} is taken twice");
                }
                drop(all);
                if ended && own.is_empty() && queue.first().unwrap().is_none() {
                    return;
                }
            }
        };
        std::thread::scope(|threads| {
            for worker in 0..3 {
                let take = &take;
                threads.spawn(move || take(worker));
            }
        });
        assert_eq!(taken.lock().len() as u64, ROWS);
        assert_eq!(support::rows(&done).len() as u64, ROWS);
        assert!(db.stats().lock_escalations > 0);
    }
}
