//! Wear: what a database writes to its drive. The parts that write count here, by cause; the totals
//! are kept across restarts with samples of the last hour, and say how long a drive lasts.
//!
//! | file | contents |
//! |---|---|
//! | `counters.rs` | the causes, and the counters of an open database |
//! | `history.rs` | totals over time |
//! | `report.rs` | what a user asks for, and the lifetime of a drive |
//! | `text.rs` | both as a page and as named numbers |

mod counters;
mod history;
mod report;
mod text;

pub use counters::{WriteCause, WriteCounters, WriteSums, Writes};
pub use history::{History, SAMPLES_MAX, Sample};
pub use report::{Wear, Written, lifetime};
pub use text::{Lifetimes, WearPage};
