//! The order of commits, who still reads the past, and who has locked what: [`SeqOracle`] numbers
//! messages and says up to where they are visible, [`Snapshots`] lists the SeqNos that somebody
//! reads at, [`LockManager`] makes transactions wait for each other.
//!
//! ```text
//!  commit: reserve -- log, insert into memtables -- publish --> visible
//!  reader:            pin the version, then read `visible`       (point reads)
//!                     take a snapshot -- ... -- drop it          (cursors, transactions)
//!  job:               live() --> which versions of a key must be kept
//! ```
//!
//! The lock manager is one [`LockTable`] for each tree and one [`Locker`] for each transaction; see
//! docs/design/mvcc-and-locks.md.
//!
//! Layer 1: knows only `frondb-core`.

mod batch_latch;
mod class;
mod deadlock;
mod escalate;
mod graph;
mod held;
mod info;
mod inspect;
mod key;
mod locker;
mod manager;
#[cfg(all(test, not(shuttle)))]
mod model_tests;
mod oracle;
mod own;
mod packed;
mod ranges;
mod request;
mod snapshots;
mod table;
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
