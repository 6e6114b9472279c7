//! Histories of transactions that append to lists and read them, and the check for anomalies, after
//! Adya's definitions and Elle's idea: a list that is only appended to shows the order of its
//! versions, so each read says what came before it and what came after it.
//!
//! ```text
//!  threads on a database --> History: every transaction with its appends, reads and end
//!                               |
//!                 final lists = order of versions of each key
//!                               |
//!   phenomena of one read       v          cycles
//!   G1a, G1b, lost appends,   graph of  wr, ww, rw and real time  -- components --> G0, G1c,
//!   inconsistent reads        of committed transactions                G-single, G2-item, ...
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`history`] | the record of transactions |
//! | [`anomaly`] | what the checks report |
//! | [`order`] | which transaction wrote which version; phenomena of single reads |
//! | [`graph`] | the order in which transactions must come, and cycles in it |
//! | [`check`] | what each isolation level allows |
//! | [`broken`] | an in-memory database whose isolation is as good or as bad as requested |
//! | [`runner`] | threads on a real database that record their transactions |
//!
//! All modules except the runner are pure and for one thread.

pub mod anomaly;
pub mod broken;
pub mod check;
pub mod graph;
pub mod history;
pub mod order;
pub mod runner;

pub use anomaly::Anomaly;
pub use check::{check_read_committed, check_serializable, check_snapshot_isolation};
pub use history::{Event, History, KeyNumber, Outcome, Recorded};
