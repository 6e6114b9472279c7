//! Layer 2: the write-ahead log. One ordered log of byte payloads in segments, with group commit,
//! recycling, and a replay that never takes damage for a torn tail.
//!
//! ```text
//!  append --> buffer in memory --> write_to: the kernel has it --> sync_to: the disk has it
//!             (one lock)           (one leader writes for all)     (one leader syncs for all)
//! ```
//!
//! The log knows nothing of what it carries: payloads are bytes, the engine encodes and decodes
//! them, and says from which Lsn on they are still needed. It has no thread of its own.
//!
//! - [`Wal::open`] gives a [`Replay`] of what is there; [`Replay::finish`] gives the [`Wal`].
//! - [`Wal`] is shared by all committing threads.
//! - `docs/design/wal-and-commit.md` has the format and the protocol, `recovery.md` the cases.

mod files;
pub mod format;
mod log;
mod mark;
mod options;
pub mod owner;
mod replay;
mod salvage;
mod segment;
mod state;
mod stats;
mod waiters;
mod writer;

#[doc(hidden)]
pub mod fuzz;

pub use log::{Appended, Wal};
pub use mark::MARK_FILE;
pub use options::{SyncMode, WalOptions};
pub use replay::{Record, Replay, Reread, TornTail};
pub use salvage::salvage;
pub use stats::WalStats;
