//! Layer 2: extents in large data files. Who needs room for a run, a base or a large value
//! acquires extents here and writes them once; when the last view of it is gone, it releases them.
//!
//! Nothing about free space is on disk: the manifest lists the extents in use, and what it does
//! not list is free. So no crash can leave the two in disagreement, and an allocation costs no
//! write. `docs/design/space.md` has the whole picture.
//!
//! | file | role |
//! |---|---|
//! | `extent.rs` | [`Extent`], the unit of allocation |
//! | `format.rs` | its encoding |
//! | `options.rs` | [`SpaceOptions`] |
//! | `ranges.rs` | a set of page ranges that coalesces |
//! | `free.rs` | free ranges by start and by size: where the next extent comes from |
//! | `file_space.rs` | one data file's pages: free, promised by the file system, punched |
//! | `space.rs` | [`Space`]: open, acquire, shrink, release, read, write |
//! | `files.rs` | the data files themselves: names, opening, what was written since the last sync |
//! | `group_sync.rs` | one fsync for all who ask at the same time |
//! | `hold.rs` | [`Hold`]: releasing when the last reader is gone |
//! | `reclaim.rs` | giving space back to the file system |

mod extent;
mod file_space;
mod files;
mod format;
mod free;
#[doc(hidden)]
pub mod fuzz;
mod group_sync;
mod hold;
mod options;
mod ranges;
mod reclaim;
mod space;

pub use extent::{Class, Extent};
pub use files::lengthen;
pub use hold::Hold;
pub use options::SpaceOptions;
pub use reclaim::{Reclaim, TailMove};
pub use space::{Space, Stats};
