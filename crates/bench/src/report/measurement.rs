//! The measurement of one child: the object of the JSON report, with its keys and their units.

use serde::{Deserialize, Serialize};

use super::{Figure, ReadCase};
use crate::measure::disk::DeviceCounters;
use crate::measure::process::IoCounters;
use crate::measure::{Histogram, Sample};

/// The figures of one engine for one workload. A figure that the workload does not have is null.
///
/// Keys end in their unit: `_s` seconds, `_ms` milliseconds, `_us` microseconds, `_bytes`; counts a
/// second end in `_per_s`, `_ops_s`, `_items_s` or `_entries_s`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// The engine's name.
    pub engine: String,
    /// The workload.
    pub workload: String,
    /// The variant: kind of data and codec in `compression`, rows a commit and sync in `durable`,
    /// `fit` or the threads in `fsync`, the ratio of data to memory in `reads`, the case in
    /// `memory`; empty in workloads with one variant.
    pub variant: String,
    /// `compression`: the kind of data.
    pub data: Option<String>,
    /// `compression`: the codec.
    pub codec: Option<String>,
    /// The engine's version and settings.
    pub settings: String,
    /// The error, if there are no figures.
    pub error: Option<String>,
    /// The number of rounds of which these figures are the medians.
    pub rounds: Option<u64>,
    /// Rows written: the requested number, unless the time limit ended the load earlier.
    pub rows: Option<u64>,

    /// Rows a second from the start to the last acknowledged batch.
    pub rows_per_s: Option<f64>,
    /// Rows a second from the start to the end of all background work, the log synced.
    pub rows_per_s_settled: Option<f64>,
    /// Rows a second over the last fifth of the rows.
    pub rows_per_s_last_fifth: Option<f64>,
    /// Time from the last acknowledged batch to the settled state.
    pub settle_s: Option<f64>,
    /// User and system time of the process up to the settled state, per row. Under SQL: of the
    /// client's process.
    pub cpu_us_per_row: Option<f64>,
    /// Under SQL: user and system time of the server up to the settled state, per row.
    pub server_cpu_us_per_row: Option<f64>,
    /// `compression`: time from the last acknowledged batch until all data has its final codec;
    /// null if the engine compresses nothing again.
    pub pack_s: Option<f64>,
    /// `compression`: bytes of keys and values that FronDB has packed with a slow codec by the end
    /// of the packing.
    pub packed_bytes: Option<u64>,
    /// Time to generate a row. All rates and `cpu_us_per_row` include this cost.
    pub generate_us_per_row: Option<f64>,
    /// Bytes of all keys and values written.
    pub raw_bytes: Option<u64>,
    /// Bytes that reached the disk up to the settled state, by the counters of the process.
    pub written_bytes: Option<u64>,
    /// Bytes of dirty pages that were deleted before they reached the disk; not in `written_bytes`.
    pub cancelled_bytes: Option<u64>,
    /// Write requests of all processes to the device up to the settled state, so nothing else may
    /// run on the machine.
    pub write_ops: Option<u64>,
    /// Bytes that all processes wrote to the device up to the settled state, file system journal
    /// included.
    pub device_written_bytes: Option<u64>,
    /// Bytes allocated on disk after settling and closing.
    pub disk_bytes: Option<u64>,
    /// `compression`: the part of `disk_bytes` that does not depend on the amount of data; see
    /// [`Engine::reserved_bytes`](crate::engine::Engine::reserved_bytes).
    pub reserved_bytes: Option<u64>,
    /// `reads`: `disk_bytes` divided by the engine's memory.
    pub data_to_memory: Option<f64>,
    /// Median time to acknowledge a batch.
    pub batch_ms_p50: Option<f64>,
    /// 99th percentile of the time to acknowledge a batch.
    pub batch_ms_p99: Option<f64>,
    /// Longest time to acknowledge a batch.
    pub batch_ms_max: Option<f64>,
    /// The slowest second of the load divided by the median one; see `measure::windows`.
    pub min_interval_ratio: Option<f64>,

    /// Point reads by primary key a second.
    pub point_ops_s: Option<f64>,
    /// 10-entry scans a second.
    pub scan10_ops_s: Option<f64>,
    /// 1,000-entry scans a second.
    pub scan1000_ops_s: Option<f64>,
    /// Entries a second of a full scan of the first secondary tree.
    pub fullscan_items_s: Option<f64>,
    /// 99th percentile of the time of a point read.
    pub point_ms_p99: Option<f64>,
    /// 99th percentile of the time of a 10-entry scan.
    pub scan10_ms_p99: Option<f64>,
    /// 99th percentile of the time of a 1,000-entry scan.
    pub scan1000_ms_p99: Option<f64>,
    /// The digest of the full scan. Engines with the same entries have the same digest.
    pub fullscan_digest: Option<String>,

    /// `sysbench`, `sql-counts`, `graph` and `tpcc`: transactions a second.
    pub transactions_per_s: Option<f64>,
    /// `sysbench`: 95th percentile of the time of a transaction.
    pub transaction_ms_p95: Option<f64>,
    /// `graph` and `tpcc`: median time of a transaction.
    pub transaction_ms_p50: Option<f64>,
    /// `graph` and `tpcc`: 99th percentile of the time of a transaction.
    pub transaction_ms_p99: Option<f64>,
    /// `graph` and `tpcc`: 99.9th percentile of the time of a transaction.
    pub transaction_ms_p999: Option<f64>,
    /// `graph` and `tpcc`: longest time of a transaction.
    pub transaction_ms_max: Option<f64>,

    /// Peak resident memory of the process.
    pub rss_peak_bytes: Option<u64>,
    /// Resident memory with the engine open and empty.
    pub rss_empty_bytes: Option<u64>,

    /// `delete-left`: rows deleted a second.
    pub deletes_per_s: Option<f64>,
    /// `delete-left`: time to read the first key of the primary tree right after the last delete.
    pub first_key_ms: Option<f64>,
    /// `delete-left`: time to read the last key of the primary tree right after the first key.
    pub last_key_ms: Option<f64>,
    /// `mixed`: rows a second that the writer's schedule asks for.
    pub paced_rows_per_s: Option<f64>,
    /// `mixed`: the largest lag of the writer behind its schedule.
    pub writer_lag_ms_max: Option<f64>,
    /// `fsync`: commits a second of all threads, each of one row and synced.
    pub commits_per_s: Option<f64>,
    /// `fsync`: syncs of the log for each commit.
    pub syncs_per_commit: Option<f64>,
    /// `fsync`: R of the fit `T = N/R + K`: the rows a second if syncs were free.
    pub fit_rows_per_s: Option<f64>,
    /// `fsync`: K of the fit: the part of a commit's time that does not depend on its rows.
    pub fit_commit_ms: Option<f64>,
    /// `fsync`: distance of the fit from the measured times, percent of the measured time (root
    /// mean square).
    pub fit_error_percent: Option<f64>,
    /// `merge`: entries a second that the kernel merges, without compression.
    pub merge_none_entries_s: Option<f64>,
    /// `merge`: entries a second that the kernel merges, codec zstd level 1.
    pub merge_zstd_entries_s: Option<f64>,

    /// `reads`: the digest of a fixed set of reads, done before the measured reads. Engines with
    /// the same rows have the same digest.
    pub answers_digest: Option<String>,
    /// `reads`: the cases, in the order in which they ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadCase>,

    /// All figures of workloads without columns in a table, such as `txn` and `memory`. `reads` and
    /// `compression`: FronDB's figures with floors and goals. `graph` and `tpcc`: rates and
    /// latencies of each kind of transaction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// One sample a second, for the chart; empty in medians, even of one round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Sample>,
    /// The engine's own statistics at the end; empty unless requested.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stats: String,
}

impl Measurement {
    /// Sets the written and cancelled bytes from two readings of a process's counters.
    pub fn set_writes(&mut self, before: &IoCounters, after: &IoCounters) {
        // The counter of written bytes leaves out cancelled ones, so the deletion of a file that was
        // written before the first reading lowers it.
        self.written_bytes = Some(after.written_bytes.saturating_sub(before.written_bytes));
        self.cancelled_bytes = Some(after.cancelled_bytes - before.cancelled_bytes);
    }

    /// Sets the writes of the device from two readings of its counters; none without counters.
    pub fn set_device_writes(
        &mut self,
        before: Option<DeviceCounters>,
        after: Option<DeviceCounters>,
    ) {
        let both = before.zip(after);
        self.write_ops = both.map(|(before, after)| after.write_ops - before.write_ops);
        self.device_written_bytes =
            both.map(|(before, after)| after.written_bytes - before.written_bytes);
    }

    /// Sets the latencies of batches.
    pub fn set_batch_latencies(&mut self, batches: &Histogram) {
        self.batch_ms_p50 = batches.quantile_ms(0.5);
        self.batch_ms_p99 = batches.quantile_ms(0.99);
        self.batch_ms_max = batches.max_ms();
    }

    /// Sets the latencies of transactions.
    pub fn set_transaction_latencies(&mut self, transactions: &Histogram) {
        self.transaction_ms_p50 = transactions.quantile_ms(0.5);
        self.transaction_ms_p99 = transactions.quantile_ms(0.99);
        self.transaction_ms_p999 = transactions.quantile_ms(0.999);
        self.transaction_ms_max = transactions.max_ms();
    }

    /// Returns the bytes written to disk for each byte of keys and values.
    #[must_use]
    pub fn written_per_raw(&self) -> Option<f64> {
        ratio(self.written_bytes, self.raw_bytes)
    }

    /// Returns `disk_bytes` without `reserved_bytes`.
    #[must_use]
    pub fn data_bytes(&self) -> Option<u64> {
        Some(self.disk_bytes?.saturating_sub(self.reserved_bytes.unwrap_or_default()))
    }

    /// Returns the bytes of keys and values for each byte of [`data_bytes`](Self::data_bytes).
    #[must_use]
    pub fn data_compression(&self) -> Option<f64> {
        ratio(self.raw_bytes, self.data_bytes())
    }

    /// Returns the bytes of keys and values for each byte on disk; none for `mixed`, whose raw
    /// bytes leave out its first load, and for `delete-left`, which removes rows.
    #[must_use]
    pub fn compression(&self) -> Option<f64> {
        let other_data = matches!(self.workload.as_str(), "mixed" | "delete-left");
        if other_data { None } else { ratio(self.raw_bytes, self.disk_bytes) }
    }
}

fn ratio(a: Option<u64>, b: Option<u64>) -> Option<f64> {
    let (a, b) = (a?, b?);
    (b > 0).then(|| a as f64 / b as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_every_promised_key_even_without_figures() {
        let json = serde_json::to_value(Measurement::default()).unwrap();
        let promised = [
            "engine",
            "rows",
            "rows_per_s",
            "rows_per_s_settled",
            "rows_per_s_last_fifth",
            "cpu_us_per_row",
            "raw_bytes",
            "written_bytes",
            "write_ops",
            "disk_bytes",
            "batch_ms_p50",
            "batch_ms_p99",
            "batch_ms_max",
            "min_interval_ratio",
            "point_ops_s",
            "scan10_ops_s",
            "scan1000_ops_s",
            "fullscan_items_s",
            "rss_peak_bytes",
            "first_key_ms",
            "last_key_ms",
        ];
        for key in promised {
            assert!(json.get(key).is_some(), "the key {key} is missing");
        }
    }

    #[test]
    fn compression_compares_written_bytes_with_the_disk() {
        let of = |workload: &str| Measurement {
            workload: workload.to_owned(),
            raw_bytes: Some(100),
            disk_bytes: Some(40),
            ..Measurement::default()
        };
        assert_eq!(of("iibench").compression(), Some(2.5));
        assert_eq!(of("delete-left").compression(), None);
    }

    #[test]
    fn a_measurement_survives_the_way_to_the_parent() {
        let sample = Sample { t_s: 1.0, rows: 2, written_bytes: 3, resident_bytes: 4, cpu_s: 0.5 };
        let measurement = Measurement {
            engine: "x".to_owned(),
            rows: Some(7),
            rows_per_s: Some(0.1),
            series: vec![sample],
            ..Measurement::default()
        };
        let text = serde_json::to_string(&measurement).unwrap();
        assert_eq!(serde_json::from_str::<Measurement>(&text).unwrap(), measurement);
    }
}
