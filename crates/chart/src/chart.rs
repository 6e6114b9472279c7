//! What a chart shows.

/// How values are mapped to places on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// In proportion to their distance.
    Linear,
    /// In proportion to their ratio, with ticks at powers of two; values must be above 0.
    Log2,
    /// In proportion to their ratio, with ticks at powers of ten; values must be above 0.
    Log10,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis<'a> {
    /// The name beside it.
    pub title: &'a str,
    /// Its scale.
    pub scale: Scale,
    /// Its first and its last value.
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
    /// The points.
    pub points: &'a [(f64, f64)],
    /// How they are drawn.
    pub mark: Mark,
    /// Number of the colour: series of one number have one colour.
    pub colour: usize,
}

/// Where the names of the series are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Legend {
    /// Nowhere.
    None,
    /// At the left, above: for lines that rise.
    UpperLeft,
    /// At the right, in the middle.
    MiddleRight,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// The text above it.
    pub title: &'a str,
    /// The horizontal axis.
    pub x: Axis<'a>,
    /// The vertical axis.
    pub y: Axis<'a>,
    /// What it shows; later ones cover earlier ones.
    pub series: &'a [Series<'a>],
    /// Where the names of the series are.
    pub legend: Legend,
}
