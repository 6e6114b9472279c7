//! The machine, the commit and the time of a measurement.

use std::fs;

use serde_json::{Value, json};

use crate::step::Cmd;
use crate::workspace::root;

/// Describes the machine, as JSON for run.json.
pub(super) fn describe() -> Value {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    json!({
        "cores": cores,
        "processor": after_colon(&file("/proc/cpuinfo"), "model name"),
        "memory_mib": memory_mib(&file("/proc/meminfo")),
        "kernel": file("/proc/sys/kernel/osrelease").trim(),
    })
}

/// Returns the commit, with a remark if the source has changes that are not committed. Pages and
/// figures are not the source: `make report` writes them.
pub(super) fn commit() -> String {
    let Ok(commit) = Cmd::new("git", "rev-parse --short=8 HEAD").output() else {
        return "unknown".to_owned();
    };
    let changes = Cmd::new("git", "status --porcelain --untracked-files=no -- .")
        .arg(":!docs/figures")
        .arg(":!*.md")
        .dir(root().to_owned())
        .output();
    match changes {
        Ok(changes) if changes.is_empty() => commit,
        _ => format!("{commit} with changes"),
    }
}

/// Returns date and time, UTC.
pub(super) fn now() -> String {
    Cmd::new("date", "-u").arg("+%Y-%m-%d %H:%M").output().unwrap_or_else(|_| "unknown".to_owned())
}

/// Returns the value of the first line `name : value`.
fn after_colon(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
    value.unwrap_or("unknown").to_owned()
}

fn memory_mib(meminfo: &str) -> Option<u64> {
    let kib = after_colon(meminfo, "MemTotal");
    kib.trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_files_are_understood() {
        let cpu =
            "processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";
        assert_eq!(after_colon(cpu, "model name"), "AMD EPYC");
        assert_eq!(after_colon("", "model name"), "unknown");
        assert_eq!(memory_mib("MemTotal:       24576 kB\nMemFree: 1 kB\n"), Some(24));
        assert_eq!(memory_mib(""), None);
    }
}
