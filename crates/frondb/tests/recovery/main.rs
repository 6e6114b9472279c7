//! The contents of a database after power loss, after damage to its files, and after a salvage.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod atomicity;
mod cut_files;
mod damaged_blocks;
mod log_dir;
mod long_log;
mod new_trees;
mod prefix_truncation;
mod salvage;
mod salvage_stops;
mod small_trees;
mod sync_choices;
