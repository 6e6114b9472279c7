//! Level 0: charts as SVG text. A chart is plain data; [`Chart::svg`] draws it. Knows nothing of what
//! it shows.

mod chart;
mod draw;

pub use chart::{Axis, Chart, Legend, Mark, Scale, Series};
pub use draw::DrawError;
