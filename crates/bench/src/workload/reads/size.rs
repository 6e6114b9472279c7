//! The number of rows for data that is a given multiple of the memory.

/// Estimated bytes on disk of a row of iiBench with its three secondary entries, in FronDB after
/// settling, with the standard codec. The report has the measured ratio.
const DISK_BYTES_PER_ROW: u64 = 63;

/// Returns the rows of data that is `ratio` times `memory_bytes` on disk. If `rows` is given,
/// returns `ratio` times `rows`.
#[must_use]
pub(crate) fn rows_of_ratio(memory_bytes: u64, rows: Option<u64>, ratio: u64) -> u64 {
    match rows {
        Some(rows) => rows.saturating_mul(ratio),
        None => (memory_bytes.saturating_mul(ratio) / DISK_BYTES_PER_ROW).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_grow_with_memory_and_ratio() {
        assert_eq!(rows_of_ratio(63 << 20, None, 1), 1 << 20);
        assert_eq!(rows_of_ratio(63 << 20, None, 64), 64 << 20);
        assert_eq!(rows_of_ratio(128 << 20, None, 8), 17_043_521);
        assert_eq!(rows_of_ratio(63 << 20, Some(5_000), 8), 40_000);
        assert_eq!(rows_of_ratio(1, None, 1), 1);
    }
}
