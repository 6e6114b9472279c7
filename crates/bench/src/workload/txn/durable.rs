//! Transactions of one row, each synced: 16 threads compared with one.

use std::thread;
use std::time::{Duration, Instant};

use frondb::Durability;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::threads::joined;
use super::parts::Parts;
use super::rows::Rows;
use super::store::Store;
use crate::error::{Error, Result};
use crate::report::{Figure, median_of};

const THREADS: u64 = 16;

const TURNS: u64 = 7;

/// The length of a turn, as a fraction of the time of point reads in other workloads.
const TURN_PART: f64 = 0.1;

/// Commits before the measured ones: the first commits of a new log create its files.
const WARMUP_COMMITS: u64 = 20;

pub(super) fn run(parts: &mut Parts<'_>) -> Result<()> {
    parts.progress.say("durable commits, one thread and sixteen");
    let store = Store::create(parts.spec, "durable")?;
    let turn = Duration::from_secs_f64(parts.spec.reads.points * TURN_PART);
    let seeds = AtomicU64::new(parts.spec.seed);
    let mut rows = Rows::new(!parts.spec.seed, 100, 100);
    for _ in 0..WARMUP_COMMITS {
        commit(&store, &mut rows)?;
    }
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        alone.push(side_by_side(&store, &seeds, 1, turn)?);
        together.push(side_by_side(&store, &seeds, THREADS, turn)?);
    }
    store.remove()?;
    let ratios = together.iter().zip(&alone).map(|(together, alone)| together / alone).collect();
    let ratio = Figure::plain("durable commits, 16 threads to 1", median_of(ratios), "x");
    parts.add(ratio.at_least(4.0, 8.0));
    parts.add(Figure::plain("durable commits, 16 threads", median_of(together), "1/s"));
    parts.add(Figure::plain("durable commits, 1 thread", median_of(alone), "1/s"));
    Ok(())
}

fn commit(store: &Store, rows: &mut Rows) -> Result<()> {
    let (key, value) = rows.next();
    let transaction = store.begin(Durability::Sync)?;
    transaction.put(&store.tree, &key, value).map_err(Error::engine)?;
    transaction.commit().map_err(Error::engine)
}

/// Lets `threads` threads commit one row after the other for the length of `turn`, each with its
/// own seed. Returns the commits a second of all threads.
fn side_by_side(store: &Store, seeds: &AtomicU64, threads: u64, turn: Duration) -> Result<f64> {
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let counts: Vec<Result<u64>> = thread::scope(|scope| {
        let run = || {
            let mut rows = Rows::new(seeds.fetch_add(1, Ordering::Relaxed), 100, 100);
            let mut commits = 0;
            while !stop.load(Ordering::Relaxed) && (commits == 0 || start.elapsed() < turn) {
                commit(store, &mut rows).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                commits += 1;
            }
            Ok(commits)
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|thread| joined(thread.join())).collect()
    });
    let elapsed = start.elapsed().as_secs_f64().max(1e-9);
    let commits: u64 = counts.into_iter().sum::<Result<u64>>()?;
    Ok(commits as f64 / elapsed)
}
