//! [`EngineOptions`]: the options of an open, with their ranges.

use std::time::Duration;

use frondb_catalog::UpdateFns;
use frondb_core::{Error, Result};
use frondb_tree::{Memory, MemoryRules};
use frondb_wal::{SyncMode, WalOptions};

/// The options of an open.
#[derive(Clone, Debug)]
pub(crate) struct EngineOptions {
    /// The memory budget of all parts, bytes: cache, memtables, filters, indexes and work buffers.
    /// At least 16 MiB; without background threads 4 MiB.
    pub memory_bytes: u64,
    /// Bytes of all memtables at which the largest is frozen and flushed: 16 KiB to half of the
    /// memory. 0 means a quarter of the memory, or less if there is little memory (rule 4).
    pub write_buffer_bytes: u64,
    /// Create a new database if the directory has none.
    pub create: bool,
    /// Fail if the directory has a database already.
    pub create_new: bool,
    /// Open without writing a byte: see [`Open::on`](crate::open::Open::on).
    pub read_only: bool,
    /// What [`Durability::Sync`](frondb_commit::Durability::Sync) waits for at first.
    pub sync: SyncMode,
    /// Largest size of a log segment, bytes: 64 KiB to 1 GiB. 0 means a quarter of the write
    /// buffer, at most 100 MiB.
    pub wal_segment_bytes: u64,
    /// Compress log records with lz4 where that makes them smaller.
    pub wal_compression: bool,
    /// Whether to verify the output of lz4 and zstd up to level 3 by decoding it; the output of
    /// other codecs is always verified.
    pub verify_fast_codecs: bool,
    /// Threads for flushes and merges. 0 means that calls do background work themselves, for
    /// deterministic tests.
    pub background_threads: usize,
    /// Bypass the operating system's cache for data files if the file system supports it.
    pub direct_io: bool,
    /// Disk space reserved for deletes and one merge on a full disk (rule 25), bytes; at most 256
    /// MiB.
    pub reserve_bytes: u64,
    /// Approximate limit for how long a message may be in the log only, before it is flushed; at
    /// most a year. Zero means no limit while the log is short enough.
    pub checkpoint_period: Duration,
    /// Rate limit of flushes and merges, bytes written per second; 0 means no limit.
    pub background_bytes_per_second: u64,
    /// The update functions that trees may use.
    pub update_fns: UpdateFns,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            write_buffer_bytes: 0,
            create: true,
            create_new: false,
            read_only: false,
            sync: SyncMode::Always,
            wal_segment_bytes: 0,
            wal_compression: false,
            verify_fast_codecs: false,
            background_threads: 2,
            direct_io: true,
            reserve_bytes: 24 << 20,
            checkpoint_period: Duration::ZERO,
            background_bytes_per_second: 0,
            update_fns: UpdateFns::default(),
        }
    }
}

impl EngineOptions {
    /// Smallest memory budget, bytes: the smallest that holds for the whole process.
    pub(crate) const MEMORY_BYTES_MIN: u64 = MemoryRules::BYTES_MIN;
    /// Smallest memory budget without background threads, bytes; for tests. Only the accounted
    /// parts keep within it, not the whole process.
    pub(crate) const MEMORY_BYTES_MIN_WITHOUT_THREADS: u64 = MemoryRules::BYTES_MIN_WITHOUT_THREADS;
    /// Largest reserve accepted, bytes.
    pub(crate) const RESERVE_BYTES_MAX: u64 = 256 << 20;
    /// Smallest segment of the log, bytes.
    pub(crate) const WAL_SEGMENT_BYTES_MIN: u64 = 64 << 10;
    /// Largest segment of the log, bytes.
    pub(crate) const WAL_SEGMENT_BYTES_MAX: u64 = 1 << 30;

    /// Checks the ranges.
    ///
    /// # Errors
    /// `Invalid`, naming the option and its range.
    pub(crate) fn check(&self) -> Result<()> {
        self.memory().check()?;
        if self.background_threads > 256 {
            return Err(Error::invalid(format!(
                "background_threads is {}; it must be 0 to 256",
                self.background_threads
            )));
        }
        if self.reserve_bytes > Self::RESERVE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "reserve_bytes is {}; it must be at most {}",
                self.reserve_bytes,
                Self::RESERVE_BYTES_MAX
            )));
        }
        let segment = self.wal_segment_bytes;
        let range = Self::WAL_SEGMENT_BYTES_MIN..=Self::WAL_SEGMENT_BYTES_MAX;
        if segment != 0 && !range.contains(&segment) {
            return Err(Error::invalid(format!(
                "log_segment_bytes is {segment}; it must be 0 (a quarter of the write buffer) or \
                 {} to {}",
                range.start(),
                range.end()
            )));
        }
        frondb_background::check_period(self.checkpoint_period)?;
        self.sync.check()
    }

    /// The options of the log.
    pub(crate) fn wal(&self) -> WalOptions {
        let segment_bytes = match self.wal_segment_bytes {
            0 => (self.memory().write_buffer_bytes() / 4)
                .clamp(Self::WAL_SEGMENT_BYTES_MIN, 100 << 20),
            bytes => bytes,
        };
        let others = WalOptions::default();
        WalOptions {
            segment_bytes,
            sync: self.sync,
            compression: self.wal_compression,
            verify: self.verify_fast_codecs,
            reserve_bytes: others.reserve_bytes.min(segment_bytes),
            ..others
        }
    }

    /// The parts into which the memory is divided at the open.
    pub(crate) fn memory(&self) -> Memory {
        self.memory_rules().of(self.memory_bytes)
    }

    /// The rules for dividing any amount of memory.
    pub(crate) fn memory_rules(&self) -> MemoryRules {
        MemoryRules {
            write_buffer: self.write_buffer_bytes,
            has_threads: self.background_threads > 0,
            read_only: self.read_only,
        }
    }
}
