//! The order of commits, snapshots, and the locks of transactions: [`SeqOracle`] numbers messages
//! and decides up to which SeqNo they are visible, [`Snapshots`] lists the SeqNos at which readers
//! read, and [`LockManager`] makes transactions wait for each other.
//!
//! ```text
//!  commit: reserve -- log, insert into memtables -- publish --> visible
//!  reader:            pin the version, then read `visible`       (point reads)
//!                     take a snapshot -- ... -- drop it          (cursors, transactions)
//!  job:               live() --> which messages of a key must be kept
//! ```
//!
//! The lock manager consists of one [`LockTable`] for each tree and one [`Locker`] for each
//! transaction; see docs/design/mvcc-and-locks.md.
//!
//! | files | subject |
//! |---|---|
//! | `oracle`, `snapshots` | SeqNos and the snapshots that read at them |
//! | `class`, `key`, `ranges`, `own`, `packed` | the kinds of locks, and how they are stored |
//! | `graph`, `queue`, `table`, `held`, `locker` | waits, locks of a tree and of a transaction |
//! | `request`, `wait`, `escalate` | the actions of a locker: request, wait, bound its memory |
//! | `manager`, `inspect`, `info`, `deadlock` | the entry point, and data for the status |
//!
//! Layer 1: depends on `frondb-core` only.

mod batch_latch;
mod bounds;
mod class;
mod deadlock;
mod escalate;
mod graph;
mod held;
mod info;
mod inspect;
#[cfg(all(test, not(shuttle)))]
mod join_tests;
mod key;
mod lazy_state;
mod locker;
mod manager;
#[cfg(all(test, not(shuttle)))]
mod model_tests;
mod oracle;
mod own;
mod packed;
mod queue;
mod ranges;
mod request;
mod snapshots;
mod table;
mod table_state;
mod wait;
mod wait_hook;

pub use class::LockMode;
pub use deadlock::DeadlockInfo;
pub use info::{LockCounts, LockInfo, LockStats, Locked, WaitInfo};
pub use locker::{Acquired, Canceller, LockWait, Locker};
pub use manager::{LockManager, LockOptions};
pub use oracle::SeqOracle;
pub use snapshots::{LiveSnapshots, Snapshot, Snapshots};
pub use table::{LockTable, Unlocked};
pub use wait_hook::{WaitHook, WaitNotice};
