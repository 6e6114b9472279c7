//! Four tests of sysbench, from Debian's package, on one table, with two threads and a fixed time
//! for each test.

use std::process::Command;

use frondb_bench::driver::Progress;
use frondb_bench::report::Measurement;
use frondb_bench::{Error, Result};

use crate::args::Args;
use crate::contender::{Contender, DATABASE};
use crate::host::Host;
use crate::latencies;

/// The tests. Those that only read come first.
pub(crate) const TESTS: [&str; 4] =
    ["oltp_point_select", "oltp_read_only", "oltp_update_index", "oltp_read_write"];
const THREADS: u32 = 2;

/// Measures one engine once; returns a measurement for each test.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Vec<Measurement>> {
    let table = Table::prepare(contender, args, progress)?;
    let test = |test: &&str| {
        progress.say(test);
        table.test(test, args.read_seconds.ceil())
    };
    let all: Vec<Measurement> = TESTS.iter().map(test).collect::<Result<_>>()?;
    table.finish(all)
}

/// A server with the table of the tests.
pub(crate) struct Table {
    pub(crate) host: Host,
    contender: Contender,
    rows: u64,
}

impl Table {
    /// Starts a server, fills the table and lets the server settle.
    pub(crate) fn prepare(contender: Contender, args: &Args, progress: &Progress) -> Result<Self> {
        let host = Host::start(contender, args)?;
        drop(host.connect()?);
        let table = Self { host, contender, rows: args.rows() };
        progress.say("creating the table");
        table.call(TESTS[0], 0.0, "prepare")?;
        table.host.settle()?;
        Ok(table)
    }

    /// Runs a test for a whole number of seconds.
    pub(crate) fn test(&self, test: &str, seconds: f64) -> Result<Measurement> {
        let process = self.host.process()?;
        let (cpu, io) = (process.cpu_time()?, process.io()?);
        let output = self.call(test, seconds, "run")?;
        let (per_s, p95) = figures(&output).ok_or_else(|| {
            Error::Engine(format!("sysbench did not report its speed:\n{output}"))
        })?;
        let cpu = process.cpu_time()? - cpu;
        Ok(Measurement {
            variant: test.to_owned(),
            rows: Some(self.rows),
            transactions_per_s: Some(per_s),
            transaction_ms_p95: Some(p95),
            // In this workload the field has the microseconds of a transaction.
            server_cpu_us_per_row: Some(cpu.as_secs_f64() * 1e6 / (per_s * seconds).max(1.0)),
            written_bytes: Some(process.io()?.written_bytes - io.written_bytes),
            ..Measurement::default()
        })
    }

    /// Stops the server, and adds the size of its files to the measurements.
    pub(crate) fn finish(self, mut all: Vec<Measurement>) -> Result<Vec<Measurement>> {
        let latencies = latencies::figures(&mut self.host.connect()?)?;
        let disk = self.host.stop()?;
        // The engine's latencies cover all tests together, so only the last measurement has them.
        if let Some(last) = all.last_mut() {
            last.figures.extend(latencies);
        }
        for m in &mut all {
            m.disk_bytes = Some(disk);
        }
        Ok(all)
    }

    /// Calls sysbench; returns its output.
    fn call(&self, test: &str, seconds: f64, step: &str) -> Result<String> {
        let output = Command::new("sysbench")
            .arg(test)
            .arg("--db-driver=mysql")
            .arg(format!("--mysql-socket={}", self.host.socket().display()))
            .args(["--mysql-user=root", "--tables=1", "--rand-seed=1"])
            .arg(format!("--mysql-db={DATABASE}"))
            .arg(format!("--mysql-storage-engine={}", self.contender.engine().name()))
            .arg(format!("--table-size={}", self.rows))
            .arg(format!("--threads={THREADS}"))
            .arg(format!("--time={seconds}"))
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
}

/// Transactions a second, and the 95th percentile of their latencies in milliseconds.
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
