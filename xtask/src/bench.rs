//! `make bench`: installs the libraries of the other engines, then runs frondb-bench-peers or, for
//! workloads under SQL, frondb-sql-bench. The `--help` of these programs explains the variables.

use crate::step::Cmd;
use crate::{Result, install, mariadb, variables};
use std::path::Path;

const VARIABLES: &[&str] = &[
    "WORKLOAD",
    "ENGINES",
    "ROWS",
    "MEMORY",
    "JSON",
    "ROUNDS",
    "DIR",
    "DISK",
    "THREADS",
    "SECONDS",
    "SLICES",
    "SLICE_SECONDS",
    "KINDS",
    "CODECS",
    "LIMIT_SECONDS",
    "WARM_UP_SECONDS",
    "READ_SCALE",
    "READ_SECONDS",
    "RATIOS",
    "LOAD_MEMORY",
];

/// Workloads that run on a MariaDB server.
const SQL: &[&str] = &[
    "sql-iibench",
    "wear",
    "sql-delete-left",
    "sql-foreign-keys",
    "optimize",
    "sysbench",
    "sql-memory",
    "sql-counts",
    "graph",
    "tpcc",
];

/// Workloads under SQL whose default engines do not require MyRocks. `make bench` installs MyRocks
/// for them only if the user names it.
const WITHOUT_MYROCKS: &[&str] =
    &["graph", "tpcc", "optimize", "sql-foreign-keys", "sql-counts", "sql-memory"];

/// The workload that checks the memory option, of the library and of a server.
const MEMORY: &str = "memory";

/// Builds and runs the benchmark with these variables.
pub(crate) fn run(args: &[String]) -> Result {
    let given = variables(args, VARIABLES)?;
    let workload = given.iter().find(|(name, _)| *name == "WORKLOAD").map(|(_, value)| *value);
    let cmd = match workload {
        Some(MEMORY) => return memory(&given),
        Some(workload) if SQL.contains(&workload) => sql(workload, &given)?,
        _ => peers()?,
    };
    with(cmd, &given).run()
}

fn with(mut cmd: Cmd, given: &[(&str, &str)]) -> Cmd {
    for (name, value) in given {
        cmd = cmd.arg(&format!("--{}", name.to_lowercase().replace('_', "-"))).arg(value);
    }
    cmd
}

/// Runs the cases of the library. Then, if a server is installed, runs a case with 200 connections
/// to a server, and writes its JSON report next to the library's report. ENGINES names engines of
/// the library, so with ENGINES the case of the server is left out.
fn memory(given: &[(&str, &str)]) -> Result {
    let alone = Cmd::new("cargo", "run --release --package frondb-bench -- bench").dir(caller()?);
    let library = with(alone, given).run();
    if given.iter().any(|(name, _)| *name == "ENGINES") {
        return library;
    }
    if !install::on_path("mariadbd") && !Path::new("/usr/sbin/mariadbd").exists() {
        println!(
            "no MariaDB server is installed, so the case of 200 connections is left out; `make plugin` installs one"
        );
        return library;
    }
    let mut server = sql("sql-memory", given)?.arg("--workload").arg("sql-memory");
    for (name, value) in given {
        server = match *name {
            "DIR" => server.arg("--dir").arg(value),
            "JSON" => server.arg("--json").arg(&format!("{value}.sql.json")),
            _ => server,
        };
    }
    library.and(server.run())
}

fn peers() -> Result<Cmd> {
    install::c_compiler()?;
    install::apt("RocksDB's library", "librocksdb-dev", || {
        Path::new("/usr/include/rocksdb/c.h").exists()
    })?;
    install::apt("LMDB's library", "liblmdb-dev", || Path::new("/usr/include/lmdb.h").exists())?;
    Ok(Cmd::new("cargo", "run --release --package frondb-bench-peers -- bench").dir(caller()?))
}

fn sql(workload: &str, given: &[(&str, &str)]) -> Result<Cmd> {
    // FRONDB_PLUGIN names a built plugin, which is used instead of this checkout's.
    let plugin = match std::env::var_os("FRONDB_PLUGIN") {
        Some(path) => path.into(),
        None => mariadb::plugin()?,
    };
    let is_named = given.iter().any(|(_, value)| value.contains("myrocks"));
    if is_named || !WITHOUT_MYROCKS.contains(&workload) {
        install::apt("MyRocks", "mariadb-plugin-rocksdb", || {
            Path::new("/usr/lib/mysql/plugin/ha_rocksdb.so").exists()
        })?;
    }
    if workload == "sysbench" {
        install::apt("sysbench", "sysbench", || install::on_path("sysbench"))?;
    }
    let plugin = plugin.display().to_string();
    let cmd = Cmd::new("cargo", "run --release --package frondb-sql-bench --").dir(caller()?);
    Ok(cmd.arg("--plugin").arg(&plugin))
}

/// Returns the caller's folder, to which relative paths in variables refer.
fn caller() -> Result<std::path::PathBuf> {
    std::env::current_dir().map_err(|e| format!("no current folder: {e}"))
}
