//! The order of commits and who still reads the past: [`SeqOracle`] numbers messages and says up
//! to where they are visible, [`Snapshots`] lists the SeqNos that somebody reads at.
//!
//! ```text
//!  commit: reserve -- log, insert into memtables -- publish --> visible
//!  reader:            pin the version, then read `visible`       (point reads)
//!                     take a snapshot -- ... -- drop it          (cursors, transactions)
//!  job:               live() --> which versions of a key must be kept
//! ```
//!
//! Layer 1: knows only `frondb-core`.

mod oracle;
mod snapshots;

pub use oracle::SeqOracle;
pub use snapshots::{LiveSnapshots, Snapshot, Snapshots};
