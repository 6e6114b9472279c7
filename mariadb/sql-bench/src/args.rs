//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use frondb_bench::driver::{CommonArgs, size};
use frondb_bench::measure::DiskLimit;

use crate::contender::Contender;

/// InnoDB's buffer pool in `sql-memory`, where InnoDB is the control, bytes.
const CONTROL_BYTES: u64 = 8 << 20;

/// Bytes of a row of `sql-memory`: so many that a table four times as large as the memory has few
/// rows.
const MEMORY_ROW_BYTES: u64 = 1 << 10;

/// Warehouses of `tpcc`, 100 MB each in InnoDB.
const WAREHOUSES: u64 = 6;

/// Measures storage engines of a MariaDB server under the workloads of docs/benchmark-method.md
#[derive(Parser)]
#[command(version)]
#[command(mut_arg("rows", |arg| arg.help(
    "Rows (if not given: 5M; for sysbench and sql-counts 1M, for sql-memory four times the memory; \
     for graph its nodes, 1M; for tpcc its warehouses, 6)"
)))]
#[command(mut_arg("memory", |arg| arg.help(
    "Memory of an engine for data (if not given: 128MiB; for sysbench and sql-counts 1GiB, for \
     sql-memory 200MiB, but 8MiB for InnoDB)"
)))]
#[command(mut_arg("rounds", |arg| arg.help("Rounds; the report is the median (if not given: 1)")))]
pub(crate) struct Args {
    /// Workload to run
    #[arg(long, value_enum, default_value = "sql-iibench")]
    pub(crate) workload: Workload,
    /// Engines, separated by commas (if not given: frondb,innodb,myrocks; for sql-memory,
    /// sql-counts and sql-foreign-keys frondb,innodb; for optimize frondb; for graph and tpcc
    /// myrocks only if it is installed)
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<Contender>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Speed limit of the disk: none, that of a cloud volume (3,000 requests and 125 MB a second),
    /// or that of a SATA SSD (10,000 requests and 400 MB a second)
    #[arg(long, value_enum, default_value = "own")]
    pub(crate) disk: Disk,
    /// Seconds to measure each kind of read, each test of sysbench and each statement of sql-counts
    #[arg(long, default_value = "15", value_parser = size::positive)]
    pub(crate) read_seconds: f64,
    /// Number of concurrent clients of graph and tpcc (if not given: 2 in graph, 4 in tpcc)
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    threads: Option<u64>,
    /// Seconds to measure graph and tpcc
    #[arg(long, default_value = "60", value_parser = size::positive)]
    pub(crate) seconds: f64,
    /// Seconds that the clients of graph and tpcc work before the measurement begins
    #[arg(long, default_value = "30", value_parser = size::positive)]
    pub(crate) warm_up_seconds: f64,
    /// Compare two engines in short slices, in which their clients take turns, instead of in
    /// rounds. Value: the number of pairs of slices (in sysbench, for each test; for graph, tpcc
    /// and sysbench only)
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..=10_000))]
    pub(crate) slices: Option<u64>,
    /// Seconds of a slice
    #[arg(long, default_value = "5", value_parser = size::positive)]
    pub(crate) slice_seconds: f64,
    /// Path of the plugin, ha_frondb.so
    #[arg(long, env = "FRONDB_PLUGIN")]
    pub(crate) plugin: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Workload {
    /// The insert benchmark: a primary key and three secondary indexes, then reads
    SqlIibench,
    /// The load of sql-iibench: bytes and requests written to the drive, and how long the drive
    /// lasts
    Wear,
    /// Deletes the lower half of a table in key order, then reads the smallest key
    SqlDeleteLeft,
    /// Inserts orders with two foreign keys, deletes by a cascade, adds a foreign key
    SqlForeignKeys,
    /// OPTIMIZE TABLE: compared with a copy, beside a writer, of a part, and after deletes
    Optimize,
    /// Four tests of sysbench
    Sysbench,
    /// Counts, groups and a join over one table in memory
    SqlCounts,
    /// Whether the engine stays within its memory option with 200 connections
    SqlMemory,
    /// A social graph with the operations of LinkBench
    Graph,
    /// An order processor with the transactions of TPC-C
    Tpcc,
}

impl Workload {
    /// The workload's name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SqlIibench => "sql-iibench",
            Self::Wear => "wear",
            Self::SqlDeleteLeft => "sql-delete-left",
            Self::SqlForeignKeys => "sql-foreign-keys",
            Self::Optimize => "optimize",
            Self::Sysbench => "sysbench",
            Self::SqlCounts => "sql-counts",
            Self::SqlMemory => "sql-memory",
            Self::Graph => "graph",
            Self::Tpcc => "tpcc",
        }
    }
}

/// The speed to which the server's disk is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Disk {
    /// Not limited: the full speed of the disk
    Own,
    /// The speed of a cloud volume
    Cloud,
    /// The speed of a SATA SSD
    Sata,
}

impl Disk {
    /// The text of the speed in a report.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Own => "as it is",
            Self::Cloud => "as slow as a cloud's",
            Self::Sata => "as slow as one at SATA",
        }
    }
}

impl Args {
    /// The engines that the command line names, or the default engines of the workload.
    pub(crate) fn engines(&self) -> Vec<Contender> {
        if !self.engines.is_empty() {
            return self.engines.clone();
        }
        match self.workload {
            Workload::Optimize => vec![Contender::Frondb],
            // MyRocks has no foreign keys.
            Workload::SqlMemory | Workload::SqlCounts | Workload::SqlForeignKeys => {
                vec![Contender::Frondb, Contender::Innodb]
            }
            Workload::Graph | Workload::Tpcc if !Contender::is_myrocks_installed() => {
                vec![Contender::Frondb, Contender::Innodb]
            }
            _ => vec![Contender::Frondb, Contender::Innodb, Contender::Myrocks],
        }
    }

    /// Number of rounds; each round measures each engine once.
    pub(crate) fn rounds(&self) -> u64 {
        self.common.rounds.unwrap_or(1)
    }

    /// Rows of the workload; nodes for `graph`, warehouses for `tpcc`.
    pub(crate) fn rows(&self) -> u64 {
        let usual = match self.workload {
            Workload::Sysbench | Workload::SqlCounts | Workload::Graph => 1_000_000,
            Workload::SqlMemory => self.memory() * 4 / MEMORY_ROW_BYTES,
            Workload::Tpcc => WAREHOUSES,
            _ => 5_000_000,
        };
        self.common.rows.unwrap_or(usual)
    }

    /// Memory option of the engines, bytes.
    pub(crate) fn memory(&self) -> u64 {
        let usual = match self.workload {
            Workload::Sysbench | Workload::SqlCounts => 1 << 30,
            Workload::SqlMemory => 200 << 20,
            _ => 128 << 20,
        };
        self.common.memory.unwrap_or(usual)
    }

    /// Memory option of this engine, bytes. In `sql-memory` InnoDB, the control, gets the least
    /// memory with which it runs.
    pub(crate) fn memory_of(&self, contender: Contender) -> u64 {
        match (self.workload, contender) {
            (Workload::SqlMemory, Contender::Innodb) => CONTROL_BYTES,
            _ => self.memory(),
        }
    }

    /// The limit of requests and bytes a second; none for a disk at full speed.
    pub(crate) fn disk_limit(&self) -> Option<DiskLimit> {
        match self.disk {
            Disk::Own => None,
            Disk::Cloud => Some(DiskLimit::CLOUD),
            Disk::Sata => Some(DiskLimit::SATA),
        }
    }

    /// Number of concurrent clients.
    pub(crate) fn threads(&self) -> u64 {
        self.threads.unwrap_or(if self.workload == Workload::Tpcc { 4 } else { 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_lasting_entry_point_is_understood() {
        let line = "x --workload sql-iibench --engines frondb,innodb,myrocks --rows 5000000 \
                    --memory 128MiB --json out.json --disk cloud";
        let args = Args::parse_from(line.split_whitespace());
        assert_eq!(args.engines().len(), 3);
        assert_eq!((args.rows(), args.memory()), (5_000_000, 128 << 20));
        assert_eq!(args.disk_limit(), Some(DiskLimit::CLOUD));
        let args = Args::parse_from(["x", "--workload", "sysbench"]);
        assert_eq!((args.rows(), args.memory()), (1_000_000, 1 << 30));
        let args = Args::parse_from(["x", "--workload", "sql-memory", "--memory", "16MiB"]);
        assert_eq!(args.engines(), [Contender::Frondb, Contender::Innodb]);
        assert_eq!((args.rows(), args.memory_of(Contender::Innodb)), (65_536, 8 << 20));
        let args = Args::parse_from(["x", "--workload", "graph", "--disk", "sata"]);
        assert_eq!((args.rows(), args.memory(), args.threads()), (1_000_000, 128 << 20, 2));
        assert_eq!(args.disk_limit(), Some(DiskLimit::SATA));
        let args = Args::parse_from(["x", "--workload", "tpcc", "--threads", "3"]);
        assert_eq!((args.rows(), args.threads()), (WAREHOUSES, 3));
    }
}
