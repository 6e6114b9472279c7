//! Level 0: charts as SVG text. A chart is plain data; [`Chart::svg`] draws it. Independent of the
//! subject of the chart.

mod chart;
mod draw;

pub use chart::{Axis, Chart, Legend, Mark, Scale, Series};
pub use draw::DrawError;
