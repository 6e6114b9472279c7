//! The rows that workloads write. Each is a pure function of (seed, number): a workload that
//! deletes or checks a row computes it again instead of remembering it, and every engine gets the
//! same rows.

mod log;
mod table;

pub use log::{LOG_TREES, LogRow};
pub use table::{PRIMARY, SECONDARY_CUSTOMER, SECONDARY_REGISTER, TABLE_TREES, TableRow, probes};
