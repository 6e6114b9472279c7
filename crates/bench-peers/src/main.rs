//! `frondb-bench-peers`: the benchmark with FronDB and the engines it is compared with.
//!
//! Adapters only; workloads, measuring and reports are `frondb-bench`'s. RocksDB and LMDB are
//! Debian's libraries (`librocksdb-dev`, `liblmdb-dev`), reached through hand-declared functions,
//! so the build needs no bindgen and compiles no C++. The crate is outside the workspace's default
//! members: only `make bench` builds it.

mod fjall;
mod lmdb;
mod redb;
mod rocksdb;

use std::process::ExitCode;

use frondb_bench::Registry;
use frondb_bench::engines::model::MODEL;

const REGISTRY: Registry = Registry {
    engines: &[rocksdb::ROCKSDB, lmdb::LMDB, redb::REDB, fjall::FJALL, MODEL],
    default_engines: "frondb,rocksdb",
    baseline: "rocksdb",
};

fn main() -> ExitCode {
    frondb_bench::driver::main(&REGISTRY)
}
