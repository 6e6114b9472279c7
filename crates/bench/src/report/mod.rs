//! From measurements to something to read: medians of rounds, a table with ratios, JSON, charts.

mod chart;
mod format;
mod measurement;
mod median;
mod page;
mod table;

pub use chart::rows_chart;
pub use format::{bytes, count};
pub use measurement::Measurement;
pub use median::median;
pub use page::{html, summary};
pub use table::table;
