//! Deletes: what readers skip, and when the space is freed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod empty_ranges;
mod idle_space;
mod optimize;
mod optimize_failures;
mod queue;
mod queue_histories;
mod range_edges;
mod tombstone_runs;
