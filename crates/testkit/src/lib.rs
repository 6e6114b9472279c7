//! Helpers for the tests of all crates: crash points, temporary directories, fuzz smoke tests.
//!
//! | module | purpose |
//! |---|---|
//! | [`clock`] | a clock that never advances |
//! | [`crash`] | run a history, lose power at every call, check the remaining data |
//! | [`dir`](mod@dir) | a directory that is removed after the test |
//! | [`functions`] | update functions |
//! | [`fuzz`] | random and mutated bytes for decoders, from a seed |
//! | `schedules` | shuttle's checkers for tests with deep stacks; only with `--cfg shuttle` |
//! | [`seed`] | seeds from the environment, so that a failure can be replayed |
//! | [`timed`] | a device with a known start-up time, bandwidth and limits |
//! | [`virtual_time`] | a clock that jumps when all threads sleep, and their executor |
//!
//! This crate uses only `core` and `device`, so every crate above can use it in its tests.

pub mod clock;
pub mod crash;
pub mod dir;
pub mod functions;
pub mod fuzz;
#[cfg(shuttle)]
pub mod schedules;
pub mod seed;
pub mod timed;
pub mod virtual_time;

pub use clock::StillClock;
pub use crash::{
    Crash, CrashReport, CrashTest, crash_while_running, for_each_crash_point,
    for_each_crash_point_from,
};
pub use dir::TempDir;
