//! Layer 2: the write-ahead log. One ordered log of byte payloads in segments, with group commit,
//! recycling of files, and a replay that takes a bad record for a torn tail only if nothing proves
//! that the record was durable (rule 9).
//!
//! ```text
//!  append --> buffer in memory --> write_to: the kernel has it --> sync_to: the disk has it
//!             (one lock)           (one leader writes for all)     (one leader syncs for all)
//! ```
//!
//! The log does not interpret its payloads; the crate `records` defines the meaning of their bytes.
//! The caller of [`Wal::recycle`] decides which records are still needed. The log has no thread of
//! its own.
//!
//! - [`Wal::open`] returns a [`Replay`] of the existing records; [`Replay::finish`] returns the
//!   [`Wal`].
//! - All committing threads share the [`Wal`].
//! - `docs/design/wal-and-commit.md` describes the format and the protocol; `recovery.md` lists
//!   what a replay may find at the end of the log.

mod copy;
mod files;
pub mod format;
mod log;
mod mark;
mod open;
mod options;
pub mod owner;
mod replay;
mod salvage;
mod segment;
mod state;
mod stats;
mod waiters;
mod writer;

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;

pub use copy::{KeptSegments, give_to};
pub use log::Wal;
pub use mark::MARK_FILE;
pub use options::{SyncMode, WalOptions};
pub use replay::{Record, Replay, SecondPass, TornTail};
pub use salvage::salvage;
pub use state::Appended;
pub use stats::WalStats;
