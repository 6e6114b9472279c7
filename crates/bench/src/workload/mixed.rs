//! Reads while a writer runs. After an unmeasured load, one thread writes rows at a fixed rate, the
//! same for every engine. Two other threads read: first points, then 10-entry scans, then
//! 1,000-entry scans. The fixed rate makes the readers of different engines comparable: if an
//! engine writes slower to read faster, its writer lags behind the schedule.

use std::thread;
use std::time::{Duration, Instant};

use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::settle::settle;
use super::threads::joined;
use super::timed::{Timed, point, scan10, scan1000, timed};
use super::{Bench, Spec};
use crate::engine::{Batch, Engine, Reader};
use crate::error::Result;
use crate::measure::{Histogram, Sampler, Windows, process, slowest_to_median};
use crate::rows::TableRow;

const READERS: u64 = 2;

/// The results of the writer.
struct Written {
    rows: u64,
    raw_bytes: u64,
    elapsed: Duration,
    lag_max: Duration,
    batches: Histogram,
    windows: Windows,
}

/// The results of a reader: points, 10-entry scans, 1,000-entry scans.
type Reads = [Timed; 3];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (seed, spec, engine) = (bench.spec.seed, bench.spec, bench.engine);
    let loaded = bench
        .silent_load(bench.spec.rows, &mut |batch, id| TableRow::new(seed, id, 0).insert(batch))?;
    let (cpu_before, io_before) = (process::cpu_time()?, process::io()?);
    // The number of acknowledged rows. Readers choose among these rows.
    let rows = Arc::new(AtomicU64::new(loaded));
    let stop = AtomicBool::new(false);
    let observer = bench.progress.stream("mixed");
    let sampler =
        Sampler::start(process::Process::current(), Instant::now(), Arc::clone(&rows), observer);
    let (written, reads) = thread::scope(|scope| {
        let writer = scope.spawn(|| write(engine, spec, &rows, &stop));
        let readers: Vec<_> = (0..READERS)
            .map(|number| {
                let (rows, stop) = (&rows, &stop);
                scope.spawn(move || {
                    read(engine, spec, number, rows).inspect_err(|_| {
                        stop.store(true, Ordering::Relaxed);
                    })
                })
            })
            .collect();
        let reads: Vec<_> = readers.into_iter().map(|reader| joined(reader.join())).collect();
        stop.store(true, Ordering::Relaxed);
        (joined(writer.join()), reads)
    });
    let (written, reads) = (written?, reads.into_iter().collect::<Result<Vec<_>>>()?);
    let settling = settle(engine)?;
    let m = &mut bench.measurement;
    m.series = sampler.finish();
    let count = written.rows.max(1) as f64;
    m.rows = Some(written.rows);
    m.rows_per_s = Some(written.rows as f64 / written.elapsed.as_secs_f64().max(1e-9));
    m.settle_s = Some(settling.as_secs_f64());
    m.cpu_us_per_row = Some((process::cpu_time()? - cpu_before).as_secs_f64() * 1e6 / count);
    m.raw_bytes = Some(written.raw_bytes);
    m.written_bytes = Some(process::io()?.written_bytes - io_before.written_bytes);
    m.paced_rows_per_s = Some(spec.paced_rows_per_s);
    m.writer_lag_ms_max = Some(written.lag_max.as_secs_f64() * 1e3);
    m.set_batch_latencies(&written.batches);
    m.min_interval_ratio = slowest_to_median(written.windows.rows());
    let [points, short, long] = [0, 1, 2].map(|kind| both(&reads, kind));
    (m.point_ops_s, m.point_ms_p99) = points;
    (m.scan10_ops_s, m.scan10_ms_p99) = short;
    (m.scan1000_ops_s, m.scan1000_ms_p99) = long;
    Ok(())
}

/// Returns the rate of all readers together, and the 99th percentile of their latencies,
/// milliseconds.
fn both(reads: &[Reads], kind: usize) -> (Option<f64>, Option<f64>) {
    let mut latency = Histogram::default();
    let mut per_s = 0.0;
    for reader in reads {
        latency.merge(&reader[kind].latency);
        per_s += reader[kind].per_s;
    }
    ((per_s > 0.0).then_some(per_s), latency.quantile_ms(0.99))
}

/// Writes batches on a schedule until `stop` is set. A late batch does not move the schedule: the
/// writer catches up as fast as the engine allows.
fn write(engine: &dyn Engine, spec: &Spec, rows: &AtomicU64, stop: &AtomicBool) -> Result<Written> {
    let batch_rows = spec.batch_rows();
    let period = batch_rows as f64 / spec.paced_rows_per_s.max(1.0);
    let first = rows.load(Ordering::Relaxed);
    let mut written = Written {
        rows: 0,
        raw_bytes: 0,
        elapsed: Duration::ZERO,
        lag_max: Duration::ZERO,
        batches: Histogram::default(),
        windows: Windows::default(),
    };
    let mut batch = Batch::default();
    let start = Instant::now();
    for number in 0_u64.. {
        let due = Duration::from_secs_f64(number as f64 * period);
        thread::sleep(due.saturating_sub(start.elapsed()));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        batch.clear();
        let from = first + written.rows;
        for id in from..from + batch_rows {
            TableRow::new(spec.seed, id, 0).insert(&mut batch);
        }
        let before = Instant::now();
        engine.write(&batch, spec.variant.durability)?;
        let after = Instant::now();
        written.batches.record(after - before);
        written.elapsed = after - start;
        written.windows.record(written.elapsed, batch_rows);
        written.lag_max = written.lag_max.max(written.elapsed.saturating_sub(due));
        written.rows += batch_rows;
        written.raw_bytes += batch.raw_bytes();
        rows.store(from + batch_rows, Ordering::Relaxed);
    }
    Ok(written)
}

fn read(engine: &dyn Engine, spec: &Spec, number: u64, rows: &AtomicU64) -> Result<Reads> {
    let mut prng = Prng::new(spec.seed ^ 0x5EED_0F4E_AD5A_0100 ^ number);
    let mut reader = engine.reader()?;
    let reader: &mut dyn Reader = reader.as_mut();
    let acknowledged = || rows.load(Ordering::Relaxed);
    timed(spec.reads.warmup, || point(reader, &mut prng, acknowledged()))?;
    Ok([
        timed(spec.reads.points, || point(reader, &mut prng, acknowledged()))?,
        timed(spec.reads.scan10, || scan10(reader, &mut prng))?,
        timed(spec.reads.scan1000, || scan1000(reader, &mut prng))?,
    ])
}
