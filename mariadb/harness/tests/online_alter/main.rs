//! ALTER TABLE in place while others write: afterwards no write is lost, and each index has an
//! entry for every row, and no other entries.
//!
//! Writers insert, change, move and delete rows in transactions that are partly rolled back, while
//! one connection changes the table without blocking them. Between two changes the test blocks the
//! writers for a moment and compares.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "a failed test shows what it printed")]

mod indexes;
mod rebuilds;
mod writers;
