//! The chart of rows a second over time, as SVG text.

use plotters::prelude::*;

use super::format::count;
use crate::error::{Error, Result};
use crate::measure::Sample;

const SIZE: (u32, u32) = (960, 420);
const COLOURS: [RGBColor; 5] = [
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0x2c, 0xa0, 0x2c),
    RGBColor(0x94, 0x67, 0xbd),
    RGBColor(0x8c, 0x56, 0x4b),
];

/// Draws the rows acknowledged in each second, one line for each named series.
pub fn rows_chart(title: &str, series: &[(&str, &[Sample])]) -> Result<String> {
    let lines: Vec<(&str, Vec<(f64, f64)>)> =
        series.iter().map(|(name, samples)| (*name, rates(samples))).collect();
    let points = || lines.iter().flat_map(|(_, points)| points);
    let end = points().map(|(t, _)| *t).fold(1.0, f64::max);
    let top = points().map(|(_, rate)| *rate).fold(1.0, f64::max) * 1.08;
    let mut svg = String::new();
    draw(&mut svg, title, &lines, end, top)
        .map_err(|error| Error::Usage(format!("cannot draw the chart: {error}")))?;
    Ok(svg)
}

/// The rates between adjacent samples, from the start of the clock on. The second of the last row
/// is left out, unless it is the only one: it is cut short and would look like a stall.
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

fn draw(
    svg: &mut String,
    title: &str,
    lines: &[(&str, Vec<(f64, f64)>)],
    end: f64,
    top: f64,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(92)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .label_style(("sans-serif", 16))
        .x_desc("seconds")
        .y_desc("rows a second")
        .x_label_formatter(&|t| count(*t))
        .y_label_formatter(&|rate| count(*rate))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (place, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    if lines.len() > 1 {
        chart
            .configure_series_labels()
            .label_font(("sans-serif", 16))
            .background_style(WHITE)
            .border_style(BLACK)
            .draw()?;
    }
    area.present()?;
    Ok(())
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
