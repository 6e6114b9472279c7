//! Schedules of eviction under pressure, explored: `RUSTFLAGS="--cfg shuttle" cargo test`.
#![cfg(shuttle)]

use frondb_cache::{Cache, CacheKey, CacheOptions, Priority};
use frondb_core::RunId;
use frondb_core::budget::{Budget, Part};
use frondb_core::sync::Arc;
use shuttle::thread;

fn key(block: u32) -> CacheKey {
    CacheKey::block(RunId(1), block)
}

/// Two inserters, one of which replaces and removes what the other put there, and a part that
/// grows beyond the total and shrinks: no schedule hands out a wrong value, loses a byte of the
/// accounts, or leaves the sum over the total when all is quiet.
fn pressure_against_inserts() {
    let budget = Budget::new(4_000);
    let cache: Arc<Cache<u32>> =
        Cache::new(Arc::clone(&budget), CacheOptions { shards: 2, floor_divisor: 16 });
    let inserters: Vec<_> = (0..2)
        .map(|thread| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                for block in 0..4 {
                    let key = key(block);
                    match cache.get(key) {
                        Some(value) => assert_eq!(value, block),
                        None => cache.insert(key, block, 500, Priority::Data),
                    }
                    if thread == 1 && block == 2 {
                        cache.remove(key);
                    }
                }
            })
        })
        .collect();
    let grower = {
        let budget = Arc::clone(&budget);
        thread::spawn(move || {
            let mut memtable = budget.reserve(Part::Memtable, 1_000);
            memtable.grow(2_000);
            memtable.shrink(1_500);
            memtable
        })
    };
    for inserter in inserters {
        inserter.join().unwrap();
    }
    let memtable = grower.join().unwrap();
    let stats = cache.stats();
    assert_eq!(budget.used(), stats.bytes + memtable.bytes());
    assert!(budget.used() <= budget.total(), "{budget:?}");
    drop(memtable);
    drop(cache);
    assert_eq!(budget.used(), 0);
}

#[test]
fn no_schedule_breaks_the_accounts() {
    shuttle::check_random(pressure_against_inserts, 2_000);
}

#[test]
fn no_schedule_with_few_switches_breaks_the_accounts() {
    shuttle::check_pct(pressure_against_inserts, 2_000, 3);
}
