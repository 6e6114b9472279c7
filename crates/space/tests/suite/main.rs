//! The tests of this crate through its public items, one behaviour per file.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod model;
mod posix;
mod retention;
mod script;
mod threads;
