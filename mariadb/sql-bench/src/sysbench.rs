//! Four tests of sysbench, Debian's package, on one table: two threads, a fixed time for each test.

use std::process::Command;

use frondb_bench::driver::Progress;
use frondb_bench::report::Measurement;
use frondb_bench::{Error, Result};

use crate::args::Args;
use crate::contender::{Contender, DATABASE};
use crate::host::Host;

/// The tests; those that write come after those that read.
pub(crate) const TESTS: [&str; 4] =
    ["oltp_point_select", "oltp_read_only", "oltp_update_index", "oltp_read_write"];
const THREADS: u32 = 2;

/// Measures one engine once: a measurement for each test.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Vec<Measurement>> {
    let host = Host::start(contender, args)?;
    drop(host.connect()?);
    progress.say("creating the table");
    run(&host, contender, args, TESTS[0], "prepare")?;
    host.settle()?;
    let mut all = Vec::new();
    for test in TESTS {
        progress.say(test);
        let process = host.process()?;
        let (cpu, io) = (process.cpu_time()?, process.io()?);
        let output = run(&host, contender, args, test, "run")?;
        let (per_s, p95) = figures(&output).ok_or_else(|| {
            Error::Engine(format!("sysbench did not report its speed:\n{output}"))
        })?;
        let transactions = (per_s * args.read_seconds).max(1.0);
        all.push(Measurement {
            variant: test.to_owned(),
            rows: Some(args.rows()),
            transactions_per_s: Some(per_s),
            transaction_ms_p95: Some(p95),
            // Per transaction in this workload.
            server_cpu_us_per_row: Some(
                (process.cpu_time()? - cpu).as_secs_f64() * 1e6 / transactions,
            ),
            written_bytes: Some(process.io()?.written_bytes - io.written_bytes),
            ..Measurement::default()
        });
    }
    let disk = host.stop()?;
    for m in &mut all {
        m.disk_bytes = Some(disk);
    }
    Ok(all)
}

fn run(host: &Host, contender: Contender, args: &Args, test: &str, step: &str) -> Result<String> {
    let output = Command::new("sysbench")
        .arg(test)
        .arg("--db-driver=mysql")
        .arg(format!("--mysql-socket={}", host.socket().display()))
        .args(["--mysql-user=root", "--tables=1", "--rand-seed=1"])
        .arg(format!("--mysql-db={DATABASE}"))
        .arg(format!("--mysql-storage-engine={}", contender.engine().name()))
        .arg(format!("--table-size={}", args.rows()))
        .arg(format!("--threads={THREADS}"))
        .arg(format!("--time={}", args.read_seconds.ceil()))
        // Conflicts between two writers are part of the test.
        .arg("--mysql-ignore-errors=1213,1020,1205")
        .arg(step)
        .output()
        .map_err(Error::io("start sysbench; `make bench WORKLOAD=sysbench` installs it"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Error::Engine(format!("sysbench {test} {step}:\n{text}{errors}")))
}

/// Transactions a second, and the 95th percentile of their latency, milliseconds.
fn figures(output: &str) -> Option<(f64, f64)> {
    let line = |start: &str| output.lines().map(str::trim).find_map(|l| l.strip_prefix(start));
    let per_s = line("transactions:")?.split('(').nth(1)?.split_whitespace().next()?;
    let p95 = line("95th percentile:")?.trim();
    Some((per_s.parse().ok()?, p95.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_found() {
        let output = "SQL statistics:\n    transactions:                        79600  (7959.10 per sec.)\n\
                      \x20   queries:      1 (2 per sec.)\nLatency (ms):\n         95th percentile:                        0.34\n";
        assert_eq!(figures(output), Some((7959.10, 0.34)));
        assert_eq!(figures("FATAL"), None);
    }
}
