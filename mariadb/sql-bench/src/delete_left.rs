//! A queue, or a table that drops its oldest days: deletes the lower half of the rows in key order,
//! and then, without OPTIMIZE, reads the smallest and the largest key.

use std::time::Instant;

use frondb_bench::driver::Progress;
use frondb_bench::report::Measurement;
use frondb_bench::{Error, Result};
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::contender::Contender;
use crate::host::Host;
use crate::iibench;

/// Rows of a DELETE.
const BATCH: u64 = 10_000;

/// Measures one engine once.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Measurement> {
    let host = Host::start(contender, args)?;
    let mut client = host.connect()?;
    iibench::create(&mut client, contender)?;
    let mut loading = Measurement::default();
    let rows = iibench::load(&host, &mut client, args, progress, &mut loading)?;
    progress.say("deleting");
    let half = rows / 2;
    let begin = Instant::now();
    delete_below(&mut client, half)?;
    let seconds = begin.elapsed().as_secs_f64();
    let first = ends(&mut client, "MIN", half)?;
    let last = ends(&mut client, "MAX", rows.saturating_sub(1))?;
    let peak = host.process()?.resident_peak_bytes()?;
    drop(client);
    Ok(Measurement {
        rows: Some(rows),
        deletes_per_s: Some(half as f64 / seconds.max(1e-9)),
        first_key_ms: Some(first),
        last_key_ms: Some(last),
        rss_peak_bytes: Some(peak),
        disk_bytes: Some(host.stop()?),
        ..Measurement::default()
    })
}

/// Deletes the rows whose id is below `id`, in the order of the ids.
pub(crate) fn delete_below(client: &mut Client, id: u64) -> Result<()> {
    let mut at = 0;
    while at < id {
        let end = id.min(at + BATCH);
        let delete = format!("DELETE FROM purchases WHERE id >= {at} AND id < {end}");
        let gone = client.query(&delete).map_err(Error::engine)?.affected;
        if gone != end - at {
            return Err(Error::Wrong(format!("{gone} rows were deleted, not {}", end - at)));
        }
        at = end;
    }
    Ok(())
}

/// Reads the smallest or the largest id; returns the milliseconds of the query.
fn ends(client: &mut Client, which: &str, expected: u64) -> Result<f64> {
    let begin = Instant::now();
    let found =
        client.number(&format!("SELECT {which}(id) FROM purchases")).map_err(Error::engine)?;
    let elapsed = begin.elapsed().as_secs_f64() * 1e3;
    if found != expected {
        return Err(Error::Wrong(format!("{which}(id) is {found}, not {expected}")));
    }
    Ok(elapsed)
}
