//! The insert benchmark, then reads. The rows have ascending primary keys and three secondary
//! indexes in random order. One connection inserts 1,000 rows with each statement, which is a
//! commit.
//!
//! The client makes the next statement while the server executes the previous one, so the time to
//! make rows lowers the rates only if it exceeds the server's time.

use std::ops::Range;
use std::time::Instant;

use frondb_bench::driver::Progress;
use frondb_bench::report::Measurement;
use frondb_bench::workload::{Load, ReadSeconds, Written, generation_us_per_row, table_reads};
use frondb_bench::{Error, Result};
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

/// Creates the table. The statements contain random bytes, so the connection uses latin1, in which
/// every byte is a character.
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
    let (process, rows, seed) = (host.process()?, args.rows(), args.common.seed);
    let (mut statement, mut next) = (Vec::new(), Vec::new());
    m.generate_us_per_row =
        Some(generation_us_per_row(|rows| row::insert(&mut statement, seed, rows)));
    row::insert(&mut statement, seed, 0..rows.min(BATCH));
    let load = Load {
        process: process.clone(),
        dir: host.folder(),
        rows,
        batch_rows: BATCH,
        limit_s: args.common.limit_seconds,
        settles_busily: false,
        progress,
    };
    let cpu = process.cpu_time()?;
    let write = |batch: Range<u64>| {
        let before = Instant::now();
        client.send(&statement).map_err(Error::engine)?;
        if batch.end < rows {
            row::insert(&mut next, seed, batch.end..rows.min(batch.end + BATCH));
        }
        client.receive().map_err(Error::engine)?;
        let after = Instant::now();
        std::mem::swap(&mut statement, &mut next);
        Ok(Written { before, after, raw_bytes: (batch.end - batch.start) * row::RAW_BYTES })
    };
    let loaded = load.measure(m, write, || host.settle())?;
    let cpu = process.cpu_time()? - cpu;
    m.server_cpu_us_per_row = Some(cpu.as_secs_f64() * 1e6 / loaded.max(1) as f64);
    m.figures.extend(latencies::figures(client)?);
    Ok(loaded)
}

fn read(
    client: &mut Client,
    args: &Args,
    rows: u64,
    progress: &Progress,
    m: &mut Measurement,
) -> Result<()> {
    let seconds = args.read_seconds;
    let seconds =
        ReadSeconds { warmup: seconds / 2.0, points: seconds, scan10: seconds, scan1000: seconds };
    table_reads(&mut reads::OfClient(client), args.common.seed, rows, seconds, progress, m)?;
    progress.say("reading: a full scan");
    let (rate, digest) = reads::full_scan(client, rows)?;
    (m.fullscan_items_s, m.fullscan_digest) = (Some(rate), Some(digest));
    Ok(())
}
