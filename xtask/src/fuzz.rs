//! `make fuzz`: runs the targets of fuzz/targets.toml under libFuzzer (nightly, cargo-fuzz).
//!
//! The table is the one list of targets; [`crate::tidy`] holds it to the `fuzz` modules of the
//! crates, to the files in fuzz/fuzz_targets and to fuzz/Cargo.toml.

use crate::step::Cmd;
use crate::workspace::{read_toml, root};
use crate::{Result, install, variables};

const CARGO_FUZZ: &str = "0.13.2";
const SECONDS_DEFAULT: &str = "60";

/// One row of fuzz/targets.toml.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Name of the target: crate and function joined by an underscore.
    pub(crate) name: String,
    /// Path of the function it calls.
    pub(crate) entry: String,
    /// Longest input worth trying, in bytes.
    pub(crate) max_len: i64,
}

/// The table, sorted by name.
pub(crate) fn targets() -> Result<Vec<Target>> {
    let table = read_toml(&root().join("fuzz/targets.toml"))?;
    let mut targets = table
        .into_iter()
        .map(|(name, row)| {
            let entry = row.get("entry").and_then(|v| v.as_str());
            let max_len = row.get("max_len").and_then(toml::Value::as_integer);
            match (entry, max_len) {
                (Some(entry), Some(max_len)) => {
                    Ok(Target { name, entry: entry.to_owned(), max_len })
                }
                _ => Err(format!("fuzz/targets.toml: {name} needs `entry` and `max_len`")),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(targets)
}

/// Fuzzes one target, or all in turn.
pub(crate) fn run(args: &[String]) -> Result {
    let given = variables(args, &["TARGET", "SECONDS"])?;
    let value = |wanted: &str| given.iter().find(|(name, _)| *name == wanted).map(|(_, v)| *v);
    let seconds = value("SECONDS").unwrap_or(SECONDS_DEFAULT);
    let mut selected = targets()?;
    if let Some(wanted) = value("TARGET") {
        let known: Vec<String> = selected.iter().map(|target| target.name.clone()).collect();
        selected.retain(|target| target.name == wanted);
        if selected.is_empty() {
            return Err(format!("no target {wanted}; there are {}", known.join(", ")));
        }
    }
    install::nightly()?;
    install::apt("a C++ compiler", "g++", || install::on_path("c++"))?;
    install::cargo_tool("fuzz", CARGO_FUZZ, "")?;
    for target in &selected {
        Cmd::new("cargo", &format!("+nightly fuzz run {}", target.name))
            .arg("--")
            .arg(&format!("-max_total_time={seconds}"))
            .arg(&format!("-max_len={}", target.max_len))
            .env("PATH", &install::path_with_tools())
            .run()?;
    }
    eprintln!("{} target(s) fuzzed for {seconds} s each, nothing found", selected.len());
    Ok(())
}
