//! Writes: batches, bulk loads, large values, update functions, and the order of commits.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod batch_sizes;
mod bulk_load;
mod codecs;
mod commit_order;
mod large_values;
mod long_updates;
mod missing_function;
mod packing;
mod sequential;
mod stalls;
