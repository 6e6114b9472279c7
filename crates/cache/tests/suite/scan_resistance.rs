//! A full scan does not evict the hot set, and a new hot set replaces the old one.

use frondb_cache::{Cache, CacheKey, CacheOptions, Priority};
use frondb_core::RunId;
use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;

const BLOCK: u64 = 16 << 10;

fn cache(blocks: u64) -> Arc<Cache<u64>> {
    let options = CacheOptions { shards: 8, ..CacheOptions::default() };
    Cache::new(Budget::new(blocks * (BLOCK + 200)), options)
}

/// Reads a block as a run does: from the cache, else from "disk" and then into the cache.
fn read(cache: &Cache<u64>, run: u64, block: u32) -> bool {
    let key = CacheKey::block(RunId(run), block);
    let hit = cache.get(key).inspect(|&value| assert_eq!(value, run << 32 | u64::from(block)));
    if hit.is_none() {
        cache.insert(key, run << 32 | u64::from(block), BLOCK, Priority::Data);
    }
    hit.is_some()
}

/// Reads random hot blocks of `run` and returns the hit rate in percent.
fn hit_rate(cache: &Cache<u64>, prng: &mut Prng, run: u64, hot: u64, reads: u64) -> u64 {
    let hits = (0..reads).filter(|_| read(cache, run, prng.below(hot) as u32)).count();
    hits as u64 * 100 / reads
}

#[test]
fn a_scan_of_ten_times_the_cache_leaves_the_hot_set() {
    let cache = cache(1000);
    let mut prng = Prng::new(42);
    hit_rate(&cache, &mut prng, 1, 800, 20_000);
    assert_eq!(hit_rate(&cache, &mut prng, 1, 800, 5_000), 100);
    for block in 0..10_000 {
        read(&cache, 2, block);
        // A cursor looks up the blocks that were read ahead for it.
        assert!(read(&cache, 2, block));
    }
    let rate = hit_rate(&cache, &mut prng, 1, 800, 5_000);
    assert!(rate >= 95, "{rate} % of the hot reads hit after the scan");
}

#[test]
fn a_scan_amid_hot_reads_does_not_hurt_them() {
    let cache = cache(1000);
    let mut prng = Prng::new(43);
    hit_rate(&cache, &mut prng, 1, 800, 20_000);
    let mut hits = 0;
    for block in 0..10_000 {
        read(&cache, 2, block);
        hits += u64::from(read(&cache, 1, prng.below(800) as u32));
    }
    assert!(hits >= 9_500, "{hits} of 10,000 hot reads hit during the scan");
}

#[test]
fn the_cache_follows_a_hot_set_that_moves() {
    let cache = cache(1000);
    let mut prng = Prng::new(44);
    for run in 1..5 {
        hit_rate(&cache, &mut prng, run, 900, 40_000);
        let rate = hit_rate(&cache, &mut prng, run, 900, 5_000);
        assert!(rate >= 97, "run {run}: {rate} %");
    }
}

/// Under a skewed load the small queue and the ghost must reach a far better hit rate than plain
/// FIFO eviction. The bound is what S3-FIFO reaches here, less a margin.
#[test]
fn a_skewed_load_hits_more_than_its_share_of_memory() {
    let cache = cache(500);
    let mut prng = Prng::new(45);
    let mut draw = || {
        // About 80 % of the reads go to 20 % of 5,000 blocks, and again 80 % of these to 20 % of
        // them.
        let mut range = 5_000u64;
        while range > 10 && prng.chance(4, 5) {
            range /= 5;
        }
        prng.below(range) as u32
    };
    for _ in 0..50_000 {
        read(&cache, 1, draw());
    }
    let hits = (0..50_000).filter(|_| read(&cache, 1, draw())).count();
    assert!(hits * 100 / 50_000 >= 70, "{hits} of 50,000");
}

#[test]
fn metadata_survives_a_scan() {
    let cache = cache(1000);
    for run in 0..50 {
        let value = run << 32 | u64::from(CacheKey::INDEX);
        cache.insert(CacheKey::index(RunId(run)), value, BLOCK, Priority::Meta);
    }
    for block in 0..5_000 {
        read(&cache, 99, block);
    }
    for run in 0..50 {
        assert!(cache.get(CacheKey::index(RunId(run))).is_some(), "index of run {run}");
    }
}
