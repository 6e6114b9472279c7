//! The arguments of `bench` and `run`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{note, size};
use crate::engine::Codec;
use crate::error::{Error, Result};
use crate::measure::disk;
use crate::rows::DataKind;
use crate::workload::Workload;

/// Arguments of every benchmark. A command with defaults of its own replaces the help texts of the
/// arguments that have them.
#[derive(Args)]
pub struct CommonArgs {
    /// Rows
    #[arg(long, value_parser = size::rows)]
    pub rows: Option<u64>,
    /// Memory of an engine
    #[arg(long, value_parser = size::memory)]
    pub memory: Option<u64>,
    /// Where to write the report as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Where to write a chart of rows a second over time (of the first round), as SVG
    #[arg(long)]
    pub chart: Option<PathBuf>,
    /// Rounds; the report is the median
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=99))]
    pub rounds: Option<u64>,
    /// Directory for the data, on a disk
    #[arg(long, default_value = "var/bench")]
    pub dir: PathBuf,
    /// Seed of rows and reads
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// End a load after this many seconds, with fewer rows
    #[arg(long, value_parser = size::positive)]
    pub limit_seconds: Option<f64>,
}

impl CommonArgs {
    /// Checks that the data and the reports can be written, so that a benchmark does not fail after
    /// hours of measuring. Warns of a debug build.
    pub fn prepare(&self) -> Result<()> {
        prepare_dir(&self.dir)?;
        for path in [&self.json, &self.chart].into_iter().flatten() {
            // An existing file keeps its content.
            let file = fs::OpenOptions::new().append(true).create(true).open(path);
            file.map(drop).map_err(Error::io(format!("write {}", path.display())))?;
        }
        if cfg!(debug_assertions) {
            note("warning: this is a debug build; its figures mean nothing");
        }
        Ok(())
    }
}

/// Creates the directory if it is missing, and refuses a directory in memory, such as a tmpfs.
pub(super) fn prepare_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(Error::io(format!("create {}", dir.display())))?;
    disk::refuse_memory(dir)
}

/// Arguments of `bench`.
#[derive(Args)]
#[command(mut_arg("rows", |arg| arg.help(
    "Rows to write (10000000, 10M; if not given: 10M, `txn` 20M). For `reads`, the rows of ratio 1; \
     if not given, as many as make the data the memory times the ratio. For `compression`, if not \
     given, as many as have 8 times the bytes of the memory"
)))]
#[command(mut_arg("memory", |arg| arg.help(
    "Memory of an engine; a cgroup limits the child to 1.5 times as much (if not given: 256MiB, \
     `reads` 128MiB, `compression` 64MiB)"
)))]
#[command(mut_arg("rounds", |arg| arg.help(
    "Rounds; the report is the median (if not given: 3; 1 for `txn`, `memory`, `reads` and \
     `compression`)"
)))]
#[command(mut_arg("limit_seconds", |arg| arg.help(
    "End a load after this many seconds, with fewer rows (if not given: `durable` 20, `fsync` 4)"
)))]
pub(super) struct BenchArgs {
    /// Workload to run
    #[arg(long, value_enum, default_value = "iibench")]
    pub(super) workload: Workload,
    /// Engines, separated by commas, or `all`; `txn`, `hot`, `queue`, `far`, `backup`, `memory` and
    /// `merge` measure only frondb
    #[arg(long)]
    pub(super) engines: Option<String>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
    /// Rows a commit
    #[arg(long, default_value = "1000", value_parser = size::rows)]
    pub(super) batch: u64,
    /// Codec of the workloads that do not compare codecs
    #[arg(long, default_value = "standard")]
    pub(super) codec: Codec,
    /// Codecs that `compression` compares (if not given: all). An engine is measured with the
    /// codecs that it has; `toku-lzma` compresses blocks of 4 MiB without an engine
    #[arg(long, value_delimiter = ',')]
    pub(super) codecs: Vec<Codec>,
    /// Kinds of data of `compression` (if not given: all of them)
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) kinds: Vec<DataKind>,
    /// Rows a second of the writer of `mixed`
    #[arg(long, default_value = "20000", value_parser = size::rows)]
    pub(super) rate: u64,
    /// Multiples of the memory that the data of `reads` has on disk
    #[arg(long, value_delimiter = ',', default_value = "1,8,64",
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) ratios: Vec<u64>,
    /// Memory of the load of `reads`, which then has its own process: for engines that cannot load
    /// with the memory of the reads (if not given: the memory of the reads)
    #[arg(long, value_parser = size::memory)]
    pub(super) load_memory: Option<u64>,
    /// Numbers of threads that read in `reads`
    #[arg(long, value_delimiter = ',', default_value = "1,2,8,32",
        value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(super) threads: Vec<u64>,
    /// Factor on the lengths of the reads (10 s warm-up, 15 s points, 15 s and 10 s scans;
    /// in `reads` 3 s a case)
    #[arg(long, default_value = "1", value_parser = size::positive)]
    pub(super) read_scale: f64,
    /// Run engines without a cgroup that limits their memory
    #[arg(long)]
    pub(super) no_cgroup: bool,
    /// Keep the data of the last round on the disk
    #[arg(long)]
    pub(super) keep: bool,
    /// Print each engine's own statistics
    #[arg(long)]
    pub(super) stats: bool,
    /// Print the command lines of the children instead of measuring
    #[arg(long)]
    pub(super) print_orders: bool,
}

/// Arguments of `run`.
#[derive(Args)]
pub(super) struct RunArgs {
    /// Rows to write
    #[arg(long, default_value = "6M", value_parser = size::rows)]
    pub(super) rows: u64,
    /// Memory of each engine
    #[arg(long, default_value = "128MiB", value_parser = size::memory)]
    pub(super) memory: u64,
    /// End a load after this many seconds, with fewer rows
    #[arg(long, default_value = "45", value_parser = size::positive)]
    pub(super) limit_seconds: f64,
    /// Directory for the data, on a disk
    #[arg(long, default_value = "var/run")]
    pub(super) dir: PathBuf,
    /// Directory for the report
    #[arg(long, default_value = "report")]
    pub(super) report: PathBuf,
    /// Seed of rows and reads
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Read only briefly, for tests
    #[arg(long, hide = true)]
    pub(super) short_reads: bool,
    /// The engine to show, and the engine to compare it with
    #[arg(long, hide = true, value_delimiter = ',', default_value = "frondb,redb")]
    pub(super) engines: Vec<String>,
}
