//! The block allocator under threads, and its handling of idle memory. All checks are in a single
//! test, because the counters belong to the process.
#![cfg(not(shuttle))]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::mpsc;

use frondb_core::mem::{self, Buf, Bytes};
use frondb_core::prng::Prng;

/// Miri runs a smaller test: there the memory accesses are checked, not the numbers.
const SCALE: usize = if cfg!(miri) { 200 } else { 1 };
const BLOCKS: usize = 3_000 / SCALE;

fn filled(prng: &mut Prng, len: usize) -> Bytes {
    let mut buf = match prng.below(4) {
        0 => Buf::zeroed(len),
        1 => Buf::paged(len),
        2 => Buf::packed(len),
        _ => Buf::paged(len),
    };
    let byte = len as u8 ^ 0x5a;
    buf.fill(byte);
    buf.freeze()
}

fn check(bytes: &Bytes) {
    let byte = bytes.len() as u8 ^ 0x5a;
    assert!(bytes.iter().all(|&found| found == byte), "a block of {} bytes", bytes.len());
}

/// Lengths of many kinds: heap blocks, classes up to 1 MiB, and blocks with a mapping of their own.
fn length(prng: &mut Prng) -> usize {
    let most = if cfg!(miri) { 1 << 14 } else { 1 << (8 + prng.below(13)) };
    match prng.below(1000) {
        0 if !cfg!(miri) => 5 << 20,
        _ => prng.index(most),
    }
}

/// One thread allocates blocks and the next thread frees them, in another order.
fn passed_around(seed: u64) {
    std::thread::scope(|scope| {
        let (first, mut from) = mpsc::sync_channel::<Bytes>(64);
        let mut senders = vec![first];
        for thread in 0..3 {
            let (to, next) = mpsc::sync_channel(64);
            let receiver = std::mem::replace(&mut from, next);
            scope.spawn(move || {
                let mut prng = Prng::new(seed + thread);
                let mut held: Vec<Bytes> = Vec::new();
                for bytes in receiver {
                    held.push(bytes);
                    if held.len() > 50 {
                        let bytes = held.swap_remove(prng.index(held.len()));
                        check(&bytes);
                        let own = length(&mut prng);
                        let made = filled(&mut prng, own);
                        // Some blocks are passed on, the others are freed here.
                        let goes_on = if prng.chance(1, 2) { bytes } else { made };
                        let _ = to.send(goes_on.slice(0..goes_on.len()));
                    }
                }
                held.iter().for_each(check);
            });
        }
        scope.spawn(move || from.iter().for_each(|bytes| check(&bytes)));
        let mut prng = Prng::new(seed);
        for _ in 0..BLOCKS {
            let len = length(&mut prng);
            senders[0].send(filled(&mut prng, len)).expect("the threads are alive");
        }
        senders.clear();
    });
}

/// Resident bytes of the process.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("a Linux system");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second field is a number") * 4096
}

/// Allocates 64 MiB of blocks of 4 to 63 KiB and keeps a random eighth of them: the worst state
/// that a change of load can leave.
fn scattered_survivors(seed: u64) {
    let mut prng = Prng::new(seed);
    let mut blocks = Vec::new();
    let mut bytes = 0;
    while bytes < (64 << 20) / SCALE {
        let len = 4096 + prng.index(60_000);
        blocks.push(filled(&mut prng, len));
        bytes += len;
    }
    prng.shuffle(&mut blocks);
    blocks.truncate(blocks.len() / 8);
    let stats = mem::stats();
    let idle = stats.resident_bytes - stats.used_bytes;
    assert!(idle <= (4 << 20).max(stats.used_bytes / 16), "{stats:?}");
    blocks.iter().for_each(check);
    mem::trim();
    let stats = mem::stats();
    assert!(stats.resident_bytes - stats.used_bytes <= stats.used_bytes / 50, "{stats:?}");
    blocks.iter().for_each(check);
}

#[test]
fn resident_memory_follows_the_memory_in_use() {
    let seed = 1;
    println!("seed {seed}");
    let before = mem::stats();
    passed_around(seed);
    let after = mem::stats();
    assert_eq!((after.used_bytes, after.heap_bytes), (before.used_bytes, before.heap_bytes));
    mem::trim();
    let trimmed = mem::stats();
    assert_eq!((trimmed.mapped_bytes, trimmed.resident_bytes), (0, 0));
    scattered_survivors(seed);
    mem::trim();
    assert_eq!(mem::stats().mapped_bytes, 0);
    a_lone_buffer_keeps_its_slab();
    mem::trim();
    assert_eq!(mem::stats().mapped_bytes, 0);
    if !cfg!(miri) {
        counters_agree_with_the_kernel();
    }
}

/// If the idle bytes exceed half of their limit, as beside a full cache, each read buffer reuses
/// the slab of the previous read buffer: no slab is mapped or unmapped. A slab that becomes empty
/// with many idle bytes is unmapped.
fn a_lone_buffer_keeps_its_slab() {
    let held: Vec<Buf> = (0..192).map(|_| Buf::packed(16_384)).collect();
    // Keep blocks of every slab, so that no slab becomes empty.
    let (_kept, idle): (Vec<_>, Vec<_>) =
        held.into_iter().enumerate().partition(|(i, _)| i % 8 == 0);
    drop(idle);
    let stats = mem::stats();
    assert!(stats.resident_bytes - stats.used_bytes > 2 << 20, "{stats:?}");
    drop(Buf::paged(12_288));
    let mapped = mem::stats().mapped_bytes;
    assert!(mapped > stats.mapped_bytes);
    for _ in 0..10 {
        let buf = Buf::paged(12_288);
        assert_eq!(mem::stats().mapped_bytes, mapped);
        drop(buf);
        assert_eq!(mem::stats().mapped_bytes, mapped);
    }
    drop((0..16).map(|_| Buf::paged(12_288)).collect::<Vec<_>>());
    assert_eq!(mem::stats().mapped_bytes, stats.mapped_bytes);
}

/// The counters agree with the kernel's figure to within a few per cent.
fn counters_agree_with_the_kernel() {
    let before = resident_bytes();
    let mut held: Vec<Buf> = Vec::new();
    for i in 0..4000 {
        let mut buf = Buf::packed(16_384 + i % 8192);
        buf.fill(1);
        held.push(buf);
    }
    let near = |bytes: u64| {
        let grown = resident_bytes().saturating_sub(before);
        let slack = bytes / 20 + (2 << 20);
        assert!(grown.abs_diff(bytes) <= slack, "{grown} bytes are resident, not {bytes}");
    };
    near(mem::stats().resident_bytes);
    // Keep every fourth block; idle pages are returned without an explicit call.
    let mut at = 0;
    held.retain(|_| {
        at += 1;
        at % 4 == 0
    });
    let stats = mem::stats();
    assert!(stats.resident_bytes - stats.used_bytes <= 4 << 20, "{stats:?}");
    near(stats.resident_bytes);
    held.clear();
    mem::trim();
    near(0);
}
