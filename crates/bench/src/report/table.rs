//! The table for the terminal: a row for each figure and a column for each engine. The ratio to the
//! baseline engine's value follows each value.

use super::Measurement;
use super::columns::align;
use super::numbers::{bytes, count, short};

/// How a figure is taken from a measurement and shown.
struct Line {
    label: &'static str,
    value: fn(&Measurement) -> Option<f64>,
    show: fn(f64) -> String,
}

fn whole(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

const LINES: &[Line] = &[
    Line { label: "rows", value: |m| whole(m.rows), show: count },
    Line { label: "rows/s, acknowledged", value: |m| m.rows_per_s, show: count },
    Line { label: "rows/s, settled", value: |m| m.rows_per_s_settled, show: count },
    Line { label: "rows/s, last fifth", value: |m| m.rows_per_s_last_fifth, show: count },
    Line { label: "CPU us a row", value: |m| m.cpu_us_per_row, show: short },
    Line { label: "server CPU us a row", value: |m| m.server_cpu_us_per_row, show: short },
    Line { label: "seconds to pack", value: |m| m.pack_s, show: short },
    Line { label: "raw data", value: |m| whole(m.raw_bytes), show: bytes },
    Line { label: "written", value: |m| whole(m.written_bytes), show: bytes },
    Line { label: "written / raw", value: Measurement::written_per_raw, show: short },
    Line { label: "deleted before written", value: |m| whole(m.cancelled_bytes), show: bytes },
    Line { label: "write requests", value: |m| whole(m.write_ops), show: count },
    Line { label: "size on disk", value: |m| whole(m.disk_bytes), show: bytes },
    Line { label: "size on disk / memory", value: |m| m.data_to_memory, show: short },
    Line { label: "compression", value: Measurement::compression, show: short },
    Line { label: "batch ms, median", value: |m| m.batch_ms_p50, show: short },
    Line { label: "batch ms, 99 of 100", value: |m| m.batch_ms_p99, show: short },
    Line { label: "batch ms, worst", value: |m| m.batch_ms_max, show: short },
    Line { label: "slowest / median second", value: |m| m.min_interval_ratio, show: short },
    Line { label: "point reads/s", value: |m| m.point_ops_s, show: count },
    Line { label: "10-entry scans/s", value: |m| m.scan10_ops_s, show: count },
    Line { label: "1,000-entry scans/s", value: |m| m.scan1000_ops_s, show: count },
    Line { label: "full scan, entries/s", value: |m| m.fullscan_items_s, show: count },
    Line { label: "transactions/s", value: |m| m.transactions_per_s, show: count },
    Line { label: "transaction ms, 95 of 100", value: |m| m.transaction_ms_p95, show: short },
    Line { label: "transaction ms, median", value: |m| m.transaction_ms_p50, show: short },
    Line { label: "transaction ms, 99 of 100", value: |m| m.transaction_ms_p99, show: short },
    Line { label: "transaction ms, 999 of 1,000", value: |m| m.transaction_ms_p999, show: short },
    Line { label: "transaction ms, worst", value: |m| m.transaction_ms_max, show: short },
    Line { label: "peak memory", value: |m| whole(m.rss_peak_bytes), show: bytes },
    Line { label: "rows deleted/s", value: |m| m.deletes_per_s, show: count },
    Line { label: "first key, ms", value: |m| m.first_key_ms, show: short },
    Line { label: "last key, ms", value: |m| m.last_key_ms, show: short },
    Line { label: "rows/s asked for", value: |m| m.paced_rows_per_s, show: count },
    Line { label: "writer's lag ms, worst", value: |m| m.writer_lag_ms_max, show: short },
    Line { label: "commits/s", value: |m| m.commits_per_s, show: count },
    Line { label: "syncs a commit", value: |m| m.syncs_per_commit, show: short },
    Line { label: "R of N/R + K, rows/s", value: |m| m.fit_rows_per_s, show: count },
    Line { label: "K of N/R + K, ms", value: |m| m.fit_commit_ms, show: short },
    Line { label: "error of the fit, %", value: |m| m.fit_error_percent, show: short },
    Line { label: "entries/s, no codec", value: |m| m.merge_none_entries_s, show: count },
    Line { label: "entries/s, zstd-1", value: |m| m.merge_zstd_entries_s, show: count },
];

/// Formats the measurements of one workload and variant. `baseline` is the index of the engine that
/// the others are compared with.
#[must_use]
pub fn table(columns: &[Measurement], baseline: usize) -> String {
    let mut rows = vec![header(columns)];
    for line in LINES {
        let values: Vec<_> = columns.iter().map(line.value).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let base = values.get(baseline).copied().flatten();
        let mut row = vec![line.label.to_owned()];
        for (place, value) in values.iter().enumerate() {
            row.push(value.map_or_else(|| "-".to_owned(), line.show));
            let ratio = (place != baseline).then(|| ratio(*value, base)).flatten();
            row.push(ratio.unwrap_or_default());
        }
        rows.push(row);
    }
    let mut text = align(&rows);
    for column in columns {
        if let Some(error) = &column.error {
            text.push_str(&format!("{}: no figures: {error}\n", column.engine));
        }
    }
    text
}

fn header(columns: &[Measurement]) -> Vec<String> {
    let title = columns.first().map_or_else(String::new, |column| match &column.variant {
        variant if variant.is_empty() => column.workload.clone(),
        variant => format!("{}: {variant}", column.workload),
    });
    let engines = columns.iter().flat_map(|column| [column.engine.clone(), String::new()]);
    [title].into_iter().chain(engines).collect()
}

/// Formats the ratio of a value to the baseline engine's value, if both exist.
pub(super) fn ratio(value: Option<f64>, base: Option<f64>) -> Option<String> {
    let (value, base) = (value?, base?);
    (base != 0.0).then(|| format!("{:.2}x", value / base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_baseline_and_missing_figures_are_dashes() {
        let of = |engine: &str, rows_per_s, point_ops_s| Measurement {
            engine: engine.to_owned(),
            workload: "iibench".to_owned(),
            rows_per_s,
            point_ops_s,
            ..Measurement::default()
        };
        let columns = [of("a", Some(150_000.0), None), of("b", Some(100_000.0), Some(3.0))];
        let expected = "\
iibench                     a               b
rows/s, acknowledged  150,000  1.50x  100,000
point reads/s               -               3
";
        assert_eq!(table(&columns, 1), expected);
    }

    #[test]
    fn an_engine_without_figures_says_why() {
        let columns = [Measurement {
            engine: "a".to_owned(),
            error: Some("killed".to_owned()),
            ..Measurement::default()
        }];
        assert!(table(&columns, 0).ends_with("a: no figures: killed\n"));
    }
}
