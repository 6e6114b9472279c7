//! Transactions: isolation, locks, two-phase commit, and transactions larger than memory.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod bulk_statements;
mod disjoint_keys;
mod full_disk;
mod large;
mod list;
mod locking_reads;
mod next;
mod overlay;
mod own_messages;
mod prepared;
mod scripts;
mod settings;
mod takers;
