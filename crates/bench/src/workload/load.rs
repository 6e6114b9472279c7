//! Writes rows as fast as the engine accepts them, and measures the load.
//!
//! One thread writes one batch after the other. The latency of a batch is the time of the engine's
//! call alone. The rate includes everything, also the generation of the rows (a small cost, which
//! is measured separately too).

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

use super::settle::settle;
use super::{Bench, Spec};
use crate::driver::Progress;
use crate::engine::{Batch, Engine};
use crate::error::Result;
use crate::measure::{
    Histogram, Marks, Sample, Sampler, Windows, disk, process, settling_stalls, slowest_to_median,
};
use crate::report::Measurement;

/// Adds the row of this number to a batch.
pub(super) type Fill<'a> = &'a mut dyn FnMut(&mut Batch, u64);

/// The plan of a measured load: the process that writes the data, the folder, and the rows.
pub struct Load<'a> {
    /// The process with the engine.
    pub process: process::Process,
    /// The folder of the data.
    pub dir: &'a Path,
    /// Rows to write.
    pub rows: u64,
    /// Rows a commit.
    pub batch_rows: u64,
    /// Ends the load after this many seconds, with fewer rows.
    pub limit_s: Option<f64>,
    /// Whether a second without any work, before the engine is settled, counts as a stall. `false`
    /// if an engine counts as settled only after a pause without work.
    pub settles_busily: bool,
    /// Where progress is shown.
    pub progress: &'a Progress,
}

/// One batch that was acknowledged.
pub struct Written {
    /// The time just before the engine's call.
    pub before: Instant,
    /// The time just after the engine's call.
    pub after: Instant,
    /// Bytes of the batch's keys and values.
    pub raw_bytes: u64,
}

/// The results of a load.
#[derive(Default)]
struct Loaded {
    /// Rows acknowledged.
    rows: u64,
    /// Time from the start of the load to the last acknowledged batch.
    elapsed: Duration,
    raw_bytes: u64,
    last_fifth: Option<f64>,
    batches: Histogram,
    windows: Windows,
}

impl Load<'_> {
    /// Writes the rows, settles the engine, and fills in all figures of a load. Returns the number
    /// of rows written. `write` writes the rows of a range of numbers. `settle` waits until the
    /// engine is settled and returns how long that took.
    pub fn measure(
        &self,
        m: &mut Measurement,
        write: impl FnMut(Range<u64>) -> Result<Written>,
        settle: impl FnOnce() -> Result<Duration>,
    ) -> Result<u64> {
        let device = disk::Device::under(self.dir);
        disk::sync_file_system(self.dir)?;
        let device_before = device.as_ref().and_then(disk::Device::counters);
        let (cpu_before, io_before) = (process::cpu_time()?, self.process.io()?);
        let (loaded, settling, series) = self.observe(write, settle)?;
        let cpu = process::cpu_time()? - cpu_before;
        disk::sync_file_system(self.dir)?;
        let io = self.process.io()?;
        let device_after = device.as_ref().and_then(disk::Device::counters);

        let per_second = |time: Duration| loaded.rows as f64 / time.as_secs_f64().max(1e-9);
        m.rows = Some(loaded.rows);
        m.rows_per_s = Some(per_second(loaded.elapsed));
        m.rows_per_s_settled = Some(per_second(loaded.elapsed + settling));
        m.rows_per_s_last_fifth = loaded.last_fifth;
        m.settle_s = Some(settling.as_secs_f64());
        m.cpu_us_per_row = Some(cpu.as_secs_f64() * 1e6 / loaded.rows.max(1) as f64);
        m.raw_bytes = Some(loaded.raw_bytes);
        m.set_writes(&io_before, &io);
        m.set_device_writes(device_before, device_after);
        m.set_batch_latencies(&loaded.batches);
        let settled = loaded.elapsed + settling;
        let stalls =
            if self.settles_busily { settling_stalls(&series, loaded.elapsed, settled) } else { 0 };
        m.min_interval_ratio = slowest_to_median(loaded.windows.rows())
            .map(|ratio| if stalls > 0 { 0.0 } else { ratio });
        m.series = series;
        Ok(loaded.rows)
    }

    fn observe(
        &self,
        write: impl FnMut(Range<u64>) -> Result<Written>,
        settle: impl FnOnce() -> Result<Duration>,
    ) -> Result<(Loaded, Duration, Vec<Sample>)> {
        let done = Arc::new(AtomicU64::new(0));
        let start = Instant::now();
        let observer = self.progress.load(self.rows);
        let sampler = Sampler::start(self.process.clone(), start, Arc::clone(&done), observer);
        let loaded = self.drive(start, &done, write)?;
        let settling = settle()?;
        Ok((loaded, settling, sampler.finish()))
    }

    /// Writes the rows in batches, until all are written or the time limit ends the load.
    fn drive(
        &self,
        start: Instant,
        done: &AtomicU64,
        mut write: impl FnMut(Range<u64>) -> Result<Written>,
    ) -> Result<Loaded> {
        let limit = self.limit_s.map(Duration::from_secs_f64);
        let mut marks = Marks::new(self.rows);
        let mut loaded = Loaded::default();
        while loaded.rows < self.rows && limit.is_none_or(|limit| loaded.elapsed < limit) {
            let end = self.rows.min(loaded.rows + self.batch_rows);
            let Written { before, after, raw_bytes } = write(loaded.rows..end)?;
            loaded.batches.record(after - before);
            loaded.windows.record(after - start, end - loaded.rows);
            loaded.raw_bytes += raw_bytes;
            (loaded.rows, loaded.elapsed) = (end, after - start);
            done.store(end, Ordering::Relaxed);
            marks.record(end, loaded.elapsed);
        }
        loaded.last_fifth = marks.last_fifth(loaded.rows, loaded.elapsed);
        Ok(loaded)
    }
}

impl Bench<'_> {
    /// Writes `rows` rows, waits until the engine is settled, and fills in all figures of a load.
    /// Returns the number of rows written.
    pub(super) fn measured_load(&mut self, rows: u64, fill: Fill<'_>) -> Result<u64> {
        let generate = generation_cost(fill);
        let (engine, spec, progress) = (self.engine, self.spec, self.progress.clone());
        let m = &mut self.measurement;
        m.generate_us_per_row = Some(generate);
        let load = load_of(spec, rows, &progress);
        load.measure(m, batches(engine, spec, fill), || settle(engine))
    }

    /// Writes rows and waits until the engine is settled, but fills in no figures: the load before
    /// the measured part of a workload.
    pub(super) fn silent_load(&mut self, rows: u64, fill: Fill<'_>) -> Result<u64> {
        silent_load(self.engine, self.spec, rows, &self.progress, fill)
    }
}

/// Does what [`Bench::silent_load`] does, for an engine that the workload has opened itself.
pub(super) fn silent_load(
    engine: &dyn Engine,
    spec: &Spec,
    rows: u64,
    progress: &Progress,
    fill: Fill<'_>,
) -> Result<u64> {
    let load = load_of(spec, rows, progress);
    let (loaded, ..) = load.observe(batches(engine, spec, fill), || settle(engine))?;
    Ok(loaded.rows)
}

fn load_of<'a>(spec: &'a Spec, rows: u64, progress: &'a Progress) -> Load<'a> {
    Load {
        process: process::Process::current(),
        dir: &spec.dir,
        rows,
        batch_rows: spec.batch_rows(),
        limit_s: spec.limit_s,
        settles_busily: true,
        progress,
    }
}

/// Returns a function that writes a batch with the rows that `fill` makes.
fn batches<'a>(
    engine: &'a dyn Engine,
    spec: &'a Spec,
    fill: Fill<'a>,
) -> impl FnMut(Range<u64>) -> Result<Written> + 'a {
    let mut batch = Batch::default();
    move |rows| {
        batch.clear();
        for id in rows {
            fill(&mut batch, id);
        }
        let before = Instant::now();
        engine.write(&batch, spec.variant.durability)?;
        Ok(Written { before, after: Instant::now(), raw_bytes: batch.raw_bytes() })
    }
}

/// Measures the microseconds that `fill` takes for a row.
fn generation_cost(fill: Fill<'_>) -> f64 {
    let mut batch = Batch::default();
    generation_us_per_row(|rows| {
        batch.clear();
        rows.for_each(|id| fill(&mut batch, id));
    })
}

/// Measures the microseconds that generating a row takes, over 20,000 rows. `make` generates the
/// rows of a batch, given their numbers.
pub fn generation_us_per_row(mut make: impl FnMut(Range<u64>)) -> f64 {
    const ROWS: u64 = 20_000;
    const BATCH: u64 = 1_000;
    let start = Instant::now();
    for first in (0..ROWS).step_by(BATCH as usize) {
        make(first..first + BATCH);
    }
    start.elapsed().as_secs_f64() * 1e6 / ROWS as f64
}
