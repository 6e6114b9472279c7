//! Opening and closing a database: what is created, what is refused, and what stays usable. Also
//! wrong calls on an open database, a closed database, and a dropped tree.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod attached;
mod bad_calls;
mod bad_databases;
mod close;
mod kept;
mod lifecycle;
mod log_dir;
mod read_only;
mod refused;
mod tree_options;
