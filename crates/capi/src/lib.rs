//! FronDB for C and C++: the functions of `include/frondb.h`, which is generated from this source.
//!
//! ```text
//!   C or C++ program, MariaDB plugin --> frondb.h --> this crate --> frondb
//! ```
//! | module | contents |
//! |---|---|
//! | `handle` | tables of live objects: a handle is a number and never dereferenced |
//! | `slice` | everything that reads or writes the caller's memory |
//! | `call` | the wrappers of the functions: no panic leaves them |
//! | `error`, `error_fields` | errors as objects, and what C reads from them |
//! | the others | the functions, by subject |
//!
//! Invariants: a pointer that is NULL, freed, of another type or not a handle causes an error and
//! nothing worse. The comment of each function says whether several threads may use its object at
//! the same time; if not, a second thread gets `Busy`. No panic crosses the boundary. `unsafe` code
//! is only in `slice`.

#![allow(non_camel_case_types, reason = "these are the names in C")]

/// jemalloc, configured in `.cargo/config.toml`. With the allocator of glibc, threads that share an
/// arena wait for its lock, and an arena for each thread would keep freed memory for each
/// connection.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

mod backup;
mod batch;
mod buffer;
mod bulk;
mod call;
mod cursor;
mod db;
mod deadlock;
mod device;
mod entries;
mod error;
mod error_fields;
mod events;
mod files;
mod handle;
mod list;
mod locks;
mod log;
mod optimize;
mod options;
mod salvage;
mod slice;
mod snapshot;
mod stats;
mod transaction;
mod transactions;
mod tree;
mod tree_options;
mod tuple;
mod two_phase;
mod update;
mod verify;
mod version;

pub use backup::*;
pub use batch::*;
pub use buffer::*;
pub use bulk::*;
pub use cursor::*;
pub use db::*;
pub use deadlock::*;
pub use device::*;
pub use entries::*;
pub use error::*;
pub use error_fields::*;
pub use events::*;
pub use files::*;
pub use handle::frondb_live_handles;
pub use list::*;
pub use locks::*;
pub use log::*;
pub use optimize::*;
pub use options::*;
pub use salvage::*;
pub use slice::*;
pub use snapshot::*;
pub use stats::*;
pub use transaction::*;
pub use transactions::*;
pub use tree::*;
pub use tree_options::*;
pub use tuple::*;
pub use two_phase::*;
pub use update::*;
pub use verify::*;
pub use version::*;
