//! Layer 2: the manifest, the durable list of everything else. A snapshot of the engine's state as
//! bytes, the edits since then, and two superblocks that say which file holds them.
//!
//! ```text
//!  SUPER              MANIFEST-000006 (old)     MANIFEST-000007
//!  | slot 0: gen 6 |    removed once 7 is       | header | snapshot | carried edits | confirmed | edits ...
//!  | slot 1: gen 7 |--> confirmed               ^------- durable before slot 1 is ---^
//! ```
//!
//! Snapshots and edits are bytes to this crate; trees and the catalog are encoded in them alike. It
//! has no thread of its own: [`Manifest::sync`] is group commit by leader and followers.
//!
//! - [`Manifest::create`] makes a database's first manifest, [`Manifest::open`] recovers one.
//! - [`Manifest::append`] and [`Manifest::sync`] log an edit; [`Manifest::secure`] also has a superblock know
//!   of it.
//! - [`Manifest::begin_snapshot`] starts a new file without stopping edits.
//! - `docs/design/recovery.md` has the format and all cases of start-up.

mod file;
pub mod format;
mod manifest;
mod options;
mod recovery;
mod salvage;
mod snapshot;
mod stats;
mod superblock;

#[doc(hidden)]
pub mod fuzz;

pub use format::SUPER_FILE;
pub use manifest::{Manifest, Ticket};
pub use options::ManifestOptions;
pub use recovery::{Recovered, TornTail};
pub use salvage::salvage;
pub use snapshot::SnapshotWriter;
pub use stats::ManifestStats;
