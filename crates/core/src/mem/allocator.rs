//! The process-wide allocator behind [`Buf`](super::Buf): size classes of slabs, exact counters,
//! and a limit on idle memory.
//!
//! The allocator belongs to the process and not to a database. So memory that one database frees
//! serves another, and a buffer needs no handle of its allocator.
//!
//! How idle memory is limited: a class allocates from the slab with the lowest number first, so the
//! slabs with higher numbers become empty. A slab that becomes empty is unmapped if the idle bytes
//! exceed half the limit, unless little of the slab is resident: otherwise a read whose buffer is
//! the only one of its class would map and unmap a slab each time. The idle bytes may still exceed
//! the limit, because after a change of load the used blocks are scattered over many slabs. Then
//! empty slabs are unmapped and the pages of idle blocks are returned, largest class first, until
//! half the limit is left. The limit is a sixteenth of the bytes in use, and at least 4 MiB (less
//! if the open databases allow less; see [`IdleMemory`]). A steady load frees and allocates equal
//! amounts and does not reach the limit, so it causes neither system calls nor page faults.
//!
//! The locks are parking_lot's and not the ones of `sync`: an allocation need not be a scheduling
//! point of shuttle, and a static cannot contain shuttle's locks.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::class::{CLASS_BYTES_MAX, CLASS_BYTES_MIN, CLASSES, class_bytes, class_for};
use super::pages::Pages;
use super::slab::Slab;

/// Smallest limit on idle bytes, unless the open databases allow less: about as much as one merge
/// allocates and frees.
const IDLE_BYTES_MIN: usize = 4 << 20;
/// The limit on idle bytes is the bytes in use divided by this, and at least the minimum.
const IDLE_DIVISOR: usize = 16;
/// A slab that becomes empty stays mapped until the next trim, however many other bytes are idle,
/// if the slab's idle bytes are at most the limit on idle bytes divided by this: a few read
/// buffers.
const SMALL_SLAB_DIVISOR: usize = 32;
pub(super) const BLOCK_ALIGN: usize = 16;

/// The allocator's counters, in bytes. Each counter is exact, but they are read one after the
/// other, so their moments may differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Address space mapped for slabs and large buffers.
    pub mapped_bytes: u64,
    /// Bytes of blocks that are in use, or idle and possibly resident. The other mapped bytes were
    /// never touched, or were returned to the kernel.
    pub resident_bytes: u64,
    /// Bytes of blocks in use, each with the size of its class, or of its mapping.
    pub used_bytes: u64,
    /// Bytes of buffers smaller than 1 KiB, which are on the ordinary heap. Not included in the
    /// other counters.
    pub heap_bytes: u64,
}

struct Class {
    /// Slabs by number. The number of an unmapped slab is reused.
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
/// Set while one thread returns idle memory. Meanwhile other threads do not try.
static RETURNING_IDLE: AtomicBool = AtomicBool::new(false);

/// Returns the current counters.
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

/// Returns all idle memory to the kernel, unless another thread is returning idle memory. For a
/// database that closes or becomes idle, or whose memory option was changed.
pub fn trim() {
    trim_to(0);
}

/// Initialised memory with one owner. The drop returns it to its origin.
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
    /// Returns an empty block at an aligned address.
    pub(super) const fn empty() -> Self {
        const { assert!(align_of::<u128>() == BLOCK_ALIGN) };
        Self { start: NonNull::<u128>::dangling().cast(), bytes: 0, origin: Origin::Heap }
    }

    /// Allocates at least `len` initialised bytes with unspecified contents. With `paged`, address
    /// and size are multiples of the page size.
    pub(super) fn alloc(len: usize, paged: bool) -> Self {
        if len < CLASS_BYTES_MIN && !(paged && len > 0) {
            Self::alloc_heap(len)
        } else if len <= CLASS_BYTES_MAX {
            Self::alloc_slab(class_for(len, paged))
        } else {
            Self::alloc_mapping(len)
        }
    }

    /// Allocates as [`alloc`](Self::alloc) does, with all bytes zero.
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
                // If the slab is empty now, `put_back` returns the slab, and its drop unmaps it.
                let kept = if idle > bound / 2 { bound / SMALL_SLAB_DIVISOR } else { usize::MAX };
                // Bound to a name, so that the slab is unmapped after the lock is released.
                let unused = CLASS[class].lock().put_back(class, slab, block, kept);
                drop(unused);
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
    /// Allocates a block. Returns the number of its slab, and the block.
    fn take(&mut self, class: usize) -> (u32, super::slab::Taken) {
        let number = match self.partial.first() {
            Some(&number) => number,
            None => self.add_slab(class),
        };
        let Some(slab) = &mut self.slabs[number as usize] else {
            unreachable!("a slab with free blocks is mapped");
        };
        let taken = slab.take();
        // Count under the lock: otherwise a trim could uncount the block before it was counted.
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

    /// Frees a block. If its slab is empty now and has more than `kept` idle bytes, removes and
    /// returns the slab, for the caller to unmap.
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

/// Returns the bytes that are resident but not in use. The two counters change one after the other,
/// so the difference may be wrong for a moment by the blocks that threads allocate or free.
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

/// The idle memory that one open database allows. The smallest limit on idle memory is the sum over
/// all open databases, but at most 4 MiB.
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

/// Returns idle memory to the kernel until `limit` bytes are left. Does nothing if another thread
/// is doing so. Large classes come first, because they return more bytes per call.
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
    // Begin with the highest numbers, whose slabs are used last.
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
