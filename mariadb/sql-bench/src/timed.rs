//! Runs workloads with several clients for a fixed time: loads the tables, lets the server settle,
//! lets the clients warm up the caches, and then measures their transactions.

use std::time::Duration;

use frondb_bench::driver::Progress;
use frondb_bench::measure::process;
use frondb_bench::measure::process::{IoCounters, Process};
use frondb_bench::report::{Figure, Measurement};
use frondb_bench::{Error, Result};

use crate::args::{Args, Workload};
use crate::clients::{self, Outcome, Worker};
use crate::contender::Contender;
use crate::graph::Graph;
use crate::host::Host;
use crate::latencies;
use crate::scenario::Scenario;
use crate::session::CONFLICT_NAMES;
use crate::tpcc::Tpcc;

/// The workload that the command line names; none if the workload does not use our own clients.
fn scenario(args: &Args) -> Option<Box<dyn Scenario>> {
    match args.workload {
        Workload::Graph => Some(Box::new(Graph::new(args))),
        Workload::Tpcc => Some(Box::new(Tpcc::new(args))),
        _ => None,
    }
}

/// Name of the figure with the size of the tables.
pub(crate) const TABLES: &str = "tables after the load";
const LOADED: &str = "SELECT SUM(data_length + index_length) FROM information_schema.tables \
     WHERE table_schema = DATABASE()";

/// A server with its tables and clients.
pub(crate) struct Stage {
    pub(crate) host: Host,
    scenario: Box<dyn Scenario>,
    workers: Vec<Box<dyn Worker>>,
    /// Bytes of the tables and their indexes after the load, as the server reports them.
    loaded_bytes: u64,
}

impl Stage {
    /// Starts a server, loads its tables at the disk's full speed, lets the server settle, and
    /// connects the clients.
    pub(crate) fn prepare(contender: Contender, args: &Args, progress: &Progress) -> Result<Self> {
        let scenario = scenario(args).ok_or_else(|| {
            Error::Usage(format!(
                "{} has no slices; graph, tpcc and sysbench have",
                args.workload.name()
            ))
        })?;
        let mut host = Host::start_at_full_speed(contender, args)?;
        progress.say("loading");
        scenario.load(&mut host.connect()?, contender)?;
        host.settle()?;
        let loaded_bytes = host.connect()?.number(LOADED).map_err(Error::engine)?;
        host.slow_disk_down(args)?;
        let worker = |number| scenario.worker(host.connect()?, number);
        let workers = (0..args.threads()).map(worker).collect::<Result<_>>()?;
        Ok(Self { host, scenario, workers, loaded_bytes })
    }

    pub(crate) fn kinds(&self) -> usize {
        self.scenario.kinds().len()
    }

    /// Lets the clients work for some seconds.
    pub(crate) fn run(&mut self, seconds: f64) -> Result<Spent> {
        let process = self.host.process()?;
        let before = Reading::take(&process)?;
        let outcome = clients::run(&mut self.workers, self.scenario.kinds().len(), seconds)?;
        Ok(Spent::between(outcome, before, Reading::take(&process)?))
    }

    /// Ends the clients, checks the tables and stops the server; returns the figures.
    pub(crate) fn finish(self, args: &Args, spent: &Spent) -> Result<Measurement> {
        let Self { host, scenario, workers, loaded_bytes } = self;
        let peak = host.process()?.resident_peak_bytes()?;
        drop(workers);
        let mut client = host.connect()?;
        let latencies = latencies::figures(&mut client)?;
        scenario.check(&mut client)?;
        let mut m = spent.measurement(scenario.kinds());
        m.figures.extend(latencies);
        m.figures.splice(0..0, scenario.figures(&spent.outcome));
        m.figures.insert(0, Figure::plain(TABLES, loaded_bytes as f64 / 1_048_576.0, "MiB"));
        m.rows = Some(args.rows());
        m.rss_peak_bytes = Some(peak);
        m.disk_bytes = Some(host.stop()?);
        Ok(m)
    }
}

/// Measures one engine once.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Measurement> {
    let mut stage = Stage::prepare(contender, args, progress)?;
    progress.say("warm-up");
    stage.run(args.warm_up_seconds)?;
    progress.say("measuring");
    let spent = stage.run(args.seconds)?;
    progress.say("checking");
    stage.finish(args, &spent)
}

/// Counters of the server's process and of this process, which runs the clients, from the kernel.
struct Reading {
    cpu: Duration,
    client_cpu: Duration,
    io: IoCounters,
}

impl Reading {
    fn take(server: &Process) -> Result<Self> {
        let client_cpu = process::cpu_time()?;
        Ok(Self { cpu: server.cpu_time()?, client_cpu, io: server.io()? })
    }
}

/// What the clients did in a period, and what it cost.
pub(crate) struct Spent {
    pub(crate) outcome: Outcome,
    pub(crate) cpu: Duration,
    client_cpu: Duration,
    written_bytes: u64,
}

impl Spent {
    pub(crate) fn nothing(kinds: usize) -> Self {
        let (cpu, client_cpu) = (Duration::ZERO, Duration::ZERO);
        Self { outcome: Outcome::empty(kinds), cpu, client_cpu, written_bytes: 0 }
    }

    /// Adds the values of the same clients in another period.
    pub(crate) fn then(&mut self, other: &Self) {
        self.outcome.then(&other.outcome);
        self.cpu += other.cpu;
        self.client_cpu += other.client_cpu;
        self.written_bytes += other.written_bytes;
    }

    fn between(outcome: Outcome, before: Reading, after: Reading) -> Self {
        Self {
            outcome,
            cpu: after.cpu - before.cpu,
            client_cpu: after.client_cpu - before.client_cpu,
            written_bytes: after.io.written_bytes.saturating_sub(before.io.written_bytes),
        }
    }

    /// Processor time of the server for each transaction, microseconds.
    pub(crate) fn server_cpu_us(&self) -> f64 {
        self.each(self.cpu)
    }

    fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / (self.outcome.all.count() as f64).max(1.0)
    }

    fn measurement(&self, kinds: &[&str]) -> Measurement {
        let Outcome { all, conflicts, .. } = &self.outcome;
        let mut m = Measurement {
            transactions_per_s: Some(self.outcome.per_s()),
            server_cpu_us_per_row: Some(self.server_cpu_us()),
            cpu_us_per_row: Some(self.each(self.client_cpu)),
            written_bytes: Some(self.written_bytes),
            ..Measurement::default()
        };
        m.set_transaction_latencies(all);
        for (name, count) in CONFLICT_NAMES.iter().zip(conflicts) {
            let of_thousand = *count as f64 * 1e3 / (all.count() as f64).max(1.0);
            m.figures.push(Figure::plain(format!("{name} of 1,000"), of_thousand, ""));
        }
        for (name, latencies) in kinds.iter().zip(&self.outcome.kinds) {
            let ms = latencies.quantile_ms(0.99);
            m.figures.extend(ms.map(|ms| Figure::plain(format!("{name}: 99 of 100"), ms, "ms")));
        }
        m
    }
}
