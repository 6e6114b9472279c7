//! `frondb-bench`: the benchmark with FronDB and redb. `make run` calls its command `run`. The
//! program of `make bench` is `frondb-bench-peers`, which also has the other engines to compare
//! with.

use std::process::ExitCode;

use frondb_bench::Registry;
use frondb_bench::engines::frondb::FRONDB;
use frondb_bench::engines::model::MODEL;
use frondb_bench::engines::redb::REDB;

const REGISTRY: Registry =
    Registry { engines: &[FRONDB, REDB, MODEL], default_engines: "frondb", baseline: "frondb" };

fn main() -> ExitCode {
    frondb_bench::driver::main(&REGISTRY)
}
