//! A child process: one engine, one workload, one measurement.
//!
//! ```text
//!  parent                                   child
//!    make a cgroup of 1.5 x MEMORY
//!    spawn `<this binary> child <order>` --> enter the cgroup, before any other thread exists
//!                                           run the workload, progress to standard error
//!    read the last line <------------------ one JSON object to standard output
//!    wait; killed? ask the cgroup why
//!    remove the data directory and the cgroup
//! ```
//!
//! The order is an argument, so a child can be run alone, under a profiler for instance: `bench
//! --print-orders` shows the command lines.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, fs};

use serde::{Deserialize, Serialize};

use super::{Progress, Registry};
use crate::error::{Error, Result};
use crate::measure::{cgroup, disk};
use crate::report::Measurement;
use crate::workload::{self, KERNEL, Spec, Workload};

/// What a parent tells a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// What to measure.
    pub(super) spec: Spec,
    /// The `cgroup.procs` of the group to enter.
    pub(super) cgroup: Option<PathBuf>,
}

/// What a child tells its parent.
#[derive(Serialize, Deserialize)]
enum Answer {
    Measured(Box<Measurement>),
    Failed(String),
}

/// The child: carries the order out and prints the answer.
pub(super) fn serve(registry: &Registry, order: &str) -> Result<()> {
    let answer = match carry_out(registry, order) {
        Ok(measurement) => Answer::Measured(Box::new(measurement)),
        Err(error) => Answer::Failed(error.to_string()),
    };
    let line = serde_json::to_string(&answer).map_err(Error::engine)?;
    writeln!(std::io::stdout(), "{line}").map_err(Error::io("print the measurement"))
}

fn carry_out(registry: &Registry, order: &str) -> Result<Measurement> {
    let order: Order = serde_json::from_str(order)
        .map_err(|error| Error::Usage(format!("the order is not understood: {error}")))?;
    if let Some(procs) = &order.cgroup {
        cgroup::join(procs)?;
    }
    let spec = &order.spec;
    let progress = if spec.progress { Progress::visible(label(spec)) } else { Progress::silent() };
    let kind = match spec.workload {
        Workload::Merge => &KERNEL,
        _ => registry.find(&spec.engine)?,
    };
    workload::run(kind, spec, progress)
}

/// How a child is called in lines of progress.
fn label(spec: &Spec) -> String {
    let parts = [spec.engine.as_str(), spec.workload.name(), spec.variant.name.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The command that carries `order` out.
pub(super) fn command(order: &Order) -> Result<Command> {
    let program = env::current_exe().map_err(Error::io("find this program"))?;
    let order = serde_json::to_string(order).map_err(Error::engine)?;
    let mut command = Command::new(program);
    command.arg("child").arg(order);
    Ok(command)
}

/// The parent: has `spec` measured by a child in a cgroup of `limit` bytes, or in none. An engine
/// that fails, crashes or is killed is reported in the measurement; only what concerns the machine
/// is an error. The data directory is empty again afterwards, unless `keep` says otherwise.
pub(super) fn measure(spec: &Spec, limit: Option<u64>, keep: bool) -> Result<Measurement> {
    remove(&spec.dir)?;
    let group = limit.map(cgroup::Cgroup::create).transpose()?;
    let order = Order { spec: spec.clone(), cgroup: group.as_ref().map(cgroup::Cgroup::procs) };
    let output = command(&order)?
        .stderr(Stdio::inherit())
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io("start a child process"))?;
    let killed = group.as_ref().map_or(0, cgroup::Cgroup::kills);
    let answer = String::from_utf8_lossy(&output.stdout);
    let answer = answer.lines().last().map(serde_json::from_str::<Answer>);
    if !keep {
        remove(&spec.dir)?;
    }
    let failed = |error: String| Measurement {
        engine: spec.engine.clone(),
        workload: spec.workload.name().to_owned(),
        variant: spec.variant.name.clone(),
        error: Some(error),
        ..Measurement::default()
    };
    Ok(match answer {
        Some(Ok(Answer::Measured(measurement))) if output.status.success() => *measurement,
        Some(Ok(Answer::Failed(error))) => failed(error),
        _ => failed(death(output.status, killed)),
    })
}

/// Has `spec` carried out by a process of its own, in the group of this one.
pub(crate) fn run_child(spec: &Spec) -> Result<Measurement> {
    let output = command(&Order { spec: spec.clone(), cgroup: None })?
        .stderr(Stdio::inherit())
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io("start a child process"))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    match answer.lines().last().map(serde_json::from_str::<Answer>) {
        Some(Ok(Answer::Measured(measurement))) if output.status.success() => Ok(*measurement),
        Some(Ok(Answer::Failed(error))) => Err(Error::Wrong(error)),
        _ => Err(Error::Child(death(output.status, 0))),
    }
}

/// Why a child ended without an answer.
fn death(status: ExitStatus, killed: u64) -> String {
    match status.signal() {
        Some(_) if killed > 0 => {
            "killed: it needed more memory than 1.5 times the limit it was given".to_owned()
        }
        Some(signal) => format!("its process was ended by signal {signal}"),
        None => format!("its process ended with {status} and no measurement"),
    }
}

/// Removes a data directory and waits until the disk has digested that.
fn remove(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(Error::io(format!("remove {}", dir.display())))?;
        if let Some(parent) = dir.parent() {
            disk::sync_file_system(parent)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_has_a_reason() {
        let signal_9 = ExitStatus::from_raw(9);
        assert!(death(signal_9, 1).contains("memory"));
        assert!(death(signal_9, 0).contains("signal 9"));
        assert!(death(ExitStatus::from_raw(1 << 8), 0).contains("no measurement"));
    }
}
