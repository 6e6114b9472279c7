//! The memtable: the newest messages of one tree, ordered, in memory.
//!
//! A commit puts its messages here once they are in the log. A reader searches the memtable before
//! anything else. When the write buffer is full, the memtable is frozen and a flush scans it once,
//! in key order.
//!
//! [`Memtable`] explains the structure. Two requirements decide its shape: a commit hands over
//! whole batches, and readers and the single writer must not wait for each other. Therefore each
//! batch is sorted into an immutable array, and arrays are published by swapping a pointer.
//!
//! Layer 1: depends only on `frondb-core`.

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
mod tiers;
mod tombstone_run;
mod visible;
mod writer;

pub use cursor::MemCursor;
pub use memtable::{Memtable, MemtableStats};
pub use shared::Entry;
