//! The memory of unused trees: few bytes for each tree, all charged to the budget.
//!
//! This program has an allocator that counts bytes, so it contains no other test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "an allocator is unsafe; this one only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use frondb::{Db, Options, TreeOptions};
use frondb_testkit::TempDir;

struct Counting;

static HELD: AtomicU64 = AtomicU64::new(0);

/// Larger allocations are not counted: they are buffers of the process, for example for a snapshot
/// of the manifest.
const COUNTED_BYTES_MAX: usize = 48 << 10;

fn count(layout: Layout) -> u64 {
    if layout.size() <= COUNTED_BYTES_MAX { layout.size() as u64 } else { 0 }
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(count(layout), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(count(layout), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TREES: u64 = 500;
/// Trees that are flushed together, so that memory that a flush needs only once, however many trees
/// it has, does not count.
const GROUP: u64 = 50;
/// Length of each tree's name, bytes.
const NAME: u64 = 8;

/// Returns the bytes that a tree takes on average, and how many of these are not charged to the
/// budget.
fn per_tree(before: (u64, u64), now: (u64, u64)) -> (u64, i64) {
    let (held, charged) = (now.0 - before.0, now.1.saturating_sub(before.1));
    (held / TREES, (held as i64 - charged as i64) / TREES as i64)
}

fn memory(db: &Db) -> (u64, u64) {
    (HELD.load(Ordering::Relaxed), db.stats().memory_used)
}

#[test]
fn idle_trees_take_little_memory_and_all_of_it_is_charged() {
    let dir = TempDir::new("idle-trees");
    let options = || Options::new().create(true).memory_bytes(16 << 20);
    let db = Db::open(dir.path(), options()).unwrap();
    db.create_tree("first", TreeOptions::new()).unwrap();
    let before = memory(&db);
    for n in 0..TREES {
        db.create_tree(&format!("t{n:07}"), TreeOptions::new()).unwrap();
    }
    let (held, beside) = per_tree(before, memory(&db));
    println!("new trees: {held} bytes each, {beside} not charged");
    // Two copies of the name: a string of the tree, and a string in an ordered map.
    let names = 2 * NAME + 24 + 48;
    assert!(held <= 512 + names, "a new tree takes {held} bytes");
    assert!(beside <= 0, "{beside} bytes of a tree are not charged");

    // Now with trees that have been written and flushed.
    for n in 0..TREES {
        let tree = db.open_tree(&format!("t{n:07}")).unwrap();
        tree.put(b"key", b"value").unwrap();
        if n % GROUP == GROUP - 1 {
            db.flush().unwrap();
        }
    }
    db.checkpoint().unwrap();
    // A worker stows trees after their flush.
    db.wait_settled().unwrap();
    let (held, beside) = per_tree(before, memory(&db));
    println!("with a run: {held} bytes each, {beside} not charged");
    assert!(held <= 512 + names, "a tree with a run takes {held} bytes");
    assert!((-256..=0).contains(&beside), "{beside} bytes of a tree are not charged");
    drop(db);
}
