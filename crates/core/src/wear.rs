//! Wear: the writes of a database to its drive. Code that writes counts its bytes here, by cause.
//! The totals survive restarts, with samples of the last hour, from which the lifetime of a drive
//! is estimated.
//!
//! | file | contents |
//! |---|---|
//! | `counters.rs` | the causes, and the counters of an open database |
//! | `history.rs` | totals over time |
//! | `report.rs` | the report to a user, and the lifetime of a drive |
//! | `text.rs` | the report as a page and as named numbers |

mod counters;
mod history;
mod report;
mod text;

pub use counters::{WriteCause, WriteCounters, WriteSums, Writes};
pub use history::{History, SAMPLES_MAX, Sample};
pub use report::{Wear, Written, lifetime};
pub use text::{Lifetimes, WearPage};
