//! The chart of rows a second over time, as SVG text.

use frondb_chart::{Axis, Chart, Legend, Mark, Scale, Series};

use super::numbers::count;
use crate::error::{Error, Result};
use crate::measure::Sample;

/// Draws the rows acknowledged in each second, one line for each named series.
pub fn rows_chart(title: &str, series: &[(&str, &[Sample])]) -> Result<String> {
    let lines: Vec<(&str, Vec<(f64, f64)>)> =
        series.iter().map(|(name, samples)| (*name, rates(samples))).collect();
    let points = || lines.iter().flat_map(|(_, points)| points);
    let end = points().map(|(t, _)| *t).fold(1.0, f64::max);
    let top = points().map(|(_, rate)| *rate).fold(1.0, f64::max) * 1.08;
    let axis = |title, last| Axis { title, scale: Scale::Linear, range: (0.0, last), label: count };
    let series: Vec<Series<'_>> = lines
        .iter()
        .enumerate()
        .map(|(colour, (name, points))| Series { name, points, mark: Mark::Line, colour })
        .collect();
    let (x, y) = (axis("seconds", end), axis("rows a second", top));
    let legend = if series.len() > 1 { Legend::MiddleRight } else { Legend::None };
    Chart { title, x, y, series: &series, legend }
        .svg()
        .map_err(|error| Error::Usage(error.to_string()))
}

/// Returns the rates between adjacent samples, beginning at time 0. Leaves out the second in which
/// the last row was written, because the load ended within that second and its rate would look like
/// a stall, and the seconds after it. The first second always stays.
fn rates(samples: &[Sample]) -> Vec<(f64, f64)> {
    let loaded = samples.partition_point(|s| samples.last().is_some_and(|last| s.rows < last.rows));
    let whole = loaded.max(1);
    let mut before = (0.0, 0);
    let mut points = Vec::with_capacity(samples.len());
    for sample in samples.iter().take(whole) {
        let (t, rows) = before;
        let rate = sample.rows.saturating_sub(rows) as f64 / (sample.t_s - t).max(1e-9);
        points.push((sample.t_s, rate));
        before = (sample.t_s, sample.rows);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t_s: f64, rows: u64) -> Sample {
        Sample { t_s, rows, written_bytes: 0, resident_bytes: 0, cpu_s: 0.0 }
    }

    #[test]
    fn rates_are_of_whole_seconds() {
        let samples = [sample(1.0, 100), sample(2.0, 300), sample(3.0, 310), sample(4.0, 310)];
        assert_eq!(rates(&samples), [(1.0, 100.0), (2.0, 200.0)]);
        assert_eq!(rates(&samples[..1]), [(1.0, 100.0)]);
        assert!(rates(&[]).is_empty());
    }

    #[test]
    fn the_chart_is_svg_with_title_axes_and_names() {
        let samples = [sample(1.0, 100_000), sample(2.0, 300_000), sample(3.0, 350_000)];
        let svg = rows_chart("the title", &[("one", &samples), ("two", &samples[..2])]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in ["the title", "seconds", "rows a second", "one", "two", "100,000"] {
            assert!(svg.contains(text), "{text} is not in the chart");
        }
        assert!(rows_chart("empty", &[("none", &[])]).unwrap().contains("empty"));
    }
}
