//! Transactions of one row beside batches of one row, neither synced, by one thread.

use std::time::Instant;

use frondb::{Batch, Durability};

use super::parts::Parts;
use super::rows::Rows;
use super::store::Store;
use crate::error::{Error, Result};
use crate::report::{Figure, median_of};

/// Commits of one kind in a turn. All turns together contain many flushes of the write buffer, a
/// single turn only a few.
const SLICE: u64 = 50_000;

const TURNS: u64 = 12;

pub(super) fn run(parts: &mut Parts<'_>) -> Result<()> {
    parts.progress.say("single rows, transactions and batches");
    let store = Store::create(parts.spec, "single")?;
    let slice = SLICE.min(parts.spec.rows / TURNS).max(1);
    let mut rows = Rows::new(parts.spec.seed, 100, 100);
    // The first commits of both kinds also create files and buffers, so they are not measured.
    transactions(&store, &mut rows, slice)?;
    batches(&store, &mut rows, slice)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        // The two kinds alternate in being first.
        if turn % 2 == 0 {
            with.push(transactions(&store, &mut rows, slice)?);
            without.push(batches(&store, &mut rows, slice)?);
        } else {
            without.push(batches(&store, &mut rows, slice)?);
            with.push(transactions(&store, &mut rows, slice)?);
        }
    }
    store.check(parts.spec.seed, slice * 2 * (TURNS + 1))?;
    store.remove()?;
    let ratios = with.iter().zip(&without).map(|(with, without)| with / without).collect();
    let ratio = Figure::plain("single-row transactions to batches", median_of(ratios), "x");
    parts.add(ratio.at_least(0.7, 0.9));
    parts.add(Figure::plain("single-row transactions", median_of(with), "1/s"));
    parts.add(Figure::plain("single-row batches", median_of(without), "1/s"));
    Ok(())
}

/// Commits `count` rows, one a transaction. Returns the rows a second.
fn transactions(store: &Store, rows: &mut Rows, count: u64) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..count {
        let (key, value) = rows.next();
        let transaction = store.begin(Durability::NoSync)?;
        transaction.put(&store.tree, &key, value).map_err(Error::engine)?;
        transaction.commit().map_err(Error::engine)?;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64().max(1e-9))
}

/// Writes `count` rows, one a batch. Returns the rows a second.
fn batches(store: &Store, rows: &mut Rows, count: u64) -> Result<f64> {
    let mut batch = Batch::new();
    let start = Instant::now();
    for _ in 0..count {
        let (key, value) = rows.next();
        batch.clear();
        batch.put(&store.tree, &key, value);
        store.write(&batch)?;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64().max(1e-9))
}
