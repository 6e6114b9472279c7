//! Layer 8: background work. It flushes, merges and makes checkpoints, makes commits wait for that
//! work, and maintains an idle database.
//!
//! ```text
//!  commits -> admission, pacing <- debt -+
//!  readers --> hints -> planning --> Queue --> worker --> jobs/ --> install --> manifest, versions
//! ```
//!
//! | file | role |
//! |---|---|
//! | `background.rs`, `background/` | the background work of an open database |
//! | `queue.rs`, `queue/`, `priority.rs` | the work that is due, and the choice of the next task |
//! | `jobs/` | the jobs, and the install that ends each of them |
//! | `planning.rs` | plans the nodes that have changed |
//! | `damage.rs` | records data that background work cannot read and leaves alone |
//! | `packing.rs`, `dictionaries.rs` | the dictionaries with which leaves are packed |
//! | `pacing.rs`, `throttle.rs` | slow commits by the debt; limit the rate at which jobs write |
//! | `period.rs`, `log_pins.rs` | checkpoints by time; the log that prepared transactions need |
//! | `recovery_flusher.rs` | flushes and merges during recovery |
//! | `context.rs`, `counters.rs` | the handles that jobs get; counts of their work |
//!
//! Planning is pure, jobs do I/O without locks, and an install holds its locks only briefly.

mod background;
mod context;
mod counters;
mod damage;
mod dictionaries;
pub mod jobs;
mod log_pins;
mod pacing;
mod packing;
mod period;
mod planning;
pub mod priority;
mod queue;
mod recovery_flusher;
mod throttle;

pub use background::{
    Background, Cut, FEW_TREES, FailedLeaf, Load, OptimizeOptions, OptimizeReport, RELOG_BYTES_MAX,
    stow, worker,
};
pub use context::JobContext;
pub use counters::{BackgroundStats, Latencies};
pub use log_pins::LogPins;
pub use planning::{plan_all, replan, replan_all};
pub use queue::{Due, Next, Queue, Task, ValueJobs};
pub use recovery_flusher::RecoveryFlusher;
pub use throttle::Throttle;
