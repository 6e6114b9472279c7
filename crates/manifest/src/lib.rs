//! Layer 2: the manifest, which durably lists what makes up the database. It consists of a snapshot
//! of the engine's state as bytes, the edits since then, and two superblocks that name the file
//! with both.
//!
//! ```text
//!  SUPER              MANIFEST-000006 (old)     MANIFEST-000007
//!  | slot 0: gen 6 |    removed once 7 is       | header | snapshot | carried edits | confirmed |
//!  | slot 1: gen 7 |--> confirmed               ^------- durable before slot 1 is ---^
//! ```
//!
//! Snapshots and edits are bytes to this crate; the engine encodes trees and the catalog in them.
//! The manifest has no thread of its own: [`Manifest::sync`] is group commit by a leader for its
//! followers.
//!
//! - [`Manifest::create`] creates the first manifest of a database, [`Manifest::open`] recovers
//!   one.
//! - [`Manifest::append`] and [`Manifest::sync`] log an edit; [`Manifest::secure`] also records in
//!   a superblock that the edit is durable.
//! - [`Manifest::begin_snapshot`] starts a new file without stopping edits.
//! - `docs/design/recovery.md` describes the format and all cases of startup.

mod file;
pub mod format;
mod manifest;
mod options;
mod recovery;
mod salvage;
mod snapshot;
mod state;
mod stats;
mod superblock;

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;

pub use format::{NOTE_BYTES_MAX, SUPER_FILE};
pub use manifest::{Manifest, Ticket};
pub use options::ManifestOptions;
pub use recovery::{Recovered, TornTail};
pub use salvage::salvage;
pub use snapshot::SnapshotWriter;
pub use stats::ManifestStats;
pub use superblock::NoteSource;
