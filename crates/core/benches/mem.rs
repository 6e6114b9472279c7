//! Measures the block allocator against malloc: the time of a block, and the memory that the
//! process holds compared to what is in use while several threads replace blocks of mixed sizes in
//! a cache. docs/design/cache.md has the numbers.
//!
//! `cargo bench -p frondb-core --bench mem -- [ours | malloc] [threads]`; each process measures one
//! allocator, because memory that malloc keeps would otherwise be counted against the other
//! allocator.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::ops::DerefMut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use frondb_core::mem::{self, Buf};
use frondb_core::prng::Prng;

/// Bytes of blocks that the cache holds.
const HELD_BYTES: u64 = 192 << 20;

trait Block: DerefMut<Target = [u8]> + Send + 'static {
    fn make(len: usize) -> Self;
}

impl Block for Buf {
    fn make(len: usize) -> Self {
        Self::packed(len)
    }
}

impl Block for Vec<u8> {
    fn make(len: usize) -> Self {
        vec![0; len]
    }
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

fn cost<B: Block>() {
    for len in [512, 4096, 17_000, 65_536, 300_000] {
        let mut ring: Vec<Option<B>> = (0..64).map(|_| None).collect();
        let (rounds, start) = (400_000, Instant::now());
        for i in 0..rounds {
            let mut block = B::make(len);
            // A decoder writes all of the block; writing one byte per page is enough to make it
            // resident.
            block.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            ring[i % 64] = Some(black_box(block));
        }
        println!("{len:7} bytes: {:4} ns", start.elapsed().as_nanos() / rounds as u128);
    }
}

/// Threads insert blocks into one shared cache and drop the evicted blocks. As in a server, each
/// phase uses other sizes: a table of small blocks, a table of large blocks, a merge that writes.
fn churn<B: Block>(threads: u64) {
    let held: Arc<Mutex<(std::collections::VecDeque<B>, u64)>> = Arc::default();
    let peak = Arc::new(AtomicU64::new(0));
    let before = resident();
    let start = Instant::now();
    for phase in 0..6u64 {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (held, peak) = (Arc::clone(&held), Arc::clone(&peak));
                scope.spawn(move || {
                    let mut prng = Prng::new(phase * 100 + thread);
                    let mut windows: Vec<B> = Vec::new();
                    for i in 0..60_000 / threads {
                        let len = match phase % 3 {
                            0 => 15_000 + prng.index(4_000),
                            1 => 50_000 + prng.index(20_000),
                            _ => 4_096 << prng.index(5),
                        };
                        let mut block = B::make(len);
                        block.fill(1);
                        // Windows of a merge: large and short-lived, between the blocks.
                        if i % 64 == 0 {
                            let mut window = B::make(256 << 10);
                            window.fill(1);
                            windows.push(window);
                            if windows.len() == 16 {
                                windows.clear();
                            }
                        }
                        let mut out = Vec::new();
                        {
                            let Ok(mut held) = held.lock() else { return };
                            held.1 += block.len() as u64;
                            held.0.push_back(block);
                            while held.1 > HELD_BYTES {
                                // One block in eight is hot: it returns to the queue instead of
                                // being evicted.
                                let Some(old) = held.0.pop_front() else { break };
                                if prng.chance(1, 8) {
                                    held.0.push_back(old);
                                } else {
                                    held.1 -= old.len() as u64;
                                    out.push(old);
                                }
                            }
                        }
                        drop(out);
                        if i % 1000 == 0 {
                            peak.fetch_max(resident(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        println!(
            "phase {phase}: resident {:4} MiB for {} MiB held",
            (resident() - before) >> 20,
            HELD_BYTES >> 20
        );
    }
    let peak = peak.load(Ordering::Relaxed) - before;
    println!(
        "peak {} MiB = {:.2} x held, {:.1} s",
        peak >> 20,
        peak as f64 / HELD_BYTES as f64,
        start.elapsed().as_secs_f64()
    );
    println!("{:?}", mem::stats());
    if let Ok(mut held) = held.lock() {
        held.0.clear();
    }
    mem::trim();
    println!("all freed: resident {} MiB", resident().saturating_sub(before) >> 20);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let threads = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(4);
    if args.iter().any(|arg| arg == "malloc") {
        churn::<Vec<u8>>(threads);
        cost::<Vec<u8>>();
    } else {
        churn::<Buf>(threads);
        cost::<Buf>();
    }
}
