//! The machine's resources, for defaults that need no tuning.

/// Main memory of the machine, bytes.
#[must_use]
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // The counts use units other than 1 only on very large machines.
    #[allow(clippy::unnecessary_cast)]
    let total = info.totalram as u64;
    total.saturating_mul(u64::from(info.mem_unit.max(1)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_machine_reports_its_memory() {
        assert!(super::memory_bytes() > 64 << 20);
    }
}
