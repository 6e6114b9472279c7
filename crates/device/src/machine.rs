//! The machine's resources, for defaults that need no tuning.

/// Returns the main memory of the machine, bytes.
#[must_use]
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // The counts use units other than 1 only on very large machines.
    #[allow(clippy::unnecessary_cast)]
    let total = info.totalram as u64;
    total.saturating_mul(u64::from(info.mem_unit.max(1)))
}

/// Returns the bytes that the process has caused to be read from devices so far, as the system
/// counts them: without reads served by a cache or a file system in memory. `None` if the system
/// does not count.
#[must_use]
pub fn bytes_read_from_devices() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn the_bytes_read_do_not_shrink() {
        let before = super::bytes_read_from_devices();
        assert!(before.is_some() && super::bytes_read_from_devices() >= before);
    }

    #[test]
    fn the_machine_reports_its_memory() {
        assert!(super::memory_bytes() > 64 << 20);
    }
}
