//! Point reads at a snapshot, alone and while a writer runs as fast as it can.

use std::thread;
use std::time::{Duration, Instant};

use frondb::{Batch, Durability};
use frondb_core::prng::Prng;
use frondb_core::sync::atomic::{AtomicBool, Ordering};

use super::super::threads::joined;
use super::parts::Parts;
use super::rows::{Rows, key};
use super::store::{BATCH_ROWS, Store};
use crate::error::{Error, Result};
use crate::report::{Figure, median_of};

const TURNS: u64 = 3;

/// The length of a turn, as a fraction of the time of point reads in other workloads.
const TURN_PART: f64 = 1.0 / 3.0;

/// Point reads of a transaction.
const GETS: u64 = 100;

/// The tree has the workload's rows divided by this number.
const PART_OF_ROWS: u64 = 2;

pub(super) fn run(parts: &mut Parts<'_>) -> Result<()> {
    parts.progress.say("point reads, alone and beside a writer");
    let store = Store::create(parts.spec, "reads")?;
    let count = (parts.spec.rows / PART_OF_ROWS).max(1);
    let seed = parts.spec.seed;
    store.load(&mut Rows::new(seed, 100, 100), count)?;
    store.settle()?;
    let turn = Duration::from_secs_f64(parts.spec.reads.points * TURN_PART);
    let table = Table { store: &store, seed, rows: count };
    // These reads load caches and filters; they are not measured.
    table.read(&mut Prng::new(seed), turn)?;
    let (mut alone, mut beside, mut written) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..TURNS {
        let mut prng = Prng::new(seed ^ (n + 1));
        alone.push(table.read(&mut prng, turn)?);
        let (reads, rows) = table.read_beside_writer(&mut prng, turn)?;
        beside.push(reads);
        written.push(rows);
        store.settle()?;
    }
    store.remove()?;
    let ratios = beside.iter().zip(&alone).map(|(beside, alone)| beside / alone).collect();
    let ratio = Figure::plain("snapshot reads, beside a writer to alone", median_of(ratios), "x");
    parts.add(ratio.at_least(0.45, 0.6));
    parts.add(Figure::plain("snapshot reads, beside a writer", median_of(beside), "1/s"));
    parts.add(Figure::plain("snapshot reads, alone", median_of(alone), "1/s"));
    parts.add(Figure::plain("rows written beside the reads", median_of(written), "1/s"));
    Ok(())
}

/// The tree that is read and written.
#[derive(Clone, Copy)]
struct Table<'a> {
    store: &'a Store,
    seed: u64,
    rows: u64,
}

impl Table<'_> {
    /// Reads random rows for the length of `turn`. Returns the reads a second.
    fn read(self, prng: &mut Prng, turn: Duration) -> Result<f64> {
        let (start, mut reads) = (Instant::now(), 0);
        while reads == 0 || start.elapsed() < turn {
            let transaction = self.store.begin(Durability::NoSync)?;
            for _ in 0..GETS {
                let number = prng.below(self.rows);
                let found = transaction.get(&self.store.tree, &key(self.seed, number));
                if found.map_err(Error::engine)?.is_none() {
                    return Err(Error::Wrong(format!("row {number} is not found")));
                }
            }
            transaction.commit().map_err(Error::engine)?;
            reads += GETS;
        }
        Ok(reads as f64 / start.elapsed().as_secs_f64().max(1e-9))
    }

    /// Reads while another thread writes. Returns the reads and the written rows a second.
    fn read_beside_writer(self, prng: &mut Prng, turn: Duration) -> Result<(f64, f64)> {
        let stop = AtomicBool::new(false);
        let seed = prng.next_u64();
        thread::scope(|scope| {
            let stop = &stop;
            let writer = scope.spawn(move || self.write(seed, stop));
            let reads = self.read(prng, turn);
            stop.store(true, Ordering::Relaxed);
            let written = joined(writer.join())?;
            Ok((reads?, written))
        })
    }

    /// Overwrites random rows until `stop` is set. Returns the rows a second.
    fn write(self, seed: u64, stop: &AtomicBool) -> Result<f64> {
        let (mut prng, mut values) = (Prng::new(seed), Rows::new(seed, 100, 100));
        let mut batch = Batch::new();
        let (start, mut rows) = (Instant::now(), 0);
        while rows == 0 || !stop.load(Ordering::Relaxed) {
            batch.clear();
            for _ in 0..BATCH_ROWS {
                let key = key(self.seed, prng.below(self.rows));
                batch.put(&self.store.tree, &key, values.value());
            }
            self.store.write(&batch)?;
            rows += BATCH_ROWS;
        }
        Ok(rows as f64 / start.elapsed().as_secs_f64().max(1e-9))
    }
}
