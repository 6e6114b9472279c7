//! An order to a child process, one JSON argument, and the child's answer, one line of JSON.
//!
//! The order is an argument, so a user can run a child alone, for example under a profiler. The
//! command lines are the output of `bench --print-orders`.

use std::env;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::report::Measurement;
use crate::workload::Spec;

/// The order of a parent process to a child process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// What to measure.
    pub(super) spec: Spec,
    /// The `cgroup.procs` of the group to enter.
    pub(super) cgroup: Option<PathBuf>,
}

/// What a child returns to its parent.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Measured(Box<Measurement>),
    Failed(String),
}

impl Answer {
    /// Prints the answer for the parent to read.
    pub(super) fn print(&self) -> Result<()> {
        let line = serde_json::to_string(self).map_err(Error::engine)?;
        writeln!(std::io::stdout(), "{line}").map_err(Error::io("print the measurement"))
    }
}

impl Order {
    /// Parses the argument of a child.
    pub(super) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|error| Error::Usage(format!("cannot parse the order: {error}")))
    }

    /// Returns the command that runs this program as a child with this order.
    pub(super) fn command(&self) -> Result<Command> {
        let program = env::current_exe().map_err(Error::io("find this program"))?;
        let order = serde_json::to_string(self).map_err(Error::engine)?;
        let mut command = Command::new(program);
        command.arg("child").arg(order);
        Ok(command)
    }

    /// Runs a child with this order and waits for its end. If the child dies, `kills` returns how
    /// often the child's cgroup has killed a process.
    pub(super) fn run(&self, kills: impl FnOnce() -> u64) -> Result<Ended> {
        let output = self
            .command()?
            .stderr(Stdio::inherit())
            .stdin(Stdio::null())
            .output()
            .map_err(Error::io("start a child process"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(match text.lines().last().map(serde_json::from_str::<Answer>) {
            Some(Ok(Answer::Measured(measured))) if output.status.success() => {
                Ended::Measured(measured)
            }
            Some(Ok(Answer::Failed(error))) => Ended::Failed(error),
            _ => Ended::Died(death(output.status, kills())),
        })
    }
}

/// How a child ended.
pub(super) enum Ended {
    Measured(Box<Measurement>),
    /// The workload failed, with this error.
    Failed(String),
    /// The child ended without an answer, for this reason.
    Died(String),
}

/// Runs `spec` in a child process that stays in the cgroup of this process.
pub(crate) fn run_child(spec: &Spec) -> Result<Measurement> {
    match (Order { spec: spec.clone(), cgroup: None }).run(|| 0)? {
        Ended::Measured(measured) => Ok(*measured),
        Ended::Failed(error) => Err(Error::Wrong(error)),
        Ended::Died(reason) => Err(Error::Child(reason)),
    }
}

/// Describes why a child ended without an answer.
fn death(status: ExitStatus, killed: u64) -> String {
    match status.signal() {
        Some(_) if killed > 0 => {
            "killed: it needed more than 1.5 times the memory it was given".to_owned()
        }
        Some(signal) => format!("signal {signal} ended its process"),
        None => format!("its process ended with {status} and no measurement"),
    }
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
