//! The table of the workload `compression`: a line for each engine and codec of a kind of data.

use super::Measurement;
use super::columns::align;
use super::numbers::{bytes, count, short};

/// Formats the measurements of one kind of data as a table.
#[must_use]
pub fn compression_table(kind: &str, lines: &[Measurement]) -> String {
    let title = format!("compression: {kind}");
    let mut rows = vec![
        [
            &title,
            "size on",
            "without",
            "raw /",
            "",
            "slowest /",
            "seconds",
            "point",
            "point ms",
            "full scan,",
        ],
        [
            "",
            "disk",
            "reserve",
            "that",
            "rows/s",
            "median s",
            "to pack",
            "reads/s",
            "99 of 100",
            "rows/s",
        ],
    ]
    .into_iter()
    .map(|row| row.map(str::to_owned).to_vec())
    .collect::<Vec<_>>();
    let cell =
        |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), show);
    for m in lines.iter().filter(|m| m.error.is_none()) {
        rows.push(vec![
            name(m),
            cell(m.disk_bytes.map(|bytes| bytes as f64), bytes),
            cell(m.data_bytes().map(|bytes| bytes as f64), bytes),
            cell(m.data_compression(), short),
            cell(m.rows_per_s, count),
            cell(m.min_interval_ratio, short),
            cell(m.pack_s, short),
            cell(m.point_ops_s, count),
            cell(m.point_ms_p99, short),
            cell(m.fullscan_items_s, count),
        ]);
    }
    let mut text = align(&rows);
    if let Some(rows) = lines.iter().find_map(|m| m.rows.zip(m.raw_bytes)) {
        let (rows, raw) = (count(rows.0 as f64), bytes(rows.1 as f64));
        text.push_str(&format!("{rows} rows, {raw} of keys and values\n"));
    }
    for m in lines {
        if let Some(error) = &m.error {
            text.push_str(&format!("{}: no figures: {error}\n", name(m)));
        }
    }
    text
}

/// Returns the engine and the codec as text.
fn name(m: &Measurement) -> String {
    let codec = m.codec.as_deref().unwrap_or(&m.variant);
    match codec {
        "toku-lzma" => "lzma, 4 MiB blocks (TokuDB)".to_owned(),
        codec => format!("{} {codec}", m.engine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_and_codecs_are_lines_and_sizes_alone_are_enough() {
        let of = |engine: &str, codec: &str, disk_bytes| Measurement {
            engine: engine.to_owned(),
            workload: "compression".to_owned(),
            codec: Some(codec.to_owned()),
            rows: Some(1_000),
            raw_bytes: Some(210_000_000),
            disk_bytes: Some(disk_bytes),
            ..Measurement::default()
        };
        let lines = [
            Measurement {
                rows_per_s: Some(400_000.0),
                min_interval_ratio: Some(0.5),
                pack_s: Some(12.3),
                point_ops_s: Some(9_876.0),
                point_ms_p99: Some(0.25),
                fullscan_items_s: Some(2_000_000.0),
                reserved_bytes: Some(25_000_000),
                ..of("frondb", "aggressive", 40_000_000)
            },
            of("tokudb", "toku-lzma", 14_000_000),
            Measurement { error: Some("killed".to_owned()), ..of("rocksdb", "zstd:19", 0) },
        ];
        let expected = "\
compression: logs            size on  without  raw /           slowest /  seconds    point   point ms  full scan,
                                disk  reserve   that   rows/s   median s  to pack  reads/s  99 of 100      rows/s
frondb aggressive              40 MB    15 MB   14.0  400,000       0.50     12.3    9,876       0.25   2,000,000
lzma, 4 MiB blocks (TokuDB)    14 MB    14 MB   15.0        -          -        -        -          -           -
1,000 rows, 210 MB of keys and values
rocksdb zstd:19: no figures: killed
";
        assert_eq!(compression_table("logs", &lines), expected);
    }
}
