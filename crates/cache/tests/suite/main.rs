//! The tests of this crate through its public items, one behaviour per file.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod budget;
mod rows;
mod scan_resistance;
