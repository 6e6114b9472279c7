//! The figures of one case of the workload `reads`: an element of the list `reads` of the JSON
//! report.

use serde::{Deserialize, Serialize};

/// One kind of read, with one choice of keys, by a number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadCase {
    /// What an operation reads: `point`, `scan10`, `scan1000` or `multi_get100`.
    pub read: String,
    /// How the keys are chosen: `uniform` or `zipfian`.
    pub keys: String,
    /// Threads that read at the same time.
    pub threads: u64,
    /// Operations of all threads together.
    pub operations: u64,
    /// Operations a second of all threads together.
    pub ops_s: f64,
    /// User and system time of the process, per operation.
    pub cpu_us_per_op: f64,
    /// Bytes that the process read from the disk, per operation.
    pub read_bytes_per_op: f64,
    /// Read requests of all processes to the device, per operation; none if the file system has no
    /// single device.
    pub device_reads_per_op: Option<f64>,
    /// Median latency.
    pub ms_p50: f64,
    /// 99th percentile of the latencies.
    pub ms_p99: f64,
    /// 99.9th percentile of the latencies.
    pub ms_p999: f64,
    /// Longest latency.
    pub ms_max: f64,
}

impl ReadCase {
    /// Returns whether both cases have the same read, keys and threads.
    #[must_use]
    pub fn is_same_case(&self, other: &Self) -> bool {
        self.read == other.read && self.keys == other.keys && self.threads == other.threads
    }

    /// Returns the name of the case in tables.
    #[must_use]
    pub fn name(&self) -> String {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        format!("{} {}, {} {threads}", self.read, self.keys, self.threads)
    }

    /// Returns the KiB that the process read from the disk, per operation.
    #[must_use]
    pub fn read_kib_per_op(&self) -> f64 {
        self.read_bytes_per_op / 1024.0
    }
}
