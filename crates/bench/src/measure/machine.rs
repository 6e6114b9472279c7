//! A description of the machine in one line. Without it, a figure cannot be compared with others.

use std::fs;

/// Describes processor, memory and kernel: `AMD EPYC 7B13, 2 processors, 24 GB, Linux 6.18.1`.
/// Leaves out parts that the kernel does not report.
#[must_use]
pub fn describe() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    line(
        &read("/proc/cpuinfo"),
        processors,
        &read("/proc/meminfo"),
        read("/proc/sys/kernel/osrelease").trim(),
    )
}

fn line(cpuinfo: &str, processors: usize, meminfo: &str, kernel: &str) -> String {
    let mut parts = Vec::new();
    parts.extend(field(cpuinfo, "model name").map(str::to_owned));
    if processors > 0 {
        parts.push(format!("{processors} processor{}", if processors == 1 { "" } else { "s" }));
    }
    let kib = field(meminfo, "MemTotal").and_then(|size| size.split(' ').next()?.parse().ok());
    parts.extend(kib.map(|kib: u64| format!("{:.0} GB", kib as f64 * 1024.0 / 1e9)));
    if !kernel.is_empty() {
        parts.push(format!("Linux {kernel}"));
    }
    parts.join(", ")
}

/// Returns the value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_only_known_facts() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A 1 @ 2GHz\nprocessor\t: 1\nmodel name\t: B\n";
        let meminfo = "MemFree: 1 kB\nMemTotal:       24000000 kB\n";
        let expected = "A 1 @ 2GHz, 2 processors, 25 GB, Linux 6.1";
        assert_eq!(line(cpuinfo, 2, meminfo, "6.1"), expected);
        assert_eq!(line("", 1, "", ""), "1 processor");
    }
}
