//! The rows that workloads write, which are the same for every engine.
//!
//! A [`TableRow`] is a pure function of (seed, number): a workload that deletes or checks a row
//! computes the row again and stores no copy. A [`Generator`] makes rows that resemble real data,
//! of several kinds, in the order of their numbers.

mod events;
mod generator;
mod skew;
mod source;
mod table;
mod weblog;
mod words;

pub use generator::{DATA_TREES, DataKind, Generator};
pub use table::{PRIMARY, SECONDARY_CUSTOMER, SECONDARY_REGISTER, TABLE_TREES, TableRow, probes};
