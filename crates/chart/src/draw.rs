//! Draws charts with `plotters`. This module maps values to the scale of an axis itself, so that
//! one kind of coordinate system draws all charts.

use std::fmt;

use plotters::prelude::*;

use crate::chart::{Axis, Chart, Legend, Mark, Scale, Series};

const SIZE: (u32, u32) = (960, 420);
const COLOURS: [RGBColor; 5] = [
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0x2c, 0xa0, 0x2c),
    RGBColor(0x94, 0x67, 0xbd),
    RGBColor(0x8c, 0x56, 0x4b),
];
/// Length of a dash, and of the gap after it, pixels.
const DASHES: (i32, i32) = (8, 5);

/// The reason why a chart could not be drawn.
#[derive(Debug)]
pub struct DrawError(String);

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot draw the chart: {}", self.0)
    }
}

impl std::error::Error for DrawError {}

impl Chart<'_> {
    /// Draws the chart as SVG text.
    ///
    /// # Errors
    /// [`DrawError`] if the range of an axis is empty, if the scale of the axis cannot show it (a
    /// logarithm of 0 or less), or if `plotters` fails.
    pub fn svg(&self) -> Result<String, DrawError> {
        for axis in [&self.x, &self.y] {
            axis.check()?;
        }
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| DrawError(error.to_string()))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (x, y) = (&self.x, &self.y);
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(92)
            .build_cartesian_2d(x.interval(), y.interval())?;
        chart
            .configure_mesh()
            .label_style(("sans-serif", 16))
            .x_desc(x.title)
            .y_desc(y.title)
            .x_labels(x.ticks())
            .y_labels(y.ticks())
            .x_label_formatter(&|at| x.text(*at))
            .y_label_formatter(&|at| y.text(*at))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for series in self.series {
            let points: Vec<(f64, f64)> =
                series.points.iter().map(|point| (x.place(point.0), y.place(point.1))).collect();
            let style = series.style();
            let drawn = match series.mark {
                Mark::Line => chart.draw_series(LineSeries::new(points, style))?,
                Mark::Dashes => {
                    let (dash, gap) = DASHES;
                    chart.draw_series(DashedLineSeries::new(points, dash, gap, style))?
                }
                Mark::Dots => chart
                    .draw_series(points.into_iter().map(|at| Circle::new(at, 4, style.filled())))?,
                Mark::Crosses => {
                    chart.draw_series(points.into_iter().map(|at| Cross::new(at, 9, style)))?
                }
            };
            if !series.name.is_empty() {
                drawn
                    .label(series.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            }
        }
        let position = match self.legend {
            Legend::None => None,
            Legend::UpperLeft => Some(SeriesLabelPosition::UpperLeft),
            Legend::MiddleRight => Some(SeriesLabelPosition::MiddleRight),
        };
        if let Some(position) = position {
            chart
                .configure_series_labels()
                .position(position)
                .label_font(("sans-serif", 16))
                .background_style(WHITE)
                .border_style(BLACK)
                .draw()?;
        }
        area.present()?;
        Ok(())
    }
}

impl Series<'_> {
    fn style(&self) -> ShapeStyle {
        COLOURS[self.colour % COLOURS.len()].stroke_width(2)
    }
}

impl Axis<'_> {
    fn check(&self) -> Result<(), DrawError> {
        let (first, last) = self.range;
        let has_places = self.place(first).is_finite() && self.place(last).is_finite();
        match has_places && first < last {
            true => Ok(()),
            false => Err(DrawError(format!("its axis {} is from {first} to {last}", self.title))),
        }
    }

    /// Returns the position of a value on the linear axis that is drawn.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log2 => value.log2(),
            Scale::Log10 => value.log10(),
        }
    }

    fn interval(&self) -> std::ops::Range<f64> {
        self.place(self.range.0)..self.place(self.range.1)
    }

    /// Returns the label of the tick at a position.
    fn text(&self, place: f64) -> String {
        let value = match self.scale {
            Scale::Linear => place,
            Scale::Log2 => place.exp2(),
            Scale::Log10 => 10_f64.powf(place),
        };
        (self.label)(value)
    }

    /// Returns the maximum number of ticks: on a logarithmic axis one for each power, so that the
    /// labels are round numbers.
    fn ticks(&self) -> usize {
        match self.scale {
            Scale::Linear => 10,
            Scale::Log2 | Scale::Log10 => {
                (self.place(self.range.1) - self.place(self.range.0)).ceil() as usize + 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, range: (f64, f64)) -> Axis<'static> {
        Axis { title: "an axis", scale, range, label: |value| format!("<{value:.0}>") }
    }

    fn chart<'a>(series: &'a [Series<'a>], x: Axis<'a>, y: Axis<'a>) -> Chart<'a> {
        Chart { title: "the title", x, y, series, legend: Legend::UpperLeft }
    }

    #[test]
    fn every_mark_is_drawn_with_its_name() {
        let points = [(4.0, 1.0), (16.0, 64.0)];
        let series = [
            (Mark::Line, "a line"),
            (Mark::Dashes, "dashes"),
            (Mark::Dots, "dots"),
            (Mark::Crosses, "crosses"),
        ]
        .map(|(mark, name)| Series { name, points: &points, mark, colour: 0 });
        let scales = [
            (Scale::Linear, "&lt;14&gt;"),
            (Scale::Log2, "&lt;8&gt;"),
            (Scale::Log10, "&lt;10&gt;"),
        ];
        for (scale, tick) in scales {
            let (x, y) = (axis(scale, (4.0, 16.0)), axis(scale, (1.0, 64.0)));
            let svg = chart(&series, x, y).svg().unwrap_or_else(|error| panic!("{error}"));
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            assert!(svg.contains("<circle") && svg.contains("<polyline"));
            for text in ["the title", "an axis", "a line", "dashes", "dots", "crosses", tick] {
                assert!(svg.contains(text), "{text} is not in the chart: {svg}");
            }
        }
    }

    #[test]
    fn an_axis_without_places_is_an_error() {
        for (scale, range) in [
            (Scale::Log2, (0.0, 1.0)),
            (Scale::Linear, (1.0, 1.0)),
            (Scale::Linear, (0.0, f64::NAN)),
        ] {
            let whole = axis(Scale::Linear, (0.0, 1.0));
            let error = chart(&[], whole, axis(scale, range)).svg().err();
            assert!(error.is_some_and(|error| error.to_string().contains("an axis")));
        }
    }
}
