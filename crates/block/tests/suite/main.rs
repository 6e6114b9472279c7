//! The tests of this crate through its public items, one behaviour per file.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

mod codecs;
mod ended;
mod golden;
mod hostile;
mod round_trip;
mod shapes;
