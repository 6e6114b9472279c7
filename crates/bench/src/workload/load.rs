//! Writes rows as fast as the engine accepts them, and measures the load.
//!
//! One thread writes one batch after the other. The latency of a batch is the time of the engine's
//! call alone; the rate includes everything, even generating the rows (a small cost, which is also
//! measured separately).

use std::time::{Duration, Instant};

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

use super::settle::settle;
use super::{Bench, Spec};
use crate::engine::{Batch, Engine};
use crate::error::Result;
use crate::measure::{
    Histogram, Marks, Sample, Sampler, Windows, disk, process, settling_stalls, slowest_to_median,
};

/// Adds the row of this number to a batch.
pub(super) type Fill<'a> = &'a mut dyn FnMut(&mut Batch, u64);

/// The results of a load.
#[derive(Default)]
pub(super) struct Loaded {
    /// Rows acknowledged.
    pub(super) rows: u64,
    /// From the first batch to the last acknowledgement.
    pub(super) elapsed: Duration,
    raw_bytes: u64,
    last_fifth: Option<f64>,
    batches: Histogram,
    windows: Windows,
}

impl Bench<'_> {
    /// Writes `rows` rows, waits until the engine is settled, and fills in all figures of a load.
    /// Returns the rows that were written.
    pub(super) fn measured_load(&mut self, rows: u64, fill: Fill<'_>) -> Result<u64> {
        self.measurement.generate_us_per_row = Some(generation_cost(fill));
        let device = disk::Device::under(&self.spec.dir);
        disk::sync_file_system(&self.spec.dir)?;
        let device_before = device.as_ref().and_then(disk::Device::counters);
        let (cpu_before, io_before) = (process::cpu_time()?, process::io()?);

        let (loaded, settling, series) = self.observed_load(rows, fill)?;
        let cpu = process::cpu_time()? - cpu_before;
        disk::sync_file_system(&self.spec.dir)?;
        let io = process::io()?;
        let device_after = device.as_ref().and_then(disk::Device::counters);

        let settled = loaded.elapsed + settling;
        let stalls = settling_stalls(&series, loaded.elapsed, settled);
        let per_second = |time: Duration| loaded.rows as f64 / time.as_secs_f64().max(1e-9);
        let m = &mut self.measurement;
        m.rows = Some(loaded.rows);
        m.rows_per_s = Some(per_second(loaded.elapsed));
        m.rows_per_s_settled = Some(per_second(settled));
        m.rows_per_s_last_fifth = loaded.last_fifth;
        m.settle_s = Some(settling.as_secs_f64());
        m.cpu_us_per_row = Some(cpu.as_secs_f64() * 1e6 / loaded.rows.max(1) as f64);
        m.raw_bytes = Some(loaded.raw_bytes);
        m.set_writes(&io_before, &io);
        m.set_device_writes(device_before, device_after);
        m.set_batch_latencies(&loaded.batches);
        m.min_interval_ratio = slowest_to_median(loaded.windows.rows())
            .map(|ratio| if stalls > 0 { 0.0 } else { ratio });
        m.series = series;
        Ok(loaded.rows)
    }

    /// Writes rows and settles without filling in figures: the load before the measured part of a
    /// workload.
    pub(super) fn silent_load(&mut self, rows: u64, fill: Fill<'_>) -> Result<u64> {
        let (loaded, _, _) = self.observed_load(rows, fill)?;
        Ok(loaded.rows)
    }

    fn observed_load(
        &mut self,
        rows: u64,
        fill: Fill<'_>,
    ) -> Result<(Loaded, Duration, Vec<Sample>)> {
        let done = Arc::new(AtomicU64::new(0));
        let start = Instant::now();
        let sampler = Sampler::start(
            process::Process::current(),
            start,
            Arc::clone(&done),
            self.progress.load(rows),
        );
        let loaded = drive(self.engine, self.spec, rows, start, &done, fill)?;
        let settling = settle(self.engine)?;
        Ok((loaded, settling, sampler.finish()))
    }
}

/// Writes rows `0..rows` in batches until they are done or the time limit is over.
pub(super) fn drive(
    engine: &dyn Engine,
    spec: &Spec,
    rows: u64,
    start: Instant,
    done: &AtomicU64,
    fill: Fill<'_>,
) -> Result<Loaded> {
    let limit = spec.limit_s.map(Duration::from_secs_f64);
    let mut marks = Marks::new(rows);
    let mut loaded = Loaded::default();
    let mut batch = Batch::default();
    while loaded.rows < rows && limit.is_none_or(|limit| loaded.elapsed < limit) {
        let end = rows.min(loaded.rows + spec.batch_rows());
        batch.clear();
        for id in loaded.rows..end {
            fill(&mut batch, id);
        }
        let before = Instant::now();
        engine.write(&batch, spec.variant.durability)?;
        let after = Instant::now();
        loaded.batches.record(after - before);
        loaded.windows.record(after - start, end - loaded.rows);
        loaded.raw_bytes += batch.raw_bytes();
        (loaded.rows, loaded.elapsed) = (end, after - start);
        done.store(end, Ordering::Relaxed);
        marks.record(end, loaded.elapsed);
    }
    loaded.last_fifth = marks.last_fifth(loaded.rows, loaded.elapsed);
    Ok(loaded)
}

/// Microseconds that generating a row takes, measured over a sample of a few thousand rows.
fn generation_cost(fill: Fill<'_>) -> f64 {
    const ROWS: u64 = 20_000;
    let mut batch = Batch::default();
    let start = Instant::now();
    for id in 0..ROWS {
        if id % 1_000 == 0 {
            batch.clear();
        }
        fill(&mut batch, id);
    }
    start.elapsed().as_secs_f64() * 1e6 / ROWS as f64
}
