//! Options of an open engine.

use std::time::Duration;

use frondb_catalog::UpdateFns;
use frondb_core::{Error, Result};
use frondb_wal::{SyncMode, WalOptions};

use frondb_tree::{Memory, MemoryRules};

/// Options of an open engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The one memory budget, bytes: cache, memtables, filters, indexes and work buffers.
    /// At least 16 MiB; without background threads 4 MiB.
    pub memory_bytes: u64,
    /// Memtable bytes at which the largest is frozen and flushed; 0 for a quarter of the memory, of little
    /// memory less (rule 4); else 16 KiB to half of the memory.
    pub write_buffer_bytes: u64,
    /// Make a new database if the directory has none.
    pub create: bool,
    /// Fail if the directory has a database already.
    pub create_new: bool,
    /// Open without writing a byte: see [`Engine::open`](crate::Engine::open).
    pub read_only: bool,
    /// What [`Durability::Sync`] waits for, until it is changed.
    pub sync: SyncMode,
    /// A file of the log is closed before it grows beyond so many bytes: 64 KiB to 1 GiB; 0 for a
    /// quarter of the write buffer, at most 100 MiB.
    pub wal_segment_bytes: u64,
    /// Compress log records with lz4 where it pays.
    pub wal_compression: bool,
    /// Threads for flushes and merges; 0 runs all of it inside the calls that need it, for
    /// deterministic tests.
    pub background_threads: usize,
    /// Bypass the operating system's cache for data files where the file system can.
    pub direct_io: bool,
    /// Disk space kept for deletes and one merge on a full disk (rule 25), bytes; at most 256 MiB.
    pub reserve_bytes: u64,
    /// How long a record of the log may be the only place of its messages, about; zero for as long as
    /// the log is short enough. At most a year.
    pub checkpoint_period: Duration,
    /// Bytes a second that flushes and merges may write; 0 for no limit.
    pub background_bytes_per_second: u64,
    /// Update functions that trees may name.
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
    /// Smallest budget accepted, bytes: the smallest that the whole process keeps to.
    pub const MEMORY_BYTES_MIN: u64 = MemoryRules::BYTES_MIN;
    /// The same without background threads, for tests: there the parts keep to it.
    pub const MEMORY_BYTES_MIN_WITHOUT_THREADS: u64 = MemoryRules::BYTES_MIN_WITHOUT_THREADS;
    /// Largest reserve accepted, bytes.
    pub const RESERVE_BYTES_MAX: u64 = 256 << 20;
    /// Smallest segment of the log, bytes.
    pub const WAL_SEGMENT_BYTES_MIN: u64 = 64 << 10;
    /// Largest segment of the log, bytes.
    pub const WAL_SEGMENT_BYTES_MAX: u64 = 1 << 30;

    /// Checks the ranges.
    ///
    /// # Errors
    /// `Invalid`, naming the option and its range.
    pub fn check(&self) -> Result<()> {
        self.memory().check()?;
        if self.background_threads > 256 {
            return Err(Error::invalid(format!(
                "background_threads is {}; it must be 0 to 256",
                self.background_threads
            )));
        }
        if self.reserve_bytes > Self::RESERVE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the reserve is {} bytes; it must be at most {}",
                self.reserve_bytes,
                Self::RESERVE_BYTES_MAX
            )));
        }
        let segment = self.wal_segment_bytes;
        let range = Self::WAL_SEGMENT_BYTES_MIN..=Self::WAL_SEGMENT_BYTES_MAX;
        if segment != 0 && !range.contains(&segment) {
            return Err(Error::invalid(format!(
                "the log's segment is {segment} bytes; it must be 0 (a quarter of the write \
                 buffer) or {} to {}",
                range.start(),
                range.end()
            )));
        }
        frondb_background::check_period(self.checkpoint_period)?;
        self.sync.check()
    }

    /// How the log is written.
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
            reserve_bytes: others.reserve_bytes.min(segment_bytes),
            ..others
        }
    }

    /// How the memory is shared out when it is opened.
    pub(crate) fn memory(&self) -> Memory {
        self.memory_rules().of(self.memory_bytes)
    }

    /// What the options say of memory, but for how much there is.
    pub(crate) fn memory_rules(&self) -> MemoryRules {
        MemoryRules {
            write_buffer: self.write_buffer_bytes,
            has_threads: self.background_threads > 0,
            read_only: self.read_only,
        }
    }
}
