//! The cache uses the memory that the other parts of the engine leave, returns it under pressure,
//! and counts it exactly (the cache's share of rule 24).

use std::sync::Barrier;

use frondb_cache::{Cache, CacheKey, CacheOptions, Priority};
use frondb_core::RunId;
use frondb_core::budget::{Budget, Part};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;

const MIB: u64 = 1 << 20;

fn fill(cache: &Cache<Arc<Vec<u8>>>, run: u64, blocks: u32) {
    for block in 0..blocks {
        let key = CacheKey::block(RunId(run), block);
        cache.insert(key, Arc::new(vec![run as u8; 4096]), 4096, Priority::Data);
    }
}

#[test]
fn the_cache_fills_the_budget_yields_and_keeps_its_floor() {
    let budget = Budget::new(16 * MIB);
    let cache = Cache::new(Arc::clone(&budget), CacheOptions::default());
    fill(&cache, 1, 10_000);
    let full = cache.stats();
    assert!(full.bytes <= 16 * MIB && full.bytes > 15 * MIB, "{full:?}");
    assert_eq!(budget.used(), full.bytes);

    let mut memtable = budget.reserve(Part::Memtable, 4 * MIB);
    assert!(budget.used() <= 16 * MIB, "room was made before reserve returned: {budget:?}");
    assert!(cache.stats().bytes > 11 * MIB, "no more than needed was evicted");
    memtable.grow(20 * MIB);
    let floor = cache.stats();
    assert!(floor.bytes <= MIB && floor.bytes > MIB / 2, "{floor:?}");
    assert_eq!(floor.capacity, MIB);

    // The cache grows again without being notified.
    memtable.resize(MIB);
    fill(&cache, 2, 10_000);
    assert!(cache.stats().bytes > 14 * MIB);
    budget.set_total(8 * MIB);
    assert!(budget.used() <= 8 * MIB);
    drop(memtable);
    cache.clear();
    assert_eq!((cache.stats().items, cache.stats().bytes, budget.used()), (0, 0, 0));
    fill(&cache, 3, 100);
    drop(cache);
    assert_eq!(budget.used(), 0, "a dropped cache leaves nothing charged");
}

/// If each shard had a fixed share of the capacity, the cache would refuse an entry this large.
#[test]
fn a_large_filter_takes_its_room_from_all_shards() {
    let budget = Budget::new(16 * MIB);
    let cache = Cache::new(budget, CacheOptions { shards: 64, ..CacheOptions::default() });
    fill(&cache, 1, 10_000);
    let key = CacheKey::filter(RunId(2), 0);
    cache.insert(key, Arc::default(), 3 * MIB, Priority::Meta);
    assert!(cache.get(key).is_some());
    let stats = cache.stats();
    assert!(stats.bytes <= 16 * MIB && stats.bytes > 15 * MIB, "{stats:?}");
    let huge = CacheKey::block(RunId(3), 0);
    cache.insert(huge, Arc::default(), 3 * MIB, Priority::Data);
    assert!(cache.get(huge).is_none(), "a block of more than an eighth of the cache is not kept");
    let huge = CacheKey::filter(RunId(3), 0);
    cache.insert(huge, Arc::default(), 9 * MIB, Priority::Meta);
    assert!(cache.get(huge).is_none(), "a filter of more than half of the cache is not kept");
    assert!(cache.get(key).is_some());
}

#[test]
fn dropping_a_run_makes_room_at_once() {
    let budget = Budget::new(16 * MIB);
    let cache = Cache::new(Arc::clone(&budget), CacheOptions::default());
    fill(&cache, 1, 100);
    fill(&cache, 2, 100);
    cache.insert(CacheKey::index(RunId(1)), Arc::default(), 10, Priority::Meta);
    (0..3).for_each(|part| {
        cache.insert(CacheKey::filter(RunId(1), part), Arc::default(), 10, Priority::Meta);
        cache.insert(CacheKey::index_part(RunId(1), part), Arc::default(), 10, Priority::Meta);
    });
    cache.remove_run(RunId(1), 100, 3, 3);
    assert_eq!(cache.stats().items, 100);
    assert!(cache.get(CacheKey::index(RunId(1))).is_none());
    assert!(cache.get(CacheKey::block(RunId(2), 99)).is_some());
}

/// The tables take at most half more memory than the overhead that is charged for their entries.
#[test]
fn the_charge_of_entries_covers_the_tables() {
    let budget = Budget::new(64 * MIB);
    let cache: Arc<Cache<Arc<[u8]>>> =
        Cache::new(budget, CacheOptions { shards: 4, ..CacheOptions::default() });
    for block in 0..200_000 {
        cache.insert(CacheKey::block(RunId(1), block), Arc::default(), 0, Priority::Data);
    }
    let charged = cache.stats().bytes;
    let tables = cache.table_bytes() as u64;
    assert!(tables <= charged + charged / 2, "{tables} bytes of tables, {charged} charged");
}

/// Four threads read and insert blocks, while another part of the budget grows and shrinks: every
/// hit returns the right value, the sum exceeds the total at most by the size of that part, and no
/// charge remains at the end.
#[test]
fn concurrent_use_under_pressure_keeps_the_accounts() {
    let seed = 7;
    println!("seed {seed}");
    let budget = Budget::new(4 * MIB);
    let cache: Arc<Cache<Arc<Vec<u8>>>> =
        Cache::new(Arc::clone(&budget), CacheOptions { shards: 8, floor_divisor: 16 });
    let start = Barrier::new(5);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cache, start) = (&cache, &start);
            scope.spawn(move || {
                let mut prng = Prng::new(seed + thread);
                start.wait();
                for _ in 0..30_000 {
                    let (run, block) = (prng.below(4), prng.below(2000) as u32);
                    let key = CacheKey::block(RunId(run), block);
                    match prng.below(100) {
                        0 => cache.remove_run(RunId(run), 20, 1, 1),
                        1 => drop(cache.remove(key)),
                        _ => match cache.get(key) {
                            Some(value) => assert_eq!(value[0], (run as u8) ^ (block as u8)),
                            None => {
                                let value = Arc::new(vec![(run as u8) ^ (block as u8); 64]);
                                cache.insert(key, value, 2048, Priority::Data);
                            }
                        },
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut prng = Prng::new(seed + 100);
            let mut memtable = budget.reserve(Part::Memtable, 0);
            start.wait();
            for _ in 0..3_000 {
                memtable.resize(prng.below(3 * MIB));
            }
        });
    });
    let stats = cache.stats();
    assert_eq!(budget.used(), stats.bytes);
    assert!(stats.hits > 0 && stats.evictions > 0, "{stats:?}");
    // The memtable's reservation, up to 3 MiB, counts before the cache has made room for it.
    assert!(budget.peak() <= 4 * MIB + 3 * MIB, "peak {}", budget.peak());
    cache.clear();
    assert_eq!((cache.stats().items, budget.used()), (0, 0));
}
