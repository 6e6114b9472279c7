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
//! | `background.rs` | the background work of an open database |
//! | `queue.rs`, `queue/`, `priority.rs` | the work that is due, and the choice of the next task |
//! | `worker.rs`, `tasks.rs` | the loop of a worker thread, and how it carries out a task |
//! | `failures.rs`, `full_disk.rs` | what follows a failed job; work on a full disk |
//! | `damage.rs` | data that cannot be read, and is left alone |
//! | `idle.rs` | idle maintenance |
//! | `planning.rs` | plans the nodes that have changed |
//! | `jobs/` | the jobs, and the install that ends each of them |
//! | `group.rs` | flushes small memtables of many trees together |
//! | `packing.rs`, `dictionaries.rs` | the dictionaries with which leaves are packed |
//! | `admission.rs`, `pacing.rs` | write stalls: what a commit waits for |
//! | `throttle.rs` | a rate limit on what jobs write |
//! | `optimize.rs`, `optimize/` | consolidates a tree at the request of a user |
//! | `freezing.rs` | freezes memtables |
//! | `waiting.rs` | waits for background work, or does it on the calling thread |
//! | `checkpoint.rs`, `period.rs`, `log_pins.rs` | trimming the log; checkpoints by time |
//! | `manifest_snapshot.rs` | replaces the manifest's edits by a snapshot |
//! | `probe.rs` | probes for known-empty ranges |
//! | `recovery_flusher.rs` | flushes and merges during recovery |
//! | `stowing.rs` | stows trees that nothing uses |
//! | `context.rs`, `counters.rs` | the handles that jobs get; counts of their work |
//!
//! Planning is pure, jobs do I/O without locks, and an install holds its locks only briefly.

mod admission;
mod background;
mod checkpoint;
mod context;
mod counters;
mod damage;
mod dictionaries;
mod failures;
mod freezing;
mod full_disk;
mod group;
mod idle;
pub mod jobs;
mod log_pins;
mod manifest_snapshot;
mod optimize;
mod pacing;
mod packing;
mod period;
mod planning;
pub mod priority;
mod probe;
mod queue;
mod recovery_flusher;
mod stowing;
mod tasks;
mod throttle;
mod waiting;
mod worker;

pub use admission::Load;
pub use background::Background;
pub use checkpoint::{FEW_TREES, RELOG_BYTES_MAX};
pub use context::JobContext;
pub use counters::{BackgroundStats, Latencies};
pub use log_pins::LogPins;
pub use manifest_snapshot::Cut;
pub use optimize::{FailedLeaf, OptimizeOptions, OptimizeReport};
pub use planning::{plan_all, replan, replan_all};
pub use queue::{Due, Next, Queue, Task, ValueJobs};
pub use recovery_flusher::RecoveryFlusher;
pub use stowing::stow;
pub use throttle::Throttle;
pub use worker::worker;
