//! The benchmark: all workloads, measurements and reports. FronDB is its only storage engine.
//!
//! The engines to compare with are in `frondb-bench-peers`, which calls [`driver::main`] with a
//! [`Registry`] of all engines. The binary of this crate has FronDB alone.
//! `docs/benchmark-method.md` describes the workloads, the method and the limits of the figures.
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
//! Each engine runs in a process of its own, because the kernel counts peak memory, processor time
//! and written bytes per process. Also, an engine that crashes, or that the kernel kills for its
//! use of memory, must not end the measurements of the others.

mod codec;
pub mod driver;
pub mod engine;
pub mod engines;
pub mod error;
pub mod kernel;
pub mod measure;
pub mod report;
pub mod rows;
pub mod workload;

pub use driver::Registry;
pub use error::{Error, Result};
