//! Layer 0: charts as SVG text. A chart is plain data; [`Chart::svg`] draws it. The crate knows
//! nothing of the subject of a chart.

mod chart;
mod draw;

pub use chart::{Axis, Chart, Legend, Mark, Scale, Series};
pub use draw::DrawError;
