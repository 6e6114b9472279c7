//! Histories of transactions that append to lists and read them, and the check for anomalies, after
//! Adya's definitions and Elle's idea: an append-only list shows the order of its versions, so each
//! read shows which appends came before it and which came after it.
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
//! | [`anomaly`] | the anomalies that the checks report |
//! | [`order`] | which transaction wrote which version; phenomena of single reads |
//! | [`graph`] | the required order of transactions, and cycles in it |
//! | [`check`] | the checks of each isolation level |
//! | [`broken`] | an in-memory database with selectable isolation, correct or broken |
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
