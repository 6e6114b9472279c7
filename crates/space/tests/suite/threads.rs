//! Threads acquire, write, sync, read back and release while another thread returns space to the
//! file system: no extent has two owners, and no page is leaked.

use std::sync::atomic::{AtomicBool, Ordering};

use frondb_core::ErrorKind;
use frondb_core::mem::Buf;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_space::{Class, Reclaim, Space, SpaceOptions};
use frondb_testkit::MemoryDevice;

const PAGE: usize = 4096;

fn work(space: &Space, seed: u64) {
    let mut prng = Prng::new(seed);
    let mut held = Vec::new();
    for round in 0..200u64 {
        let pages = 1 + prng.below(40) as u32;
        let extent = space.acquire(pages, Class::Merge).unwrap();
        let mut bytes = Buf::zeroed(extent.pages as usize * PAGE);
        Prng::new(seed << 32 | round).fill(&mut bytes);
        space.write(WriteCause::Flush, extent, 0, &bytes).unwrap();
        held.push((extent, bytes));
        if prng.chance(1, 8) {
            space.sync().unwrap();
        }
        while held.len() > 8 {
            let (extent, bytes) = held.swap_remove(prng.index(held.len()));
            let mut found = Buf::zeroed(bytes.len());
            space.read(extent, 0, &mut found).unwrap();
            assert!(found[..] == bytes[..], "{extent} was overwritten");
            space.release(extent);
        }
    }
    for (extent, _) in held {
        space.release(extent);
    }
}

#[test]
fn threads_share_a_space() {
    let device = MemoryDevice::new();
    let options = SpaceOptions { reserve_bytes: 0, slack_bytes: 0, ..SpaceOptions::default() };
    let space = Space::open(Arc::new(device.clone()), options, []).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=4)
            .map(|seed| {
                scope.spawn({
                    let space = &space;
                    move || work(space, seed)
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                space.reclaim_step(Reclaim::Idle).unwrap();
                std::thread::yield_now();
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    while space.reclaim_step(Reclaim::Idle).unwrap() {}
    let stats = space.stats();
    assert_eq!((stats.used_bytes, stats.file_bytes), (0, 0), "{stats:?}");
    assert_eq!(device.used_bytes(), 0);
    assert!(stats.grown_bytes > 0 && stats.syncs > 0);
}

/// Offsets are read from disk, so a wrong offset is a `Corruption` that names file and offset.
#[test]
fn a_read_outside_its_extent_is_corruption() {
    let space = Space::open(Arc::new(MemoryDevice::new()), SpaceOptions::default(), []).unwrap();
    let extent = space.acquire(2, Class::Base).unwrap();
    let mut buf = Buf::zeroed(PAGE);
    space.write(WriteCause::Flush, extent, PAGE as u64, &buf).unwrap();
    space.read(extent, PAGE as u64, &mut buf).unwrap();
    for offset in [2 * PAGE as u64, u64::MAX - 100] {
        let error = space.read(extent, offset, &mut buf).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(error.place().unwrap().file, "data-0000.fdb");
    }
    assert_eq!(space.file(7).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
#[should_panic(expected = "in the set already")]
fn releasing_twice_panics() {
    let space = Space::open(Arc::new(MemoryDevice::new()), SpaceOptions::default(), []).unwrap();
    let extent = space.acquire(2, Class::Base).unwrap();
    space.release(extent);
    space.release(extent);
}
