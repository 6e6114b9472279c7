//! The chart as SVG, and a web page with the charts and the tables, which needs no other file.

use std::path::Path;

use frondb::device::{Line, Model, Point, ThreadLine};
use frondb_chart::{Axis, Chart, Legend, Mark, Scale, Series};

use super::findings::Findings;
use super::table::{Table, escape};
use super::tables::{headline, points_table, tables};
use super::units::{binary, time};
use crate::failure::Failure;

/// Number of points of a curve for each doubling of the size.
const STEPS: usize = 8;
/// The colour of the datasheet's line.
const DATASHEET_COLOUR: usize = 4;

/// A file to draw into.
pub(super) struct ChartFile<'a> {
    pub(super) path: &'a Path,
    is_page: bool,
}

impl<'a> ChartFile<'a> {
    /// Describes the file at `path`; its extension determines the contents.
    pub(super) fn of(path: &'a Path) -> Result<Self, Failure> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_page = match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => false,
            Some("html" | "htm") => true,
            _ => {
                let message =
                    format!("--chart {}: the name must end in .svg or .html", path.display());
                return Err(Failure::usage(message));
            }
        };
        Ok(Self { path, is_page })
    }

    /// Returns the contents of the file: a page with all charts, or the chart of reads as SVG.
    pub(super) fn contents(&self, findings: &Findings) -> Result<String, Failure> {
        let svgs = findings.models.iter().map(|model| svg(findings, model));
        match self.is_page {
            true => Ok(page(findings, &svgs.collect::<Result<Vec<String>, Failure>>()?)),
            false => svgs.take(1).collect::<Result<String, Failure>>(),
        }
    }
}

/// Points of a chart: size of the request in bytes, and time in seconds.
type Points = Vec<(f64, f64)>;

/// Draws the chart of one operation as SVG.
fn svg(findings: &Findings, model: &Model) -> Result<String, Failure> {
    let measured: Vec<&Point> = findings
        .measured
        .points
        .iter()
        .filter(|point| point.operation == model.operation)
        .collect();
    let sizes = measured.iter().map(|point| point.bytes as f64);
    let first = sizes.clone().fold(f64::INFINITY, f64::min);
    let last = sizes.fold(0.0, f64::max);
    let lines = model.lines.iter().enumerate();
    let drawn: Vec<(usize, String, Points, Points)> = lines
        .map(|(colour, of_threads)| {
            let points = measured.iter().filter(|point| point.threads == of_threads.threads);
            let points = points.map(|point| (point.bytes as f64, point.seconds_between)).collect();
            let curve = curve((first, last), |bytes| fitted(model, of_threads, bytes));
            let name = match of_threads.threads {
                1 => "1 thread".to_owned(),
                threads => format!("{threads} threads"),
            };
            (colour, name, points, curve)
        })
        .collect();
    let datasheet =
        findings.datasheet.map(|line| curve((first, last), |bytes| line.seconds(bytes)));
    let half_powers: Points = half_powers(model, findings.datasheet.as_ref())
        .filter(|(bytes, _)| (first..=last).contains(bytes))
        .collect();

    let mut series = Vec::new();
    for (colour, name, points, curve) in &drawn {
        let of = |name, points, mark| Series { name, points, mark, colour: *colour };
        series.push(of("", curve, Mark::Line));
        series.push(of(name, points, Mark::Dots));
    }
    if let Some(line) = &datasheet {
        let mark = Mark::Dashes;
        series.push(Series { name: "datasheet", points: line, mark, colour: DATASHEET_COLOUR });
    }
    let (name, mark) = ("half-power point", Mark::Crosses);
    series.push(Series { name, points: &half_powers, mark, colour: DATASHEET_COLOUR });
    let title = format!("Time of a {}: T = S + B/W", model.operation.name());
    let x = Axis {
        title: "size of the request",
        scale: Scale::Log2,
        range: (first, last * 1.05),
        label: |bytes| binary(bytes.round() as u64),
    };
    let y = Axis {
        title: "time of the device",
        scale: Scale::Log10,
        range: decades(series.iter().flat_map(|series| series.points)),
        label: time,
    };
    let chart = Chart { title: &title, x, y, series: &series, legend: Legend::UpperLeft };
    chart.svg().map_err(|error| Failure::usage(error.to_string()))
}

/// Computes the time of a request by the model, seconds: the line, or a limit if that is slower.
fn fitted(model: &Model, of_threads: &ThreadLine, bytes: f64) -> f64 {
    let line = of_threads.line.map_or(0.0, |line| line.seconds(bytes));
    line.max(model.limits.seconds(bytes))
}

/// Returns the points at which the transfer takes half of the time: one on each line, and the knee,
/// which is the size at which requests meet both limits.
fn half_powers<'a>(
    model: &'a Model,
    datasheet: Option<&'a Line>,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let lines = model.lines.iter().filter_map(|of_threads| of_threads.line.as_ref());
    let knee = model.limits.knee_bytes().map(|bytes| (bytes, model.limits.seconds(bytes)));
    let of_line = |line: &Line| {
        let bytes = line.half_power_bytes()?;
        Some((bytes, line.seconds(bytes)))
    };
    lines.chain(datasheet).filter_map(of_line).chain(knee)
}

/// Computes the points of a curve over sizes, dense enough to look smooth. Omits sizes without a
/// time above 0.
fn curve((first, last): (f64, f64), seconds: impl Fn(f64) -> f64) -> Points {
    let doublings = (last / first).log2();
    let steps = (doublings * STEPS as f64).ceil().max(1.0) as usize;
    let at = |step| first * (doublings * step as f64 / steps as f64).exp2();
    (0..=steps).map(at).map(|bytes| (bytes, seconds(bytes))).filter(|(_, s)| *s > 0.0).collect()
}

/// Returns the range of powers of ten that contains all points.
fn decades<'a>(points: impl Iterator<Item = &'a (f64, f64)>) -> (f64, f64) {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (_, seconds) in points {
        (least, most) = (least.min(*seconds), most.max(*seconds));
    }
    let first = least.log10().floor();
    (10_f64.powf(first), 10_f64.powf(most.log10().ceil().max(first + 1.0)))
}

fn page(findings: &Findings, charts: &[String]) -> String {
    let name = escape(&findings.dir.display().to_string());
    let lines = escape(&headline(findings)).replace('\n', "<br>");
    let mut body: String = tables(findings).iter().map(Table::html).collect();
    body.push_str(&points_table(&findings.measured.points).html());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>FronDB: device of {name}</title>\n<style>\n\
         body {{ font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; color: #222 }}\n\
         h1 {{ font-size: 1.5rem }} h2 {{ font-size: 1.1rem; margin-bottom: .2rem }}\n\
         td, th {{ padding: .1rem 1.2rem .1rem 0; text-align: right }} p {{ margin: .2rem 0 }}\n\
         svg {{ max-width: 100%; height: auto }}\n\
         </style></head><body>\n<h1>Device of {name}</h1>\n<p>{lines}</p>\n{}\n{body}</body></html>\n",
        charts.join("\n")
    )
}
