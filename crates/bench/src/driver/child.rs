//! A child process: one engine, one workload, one measurement.
//!
//! ```text
//!  parent                                   child
//!    create a cgroup of 1.5 x MEMORY
//!    spawn `<this binary> child <order>` --> enter the cgroup before any other thread exists
//!                                           run the workload, progress to standard error
//!    read the last line <------------------ one JSON object to standard output
//!    if the child was killed, ask the cgroup why
//!    remove the data directory and the cgroup
//! ```

use std::fs;
use std::path::Path;

use super::order::{Answer, Ended, Order};
use super::{Progress, Registry};
use crate::error::{Error, Result};
use crate::measure::{cgroup, disk};
use crate::report::Measurement;
use crate::workload::{self, KERNEL, Part, Spec, TOKUDB, Workload};

/// Runs the order and prints the answer, in the child.
pub(super) fn serve(registry: &Registry, order: &str) -> Result<()> {
    match run(registry, order) {
        Ok(measurement) => Answer::Measured(Box::new(measurement)),
        Err(error) => Answer::Failed(error.to_string()),
    }
    .print()
}

fn run(registry: &Registry, order: &str) -> Result<Measurement> {
    let order = Order::parse(order)?;
    if let Some(procs) = &order.cgroup {
        cgroup::join(procs)?;
    }
    let spec = &order.spec;
    let progress = if spec.progress { Progress::visible(label(spec)) } else { Progress::silent() };
    let kind = match spec.workload {
        Workload::Merge => &KERNEL,
        Workload::Compression if spec.engine == TOKUDB.name => &TOKUDB,
        _ => registry.find(&spec.engine)?,
    };
    workload::run(kind, spec, progress)
}

/// Returns the name of a child in lines of progress.
fn label(spec: &Spec) -> String {
    let parts = [spec.engine.as_str(), spec.workload.name(), spec.variant.name.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Measures `spec` in a child of this process, in a cgroup of `limit` bytes if there is a limit.
/// The measurement reports an engine that fails, crashes or is killed; only a failure of the
/// machine is an error. Removes the data directory before the measurement, unless `spec` only reads
/// existing data, and afterwards, unless `keep` is set.
pub(super) fn measure(spec: &Spec, limit: Option<u64>, keep: bool) -> Result<Measurement> {
    if spec.part != Part::Reads {
        remove(&spec.dir)?;
    }
    let group = limit.map(cgroup::Cgroup::create).transpose()?;
    let order = Order { spec: spec.clone(), cgroup: group.as_ref().map(cgroup::Cgroup::procs) };
    let ended = order.run(|| group.as_ref().map_or(0, cgroup::Cgroup::kills))?;
    if !keep {
        remove(&spec.dir)?;
    }
    Ok(match ended {
        Ended::Measured(measured) => *measured,
        Ended::Failed(error) | Ended::Died(error) => Measurement {
            engine: spec.engine.clone(),
            workload: spec.workload.name().to_owned(),
            variant: spec.variant.name.clone(),
            error: Some(error),
            ..Measurement::default()
        },
    })
}

/// Removes a data directory and waits until the file system has freed it.
pub fn remove(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(Error::io(format!("remove {}", dir.display())))?;
        if let Some(parent) = dir.parent() {
            disk::sync_file_system(parent)?;
        }
    }
    Ok(())
}
