//! Cursors: what they show, what they pin, and how they fail.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod errors;
mod leaps;
mod pins;
mod scripts;
mod versions;
