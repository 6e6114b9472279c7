//! `frondb-bench-peers`: the benchmark of FronDB and of the engines with which it is compared.
//!
//! This crate has adapters only; workloads, measurements, reports and the adapters of FronDB and
//! redb are in `frondb-bench`.
//! RocksDB and LMDB are Debian's libraries (`librocksdb-dev`, `liblmdb-dev`), called through
//! hand-written declarations, so the build needs no bindgen and compiles no C++. The crate is not
//! among the workspace's default members: only `make bench` builds it.

mod fjall;
mod lmdb;
mod rocksdb;

use std::process::ExitCode;

use frondb_bench::Registry;
use frondb_bench::engines::frondb::FRONDB;
use frondb_bench::engines::model::MODEL;
use frondb_bench::engines::redb::REDB;

const REGISTRY: Registry = Registry {
    engines: &[FRONDB, rocksdb::ROCKSDB, lmdb::LMDB, REDB, fjall::FJALL, MODEL],
    default_engines: "frondb,rocksdb",
    baseline: "rocksdb",
};

fn main() -> ExitCode {
    frondb_bench::driver::main(&REGISTRY)
}

#[cfg(test)]
mod tests {
    //! Each adapter gives the same answers as the model, in every workload with a full scan.

    use std::path::Path;

    use frondb_bench::driver::Progress;
    use frondb_bench::engine::{Codec, EngineKind};
    use frondb_bench::report::Measurement;
    use frondb_bench::workload::{Part, ReadSeconds, Spec, Workload, run};

    use super::*;

    fn digest(kind: &EngineKind, workload: Workload) -> Option<String> {
        measured(kind, workload).fullscan_digest
    }

    fn measured(kind: &EngineKind, workload: Workload) -> Measurement {
        let name = format!("peers-{}-{}-{}", std::process::id(), kind.name, workload.name());
        let dir = std::env::temp_dir().join(name);
        let spec = Spec {
            engine: kind.name.to_owned(),
            workload,
            part: Part::Whole,
            variant: workload.variants(Codec::Standard).swap_remove(0),
            rows: 5_000,
            batch_rows: 100,
            memory_bytes: 64 << 20,
            seed: 42,
            dir: dir.clone(),
            limit_s: None,
            reads: ReadSeconds { warmup: 0.001, points: 0.01, scan10: 0.01, scan1000: 0.01 },
            read_threads: vec![1, 3],
            paced_rows_per_s: 100_000.0,
            stats: true,
            progress: false,
        };
        let measured = run(kind, &spec, Progress::silent());
        remove(&dir);
        measured.unwrap()
    }

    fn remove(dir: &Path) {
        let _ = std::fs::remove_dir_all(dir);
    }

    #[test]
    fn every_engine_gives_the_models_answers() {
        for workload in
            [Workload::Iibench, Workload::Overwrite, Workload::DeleteLeft, Workload::Compression]
        {
            let expected = digest(&MODEL, workload);
            assert!(expected.is_some());
            for kind in REGISTRY.engines {
                assert_eq!(digest(kind, workload), expected, "{} {workload:?}", kind.name);
            }
        }
    }

    #[test]
    fn every_engine_gives_the_models_answers_to_points_scans_and_multi_gets() {
        let expected = measured(&MODEL, Workload::Reads).answers_digest;
        assert!(expected.is_some());
        for kind in REGISTRY.engines {
            let answers = measured(kind, Workload::Reads).answers_digest;
            assert_eq!(answers, expected, "{}", kind.name);
        }
    }

    #[test]
    fn every_engine_serves_readers_beside_a_writer() {
        for kind in REGISTRY.engines {
            assert_eq!(digest(kind, Workload::Mixed), None, "{}", kind.name);
        }
    }
}
