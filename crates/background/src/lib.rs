//! Layer 8: background work: flushes, merges, checkpoints, what commits wait for, and what is done when
//! nothing is written.
//!
//! ```text
//!  commits --> admission, pacing <-- debt --+
//!  readers --> hints -----> planning --> Queue --> worker --> jobs/ --> install --> manifest, versions
//! ```
//!
//! | file | role |
//! |---|---|
//! | `background.rs` | what there is of it in an open database |
//! | `queue.rs`, `priority.rs` | what is due, what is under way, what comes next |
//! | `worker.rs` | takes tasks, steps jobs, what happens when one fails; a full disk; idle maintenance |
//! | `planning.rs` | nodes that have changed are planned anew |
//! | `jobs/` | what flushes and merges do, and the one install |
//! | `group.rs` | small memtables of many trees, flushed together |
//! | `admission.rs`, `pacing.rs`, `throttle.rs` | what commits wait for; a limit on what jobs write |
//! | `checkpoint.rs`, `period.rs`, `log_pins.rs`, `manifest_snapshot.rs` | how far the log is needed |
//! | `probe.rs` | finds ranges of keys that are empty |
//! | `room.rs` | flushes and merges of a recovery |
//! | `context.rs`, `counters.rs` | what jobs take; what they have done |
//!
//! Planning is pure, jobs do I/O without locks, an install is short.

mod admission;
mod background;
mod checkpoint;
mod context;
mod counters;
mod failures;
mod freezing;
mod full_disk;
mod group;
mod idle;
pub mod jobs;
mod log_pins;
mod manifest_snapshot;
mod pacing;
mod period;
mod planning;
pub mod priority;
mod probe;
mod queue;
mod room;
mod tasks;
mod throttle;
mod worker;

pub use admission::{CHECK_EVERY, FULL_TRIES, Load};
pub use background::Background;
pub use checkpoint::{FEW_TREES, RELOG_BYTES_MAX};
pub use context::JobContext;
pub use counters::JobFigures;
pub use log_pins::LogPins;
pub use period::check_period;
pub use planning::{plan_all, replan};
pub use queue::{Due, Next, Queue, Task};
pub use room::Room;
pub use throttle::Throttle;
pub use worker::worker;
