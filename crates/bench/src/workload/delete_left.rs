//! Deletes in key order from the left end, the classic weakness of engines that buffer messages.
//! After the deletion of the lower half of the rows, millions of deletes precede the first key.
//!
//! The workload deletes rows with their secondary entries, as a table does, in batches of 1,000.
//! Immediately afterwards, without a pause in which background work could clean up, it reads the
//! first and the last key of the primary tree and checks the answers.

use std::time::Instant;

use super::Bench;
use crate::engine::{Batch, Durability};
use crate::error::{Error, Result};
use crate::rows::{PRIMARY, TableRow};

const BATCH_ROWS: u64 = 1_000;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seed = bench.spec.seed;
    let rows = bench.measured_load(bench.spec.rows, &mut |batch, id| {
        TableRow::new(seed, id, 0).insert(batch)
    })?;
    let half = rows / 2;
    bench.progress.say("deleting the lower half");
    let start = Instant::now();
    let mut batch = Batch::default();
    for from in (0..half).step_by(BATCH_ROWS as usize) {
        batch.clear();
        for id in from..half.min(from + BATCH_ROWS) {
            TableRow::new(seed, id, 0).delete(&mut batch);
        }
        bench.engine.write(&batch, Durability::NoSync)?;
    }
    bench.measurement.deletes_per_s = Some(half as f64 / start.elapsed().as_secs_f64().max(1e-9));
    edges(bench, half, rows)?;
    bench.full_scan(PRIMARY, rows - half)
}

fn edges(bench: &mut Bench<'_>, first: u64, end: u64) -> Result<()> {
    let mut reader = bench.engine.reader()?;
    let start = Instant::now();
    let smallest = reader.first_key(PRIMARY)?;
    let middle = Instant::now();
    let largest = reader.last_key(PRIMARY)?;
    bench.measurement.last_key_ms = Some(middle.elapsed().as_secs_f64() * 1e3);
    bench.measurement.first_key_ms = Some((middle - start).as_secs_f64() * 1e3);
    let expected = (first < end).then(|| (first.to_be_bytes(), (end - 1).to_be_bytes()));
    let found = smallest.zip(largest);
    let equal = match (&expected, &found) {
        (Some((a, b)), Some((c, d))) => a[..] == c[..] && b[..] == d[..],
        (expected, found) => expected.is_none() && found.is_none(),
    };
    if !equal {
        return Err(Error::Wrong(format!(
            "the first and last key are {found:02x?} after the deletes, not {expected:02x?}"
        )));
    }
    Ok(())
}
