//! Options of the cache.

/// Options of [`Cache`](crate::Cache). The memory budget determines the size of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheOptions {
    /// Number of shards, rounded up to a power of two; readers of different shards never contend. 1
    /// to 1024, default 16 per processor, at most 256.
    pub shards: usize,
    /// The cache keeps at least the total budget divided by this, however much the other parts
    /// hold. 2 to 1024, default 16.
    pub floor_divisor: u64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self { shards: (16 * processors).min(256), floor_divisor: 16 }
    }
}

impl CacheOptions {
    /// Returns the options, clamped to the documented ranges.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self {
            shards: self.shards.clamp(1, 1024).next_power_of_two(),
            floor_divisor: self.floor_divisor.clamp(2, 1024),
        }
    }
}
