//! Memory for blocks, arenas and I/O (rule 24): [`Buf`] is unique and writable, [`Bytes`] is
//! shared and read-only.
//!
//! The engine does not take large blocks from malloc. One thread allocates blocks of many sizes,
//! and another thread frees them in an order that depends on the cache. With glibc, the process
//! then has twice the memory that is in use: free pieces lie between used ones in each of its
//! arenas, and glibc never returns them to the kernel. Here every size class has its own slabs, so
//! a free block always fits the next request of its class. Idle memory beyond a limit is returned
//! to the kernel page by page.
//!
//! ```text
//!   Buf / Bytes --> Block --> < 1 KiB        ordinary heap
//!                         +-> 1 KiB..4 MiB   class, slab of <= 64 blocks (mapped; a bitmap)
//!                         +-> > 4 MiB        a mapping of its own
//! ```
//!
//! | file | role |
//! |---|---|
//! | `class.rs` | the table of sizes |
//! | `pages.rs` | a mapping of the kernel (or, under Miri, of the ordinary allocator) |
//! | `slab.rs` | blocks of one size in one mapping |
//! | `allocator.rs` | the process-wide allocator, its counters, returning memory to the kernel |
//! | `buf.rs` | [`Buf`] and [`Bytes`] |
//! | `array.rs` | [`Array`]: a vector in such a block |
//! | `heap.rs` | returning memory that malloc keeps |
//!
//! This module does not charge the memory budget. The owner of a buffer knows which part to charge,
//! and [`Buf::footprint`] returns how many bytes.
//!
//! Threads: any thread may call any function. Each class has one lock, which a thread holds for a
//! few instructions and for system calls that map and return memory, but never together with
//! another lock of this module.

mod allocator;
mod array;
mod buf;
mod class;
mod heap;
mod pages;
mod slab;

pub use allocator::{IdleMemory, Stats, stats, trim};
pub use array::Array;
pub use buf::{Buf, Bytes};
pub use heap::trim_heap;
