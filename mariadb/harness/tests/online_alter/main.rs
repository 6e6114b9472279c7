//! ALTER TABLE in place while others write. Afterwards no write is lost, and each index has exactly
//! one entry for every row.
//!
//! Writers insert, change, move and delete rows in transactions, some of which are rolled back.
//! Meanwhile one connection changes the table without blocking them. Between two changes the test
//! briefly blocks the writers and compares the tables.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "a failed test shows what it printed")]

mod indexes;
mod rebuilds;
mod writers;
