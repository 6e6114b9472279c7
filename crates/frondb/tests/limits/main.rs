//! Limits of memory, disk and background work, and what an engine does at its limits.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod background;
mod busy_engine;
mod cached_rows;
mod catalog_no_space;
mod concurrent_checkpoints;
mod dropped_trees;
mod full_disk;
mod hot_rows;
mod memory_changes;
mod multi_get;
mod scanned_memtables;
mod steps;
