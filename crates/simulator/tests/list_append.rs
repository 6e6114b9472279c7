//! Threads run transactions over lists on a real database, and what each isolation level forbids
//! never happens. A seed determines the steps of each thread, but not how the threads interleave.
//!
//! `FRONDB_SEED` sets the seed, `FRONDB_TRANSACTIONS` the number of transactions of all threads
//! together.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use frondb_simulator::Setup;
use frondb_simulator::list_append::runner::{Level, Run};
use frondb_simulator::list_append::{
    Anomaly, History, check_read_committed, check_serializable, check_snapshot_isolation,
};
use frondb_simulator::setup::{clock, open};
use frondb_testkit::MemoryDevice;
use frondb_testkit::seed;

/// Small sizes, so that lists are in memtables and in runs of all ages.
fn setup() -> Setup {
    Setup { threads: 2, write_buffer_bytes: 16 << 10, ..Setup::tall() }
}

fn run(level: Level, check: fn(&History) -> Vec<Anomaly>) {
    let first = seed::from_env("FRONDB_SEED", 1);
    for (i, threads) in [4, 8].into_iter().enumerate() {
        let seed = first + i as u64;
        let transactions = seed::from_env("FRONDB_TRANSACTIONS", 1600) / threads;
        let db = open(&MemoryDevice::new(), &setup(), &(clock() as _)).unwrap();
        let history = Run { level, threads, transactions, seed }.on(&db, &setup()).unwrap();
        let committed = history.transactions.iter().filter(|t| t.is_committed()).count();
        println!(
            "{level:?}, {threads} threads, seed {seed}: {committed} of {} transactions committed",
            history.transactions.len()
        );
        // Count what stronger levels forbid; the numbers show that the threads interacted.
        let (single, any) = (check_snapshot_isolation(&history), check_serializable(&history));
        println!("{} and {} anomalies by the stronger checks", single.len(), any.len());
        let anomalies = check(&history);
        for anomaly in anomalies.iter().take(10) {
            println!("{anomaly}");
            if let Anomaly::Cycle { path, .. } = anomaly {
                path.iter().for_each(|(t, _)| println!("T{t}: {:?}", history.transactions[*t]));
            }
        }
        assert!(anomalies.is_empty(), "{} anomalies at {level:?}, seed {seed}", anomalies.len());
        assert!(committed as u64 > threads * transactions / 2);
        assert!(db.locks().is_empty() && db.lock_waits().is_empty());
    }
}

#[test]
fn serializable_histories_have_no_cycles() {
    run(Level::Serializable, check_serializable);
}

#[test]
fn snapshot_isolation_histories_read_from_their_snapshots() {
    run(Level::Snapshot, check_snapshot_isolation);
}

#[test]
fn read_committed_histories_read_what_was_committed() {
    run(Level::ReadCommitted, check_read_committed);
}
