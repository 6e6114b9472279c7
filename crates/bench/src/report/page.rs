//! The one-page summary of `run`: as text for a terminal, and as a web page with the chart.

use super::Measurement;
use super::numbers::{bytes, count, short};

/// Returns the summary as text, at most one screen. `machine` describes the machine.
#[must_use]
pub fn summary(m: &Measurement, machine: &str) -> String {
    let mut text = String::new();
    for (heading, lines) in sections(m) {
        text.push_str(heading);
        text.push('\n');
        for (label, value) in lines {
            text.push_str(&format!("  {label:<34}{value:>14}\n"));
        }
    }
    text.push_str(&format!("Measured on\n  {machine}\n  {}\n", m.settings));
    text
}

/// Returns the summary as a web page that needs no other file. `chart` is SVG.
#[must_use]
pub fn html(m: &Measurement, machine: &str, chart: &str) -> String {
    let mut body = String::new();
    for (heading, lines) in sections(m) {
        body.push_str(&format!("<h2>{}</h2>\n<table>\n", escape(heading)));
        for (label, value) in lines {
            let (label, value) = (escape(label), escape(&value));
            body.push_str(&format!("<tr><td>{label}</td><td class=\"n\">{value}</td></tr>\n"));
        }
        body.push_str("</table>\n");
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>FronDB: iiBench</title>\n<style>\n\
         body {{ font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; color: #222 }}\n\
         h1 {{ font-size: 1.5rem }} h2 {{ font-size: 1.1rem; margin-bottom: .2rem }}\n\
         td {{ padding: .1rem 1.5rem .1rem 0 }} .n {{ text-align: right }}\n\
         svg {{ max-width: 100%; height: auto }} footer {{ color: #666; margin-top: 2rem }}\n\
         </style></head><body>\n<h1>FronDB: iiBench</h1>\n{chart}\n{body}\
         <footer>{}<br>{}</footer>\n</body></html>\n",
        escape(machine),
        escape(&m.settings)
    )
}

type Section = (&'static str, Vec<(&'static str, String)>);

fn sections(m: &Measurement) -> Vec<Section> {
    let rate = |value: Option<f64>| value.map(|value| format!("{}/s", count(value)));
    let ms = |value: Option<f64>| value.map(|value| format!("{} ms", short(value)));
    let size = |value: Option<u64>| value.map(|value| bytes(value as f64));
    let times = |value: Option<f64>| value.map(short);
    let sections = [
        (
            "Insert (one primary and three secondary trees)",
            vec![
                ("rows", m.rows.map(|rows| count(rows as f64))),
                ("rows acknowledged", rate(m.rows_per_s)),
                ("rows, all background work done", rate(m.rows_per_s_settled)),
                ("rows, last fifth", rate(m.rows_per_s_last_fifth)),
                ("slowest second / median second", times(m.min_interval_ratio)),
                ("processor time a row", m.cpu_us_per_row.map(|us| format!("{} us", short(us)))),
            ],
        ),
        (
            "Latency of a batch of 1,000 rows",
            vec![
                ("median", ms(m.batch_ms_p50)),
                ("99 of 100", ms(m.batch_ms_p99)),
                ("worst", ms(m.batch_ms_max)),
            ],
        ),
        (
            "Reads after the load, one thread",
            vec![
                ("point reads by primary key", rate(m.point_ops_s)),
                ("99 of 100 of them within", ms(m.point_ms_p99)),
                ("10-entry scans of a secondary", rate(m.scan10_ops_s)),
                ("99 of 100 of them within", ms(m.scan10_ms_p99)),
                ("1,000-entry scans of a secondary", rate(m.scan1000_ops_s)),
                ("99 of 100 of them within", ms(m.scan1000_ms_p99)),
                ("entries in a full scan", rate(m.fullscan_items_s)),
            ],
        ),
        (
            "Disk and memory",
            vec![
                ("raw data", size(m.raw_bytes)),
                ("written", size(m.written_bytes)),
                ("bytes written for each user byte", times(m.written_per_raw())),
                ("size on disk", size(m.disk_bytes)),
                ("compression ratio", times(m.compression())),
                ("peak memory", size(m.rss_peak_bytes)),
            ],
        ),
    ];
    let known = |lines: Vec<(&'static str, Option<String>)>| {
        lines.into_iter().filter_map(|(label, value)| Some((label, value?))).collect()
    };
    sections.into_iter().map(|(heading, lines)| (heading, known(lines))).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_measured_figures_only() {
        let m = Measurement {
            rows_per_s: Some(123_456.0),
            raw_bytes: Some(300_000_000),
            written_bytes: Some(600_000_000),
            disk_bytes: Some(100_000_000),
            settings: "a < b".to_owned(),
            ..Measurement::default()
        };
        let text = summary(&m, "a machine");
        assert!(text.contains("123,456/s") && text.contains("2.00") && text.contains("3.00"));
        assert!(!text.contains("point reads") && text.contains("a machine"));
        let page = html(&m, "a machine", "<svg></svg>");
        assert!(page.contains("<svg></svg>") && page.contains("a &lt; b"));
    }
}
