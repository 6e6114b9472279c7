//! `make bench WORKLOAD=sql-iibench` and the other workloads under SQL: compares storage engines of
//! one MariaDB server, in turn.
//!
//! ```text
//!  args     command line
//!    |
//!  turns    rounds x engines -> medians -> table, ratios with their floors (ratios), JSON
//!    |
//!  host     a private server for one engine: fresh data directory, its memory, perhaps a slow disk
//!    |
//!  iibench, sysbench, counts, delete_left, foreign_keys, optimize, memory, wear   the workloads
//!  timed -> graph, tpcc          workloads with clients of our own, for a fixed time
//!  slices, sysbench_slices       the same workloads on two servers, in short turns
//! ```
//!
//! The server is a separate process, so the kernel's counters of it are the engine's: processor
//! time, written bytes, memory. `docs/benchmark-method.md` says what is measured and what the
//! figures cannot tell.

mod args;
mod bulk;
mod clients;
mod contender;
mod counts;
mod delete_left;
mod foreign_keys;
mod graph;
mod host;
mod iibench;
mod latencies;
mod memory;
mod mix;
mod optimize;
mod ratios;
mod reads;
mod row;
mod scenario;
mod session;
mod slices;
mod sysbench;
mod sysbench_slices;
mod timed;
mod tpcc;
mod turns;
mod wear;
mod writer;

use std::process::ExitCode;

use clap::Parser;
use frondb_bench::driver::note;

fn main() -> ExitCode {
    match turns::run(&args::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
