//! Deadlock storms: many threads lock rows, ranges and scans in random orders at all isolation
//! levels. Each transaction ends with its commit or as the victim of a deadlock or a conflict, and
//! each victim succeeds when it is repeated. Nothing hangs: lock timeouts are so long that only a
//! release or the search for cycles can end a wait. If the test makes no progress, it prints all
//! waits and locks.
//!
//! `FRONDB_SEED` selects the threads' actions, `FRONDB_STORM` the number of transactions of all
//! threads together.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use frondb::{
    Db, Durability, ErrorKind, Isolation, Result, Transaction, TransactionCursorOptions,
    TransactionOptions, Tree, Wait,
};
use frondb_core::prng::Prng;
use frondb_simulator::Setup;
use frondb_simulator::functions::Function;
use frondb_simulator::setup::{clock, open};
use frondb_testkit::MemoryDevice;
use frondb_testkit::seed;

const ROWS: u64 = 24;

/// Time without progress that counts as a hang. The duration of a whole run does not matter.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

fn key(prng: &mut Prng) -> [u8; 8] {
    prng.below(ROWS).to_be_bytes()
}

/// Takes the locks and makes the writes of one transaction. They are the same at each attempt.
fn work(transaction: &Transaction, trees: &[Tree; 2], seed: u64) -> Result<()> {
    let mut prng = Prng::new(seed);
    for _ in 0..2 + prng.below(6) {
        let tree = &trees[prng.index(2)];
        let (a, b) = (key(&mut prng), key(&mut prng));
        let (lo, hi) = (a.min(b), a.max(b));
        match prng.below(12) {
            0 | 1 => transaction.put(tree, &a, &b)?,
            2 => transaction.update(tree, &a, b"x")?,
            3 => transaction.delete(tree, &a)?,
            4 => drop(transaction.get_for_update(tree, &a, Wait::Timeout)?),
            5 => drop(transaction.get_for_share(tree, &a, Wait::Timeout)?),
            6 => drop(transaction.get(tree, &a)?),
            7 => transaction.delete_range(tree, &lo, Some(&hi))?,
            n => {
                let options = TransactionCursorOptions::new().range(&lo[..]..&hi[..]);
                let options = match n {
                    8 => options,
                    9 | 10 => options.for_share(Wait::Timeout),
                    _ => options.for_update(Wait::Timeout),
                };
                let mut cursor = transaction.cursor_with(tree, options)?;
                let backward = prng.chance(1, 2);
                while if backward { cursor.prev()? } else { cursor.next()? } {}
            }
        }
    }
    Ok(())
}

/// Repeats a transaction until it commits. Returns the number of failed attempts.
fn insist(db: &Db, trees: &[Tree; 2], seed: u64) -> u64 {
    let mut prng = Prng::new(seed);
    let levels = [
        Isolation::ReadUncommitted,
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ];
    let (level, snapshot_isolation) = (levels[prng.index(4)], prng.chance(1, 2));
    let options = TransactionOptions::new()
        .isolation(level)
        .snapshot_isolation(snapshot_isolation && level == Isolation::RepeatableRead)
        .lock_timeout(Duration::from_secs(1_000_000))
        .durability(Durability::NoSync);
    for tries in 0.. {
        let transaction = db.begin(options.clone()).unwrap();
        let Err(error) = work(&transaction, trees, seed).and_then(|()| transaction.commit()) else {
            return tries;
        };
        let expected = [ErrorKind::Deadlock, ErrorKind::Conflict];
        assert!(expected.contains(&error.kind()), "{error}");
        transaction.rollback().unwrap();
    }
    unreachable!()
}

fn storm(threads: u64, seed: u64) {
    let each = seed::from_env("FRONDB_STORM", 1600) / threads;
    let setup = Setup { threads: 1, ..Setup::tall() };
    let db = open(&MemoryDevice::new(), &setup, &(clock() as _)).unwrap();
    let make = |name| db.create_tree(name, setup.tree_options(Function::Append)).unwrap();
    let trees = [make("a"), make("b")];
    let (sender, ends) = channel();
    let workers: Vec<_> = (0..threads)
        .map(|thread| {
            let (db, trees, sender) = (db.clone(), trees.clone(), sender.clone());
            std::thread::spawn(move || {
                for i in 0..each {
                    let tries = insist(&db, &trees, seed << 32 | thread << 24 | i);
                    // The receiver is dropped only after a failure, so end.
                    if sender.send(tries).is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let (mut done, mut failed) = (0, 0);
    loop {
        match ends.recv_timeout(HANG_TIMEOUT) {
            Ok(tries) => {
                done += 1;
                failed += tries;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let (waits, locks) = (db.lock_waits(), db.locks());
                panic!(
                    "seed {seed}: no progress after {done}; waits: {waits:#?}; locks: {locks:#?}"
                );
            }
        }
    }
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert_eq!(done, threads * each);
    let deadlocks = db.stats().deadlocks;
    println!(
        "seed {seed}, {threads} threads: {done} done, {failed} tries failed, {deadlocks} deadlocks"
    );
    assert!(deadlocks > 0);
    assert_eq!((db.locks(), db.lock_waits()), (Vec::new(), Vec::new()));
}

#[test]
fn every_transaction_of_a_deadlock_storm_commits() {
    let first = seed::from_env("FRONDB_SEED", 1);
    storm(8, first);
    storm(16, first + 1);
}
