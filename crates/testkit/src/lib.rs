//! Helpers for the tests of all crates: devices, crash points, temporary directories, fuzz smoke
//! tests.
//!
//! | module | purpose |
//! |---|---|
//! | [`clock`] | a clock that never advances |
//! | [`crash`] | run a history, lose power at every call, check the remaining data |
//! | [`dir`](mod@dir) | a directory that is removed after the test |
//! | [`faults`] | a device with errors, flipped bits and a full disk by script |
//! | [`functions`] | update functions |
//! | [`fuzz`] | random and mutated bytes for decoders, from a seed |
//! | [`memory`] | an in-memory device that forgets and tears unsynced writes in a simulated crash |
//! | `schedules` | shuttle's checkers for tests with deep stacks; only with `--cfg shuttle` |
//! | [`seed`] | seeds from the environment, so that a failure can be replayed |
//! | [`throttle`] | a device that limits bytes and calls per second |
//! | [`timed`] | a device with a known start-up time, bandwidth and limits |
//! | [`trace`] | a device that records its calls as lines of text |
//! | [`virtual_time`] | a clock that jumps when all threads sleep, and their executor |
//!
//! This crate uses only `core` and `device`, so every crate above can use it in its tests.

pub mod clock;
pub mod crash;
pub mod dir;
pub mod faults;
pub mod functions;
pub mod fuzz;
pub mod memory;
mod operation;
#[cfg(shuttle)]
pub mod schedules;
pub mod seed;
pub mod throttle;
pub mod timed;
pub mod trace;
pub mod virtual_time;

pub use clock::StillClock;
pub use crash::{
    Crash, CrashReport, CrashTest, crash_while_running, for_each_crash_point,
    for_each_crash_point_from,
};
pub use dir::TempDir;
pub use faults::{FaultDevice, Faults};
pub use memory::{CrashMode, MemoryDevice};
pub use throttle::{Throttle, ThrottleDevice};
pub use trace::{Trace, TraceDevice};
