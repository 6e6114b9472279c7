//! What one child measured: the object of the JSON report, its keys and their units.

use serde::{Deserialize, Serialize};

use super::Figure;
use crate::measure::Sample;

/// One engine's figures for one workload. A figure that the workload does not yield is null.
///
/// Keys end in their unit: `_s` seconds, `_ms` milliseconds, `_us` microseconds, `_bytes`; `x_per_s`
/// and `x_s` after a count are a second's worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// The engine's name.
    pub engine: String,
    /// The workload.
    pub workload: String,
    /// Which case of the workload: a codec in `logs`, rows a commit and sync in `durable`, threads in `fsync`; else
    /// empty.
    pub variant: String,
    /// The engine's version and settings.
    pub settings: String,
    /// Why there are no figures, if there are none.
    pub error: Option<String>,
    /// How many rounds the figures are the median of.
    pub rounds: Option<u64>,
    /// Rows that were written: as many as asked for, unless the time limit ended the load.
    pub rows: Option<u64>,

    /// Rows a second from the start to the last acknowledged batch.
    pub rows_per_s: Option<f64>,
    /// Rows a second from the start to the end of all background work, the log synced.
    pub rows_per_s_settled: Option<f64>,
    /// Rows a second of the last fifth of the rows.
    pub rows_per_s_last_fifth: Option<f64>,
    /// From the last acknowledged batch to the settled state.
    pub settle_s: Option<f64>,
    /// User and system time of the process up to the settled state, for each row. Under SQL that is the client.
    pub cpu_us_per_row: Option<f64>,
    /// Under SQL: user and system time of the server up to the settled state, for each row.
    pub server_cpu_us_per_row: Option<f64>,
    /// What making a row costs, which is contained in all rates and in `cpu_us_per_row`.
    pub generate_us_per_row: Option<f64>,
    /// Bytes of all keys and values that were written.
    pub raw_bytes: Option<u64>,
    /// Bytes that reached the disk up to the settled state, as counted for the process.
    pub written_bytes: Option<u64>,
    /// Bytes of dirty pages that were deleted before they reached the disk; not in `written_bytes`.
    pub cancelled_bytes: Option<u64>,
    /// Write requests of the device up to the settled state. Everybody's: keep the machine quiet.
    pub write_ops: Option<u64>,
    /// Bytes that the device wrote up to the settled state, journal included. Everybody's.
    pub device_written_bytes: Option<u64>,
    /// Bytes allocated on disk, settled and closed.
    pub disk_bytes: Option<u64>,
    /// Half of the batches took at most this long to be acknowledged.
    pub batch_ms_p50: Option<f64>,
    /// 99 of 100 batches took at most this long.
    pub batch_ms_p99: Option<f64>,
    /// The slowest batch.
    pub batch_ms_max: Option<f64>,
    /// The slowest second of the load against the median one; see `measure::windows`.
    pub min_interval_ratio: Option<f64>,

    /// Point reads by primary key a second.
    pub point_ops_s: Option<f64>,
    /// 10-entry scans a second.
    pub scan10_ops_s: Option<f64>,
    /// 1,000-entry scans a second.
    pub scan1000_ops_s: Option<f64>,
    /// Entries a second of a full scan of the first secondary tree.
    pub fullscan_items_s: Option<f64>,
    /// 99 of 100 point reads took at most this long.
    pub point_ms_p99: Option<f64>,
    /// 99 of 100 10-entry scans took at most this long.
    pub scan10_ms_p99: Option<f64>,
    /// 99 of 100 1,000-entry scans took at most this long.
    pub scan1000_ms_p99: Option<f64>,
    /// The digest of the full scan: equal for engines that hold the same entries.
    pub fullscan_digest: Option<String>,

    /// `sysbench`: transactions a second.
    pub transactions_per_s: Option<f64>,
    /// `sysbench`: 95 of 100 transactions took at most this long.
    pub transaction_ms_p95: Option<f64>,

    /// Peak resident memory of the process, up to its end.
    pub rss_peak_bytes: Option<u64>,
    /// Resident memory with the engine open and empty.
    pub rss_empty_bytes: Option<u64>,

    /// `delete-left`: rows deleted a second.
    pub deletes_per_s: Option<f64>,
    /// `delete-left`: time to find the first key of the primary tree right after the last delete.
    pub first_key_ms: Option<f64>,
    /// `delete-left`: time to find its last key, right after that.
    pub last_key_ms: Option<f64>,
    /// `mixed`: rows a second that the writer was asked for.
    pub paced_rows_per_s: Option<f64>,
    /// `mixed`: how far the writer was behind its schedule, at worst.
    pub writer_lag_ms_max: Option<f64>,
    /// `fsync`: commits a second of all threads, each of one row and synced.
    pub commits_per_s: Option<f64>,
    /// `fsync`: syncs of the log for each commit.
    pub syncs_per_commit: Option<f64>,
    /// `fsync`: R of the fit, rows a second that a commit takes beside its sync.
    pub fit_rows_per_s: Option<f64>,
    /// `fsync`: K of the fit, what a commit takes however few rows it has.
    pub fit_commit_ms: Option<f64>,
    /// `fsync`: how far measured times lie from the fit, in percent of the fit (root mean square).
    pub fit_error_percent: Option<f64>,
    /// `merge`: entries a second through the kernel, codec none.
    pub merge_none_entries_s: Option<f64>,
    /// `merge`: entries a second through the kernel, codec zstd level 1.
    pub merge_zstd_entries_s: Option<f64>,

    /// `txn`: all its figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// One sample a second, for the chart; empty in the report of several rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Sample>,
    /// The engine's own statistics at the end; empty unless asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stats: String,
}

impl Measurement {
    /// Bytes written for each byte given.
    #[must_use]
    pub fn written_per_raw(&self) -> Option<f64> {
        ratio(self.written_bytes, self.raw_bytes)
    }

    /// Bytes given for each byte on disk; only where what was measured is what is there.
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
    fn compression_is_of_what_was_written() {
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
