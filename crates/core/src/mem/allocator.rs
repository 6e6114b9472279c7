//! The process-wide allocator behind [`Buf`](super::Buf): size classes of slabs, exact counters,
//! and a limit on idle memory.
//!
//! The allocator belongs to the process and not to a database: memory that one database frees
//! serves the next, and a buffer needs no handle to return to it.
//!
//! How idle memory is limited: a class allocates from its oldest slab first, so the younger slabs
//! run empty. An empty slab is unmapped as soon as the idle bytes exceed half the limit, unless
//! little of the slab is resident: a buffer that is allocated for each read, and is often the only
//! one of its class, must not map and unmap a slab for each read. If the idle bytes exceed the
//! limit nevertheless (after a change of load, live blocks are scattered over many slabs), idle
//! blocks lose their pages, largest class first, until half the limit is left. The limit is a
//! sixteenth of the bytes in use and at least 4 MiB (less if the open databases allow less; see
//! [`IdleMemory`]). A steady load frees and allocates equal amounts and never reaches the limit, so
//! it causes neither system calls nor page faults.
//!
//! The locks are parking_lot's own and not those of `sync`: an allocation is no scheduling point
//! worth exploring, and shuttle's locks cannot live in a static.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::class::{CLASS_BYTES_MAX, CLASS_BYTES_MIN, CLASSES, class_bytes, class_for};
use super::pages::Pages;
use super::slab::Slab;

/// The limit on idle bytes is never below this, unless the open databases allow less: about as much
/// as one merge allocates and frees.
const IDLE_BYTES_MIN: usize = 4 << 20;
/// The limit on idle bytes is the bytes in use divided by this, if that exceeds the minimum.
const IDLE_DIVISOR: usize = 16;
/// An empty slab counts as small, and stays mapped, if its idle bytes are at most the limit on idle
/// bytes divided by this: a few read buffers.
const SMALL_SLAB_DIVISOR: usize = 32;
pub(super) const BLOCK_ALIGN: usize = 16;

/// The allocator's counters, in bytes. Each counter is exact; they are read one after the other, so
/// they may be of different moments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Address space mapped for slabs and large buffers.
    pub mapped_bytes: u64,
    /// Blocks that are in use, or idle and possibly resident. The other mapped bytes were never
    /// touched, or were returned to the kernel.
    pub resident_bytes: u64,
    /// Blocks in use, by the size of their class.
    pub used_bytes: u64,
    /// Buffers below a kibibyte, which lie on the ordinary heap (not included in the other three).
    pub heap_bytes: u64,
}

struct Class {
    /// Slabs by number; a number is reused once its slab was unmapped.
    slabs: Vec<Option<Slab>>,
    vacant: BTreeSet<u32>,
    /// Numbers of the slabs with a free block. The lowest number is used first.
    partial: BTreeSet<u32>,
}

static CLASS: [Mutex<Class>; CLASSES] = [const {
    Mutex::new(Class { slabs: Vec::new(), vacant: BTreeSet::new(), partial: BTreeSet::new() })
}; CLASSES];

static MAPPED: AtomicUsize = AtomicUsize::new(0);
static RESIDENT: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
static HEAP: AtomicUsize = AtomicUsize::new(0);
/// The sum of the bytes that the [`IdleMemory`] objects allow; 0 if there are none.
static IDLE_ALLOWED: AtomicUsize = AtomicUsize::new(0);
/// Set while one thread returns idle memory; other threads then skip the attempt.
static RETURNING_IDLE: AtomicBool = AtomicBool::new(false);

/// The current counters.
#[must_use]
pub fn stats() -> Stats {
    let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) as u64;
    Stats {
        mapped_bytes: load(&MAPPED),
        resident_bytes: load(&RESIDENT),
        used_bytes: load(&USED),
        heap_bytes: load(&HEAP),
    }
}

/// Returns all idle memory to the kernel. For a database that closes or falls idle.
pub fn trim() {
    trim_to(0);
}

/// Initialised memory with one owner; dropping it returns it to its origin.
pub(super) struct Block {
    start: NonNull<u8>,
    bytes: usize,
    origin: Origin,
}

enum Origin {
    /// The ordinary heap; no memory if the block is empty.
    Heap,
    Slab {
        class: u8,
        block: u8,
        slab: u32,
    },
    /// Boxed, because this case is rare and would otherwise enlarge every block.
    Mapping(Box<Pages>),
}

// SAFETY: only the block refers to its bytes, and they are plain memory.
unsafe impl Send for Block {}
// SAFETY: a shared block only returns its address; a caller that reads there is responsible.
unsafe impl Sync for Block {}

impl Block {
    /// An empty block at an aligned address.
    pub(super) const fn empty() -> Self {
        const { assert!(align_of::<u128>() == BLOCK_ALIGN) };
        Self { start: NonNull::<u128>::dangling().cast(), bytes: 0, origin: Origin::Heap }
    }

    /// At least `len` initialised bytes with unspecified contents. With `paged`, address and size
    /// are multiples of the page size.
    pub(super) fn alloc(len: usize, paged: bool) -> Self {
        if len < CLASS_BYTES_MIN && !(paged && len > 0) {
            Self::alloc_heap(len)
        } else if len <= CLASS_BYTES_MAX {
            Self::alloc_slab(class_for(len, paged))
        } else {
            Self::alloc_mapping(len)
        }
    }

    /// As [`alloc`](Self::alloc), with all bytes zero.
    pub(super) fn alloc_zeroed(len: usize, paged: bool) -> Self {
        let block = Self::alloc(len, paged);
        if matches!(block.origin, Origin::Slab { .. }) {
            // SAFETY: only this block refers to the memory, which holds that many bytes. Memory
            // from the other origins is zero anyway.
            unsafe { block.start.write_bytes(0, len) };
        }
        block
    }

    #[inline]
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn alloc_heap(len: usize) -> Self {
        if len == 0 {
            return Self::empty();
        }
        let layout = heap_layout(len);
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { std::alloc::handle_alloc_error(layout) };
        HEAP.fetch_add(len, Ordering::Relaxed);
        Self { start, bytes: len, origin: Origin::Heap }
    }

    fn alloc_slab(class: usize) -> Self {
        let bytes = class_bytes(class);
        let (slab, taken) = CLASS[class].lock().take(class);
        let origin = Origin::Slab { class: class as u8, block: taken.block, slab };
        Self { start: taken.start, bytes, origin }
    }

    fn alloc_mapping(len: usize) -> Self {
        let pages = Box::new(Pages::map(len));
        let (start, bytes) = (pages.start(), pages.bytes());
        for counter in [&MAPPED, &RESIDENT, &USED] {
            counter.fetch_add(bytes, Ordering::Relaxed);
        }
        Self { start, bytes, origin: Origin::Mapping(pages) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match &self.origin {
            Origin::Heap if self.bytes == 0 => {}
            Origin::Heap => {
                // SAFETY: the block came from the ordinary heap with this layout.
                unsafe { std::alloc::dealloc(self.start.as_ptr(), heap_layout(self.bytes)) };
                HEAP.fetch_sub(self.bytes, Ordering::Relaxed);
            }
            &Origin::Slab { class, block, slab } => {
                let idle = idle_bytes() + self.bytes;
                let bound = idle_bound();
                let class = usize::from(class);
                // If the slab is now empty, it is returned from `put_back` and unmapped after the
                // lock is released.
                let kept = if idle > bound / 2 { bound / SMALL_SLAB_DIVISOR } else { usize::MAX };
                drop(CLASS[class].lock().put_back(class, slab, block, kept));
                if idle > bound && idle_bytes() > bound {
                    trim_to(bound / 2);
                }
            }
            Origin::Mapping(pages) => {
                for counter in [&MAPPED, &RESIDENT, &USED] {
                    counter.fetch_sub(pages.bytes(), Ordering::Relaxed);
                }
            }
        }
    }
}

impl Class {
    /// Allocates a block; also returns the number of its slab.
    fn take(&mut self, class: usize) -> (u32, super::slab::Taken) {
        let number = match self.partial.first() {
            Some(&number) => number,
            None => self.add_slab(class),
        };
        let Some(slab) = &mut self.slabs[number as usize] else {
            unreachable!("a slab with free blocks is mapped");
        };
        let taken = slab.take();
        // Counted under the lock: otherwise a trim could uncount the block before it was counted.
        USED.fetch_add(class_bytes(class), Ordering::Relaxed);
        if taken.fresh {
            RESIDENT.fetch_add(class_bytes(class), Ordering::Relaxed);
        }
        if slab.is_full() {
            self.partial.remove(&number);
        }
        (number, taken)
    }

    fn add_slab(&mut self, class: usize) -> u32 {
        let slab = Slab::map(class);
        MAPPED.fetch_add(slab.mapped_bytes(), Ordering::Relaxed);
        let number = self.vacant.pop_first().unwrap_or_else(|| {
            self.slabs.push(None);
            self.slabs.len() as u32 - 1
        });
        self.slabs[number as usize] = Some(slab);
        self.partial.insert(number);
        number
    }

    /// Frees a block. Returns a slab that is now empty and has more than `kept` idle bytes, for the
    /// caller to unmap.
    fn put_back(&mut self, class: usize, number: u32, block: u8, kept: usize) -> Option<Slab> {
        let Some(slab) = &mut self.slabs[number as usize] else {
            unreachable!("a slab with blocks in use is mapped");
        };
        let was_full = slab.is_full();
        slab.put_back(block);
        let unmap = slab.is_empty() && slab.idle_bytes() > kept;
        USED.fetch_sub(class_bytes(class), Ordering::Relaxed);
        if was_full {
            self.partial.insert(number);
        }
        if unmap { self.remove(number) } else { None }
    }

    /// Removes an empty slab from the class and from the counters.
    fn remove(&mut self, number: u32) -> Option<Slab> {
        self.partial.remove(&number);
        self.vacant.insert(number);
        let slab = self.slabs[number as usize].take()?;
        MAPPED.fetch_sub(slab.mapped_bytes(), Ordering::Relaxed);
        RESIDENT.fetch_sub(slab.idle_bytes(), Ordering::Relaxed);
        Some(slab)
    }
}

fn heap_layout(len: usize) -> std::alloc::Layout {
    let Ok(layout) = std::alloc::Layout::from_size_align(len, BLOCK_ALIGN) else {
        unreachable!("a length below a kibibyte cannot overflow");
    };
    layout
}

/// Bytes that are resident but not in use. The two counters change one after the other, so the
/// difference may be off for a moment by the blocks in transit.
fn idle_bytes() -> usize {
    RESIDENT.load(Ordering::Relaxed).saturating_sub(USED.load(Ordering::Relaxed))
}

fn idle_bound() -> usize {
    let least = match IDLE_ALLOWED.load(Ordering::Relaxed) {
        0 => IDLE_BYTES_MIN,
        allowed => allowed.min(IDLE_BYTES_MIN),
    };
    (USED.load(Ordering::Relaxed) / IDLE_DIVISOR).max(least)
}

/// The idle memory that one open database allows. The allocator's limit on idle memory is at least
/// the sum over all open databases, capped at 4 MiB.
#[derive(Debug)]
pub struct IdleMemory(usize);

impl IdleMemory {
    /// Allows `bytes` of idle memory until the object is dropped.
    #[must_use]
    pub fn allow(bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).clamp(1, IDLE_BYTES_MIN);
        IDLE_ALLOWED.fetch_add(bytes, Ordering::Relaxed);
        Self(bytes)
    }
}

impl Drop for IdleMemory {
    fn drop(&mut self) {
        IDLE_ALLOWED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Returns idle memory to the kernel, large classes first (more bytes per call), until `limit` is
/// left.
fn trim_to(limit: usize) {
    if RETURNING_IDLE.swap(true, Ordering::Acquire) {
        return;
    }
    for class in CLASS.iter().rev() {
        if idle_bytes() <= limit && limit > 0 {
            break;
        }
        trim_class(class, limit);
    }
    RETURNING_IDLE.store(false, Ordering::Release);
}

fn trim_class(class: &Mutex<Class>, limit: usize) {
    let mut held = class.lock();
    // The youngest slabs first, because they are reused last.
    let numbers: Vec<u32> = held.partial.iter().rev().copied().collect();
    for number in numbers {
        if idle_bytes() <= limit && limit > 0 {
            break;
        }
        let Some(slab) = &mut held.slabs[number as usize] else { continue };
        if slab.is_empty() {
            drop(held.remove(number));
        } else {
            RESIDENT.fetch_sub(slab.discard_idle(), Ordering::Relaxed);
        }
    }
}
