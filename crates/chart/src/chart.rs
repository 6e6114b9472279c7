//! The contents of a chart, as plain data.

/// How values are mapped to positions on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Distances are proportional to differences of values.
    Linear,
    /// Distances are proportional to ratios of values, with ticks at powers of two; values must be
    /// above 0.
    Log2,
    /// Distances are proportional to ratios of values, with ticks at powers of ten; values must be
    /// above 0.
    Log10,
}

/// An axis of a chart.
#[derive(Clone, Debug)]
pub struct Axis<'a> {
    /// The text beside the axis.
    pub title: &'a str,
    /// How values are mapped to positions.
    pub scale: Scale,
    /// The first and the last value of the axis.
    pub range: (f64, f64),
    /// Turns a value into the label of a tick.
    pub label: fn(f64) -> String,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A line through the points.
    Line,
    /// A line of dashes through the points.
    Dashes,
    /// A dot at each point.
    Dots,
    /// A large cross at each point.
    Crosses,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    /// Name in the legend; no entry if empty.
    pub name: &'a str,
    /// The points: each has a value of the horizontal axis and a value of the vertical axis.
    pub points: &'a [(f64, f64)],
    /// How the points are drawn.
    pub mark: Mark,
    /// Number of the colour: series with the same number have the same colour.
    pub colour: usize,
}

/// The position of the legend, which lists the names of the series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Legend {
    /// No legend.
    None,
    /// At the top left: for lines that rise.
    UpperLeft,
    /// At the right, in the middle.
    MiddleRight,
}

/// A chart as plain data.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// The text above the chart.
    pub title: &'a str,
    /// The horizontal axis.
    pub x: Axis<'a>,
    /// The vertical axis.
    pub y: Axis<'a>,
    /// The series of points; later ones cover earlier ones.
    pub series: &'a [Series<'a>],
    /// The position of the legend.
    pub legend: Legend,
}
