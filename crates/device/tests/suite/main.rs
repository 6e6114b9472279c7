//! The tests of this crate through its public items, one behaviour per file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
mod copy_on_write;
mod other_kinds;
mod read_many;
