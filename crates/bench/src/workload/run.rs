//! From a [`Spec`] to a [`Measurement`]: opens the engine, runs the workload, closes the engine.

use std::fs;

use super::{
    Bench, Part, Spec, TOKUDB, Workload, backup, compression, delete_left, durable, far, fsync,
    hot, iibench, memory, merge, mixed, overwrite, queue, reads, txn,
};
use crate::driver::Progress;
use crate::engine::EngineKind;
use crate::error::{Error, Result};
use crate::measure::{disk, process};
use crate::report::Measurement;

/// Runs the workload of `spec` on an engine of `kind` in this process. The process should do
/// nothing else, because memory and processor time are counted per process.
pub fn run(kind: &EngineKind, spec: &Spec, progress: Progress) -> Result<Measurement> {
    match spec.workload {
        Workload::Merge => return merge::run(spec),
        Workload::Txn => return txn::run(spec, &progress),
        Workload::Hot => return hot::run(spec, &progress),
        Workload::Queue => return queue::run(spec, &progress),
        Workload::Far => return far::run(spec, &progress),
        Workload::Backup => return backup::run(spec, &progress),
        Workload::Memory => return memory::run(spec, &progress),
        Workload::Compression if kind.name == TOKUDB.name => {
            return compression::sizes(spec, &progress);
        }
        _ => {}
    }
    let options = spec.engine_options();
    let doing = || format!("create {}", spec.dir.display());
    if let Some(parent) = spec.dir.parent() {
        fs::create_dir_all(parent).map_err(Error::io(doing()))?;
    }
    if spec.part != Part::Reads {
        fs::create_dir(&spec.dir).map_err(Error::io(doing()))?;
    }
    let engine = (kind.open)(&spec.dir, &options)?;
    let measurement = Measurement {
        engine: kind.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        variant: spec.variant.name.clone(),
        codec: spec.variant.data.map(|_| spec.variant.codec.to_string()),
        data: spec.variant.data.map(|kind| kind.name().to_owned()),
        settings: (kind.describe)(&options),
        rss_empty_bytes: Some(process::resident_bytes()?),
        ..Measurement::default()
    };
    let mut bench = Bench { spec, engine: engine.as_ref(), measurement, progress };
    match spec.workload {
        Workload::Iibench => iibench::run(&mut bench)?,
        Workload::Overwrite => overwrite::run(&mut bench)?,
        Workload::DeleteLeft => delete_left::run(&mut bench)?,
        Workload::Mixed => mixed::run(&mut bench)?,
        Workload::Reads => reads::run(&mut bench)?,
        Workload::Compression => compression::run(&mut bench)?,
        Workload::Durable => durable::run(&mut bench)?,
        Workload::Fsync => fsync::run(&mut bench)?,
        // The first `match` has handled these workloads: they open no engine, or their own
        // databases.
        Workload::Txn
        | Workload::Hot
        | Workload::Queue
        | Workload::Far
        | Workload::Backup
        | Workload::Memory
        | Workload::Merge => {}
    }
    let mut measurement = bench.measurement;
    measurement.rss_peak_bytes = Some(process::resident_peak_bytes()?);
    if spec.stats {
        measurement.stats = engine.stats();
    }
    engine.close()?;
    disk::sync_file_system(&spec.dir)?;
    let disk_bytes = disk::allocated_bytes(&spec.dir)?;
    measurement.disk_bytes = Some(disk_bytes);
    if spec.workload == Workload::Reads {
        measurement.data_to_memory = Some(disk_bytes as f64 / spec.memory_bytes as f64);
    }
    Ok(measurement)
}
