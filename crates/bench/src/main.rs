//! `frondb-bench`: the benchmark with FronDB alone. `run` is what `make run` shows; the engines to
//! compare with are in `frondb-bench-peers`, which `make bench` builds.

use std::process::ExitCode;

use frondb_bench::Registry;
use frondb_bench::engines::frondb::FRONDB;
use frondb_bench::engines::model::MODEL;

const REGISTRY: Registry =
    Registry { engines: &[FRONDB, MODEL], default_engines: "frondb", baseline: "frondb" };

fn main() -> ExitCode {
    frondb_bench::driver::main(&REGISTRY)
}
