//! Histories of transactions that append to lists and read them, and their check for anomalies,
//! after Adya's definitions and Elle's idea: a list that is only appended to tells in which order
//! its versions came, so each read says what came before and what came after it.
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
//! | module | what it has |
//! |---|---|
//! | [`history`] | what is recorded |
//! | [`order`] | who wrote which version; phenomena of single reads |
//! | [`graph`] | who must come before whom, and cycles in it |
//! | [`check`] | what each isolation level allows |
//! | [`broken`] | a database in memory whose isolation is as good or as bad as asked |
//! | [`runner`] | threads on a real database that record what they did |
//!
//! All but the runner is pure and for one thread.

pub mod broken;
pub mod check;
pub mod graph;
pub mod history;
pub mod order;
pub mod runner;

pub use check::{Anomaly, check_read_committed, check_serializable, check_snapshot_isolation};
pub use history::{Event, History, KeyNumber, Outcome, Recorded};
