//! The memtable: the newest messages of one tree, ordered, in memory.
//!
//! A commit puts its messages here after they are in the log; readers find them here first; when
//! the write buffer is full the memtable is frozen and a flush scans it once, in key order.
//!
//! [`Memtable`] explains the structure. Two things decide its shape: a commit hands over whole
//! batches, and readers and the one writer must not wait for each other. So messages are sorted
//! a batch at a time into immutable arrays that are published by swapping a pointer.
//!
//! Layer 1: knows only `frondb-core`.

mod arena;
mod array;
mod cursor;
mod filter;
mod gather;
mod memtable;
mod order;
mod probes;
mod ranges;
mod shared;
mod skim;
mod tiers;
mod tombstone_run;
mod writer;

pub use cursor::MemCursor;
pub use memtable::{Memtable, MemtableStats};
pub use shared::Entry;
