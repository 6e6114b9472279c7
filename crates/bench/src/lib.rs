//! The benchmark: every workload, measurement and report, and no engine but FronDB's own.
//!
//! The engines to compare with live in `frondb-bench-peers`, which hands a [`Registry`] with all
//! of them to [`driver::main`]; the binary of this crate does so with FronDB alone. What is
//! measured, how, and what it cannot tell: `docs/benchmarks.md`.
//!
//! ```text
//!  driver   command line -> plan -> rounds x engines -> medians -> table, JSON, chart
//!    |  spawns itself                                              report
//!    v
//!  child    joins a memory cgroup, opens ONE engine, runs ONE workload, prints ONE JSON object
//!    |                |                    |
//!  engine::Engine   workload (rows)      measure (clock, /proc, disk, cgroup)
//! ```
//!
//! An engine gets a process of its own because peak memory, processor time and written bytes are
//! counted by the kernel for a process, and because an engine that crashes or is killed for its
//! memory must not take the others along.

pub mod driver;
pub mod engine;
pub mod engines;
pub mod error;
pub mod measure;
pub mod report;
pub mod rows;
pub mod workload;

pub use driver::Registry;
pub use error::{Error, Result};
