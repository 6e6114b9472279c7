//! Cursors: what they show, what they pin, and how they fail. Also estimates of the number of
//! entries.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod errors;
mod estimates;
mod leaps;
mod pins;
mod ranges;
mod scripts;
mod short_ranges;
mod versions;
