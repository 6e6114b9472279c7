//! The command line of both binaries.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::args::{BenchArgs, RunArgs};
use super::{Registry, bench, child, note, run};

/// Measures storage engines under the workloads of docs/benchmark-method.md
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure engines in turn, several rounds, and print medians with ratios
    Bench(BenchArgs),
    /// Load and query FronDB once, with live progress, a one-page summary and a chart
    Run(RunArgs),
    /// Measure one engine once, for a parent process
    #[command(hide = true)]
    Child {
        /// The order, as JSON
        order: String,
    },
}

/// Runs the command line of this process with the engines of `registry`.
#[must_use]
pub fn main(registry: &Registry) -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(args) => bench::bench(registry, &args),
        Command::Run(args) => run::run(registry, &args),
        Command::Child { order } => child::serve(registry, &order),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory;

    use super::*;
    use crate::workload::Workload;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_lasting_entry_point_is_understood() {
        let line = "x bench --workload delete-left --engines frondb,rocksdb --rows 10000000 \
                    --memory 256MiB --json out.json";
        let Command::Bench(args) = Cli::parse_from(line.split_whitespace()).command else {
            panic!("not bench");
        };
        assert_eq!((args.workload, args.common.rows), (Workload::DeleteLeft, Some(10_000_000)));
        assert_eq!((args.common.memory, args.common.rounds), (Some(256 << 20), None));
        assert_eq!(args.common.json, Some(PathBuf::from("out.json")));
    }
}
