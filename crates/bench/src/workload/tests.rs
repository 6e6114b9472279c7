//! Runs every workload with little data, on the model engine or on FronDB. Each must end, get the
//! right answers, and fill in the promised figures.

use std::path::PathBuf;

use frondb_core::sync::atomic::{AtomicU64, Ordering};

use super::{Part, ReadSeconds, Spec, TOKUDB, Workload, run};
use crate::driver::Progress;
use crate::engine::{Batch, Codec, Digest, Durability, Engine, EngineKind, EngineOptions, Reader};
use crate::engines::frondb::FRONDB;
use crate::engines::model::MODEL;
use crate::error::{Error, Result};
use crate::report::Measurement;
use crate::rows::DataKind;

/// A directory that is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        // Tests run side by side, and some measure the same workload.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("frondb-bench-test-{}-{number}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn spec(workload: Workload, variant: usize, scratch: &Scratch) -> Spec {
    Spec {
        engine: "model".to_owned(),
        workload,
        part: Part::Whole,
        variant: workload.variants(Codec::Standard).swap_remove(variant),
        rows: 5_000,
        batch_rows: 100,
        memory_bytes: 1 << 20,
        seed: 42,
        dir: scratch.0.join("data"),
        limit_s: None,
        reads: ReadSeconds { warmup: 0.001, points: 0.01, scan10: 0.01, scan1000: 0.01 },
        read_threads: vec![1, 3],
        paced_rows_per_s: 100_000.0,
        stats: true,
        progress: false,
    }
}

fn measure(workload: Workload, variant: usize) -> Measurement {
    let scratch = Scratch::new(&format!("{}-{variant}", workload.name()));
    run(&MODEL, &spec(workload, variant, &scratch), Progress::silent()).unwrap()
}

#[test]
fn iibench_fills_in_load_and_reads() {
    let m = measure(Workload::Iibench, 0);
    assert_eq!((m.rows, m.raw_bytes), (Some(5_000), Some(5_000 * 156)));
    let figures = [
        m.rows_per_s,
        m.rows_per_s_settled,
        m.rows_per_s_last_fifth,
        m.batch_ms_p50,
        m.batch_ms_p99,
        m.batch_ms_max,
        m.point_ops_s,
        m.scan10_ops_s,
        m.scan1000_ops_s,
        m.fullscan_items_s,
    ];
    assert!(figures.iter().all(|figure| figure.is_some_and(|value| value > 0.0)), "{m:?}");
    assert!(m.written_bytes.is_some() && m.disk_bytes.is_some() && m.cpu_us_per_row.is_some());
    assert!(m.rss_peak_bytes >= m.rss_empty_bytes);
    assert!(m.stats.contains("tree 1: 5000 keys"), "{}", m.stats);
}

#[test]
fn the_same_seed_gives_the_same_table() {
    let digest = || measure(Workload::Compression, 0).fullscan_digest.unwrap();
    assert_eq!(digest(), digest());
}

#[test]
fn overwrite_keeps_the_number_of_rows() {
    let m = measure(Workload::Overwrite, 0);
    assert_eq!((m.rows, m.raw_bytes), (Some(5_000), Some(5_000 * 96)));
    assert!(m.point_ops_s.is_some() && m.scan10_ops_s.is_some());
}

#[test]
fn delete_left_times_the_edges() {
    let m = measure(Workload::DeleteLeft, 0);
    assert!(m.first_key_ms.is_some() && m.last_key_ms.is_some() && m.deletes_per_s.is_some());
    assert!(m.stats.contains("tree 0: 2500 keys"), "{}", m.stats);
    assert!(m.stats.contains("tree 3: 2500 keys"), "{}", m.stats);
}

#[test]
fn mixed_reads_while_it_writes() {
    let m = measure(Workload::Mixed, 0);
    assert!(m.point_ops_s.is_some() && m.scan10_ops_s.is_some() && m.scan1000_ops_s.is_some());
    assert!(m.rows.unwrap() > 0 && m.writer_lag_ms_max.is_some());
    assert_eq!(m.paced_rows_per_s, Some(100_000.0));
}

fn measure_reads(kind: &EngineKind) -> Measurement {
    let scratch = Scratch::new(&format!("reads-{}", kind.name));
    let spec = Spec { memory_bytes: 16 << 20, ..spec(Workload::Reads, 1, &scratch) };
    run(kind, &spec, Progress::silent()).unwrap()
}

#[test]
fn reads_of_data_that_another_child_has_loaded_give_the_same_answers() {
    let scratch = Scratch::new("reads-in-parts");
    let spec = Spec { memory_bytes: 16 << 20, ..spec(Workload::Reads, 1, &scratch) };
    let part = |part, memory_bytes| {
        run(&FRONDB, &Spec { part, memory_bytes, ..spec.clone() }, Progress::silent()).unwrap()
    };
    let (loaded, read) = (part(Part::Load, 64 << 20), part(Part::Reads, 16 << 20));
    assert!(loaded.reads.is_empty() && loaded.rows_per_s.is_some());
    assert!(read.reads.len() == 2 * 4 * 2 && read.rows_per_s.is_none());
    assert_eq!(read.answers_digest, measure_reads(&MODEL).answers_digest);
}

#[test]
fn reads_has_a_case_for_each_read_choice_of_keys_and_number_of_threads() {
    let names: Vec<_> =
        Workload::Reads.variants(Codec::Standard).into_iter().map(|v| v.name).collect();
    assert_eq!(names, ["1x", "8x", "64x"]);
    let m = measure_reads(&FRONDB);
    assert_eq!((m.variant.as_str(), m.rows), ("8x", Some(5_000)));
    assert!(m.rows_per_s.is_some() && m.data_to_memory.is_some_and(|ratio| ratio > 0.0));
    assert_eq!(m.reads.len(), 2 * 4 * 2);
    for (index, case) in m.reads.iter().enumerate() {
        let found = m.reads.iter().position(|other| other.is_same_case(case));
        assert_eq!(found, Some(index), "two cases are {}", case.name());
        assert!(case.operations >= case.threads && case.ops_s > 0.0, "{case:?}");
        let latencies = [case.ms_p50, case.ms_p99, case.ms_p999, case.ms_max];
        assert!(latencies[0] > 0.0 && latencies.is_sorted(), "{case:?}");
    }
    assert_eq!(m.reads[15].name(), "multi_get100 zipfian, 3 threads");
    assert!(m.answers_digest.is_some());
    assert_eq!(m.answers_digest, measure_reads(&MODEL).answers_digest);
}

#[test]
fn compression_has_a_variant_for_each_kind_and_codec_and_checks_what_it_reads() {
    let variants = Workload::Compression.variants(Codec::Standard);
    assert_eq!(variants.len(), DataKind::ALL.len() * Codec::ALL.len());
    let names: Vec<_> = variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names[..3], ["logs standard", "logs aggressive", "logs default"]);
    let of = |kind: &EngineKind, name: &str| {
        let variant = names.iter().position(|known| *known == name).unwrap();
        let scratch = Scratch::new(&format!("compression-{}-{variant}", kind.name));
        let spec =
            Spec { memory_bytes: 16 << 20, ..spec(Workload::Compression, variant, &scratch) };
        run(kind, &spec, Progress::silent()).unwrap()
    };
    let m = of(&MODEL, "json none");
    assert_eq!((m.data.as_deref(), m.codec.as_deref()), (Some("json"), Some("none")));
    assert!(m.point_ops_s.is_some() && m.raw_bytes.unwrap() > 5_000 * 200);
    assert!(m.pack_s.is_none() && m.packed_bytes.is_none());
    let toku = of(&TOKUDB, "json toku-lzma");
    assert_eq!((toku.rows, toku.raw_bytes), (m.rows, m.raw_bytes));
    assert!(toku.disk_bytes.unwrap() * 6 < toku.raw_bytes.unwrap(), "{toku:?}");
    assert!(toku.point_ops_s.is_none());
    let own = of(&FRONDB, "json aggressive");
    assert_eq!(own.fullscan_digest, m.fullscan_digest);
    assert!(own.pack_s.is_some() && own.packed_bytes.is_some());
    assert!(own.stats.contains("packed_bytes"), "{}", own.stats);
    assert!(of(&FRONDB, "json standard").pack_s.is_none());
}

#[test]
fn durable_has_a_variant_for_each_case() {
    let names = |workload: Workload| {
        let variants = workload.variants(Codec::Standard);
        variants.into_iter().map(|variant| variant.name).collect::<Vec<_>>()
    };
    assert_eq!(names(Workload::Durable).len(), 6);
    let m = measure(Workload::Durable, 0);
    assert_eq!((m.variant.as_str(), m.rows), ("1 a commit, sync", Some(5_000)));
}

/// Measures a small run on FronDB itself, the only engine that counts its syncs.
fn measure_fsync(variant: usize, seconds: f64) -> Measurement {
    let scratch = Scratch::new(&format!("fsync-{variant}-{seconds}"));
    let spec = spec(Workload::Fsync, variant, &scratch);
    let spec = Spec { limit_s: Some(seconds), memory_bytes: 16 << 20, ..spec };
    run(&FRONDB, &spec, Progress::silent()).unwrap()
}

#[test]
fn fsync_fits_and_counts_syncs() {
    let m = measure_fsync(0, 0.01);
    assert_eq!(m.variant, "fit");
    assert!(m.fit_rows_per_s.is_some_and(|rate| rate > 0.0), "{m:?}");
    assert!(m.fit_commit_ms.is_some() && m.fit_error_percent.is_some(), "{m:?}");
    let m = measure_fsync(1, 0.01);
    assert_eq!((m.variant.as_str(), m.syncs_per_commit), ("1 thread", Some(1.0)));
    let m = measure_fsync(3, 0.01);
    assert_eq!(m.variant, "16 threads");
    assert!(m.commits_per_s.is_some_and(|rate| rate > 0.0) && m.batch_ms_p99.is_some());
    assert!(m.syncs_per_commit.is_some_and(|syncs| syncs > 0.0 && syncs <= 1.0), "{m:?}");
}

/// The time limit may pass before the first thread begins.
#[test]
fn fsync_commits_at_least_once_a_thread_in_no_time() {
    let m = measure_fsync(3, 0.0);
    assert!(m.commits_per_s.is_some_and(|rate| rate > 0.0) && m.batch_ms_p99.is_some(), "{m:?}");
}

#[test]
fn queue_has_a_figure_for_each_case() {
    let scratch = Scratch::new("queue");
    let spec = Spec { memory_bytes: 16 << 20, ..spec(Workload::Queue, 0, &scratch) };
    let m = run(&FRONDB, &spec, Progress::silent()).unwrap();
    assert_eq!(m.figures.len(), 9);
    assert!(m.figures.iter().all(|figure| figure.value > 0.0 && figure.met.is_some()));
}

#[test]
fn txn_has_a_figure_for_each_limit() {
    let scratch = Scratch::new("txn");
    let spec = Spec { memory_bytes: 16 << 20, ..spec(Workload::Txn, 0, &scratch) };
    let m = run(&FRONDB, &spec, Progress::silent()).unwrap();
    let held: Vec<_> = m.figures.iter().filter(|figure| figure.met.is_some()).collect();
    let names: Vec<_> = held.iter().map(|figure| figure.name.as_str()).collect();
    let expected = [
        "large transaction to batches, rows/s",
        "large transaction, commit call",
        "large transaction, peak memory to MEMORY",
        "bulk load to batches, CPU a row",
        "single-row transactions to batches",
        "durable commits, 16 threads to 1",
        "snapshot reads, beside a writer to alone",
        "lock and unlock of one row",
    ];
    assert_eq!(names, expected);
    assert!(m.figures.iter().all(|figure| figure.value > 0.0), "{:?}", m.figures);
    let mut all: Vec<_> = m.figures.iter().map(|figure| &figure.name).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), m.figures.len(), "names name one figure");
}

#[test]
fn hot_compares_each_read_after_each_kind_of_updates() {
    let scratch = Scratch::new("hot");
    let spec = Spec { memory_bytes: 16 << 20, ..spec(Workload::Hot, 0, &scratch) };
    let m = run(&FRONDB, &spec, Progress::silent()).unwrap();
    let held: Vec<_> = m.figures.iter().filter(|figure| figure.met.is_some()).collect();
    let names: Vec<_> = held.iter().map(|figure| figure.name.as_str()).collect();
    let expected = [
        "points of hot rows, updated tree to other",
        "points, updated tree to other",
        "scans of 100, updated tree to other",
        "points of hot rows, old snapshot, updated tree to other",
        "points, old snapshot, updated tree to other",
        "scans of 100, old snapshot, updated tree to other",
        "points of hot rows, random updates, updated tree to other",
        "points, random updates, updated tree to other",
        "scans of 100, random updates, updated tree to other",
    ];
    assert_eq!(names, expected);
    assert!(held.iter().all(|figure| figure.at_most), "{held:?}");
    assert!(m.figures.iter().all(|figure| figure.value > 0.0), "{:?}", m.figures);
}

#[test]
fn backup_compares_with_reads_and_with_a_writer() {
    let scratch = Scratch::new("backup");
    let spec = Spec { memory_bytes: 32 << 20, ..spec(Workload::Backup, 0, &scratch) };
    let m = run(&FRONDB, &spec, Progress::silent()).unwrap();
    let limited = m.figures.iter().filter(|figure| figure.met.is_some());
    let names: Vec<_> = limited.map(|figure| figure.name.as_str()).collect();
    let expected = [
        "backup to reading the files",
        "writer beside to alone",
        "longest commit beside",
        "incremental after 5 % of rows to full",
    ];
    assert_eq!(names, expected);
    assert!(m.figures.iter().all(|figure| figure.value > 0.0), "{:?}", m.figures);
}

#[test]
fn far_opens_and_reads_with_little_memory() {
    let scratch = Scratch::new("far");
    let spec = Spec { memory_bytes: 16 << 20, ..spec(Workload::Far, 0, &scratch) };
    let m = run(&FRONDB, &spec, Progress::silent()).unwrap();
    let of = |name: &str| m.figures.iter().find(|figure| figure.name == name).unwrap();
    assert_eq!((m.rows, of("rows").value), (Some(5_000), 5_000.0));
    for name in ["data on disk to memory of the reads", "manifest", "opening", "points"] {
        assert!(of(name).value > 0.0, "{:?}", m.figures);
    }
    // A table this small is in memory after the warm-up.
    assert!(of("points, read").met.is_some() && of("opening").at_most);
}

#[test]
fn merge_measures_the_kernel_with_and_without_compression() {
    let m = measure(Workload::Merge, 0);
    assert_eq!((m.engine.as_str(), m.rows), ("frondb", Some(5_000)));
    assert!(m.merge_none_entries_s.is_some_and(|rate| rate > 0.0));
    assert!(m.merge_zstd_entries_s.is_some_and(|rate| rate > 0.0));
}

/// The measured memory is the memory of the whole process, which runs other tests too, so the test
/// does not check whether a case keeps to its option.
#[test]
fn memory_has_a_case_for_each_thing_that_could_hold_more() {
    let variants = Workload::Memory.variants(Codec::Standard);
    assert_eq!(variants.len(), 18);
    for (variant, connections) in [(1, 0.0), (3, 0.0), (4, 4.0), (6, 16.0)] {
        let scratch = Scratch::new(&format!("memory-{variant}"));
        let spec = Spec { rows: 2_000, ..spec(Workload::Memory, variant, &scratch) };
        let m = run(&FRONDB, &spec, Progress::silent()).unwrap();
        assert_eq!(m.variant, variants[variant].name);
        assert!(m.rows.is_some_and(|rows| rows >= 2_000) && m.stats.contains("memtable"), "{m:?}");
        let figure = |what: &str| {
            let name = format!("{}: {what}", m.variant);
            m.figures.iter().find(|figure| figure.name == name).unwrap()
        };
        let held: Vec<_> = m.figures.iter().filter(|figure| figure.met.is_some()).collect();
        assert_eq!(held, [figure("peak / option")]);
        assert_eq!(figure("connections, 32 KiB each").value, connections);
        assert!(figure("memory_used, peak").value > 0.0);
    }
    // 12, 14, 15, 16: locks of writes, of eight transactions, of reads, of gaps; 17: idle trees.
    for (variant, rows) in [(12, 2_000), (14, 2_000), (15, 2_000), (16, 2_000), (17, 10)] {
        let scratch = Scratch::new(&format!("memory-{variant}"));
        let spec = Spec { rows: 3_000, ..spec(Workload::Memory, variant, &scratch) };
        let m = run(&FRONDB, &spec, Progress::silent()).unwrap();
        assert_eq!((&m.variant, m.rows), (&variants[variant].name, Some(rows)));
        let held: Vec<_> = m.figures.iter().filter(|figure| figure.met.is_some()).collect();
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].name, format!("{}: peak / option", m.variant));
    }
}

#[test]
fn a_time_limit_ends_the_load_with_fewer_rows() {
    let scratch = Scratch::new("limit");
    let spec = Spec { limit_s: Some(0.0), ..spec(Workload::Durable, 1, &scratch) };
    let m = run(&MODEL, &spec, Progress::silent()).unwrap();
    assert_eq!(m.rows, Some(0));
}

#[test]
fn a_directory_that_exists_is_refused() {
    let scratch = Scratch::new("exists");
    let spec = spec(Workload::Durable, 1, &scratch);
    std::fs::create_dir_all(&spec.dir).unwrap();
    let error = run(&MODEL, &spec, Progress::silent()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

/// An engine that acknowledges every write and forgets it.
struct Forgetful;

const FORGETFUL: EngineKind = EngineKind {
    name: "forgetful",
    describe: |_| String::new(),
    codecs: &[Codec::Standard],
    open: |_, _: &EngineOptions| Ok(Box::new(Forgetful)),
};

impl Engine for Forgetful {
    fn write(&self, _: &Batch, _: Durability) -> Result<()> {
        Ok(())
    }
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(Forgetful))
    }
    fn is_settled(&self) -> Result<bool> {
        Ok(true)
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
    fn stats(&self) -> String {
        String::new()
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Reader for Forgetful {
    fn get(&mut self, _: usize, _: &[u8], _: &mut Digest) -> Result<bool> {
        Ok(false)
    }
    fn scan(&mut self, _: usize, _: &[u8], _: u64, _: &mut Digest) -> Result<u64> {
        Ok(0)
    }
    fn first_key(&mut self, _: usize) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
    fn last_key(&mut self, _: usize) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

#[test]
fn an_engine_that_loses_rows_gets_no_figures() {
    for workload in [
        Workload::Iibench,
        Workload::Overwrite,
        Workload::DeleteLeft,
        Workload::Mixed,
        Workload::Reads,
        Workload::Compression,
    ] {
        let scratch = Scratch::new(&format!("forgetful-{}", workload.name()));
        let result = run(&FORGETFUL, &spec(workload, 0, &scratch), Progress::silent());
        assert!(matches!(result, Err(Error::Wrong(_))), "{workload:?}: {result:?}");
    }
}

#[test]
fn frondb_gives_the_models_answers() {
    for workload in
        [Workload::Iibench, Workload::Overwrite, Workload::DeleteLeft, Workload::Compression]
    {
        let scratch = Scratch::new(&format!("frondb-{}", workload.name()));
        let spec = Spec { memory_bytes: 16 << 20, ..spec(workload, 0, &scratch) };
        let m = run(&FRONDB, &spec, Progress::silent()).unwrap();
        assert_eq!(m.fullscan_digest, measure(workload, 0).fullscan_digest, "{workload:?}");
    }
}
