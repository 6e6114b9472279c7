//! What is measured and where it comes from. Everything is the kernel's word about this process or
//! its disk, never an engine's about itself.

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
pub use throttle::{DiskLimit, Throttle};
pub use windows::{Windows, settling_stalls, slowest_to_median};
