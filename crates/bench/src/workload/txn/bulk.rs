//! A bulk load of all rows, in random order, compared with the same rows in batches by processor
//! time up to the settled state.

use std::time::Instant;

use frondb::{BulkOptions, Durability};

use super::parts::Parts;
use super::rows::{Rows, VALUE_BYTES};
use super::store::Store;
use crate::error::{Error, Result};
use crate::measure::process;
use crate::report::Figure;

/// Measures the bulk load. `batch_us` is the processor time of the same rows in batches,
/// microseconds a row.
pub(super) fn run(parts: &mut Parts<'_>, batch_us: f64) -> Result<()> {
    parts.progress.say("the same rows by a bulk load");
    let (seed, rows) = (parts.spec.seed, parts.spec.rows);
    let store = Store::create(parts.spec, "bulk")?;
    let cpu_before = process::cpu_time()?;
    let start = Instant::now();
    load(&store, &mut Rows::new(seed, VALUE_BYTES.0, VALUE_BYTES.1), rows)?;
    let elapsed = start.elapsed();
    let settled = elapsed + store.settle()?;
    let cpu = process::cpu_time()? - cpu_before;
    store.check(seed, rows)?;
    store.remove()?;
    let per_s = |seconds: f64| rows as f64 / seconds.max(1e-9);
    // At least 1 us in total: a load of few rows may end within one tick of the kernel's clock.
    let cpu_us = (cpu.as_secs_f64() * 1e6).max(1.0) / rows.max(1) as f64;
    let ratio = Figure::plain("bulk load to batches, CPU a row", cpu_us / batch_us, "x");
    parts.add(ratio.at_most(0.5, Some(0.3)));
    parts.add(Figure::plain("bulk load", per_s(elapsed.as_secs_f64()), "rows/s"));
    parts.add(Figure::plain("bulk load, settled", per_s(settled.as_secs_f64()), "rows/s"));
    parts.add(Figure::plain("bulk load, CPU", cpu_us, "us/row"));
    Ok(())
}

fn load(store: &Store, values: &mut Rows, rows: u64) -> Result<()> {
    let options = BulkOptions { durability: Durability::NoSync, ..BulkOptions::default() };
    let load = store.db.bulk_load(options).map_err(Error::engine)?;
    let mut writer = load.writer();
    for _ in 0..rows {
        let (key, value) = values.next();
        writer.put(&store.tree, &key, value).map_err(Error::engine)?;
    }
    writer.finish().map_err(Error::engine)?;
    load.finish(&mut |_| true).map_err(Error::engine)?;
    Ok(())
}
