//! The insert benchmark: rows with ascending primary keys and three secondary indexes in random
//! order, 1,000 rows in a statement and commit, over one connection; then reads.
//!
//! The client makes the next statement while the server executes the previous one, so the time to
//! make rows lowers no rate unless it exceeds the server's time.

use std::time::{Duration, Instant};

use frondb_bench::driver::Progress;
use frondb_bench::measure::disk::Device;
use frondb_bench::measure::process;
use frondb_bench::measure::{Histogram, Marks, Sampler, Windows, slowest_to_median};
use frondb_bench::report::Measurement;
use frondb_bench::{Error, Result};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::contender::Contender;
use crate::host::Host;
use crate::latencies;
use crate::{reads, row};

/// Rows of a statement, which is also a commit.
const BATCH: u64 = 1_000;

/// Measures one engine once.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Measurement> {
    let host = Host::start(contender, args)?;
    let mut client = host.connect()?;
    let mut m = Measurement {
        rss_empty_bytes: Some(host.process()?.resident_bytes()?),
        ..Measurement::default()
    };
    create(&mut client, contender)?;
    let rows = load(&host, &mut client, args, progress, &mut m)?;
    read(&mut client, args, rows, progress, &mut m)?;
    m.rss_peak_bytes = Some(host.process()?.resident_peak_bytes()?);
    drop(client);
    m.disk_bytes = Some(host.stop()?);
    Ok(m)
}

/// Creates the table. The connection uses latin1, in which any byte is a character, since the
/// statements contain random bytes.
pub(crate) fn create(client: &mut Client, contender: Contender) -> Result<()> {
    client
        .run(["SET NAMES latin1".to_owned(), row::create(contender.engine().name())])
        .map_err(Error::engine)
}

/// Loads the table and lets the server settle; returns the number of rows.
pub(crate) fn load(
    host: &Host,
    client: &mut Client,
    args: &Args,
    progress: &Progress,
    m: &mut Measurement,
) -> Result<u64> {
    let process = host.process()?;
    m.generate_us_per_row = Some(generation_cost(args));
    let device = host.device();
    let device_before = device.as_ref().and_then(Device::counters);
    let (cpu, io, client_cpu) = (process.cpu_time()?, process.io()?, process::cpu_time()?);
    let done = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let sampler =
        Sampler::start(process.clone(), start, Arc::clone(&done), progress.load(args.rows()));
    let loaded = drive(client, args, start, &done)?;
    let settling = host.settle()?;
    m.series = sampler.finish();
    let written = process.io()?;
    let device_after = device.as_ref().and_then(Device::counters);
    let seconds = loaded.elapsed.as_secs_f64();
    let count = loaded.rows.max(1) as f64;
    m.rows = Some(loaded.rows);
    m.rows_per_s = Some(count / seconds.max(1e-9));
    m.rows_per_s_settled = Some(count / (loaded.elapsed + settling).as_secs_f64().max(1e-9));
    m.rows_per_s_last_fifth = loaded.marks.last_fifth(loaded.rows, loaded.elapsed);
    m.settle_s = Some(settling.as_secs_f64());
    m.server_cpu_us_per_row = Some((process.cpu_time()? - cpu).as_secs_f64() * 1e6 / count);
    m.cpu_us_per_row = Some((process::cpu_time()? - client_cpu).as_secs_f64() * 1e6 / count);
    m.raw_bytes = Some(loaded.rows * row::RAW_BYTES);
    m.set_writes(&io, &written);
    m.set_device_writes(device_before, device_after);
    m.set_batch_latencies(&loaded.batches);
    m.min_interval_ratio = slowest_to_median(loaded.windows.rows());
    m.figures.extend(latencies::figures(client)?);
    Ok(loaded.rows)
}

/// Microseconds of the client to make a row of a statement.
fn generation_cost(args: &Args) -> f64 {
    const ROWS: u64 = 50 * BATCH;
    let mut statement = Vec::new();
    let start = Instant::now();
    for first in (0..ROWS).step_by(BATCH as usize) {
        row::insert(&mut statement, args.common.seed, first..first + BATCH);
    }
    start.elapsed().as_secs_f64() * 1e6 / ROWS as f64
}

struct Loaded {
    rows: u64,
    elapsed: Duration,
    marks: Marks,
    batches: Histogram,
    windows: Windows,
}

fn drive(client: &mut Client, args: &Args, start: Instant, done: &AtomicU64) -> Result<Loaded> {
    let (rows, limit) = (args.rows(), args.common.limit_seconds.map(Duration::from_secs_f64));
    let mut loaded = Loaded {
        rows: 0,
        elapsed: Duration::ZERO,
        marks: Marks::new(rows),
        batches: Histogram::default(),
        windows: Windows::default(),
    };
    let (mut statement, mut next) = (Vec::new(), Vec::new());
    row::insert(&mut statement, args.common.seed, 0..rows.min(BATCH));
    while loaded.rows < rows && limit.is_none_or(|limit| loaded.elapsed < limit) {
        let end = rows.min(loaded.rows + BATCH);
        let before = Instant::now();
        client.send(&statement).map_err(Error::engine)?;
        if end < rows {
            row::insert(&mut next, args.common.seed, end..rows.min(end + BATCH));
        }
        client.receive().map_err(Error::engine)?;
        let after = Instant::now();
        std::mem::swap(&mut statement, &mut next);
        loaded.batches.record(after - before);
        loaded.windows.record(after - start, end - loaded.rows);
        (loaded.rows, loaded.elapsed) = (end, after - start);
        loaded.marks.record(end, loaded.elapsed);
        done.store(end, Ordering::Relaxed);
    }
    Ok(loaded)
}

fn read(
    client: &mut Client,
    args: &Args,
    rows: u64,
    progress: &Progress,
    m: &mut Measurement,
) -> Result<()> {
    let mut prng = Prng::new(args.common.seed ^ 0x5EED_0F4E_AD5A_0001);
    let seconds = args.read_seconds;
    progress.say("reading: warm-up");
    reads::points(client, &mut prng, rows, seconds / 2.0)?;
    progress.say("reading: points by primary key");
    let by_key = reads::points(client, &mut prng, rows, seconds)?;
    progress.say("reading: 10-entry scans of a secondary index");
    let by_ten = reads::scan10(client, &mut prng, seconds)?;
    progress.say("reading: 1,000-entry scans of a secondary index");
    let by_thousand = reads::scan1000(client, &mut prng, seconds)?;
    (m.point_ops_s, m.point_ms_p99) = (by_key.rate(), by_key.p99_ms());
    (m.scan10_ops_s, m.scan10_ms_p99) = (by_ten.rate(), by_ten.p99_ms());
    (m.scan1000_ops_s, m.scan1000_ms_p99) = (by_thousand.rate(), by_thousand.p99_ms());
    progress.say("reading: a full scan");
    let (rate, digest) = reads::full_scan(client, rows)?;
    (m.fullscan_items_s, m.fullscan_digest) = (Some(rate), Some(digest));
    Ok(())
}
