//! Memory for blocks, arenas and I/O (rule 24): [`Buf`] is unique and writable, [`Bytes`] is
//! shared and read-only.
//!
//! The engine's large memory does not come from malloc. One thread allocates blocks of a dozen
//! sizes, and another frees them in an order that a cache decides. glibc then keeps twice what is
//! in use: free chunks lie between live ones in each of its arenas, and glibc never returns them.
//! Here every size class has slabs of its own, so a free block always fits the next request of its
//! class, and idle memory beyond a bound is returned to the kernel page by page.
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
//! Nothing here charges the memory budget: the holder of a buffer knows the part to charge, and
//! [`Buf::footprint`] says how many bytes.
//!
//! Threads: everything may be called from any thread. Each class has one lock, held for a few
//! instructions (or one system call) and never together with another lock of this module.

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
