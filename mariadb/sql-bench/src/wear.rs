//! `wear`: bytes and requests that an engine writes to the drive for each row of the insert
//! benchmark, and how long a drive lasts at that rate. The measurement begins at the first row and
//! ends after an orderly stop, which writes what the engine still had in memory. The counts come
//! from:
//!
//! ```text
//!   the server's control group   its own requests, also after it has ended   figures and ratios
//!   the device                   all requests of all programs, the journal   shown beside them
//!   the engine                   FronDB's count, Frondb_written_bytes        shown beside them
//! ```

use frondb_bench::driver::Progress;
use frondb_bench::measure::GroupWrites;
use frondb_bench::measure::disk::{Device, DeviceCounters};
use frondb_bench::report::{Figure, Measurement};
use frondb_bench::{Error, Result};
use frondb_core::wear::lifetime;
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::contender::Contender;
use crate::host::Host;
use crate::iibench;

/// The drive whose lifetime is shown, a common one. Source: Samsung's data sheet of the 990 PRO,
/// "Total Bytes Written" of the 1 TB model (MZ-V9P1T0B): 600 TB in a warranty of 5 years.
const DRIVE: &str = "Samsung 990 PRO 1 TB";
/// Bytes that may be written to this drive, from the same data sheet.
const DRIVE_ENDURANCE_BYTES: f64 = 600e12;

/// Rows inserted a second, day and night, for which the lifetime is computed. The same for every
/// engine.
const ROWS_PER_SECOND: f64 = 10_000.0;

/// Write amplification inside the drive: the best case, and small writes on a full drive.
const INSIDE: [f64; 2] = [1.0, 4.0];

/// Names of the figures that are compared between engines.
pub(crate) const BYTES: &str = "bytes written a row";
pub(crate) const REQUESTS: &str = "write requests a thousand rows";

/// Counters of writes at one moment.
struct Counts {
    group: Option<GroupWrites>,
    device: Option<DeviceCounters>,
}

impl Counts {
    fn of(host: &Host) -> Self {
        Self { group: host.writes(), device: host.device().as_ref().and_then(Device::counters) }
    }
}

#[derive(Clone, Copy)]
struct Written {
    bytes: f64,
    requests: f64,
}

/// Measures one engine once.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Measurement> {
    let mut host = Host::start(contender, args)?;
    host.count_writes()?;
    let mut client = host.connect()?;
    let mut m = Measurement {
        rss_empty_bytes: Some(host.process()?.resident_bytes()?),
        ..Measurement::default()
    };
    iibench::create(&mut client, contender)?;
    let before = Counts::of(&host);
    let own_before = own_count(&mut client, contender)?;
    let rows = iibench::load(&host, &mut client, args, progress, &mut m)?;
    let own = own_count(&mut client, contender)?;
    m.rss_peak_bytes = Some(host.process()?.resident_peak_bytes()?);
    drop(client);
    progress.say("stopping");
    m.disk_bytes = Some(host.halt()?);
    let after = Counts::of(&host);
    m.figures = figures(rows.max(1) as f64, &before, &after);
    if let (Some(before), Some(after)) = (own_before, own) {
        let name = "bytes written a row by the engine's own count, until it settled";
        m.figures.push(Figure::plain(name, (after - before) / rows.max(1) as f64, "B"));
    }
    Ok(m)
}

/// Bytes written that the engine itself counts; none if it has no such counter.
fn own_count(client: &mut Client, contender: Contender) -> Result<Option<f64>> {
    if contender != Contender::Frondb {
        return Ok(None);
    }
    let question = "SELECT variable_value FROM information_schema.global_status \
                    WHERE variable_name = 'FRONDB_WRITTEN_BYTES'";
    let answer = client.value(question).map_err(Error::engine)?;
    answer.parse().map(Some).map_err(|_| Error::Wrong(format!("{question}: {answer:?}")))
}

fn figures(rows: f64, before: &Counts, after: &Counts) -> Vec<Figure> {
    let group = before.group.zip(after.group).map(|(before, after)| Written {
        bytes: after.bytes.saturating_sub(before.bytes) as f64,
        requests: after.requests.saturating_sub(before.requests) as f64,
    });
    let device = before.device.zip(after.device).map(|(before, after)| Written {
        bytes: after.written_bytes.saturating_sub(before.written_bytes) as f64,
        requests: after.write_ops.saturating_sub(before.write_ops) as f64,
    });
    let mut figures = Vec::new();
    if let Some(written) = group.or(device) {
        figures.push(Figure::plain(BYTES, written.bytes / rows, "B"));
        figures.push(Figure::plain(REQUESTS, written.requests * 1000.0 / rows, ""));
        let each = written.bytes / written.requests.max(1.0) / 1024.0;
        figures.push(Figure::plain("size of a write request", each, "KiB"));
        figures.extend(lifetimes(written.bytes / rows));
    }
    if let Some(written) = device.filter(|_| group.is_some()) {
        let of = |what: &str| format!("{what}, of the device with all programs");
        figures.push(Figure::plain(of(BYTES), written.bytes / rows, "B"));
        figures.push(Figure::plain(of(REQUESTS), written.requests * 1000.0 / rows, ""));
    }
    figures
}

/// The lifetime of the drive for each write amplification inside it.
fn lifetimes(bytes_a_row: f64) -> impl Iterator<Item = Figure> {
    INSIDE.into_iter().filter_map(move |inside| {
        let long = lifetime(bytes_a_row * ROWS_PER_SECOND, DRIVE_ENDURANCE_BYTES, inside)?;
        let name = format!(
            "lifetime of a {DRIVE} at {ROWS_PER_SECOND} rows/s, if it writes {inside} times inside"
        );
        Some(Figure::plain(name, long.as_secs_f64() / (24.0 * 3600.0), "days"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(group: Option<(u64, u64)>, device: (u64, u64)) -> Counts {
        let (written_bytes, write_ops) = device;
        Counts {
            group: group.map(|(bytes, requests)| GroupWrites { bytes, requests }),
            device: Some(DeviceCounters { written_bytes, write_ops, ..DeviceCounters::default() }),
        }
    }

    fn value(figures: &[Figure], name: &str) -> Option<f64> {
        figures.iter().find(|figure| figure.name.starts_with(name)).map(|figure| figure.value)
    }

    #[test]
    fn the_server_s_own_requests_come_first() {
        let before = counts(Some((1_000, 10)), (9_000, 90));
        let after = counts(Some((41_000, 30)), (99_000, 290));
        let of = figures(100.0, &before, &after);
        assert_eq!((value(&of, BYTES), value(&of, REQUESTS)), (Some(400.0), Some(200.0)));
        assert_eq!(value(&of, "bytes written a row, of the device"), Some(900.0));
        // 600 TB at 4 MB a second.
        let days = value(&of, "lifetime of a Samsung 990 PRO 1 TB at 10000 rows/s").unwrap();
        assert!((days - 600e12 / 4e6 / 86_400.0).abs() < 0.01, "{days}");
        let four = of.iter().find(|figure| figure.name.ends_with("writes 4 times inside"));
        assert!((four.unwrap().value * 4.0 - days).abs() < 0.01);
    }

    #[test]
    fn without_a_group_the_device_counts() {
        let of = figures(10.0, &counts(None, (0, 0)), &counts(None, (5_000, 7)));
        assert_eq!((value(&of, BYTES), value(&of, REQUESTS)), (Some(500.0), Some(700.0)));
        assert_eq!(value(&of, "bytes written a row, of the device"), None);
    }
}
