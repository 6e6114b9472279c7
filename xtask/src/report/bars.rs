//! A chart of horizontal bars, as SVG. The crate `chart` draws only lines and points, and xtask
//! uses no crate of the project.
//!
//! ```text
//!   title
//!   unit            [] series a  [] series b
//!   group    |=========| 14,532
//!            |===| 1,607
//!   group    |==============| 17.0
//! ```
//! A chart has its own background, so that it is readable on a dark page.

use std::fmt::Write as _;

use super::scale::Scale;
use super::text::number;

const WIDTH: f64 = 900.0;
/// Where bars begin, and the space after the longest bar for its value.
const LEFT: f64 = 250.0;
const RIGHT: f64 = 130.0;
/// Heights: above the first group, of a bar, between groups, and below the last group.
const TOP: f64 = 96.0;
const BAR: f64 = 22.0;
const GAP: f64 = 16.0;
const BOTTOM: f64 = 34.0;
/// Approximate width of a letter in the legend.
const LETTER: f64 = 7.6;

/// A series: its name in the legend, and its colour in CSS.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) colour: &'static str,
}

/// Bars that belong together.
pub(super) struct Group {
    pub(super) name: String,
    /// The bars from top to bottom: number of the series, and value; `None` if not measured.
    pub(super) bars: Vec<(usize, Option<f64>)>,
}

pub(super) struct Chart {
    /// The name of the file, without the extension.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// Whether the axis is logarithmic: lengths then show ratios instead of differences.
    pub(super) is_log: bool,
    /// The series, which the legend explains.
    pub(super) series: Vec<Series>,
    pub(super) groups: Vec<Group>,
}

impl Chart {
    pub(super) fn file_name(&self) -> String {
        format!("{}.svg", self.name)
    }

    /// The chart as SVG text.
    pub(super) fn svg(&self) -> String {
        let bars = self.groups.iter().map(|group| group.bars.len()).sum::<usize>();
        let end = TOP + bars as f64 * BAR + self.groups.len() as f64 * GAP;
        let height = end + BOTTOM;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"14\" fill=\"#222222\">\n\
             <title>{title}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"6\" fill=\"#ffffff\"/>\n\
             <text x=\"20\" y=\"32\" font-size=\"19\" font-weight=\"bold\">{title}</text>\n",
            title = escaped(self.title)
        );
        let values =
            self.groups.iter().flat_map(|group| &group.bars).filter_map(|(_, value)| *value);
        let scale = Scale::of(self.is_log, values);
        self.legend(&mut svg);
        ticks(&mut svg, &scale, end);
        self.bars(&mut svg, &scale);
        svg + "</svg>\n"
    }

    /// Draws the unit and the colours of the series.
    fn legend(&self, svg: &mut String) {
        let scale = if self.is_log { ", logarithmic scale" } else { "" };
        let _ = writeln!(svg, "<text x=\"20\" y=\"54\">{}{scale}</text>", escaped(self.unit));
        let mut x = 20.0;
        for series in &self.series {
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.0}\" y=\"64\" width=\"14\" height=\"14\" fill=\"{}\"/>\
                 <text x=\"{:.0}\" y=\"76\">{}</text>",
                series.colour,
                x + 20.0,
                escaped(series.name)
            );
            x += 44.0 + series.name.len() as f64 * LETTER;
        }
    }

    fn bars(&self, svg: &mut String, scale: &Scale) {
        let mut y = TOP;
        for group in &self.groups {
            let middle = y + group.bars.len() as f64 * BAR / 2.0 + 5.0;
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{middle:.0}\" text-anchor=\"end\">{}</text>",
                LEFT - 10.0,
                escaped(&group.name)
            );
            for (series, value) in &group.bars {
                let colour = self.series.get(*series).map_or("#000000", |series| series.colour);
                bar(svg, scale, y, colour, *value);
                y += BAR;
            }
            y += GAP;
        }
    }
}

fn bar(svg: &mut String, scale: &Scale, y: f64, colour: &str, value: Option<f64>) {
    let base = y + BAR - 6.0;
    let Some(value) = value else {
        let x = LEFT + 8.0;
        let _ =
            writeln!(svg, "<text x=\"{x}\" y=\"{base:.0}\" fill=\"#777777\">not measured</text>");
        return;
    };
    let end = place(scale, value);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"/>\
         <text x=\"{:.1}\" y=\"{base:.0}\">{}</text>",
        (end - LEFT).max(1.0),
        BAR - 3.0,
        end + 7.0,
        number(value)
    );
}

/// Returns the x coordinate at which the bar of a value ends.
fn place(scale: &Scale, value: f64) -> f64 {
    LEFT + scale.part(value) * (WIDTH - LEFT - RIGHT)
}

fn ticks(svg: &mut String, scale: &Scale, end: f64) {
    for value in scale.ticks() {
        let x = place(scale, value);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {:.0}V{end:.0}\" stroke=\"#dddddd\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"12\">{}</text>",
            TOP - 8.0,
            end + 18.0,
            tick(value)
        );
    }
}

/// Returns the label of a tick, without trailing zeros.
fn tick(value: f64) -> String {
    match value {
        large if large >= 100.0 => number(large),
        small => {
            let text = format!("{small:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(is_log: bool, bars: Vec<(usize, Option<f64>)>) -> Chart {
        Chart {
            name: "a",
            title: "Rows & bytes",
            unit: "rows a second",
            is_log,
            series: vec![
                Series { name: "TokuDB", colour: "#111111" },
                Series { name: "FronDB", colour: "#222222" },
            ],
            groups: vec![Group { name: "end of the load".to_owned(), bars }],
        }
    }

    #[test]
    fn a_chart_has_title_unit_legend_and_values() {
        let svg = chart(true, vec![(0, Some(14_532.0)), (1, None)]).svg();
        for text in [
            "Rows &amp; bytes",
            "rows a second, logarithmic scale",
            ">TokuDB<",
            ">FronDB<",
            ">end of the load<",
            ">14,532<",
            ">not measured<",
            "fill=\"#ffffff\"",
        ] {
            assert!(svg.contains(text), "{text} is missing: {svg}");
        }
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn bars_end_left_of_their_values() {
        let scale = Scale::of(false, [1.0, 100.0].into_iter());
        assert_eq!((place(&scale, 0.0), place(&scale, 100.0)), (LEFT, WIDTH - RIGHT));
    }
}
