//! Layer 0: charts as SVG text. A chart is plain data; [`Chart::svg`] draws it. The crate does not
//! know what a chart is about.

mod chart;
mod draw;

pub use chart::{Axis, Chart, Legend, Mark, Scale, Series};
pub use draw::DrawError;
