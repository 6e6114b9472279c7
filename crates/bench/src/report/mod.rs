//! Turns measurements into reports: medians of rounds, a table with ratios, JSON, charts.

mod chart;
mod columns;
mod compression_table;
mod figure;
mod measurement;
mod median;
mod numbers;
mod page;
mod read_case;
mod read_table;
mod table;

pub use chart::rows_chart;
pub use compression_table::compression_table;
pub use figure::{Figure, Met, figures};
pub use measurement::Measurement;
pub use median::{median, median_of};
pub use numbers::{bytes, count};
pub use page::{html, summary};
pub use read_case::ReadCase;
pub use read_table::read_tables;
pub use table::table;
