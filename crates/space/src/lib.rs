//! Layer 2: extents in large data files. The writer of a run, a base or a large value acquires
//! extents here and writes them once; the owner of the last reference releases them.
//!
//! Free space is not recorded on disk: the manifest lists the extents in use, and all other pages
//! are free. So no crash can make the two disagree, and an allocation costs no write.
//! `docs/design/space.md` has the whole picture.
//!
//! | file | role |
//! |---|---|
//! | `extent.rs` | [`Extent`], the unit of allocation |
//! | `format.rs` | the encoding of an extent |
//! | `options.rs` | [`SpaceOptions`] |
//! | `ranges.rs` | a set of page ranges that coalesces |
//! | `free.rs` | free ranges by start and by size, from which extents are taken |
//! | `file_space.rs` | one data file's pages: free, reserved by the file system, punched |
//! | `state.rs` | the free space of all files, and the search for a range |
//! | `space.rs` | [`Space`]: open, acquire, shrink, release, read, write |
//! | `reads.rs` | [`ExtentRead`]: several reads at once |
//! | `growth.rs` | reserving disk space, extending and creating files |
//! | `stats.rs` | [`Stats`] |
//! | `files.rs` | the data files: names, opening, and which were written since the last sync |
//! | `group_sync.rs` | one fsync for all concurrent requests |
//! | `hold.rs` | [`Hold`]: releases extents with their last reader |
//! | `retention.rs`, `retained.rs` | [`Retention`]: keeps extents for a backup |
//! | `reclaim.rs` | returning space to the file system |

mod extent;
mod file_space;
mod files;
mod format;
mod free;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
mod group_sync;
mod growth;
mod hold;
mod options;
mod ranges;
mod reads;
mod reclaim;
mod retained;
mod retention;
mod space;
mod state;
mod stats;

pub use extent::{Class, Extent};
pub use files::{data_file_name, extend_files};
pub use hold::Hold;
pub use options::SpaceOptions;
pub use reads::ExtentRead;
pub use reclaim::{Reclaim, TailMove};
pub use retention::Retention;
pub use space::Space;
pub use stats::Stats;
