//! The measurements: clocks, and the kernel's counters of a process and of its disk. None of them
//! asks the engine.

pub mod cgroup;
pub mod disk;
mod histogram;
pub mod machine;
mod marks;
pub mod process;
mod sampler;
mod throttle;
mod windows;

pub use histogram::Histogram;
pub use marks::Marks;
pub use sampler::{Observer, Sample, Sampler};
pub use throttle::{DiskLimit, GroupWrites, Throttle};
pub use windows::{Windows, settling_stalls, slowest_to_median};
