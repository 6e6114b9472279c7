//! `make bench`: installs the libraries of the engines to compare with, then hands over to
//! frondb-bench-peers, whose `--help` says what the variables mean.

use crate::step::Cmd;
use crate::{Result, install, variables};
use std::path::Path;

const VARIABLES: &[&str] = &["WORKLOAD", "ENGINES", "ROWS", "MEMORY", "JSON", "ROUNDS", "DIR"];

/// Builds and runs the benchmark with the variables that are given.
pub(crate) fn run(args: &[String]) -> Result {
    let given = variables(args, VARIABLES)?;
    install::c_compiler()?;
    install::apt("RocksDB's library", "librocksdb-dev", || {
        Path::new("/usr/include/rocksdb/c.h").exists()
    })?;
    install::apt("LMDB's library", "liblmdb-dev", || Path::new("/usr/include/lmdb.h").exists())?;
    let mut cmd =
        Cmd::new("cargo", "run --release --package frondb-bench-peers -- bench").dir(caller()?);
    for (name, value) in given {
        cmd = cmd.arg(&format!("--{}", name.to_lowercase())).arg(value);
    }
    cmd.run()
}

/// Paths among the variables are the caller's.
fn caller() -> Result<std::path::PathBuf> {
    std::env::current_dir().map_err(|e| format!("no current folder: {e}"))
}
