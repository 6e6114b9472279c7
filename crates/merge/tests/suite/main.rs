//! The tests of this crate through its public items, one behaviour per file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod folds;
mod history;
mod long_results;
mod readers;
mod skips;
