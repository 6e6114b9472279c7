//! `make bench`: installs what the engines to compare with need, then hands over to frondb-bench-peers
//! or, for the workloads under SQL, to frondb-sql-bench; their `--help` says what the variables mean.

use crate::step::Cmd;
use crate::{Result, install, mariadb, variables};
use std::path::Path;

const VARIABLES: &[&str] =
    &["WORKLOAD", "ENGINES", "ROWS", "MEMORY", "JSON", "ROUNDS", "DIR", "DISK"];

/// Workloads of a MariaDB server.
const SQL: &[&str] = &["sql-iibench", "sql-delete-left", "sysbench"];

/// Builds and runs the benchmark with the variables that are given.
pub(crate) fn run(args: &[String]) -> Result {
    let given = variables(args, VARIABLES)?;
    let workload = given.iter().find(|(name, _)| *name == "WORKLOAD").map(|(_, value)| *value);
    let mut cmd = match workload {
        Some(workload) if SQL.contains(&workload) => sql(workload)?,
        _ => peers()?,
    };
    for (name, value) in given {
        cmd = cmd.arg(&format!("--{}", name.to_lowercase())).arg(value);
    }
    cmd.run()
}

fn peers() -> Result<Cmd> {
    install::c_compiler()?;
    install::apt("RocksDB's library", "librocksdb-dev", || {
        Path::new("/usr/include/rocksdb/c.h").exists()
    })?;
    install::apt("LMDB's library", "liblmdb-dev", || Path::new("/usr/include/lmdb.h").exists())?;
    Ok(Cmd::new("cargo", "run --release --package frondb-bench-peers -- bench").dir(caller()?))
}

fn sql(workload: &str) -> Result<Cmd> {
    let plugin = mariadb::plugin()?;
    install::apt("MyRocks", "mariadb-plugin-rocksdb", || {
        Path::new("/usr/lib/mysql/plugin/ha_rocksdb.so").exists()
    })?;
    if workload == "sysbench" {
        install::apt("sysbench", "sysbench", || install::on_path("sysbench"))?;
    }
    let plugin = plugin.display().to_string();
    let cmd = Cmd::new("cargo", "run --release --package frondb-sql-bench --").dir(caller()?);
    Ok(cmd.arg("--plugin").arg(&plugin))
}

/// Paths among the variables are the caller's.
fn caller() -> Result<std::path::PathBuf> {
    std::env::current_dir().map_err(|e| format!("no current folder: {e}"))
}
