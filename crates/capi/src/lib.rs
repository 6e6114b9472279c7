//! FronDB for C and C++: what stands behind `include/frondb.h`, which is written from this source.
//!
//! ```text
//!   C or C++ program, MariaDB plugin --> frondb.h --> this crate --> frondb
//! ```
//! | module | what is in it |
//! |---|---|
//! | [`handle`] | tables of live objects: a handle is a number and never dereferenced |
//! | [`slice`] | all that reads or writes the caller's memory |
//! | [`call`] | what every function is wrapped in: no panic leaves it |
//! | [`error`], [`error_fields`] | errors as objects, and what C reads from them |
//! | the others | the functions, by what they are about |
//!
//! Invariants: a handle that is null, freed, of another type or never was one makes an error and
//! nothing else. An object is used by many threads at once, or by one, as its functions say; the
//! second thread gets `Busy`. No panic crosses the boundary. `unsafe` code is in `slice`
//! only.

#![allow(non_camel_case_types, reason = "these are the names in C")]

/// glibc makes connections that share an arena wait for each other, and a heap for each thread keeps memory
/// for each connection. Configured in `.cargo/config.toml`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

mod batch;
mod buffer;
mod bulk;
mod call;
mod cursor;
mod db;
mod deadlock;
mod entries;
mod error;
mod error_fields;
mod figures;
mod files;
mod handle;
mod list;
mod locks;
mod log;
mod options;
mod salvage;
mod slice;
mod snapshot;
mod transaction;
mod transactions;
mod tree;
mod tree_options;
mod tuple;
mod two_phase;
mod update;
mod verify;
mod version;

pub use batch::*;
pub use buffer::*;
pub use bulk::*;
pub use cursor::*;
pub use db::*;
pub use deadlock::*;
pub use entries::*;
pub use error::*;
pub use error_fields::*;
pub use figures::*;
pub use files::*;
pub use handle::frondb_live_handles;
pub use list::*;
pub use locks::*;
pub use log::*;
pub use options::*;
pub use salvage::*;
pub use slice::*;
pub use snapshot::*;
pub use transaction::*;
pub use transactions::*;
pub use tree::*;
pub use tree_options::*;
pub use tuple::*;
pub use two_phase::*;
pub use update::*;
pub use verify::*;
pub use version::*;
