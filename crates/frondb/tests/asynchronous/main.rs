//! Asynchronous calls: they return what the calls that wait return, answer at once from memory, and
//! always end: after a failed read, a drop, a close, a panic.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking; seeds")]

mod ends;
mod gets;
mod ranges;
mod support;
mod syncs;
