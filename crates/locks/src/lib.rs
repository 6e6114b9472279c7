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

mod class;
mod deadlock;
mod escalate;
mod gate;
mod graph;
mod info;
mod key;
mod locker;
mod manager;
#[cfg(all(test, not(shuttle)))]
mod model_tests;
mod oracle;
mod own;
mod packed;
mod ranges;
mod snapshots;
mod table;
mod wait;
mod watch;

pub use class::LockMode;
pub use deadlock::DeadlockInfo;
pub use info::{LockCounts, LockInfo, LockStats, Locked, WaitInfo};
pub use locker::{Canceller, Locker};
pub use manager::{Acquired, LockManager, LockOptions, LockWait};
pub use oracle::SeqOracle;
pub use snapshots::{LiveSnapshots, Snapshot, Snapshots};
pub use table::{LockTable, Unlocked};
pub use watch::{WaitHook, WaitNotice};
