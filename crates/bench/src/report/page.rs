//! The one-page summary of `run`: as text for a terminal, and as a web page with the chart. It has a
//! column for each engine.

use super::Measurement;
use super::numbers::{bytes, count, short};

/// Returns the summary as text, at most one screen. `machine` describes the machine.
#[must_use]
pub fn summary(engines: &[Measurement], machine: &str) -> String {
    let names: String = engines.iter().map(|m| format!("{:>14}", m.engine)).collect();
    let mut text = format!("{:<36}{names}\n", "");
    for (heading, lines) in sections(engines) {
        text.push_str(heading);
        text.push('\n');
        for (label, values) in lines {
            let values: String = values.iter().map(|value| format!("{value:>14}")).collect();
            text.push_str(&format!("  {label:<34}{values}\n"));
        }
    }
    if let Some(comparison) = comparison(engines) {
        text.push_str(&format!("{comparison}\n"));
    }
    text.push_str(&format!("Measured on\n  {machine}\n"));
    for m in engines {
        text.push_str(&format!("  {}\n", settings(m)));
    }
    text
}

/// Returns the summary as a web page that needs no other file. `chart` is SVG.
#[must_use]
pub fn html(engines: &[Measurement], machine: &str, chart: &str) -> String {
    let cell = |tag, value: &str| format!("<{tag} class=\"n\">{}</{tag}>", escape(value));
    let names: String = engines.iter().map(|m| cell("th", &m.engine)).collect();
    let mut body = String::new();
    for (heading, lines) in sections(engines) {
        body.push_str(&format!("<tr><th>{}</th>{names}</tr>\n", escape(heading)));
        for (label, values) in lines {
            let values: String = values.iter().map(|value| cell("td", value)).collect();
            body.push_str(&format!("<tr><td>{}</td>{values}</tr>\n", escape(label)));
        }
    }
    let comparison = escape(&comparison(engines).unwrap_or_default());
    let footer: String = engines.iter().map(|m| format!("<br>{}", escape(&settings(m)))).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>FronDB: iiBench</title>\n<style>\n\
         body {{ font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; \
         color: #222 }}\n\
         h1 {{ font-size: 1.5rem }} th {{ text-align: left; padding: 1rem 1.5rem .2rem 0 }}\n\
         td {{ padding: .1rem 1.5rem .1rem 0 }} .n {{ text-align: right }}\n\
         svg {{ max-width: 100%; height: auto }} footer {{ color: #666; margin-top: 2rem }}\n\
         </style></head><body>\n<h1>FronDB: iiBench</h1>\n{chart}\n<p>{comparison}</p>\n<table>\n{body}</table>\n\
         <footer>{}{footer}</footer>\n</body></html>\n",
        escape(machine),
    )
}

/// Returns what the figures of the first engine and of the second one come to, in one sentence. The
/// rate is the one with all background work done.
fn comparison(engines: &[Measurement]) -> Option<String> {
    let [one, other] = engines else { return None };
    let rate = one.rows_per_s_settled? / other.rows_per_s_settled?;
    let written = other.written_per_raw()? / one.written_per_raw()?;
    Some(format!(
        "{} inserted {} times as many rows a second as {}, which wrote {} times as many bytes for each \
         byte of the rows.",
        one.engine,
        short(rate),
        other.engine,
        short(written)
    ))
}

/// Returns the settings of an engine, or why it has no figures.
fn settings(m: &Measurement) -> String {
    m.error.as_ref().map_or_else(|| m.settings.clone(), |error| format!("{}: {error}", m.engine))
}

/// A heading and its lines: a label, and a value for each engine.
type Section = (&'static str, Vec<(&'static str, Vec<String>)>);

/// Returns the figures that at least one engine has.
fn sections(engines: &[Measurement]) -> Vec<Section> {
    let columns: Vec<_> = engines.iter().map(figures).collect();
    let Some(first) = columns.first() else { return Vec::new() };
    let lines = |section: usize| {
        let of =
            |line: usize| columns.iter().map(move |figures| figures[section].1[line].1.clone());
        let labels = first[section].1.iter().map(|(label, _)| *label).enumerate();
        labels
            .filter(|(line, _)| of(*line).any(|value| value.is_some()))
            .map(|(line, label)| (label, of(line).map(Option::unwrap_or_default).collect()))
            .collect::<Vec<_>>()
    };
    first
        .iter()
        .enumerate()
        .map(|(section, (heading, _))| (*heading, lines(section)))
        .filter(|(_, lines)| !lines.is_empty())
        .collect()
}

type Figures = Vec<(&'static str, Vec<(&'static str, Option<String>)>)>;

/// Returns the figures of an engine. All engines have the same sections and lines.
fn figures(m: &Measurement) -> Figures {
    let rate = |value: Option<f64>| value.map(|value| format!("{}/s", count(value)));
    let ms = |value: Option<f64>| value.map(|value| format!("{} ms", short(value)));
    let size = |value: Option<u64>| value.map(|value| bytes(value as f64));
    let times = |value: Option<f64>| value.map(short);
    vec![
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
    ]
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_measured_figures_of_each_engine() {
        let m = Measurement {
            engine: "one".to_owned(),
            rows_per_s: Some(123_456.0),
            rows_per_s_settled: Some(100.0),
            raw_bytes: Some(300_000_000),
            written_bytes: Some(600_000_000),
            disk_bytes: Some(100_000_000),
            settings: "a < b".to_owned(),
            ..Measurement::default()
        };
        let other = Measurement {
            engine: "other".to_owned(),
            rows: Some(77),
            rows_per_s_settled: Some(40.0),
            raw_bytes: Some(10),
            written_bytes: Some(100),
            ..Measurement::default()
        };
        let text = summary(&[m.clone(), other.clone()], "a machine");
        assert!(text.contains("123,456/s") && text.contains("2.00") && text.contains("3.00"));
        assert!(!text.contains("point reads") && text.contains("a machine"));
        let sentence =
            "one inserted 2.50 times as many rows a second as other, which wrote 5.00 times";
        assert!(text.contains(sentence), "{text}");
        assert!(text.contains("one") && text.contains("other") && text.contains("77"), "{text}");
        let page = html(&[m, other], "a machine", "<svg></svg>");
        assert!(page.contains("<svg></svg>") && page.contains("a &lt; b"));
        assert!(page.contains("<td class=\"n\">77</td>"), "{page}");
    }

    #[test]
    fn an_engine_without_figures_says_why() {
        let failed = Measurement {
            engine: "other".to_owned(),
            error: Some("killed".to_owned()),
            ..Measurement::default()
        };
        assert!(summary(std::slice::from_ref(&failed), "").contains("other: killed"));
        assert!(html(&[failed], "", "").contains("other: killed"));
    }
}
