//! Options of a database. The defaults need no tuning; only memory, durability and
//! compression are worth considering.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::open::options::EngineOptions;
use frondb_catalog::UpdateFns;
use frondb_core::Result;
use frondb_core::message::UpdateFn;
use frondb_core::sync::Arc;
use frondb_device::Modes;
use frondb_wal::SyncMode;

pub use frondb_records::TreeOptions;

/// Options for opening a database.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) engine: EngineOptions,
    pub(crate) log_dir: Option<PathBuf>,
    file_mode: u32,
    dir_mode: Option<u32>,
    pub(crate) attachable: bool,
}

impl Default for Options {
    fn default() -> Self {
        let memory_bytes = Self::default_memory_bytes();
        // At least two: one thread flushes and one merges. Larger machines use half of their cores.
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let background_threads = (cores / 2).max(2);
        let engine = EngineOptions { memory_bytes, background_threads, ..EngineOptions::default() };
        Self {
            engine,
            log_dir: None,
            file_mode: Modes::PRIVATE.file(),
            dir_mode: None,
            attachable: false,
        }
    }
}

impl Options {
    /// The defaults: create the database if there is none, use a quarter of the machine's memory,
    /// sync at every commit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A quarter of the machine's memory.
    pub(crate) fn default_memory_bytes() -> u64 {
        (frondb_device::memory_bytes() / 4).max(EngineOptions::MEMORY_BYTES_MIN)
    }

    /// The memory budget, bytes: cache, memtables, filters, indexes and work buffers. At least 16
    /// MiB (4 MiB without background threads, for tests); default a quarter of the machine's
    /// memory. Measured peaks of the process stayed within 112 % of the budget (91 % with 64 MiB,
    /// 112 % with 32 MiB and 64 readers, 103 % with 16 MiB and a thousand cursors), plus the memory
    /// of an empty process and 32 KiB for each reading thread.
    /// [`Db::set_memory_bytes`](crate::Db::set_memory_bytes) changes it later.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.engine.memory_bytes = bytes;
        self
    }

    /// Bytes that all memtables together may take before the largest one is flushed: 16 KiB to half
    /// of the memory budget. 0, the default, means a quarter of the budget; with a budget below 64
    /// MiB it means a quarter of what remains of the budget beside the memory of the process itself
    /// (1.75 MiB of 16, 5.25 MiB of 32). The log keeps up to twice as much.
    #[must_use]
    pub fn write_buffer_bytes(mut self, bytes: u64) -> Self {
        self.engine.write_buffer_bytes = bytes;
        self
    }

    /// Whether to create the database if the directory has none. Default true.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.engine.create = create;
        self
    }

    /// Whether to fail if the directory has a database already. Default false.
    #[must_use]
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.engine.create_new = create_new;
        self
    }

    /// Whether to open the database without changing a byte of it, even on a read-only medium.
    /// Default false. Recovery happens in memory, and in a temporary file (`TMPDIR`) if it needs
    /// more. Several processes may have the database open read-only at the same time, but not while
    /// another process has it open for writing. Calls that would write fail with `Invalid`. The
    /// open never creates a database, even if [`create`](Self::create) is set.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.engine.read_only = read_only;
        self
    }

    /// What a commit with [`Durability::Sync`](crate::Durability::Sync) waits for. Default
    /// [`SyncMode::Always`]; [`SyncMode::EveryMillis`] takes 1 to 86,400,000 ms (a day).
    /// [`Db::set_sync_mode`](crate::Db::set_sync_mode) changes it later.
    #[must_use]
    pub fn sync(mut self, mode: SyncMode) -> Self {
        self.engine.sync = mode;
        self
    }

    /// The directory of the log, for a log on a device of its own. Default: `wal` in the
    /// directory of the database. Must be the same at every open.
    #[must_use]
    pub fn log_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.log_dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Permission bits of new files, independent of the umask: 0o600 to 0o666; the owner's bits
    /// must be set. Default 0o600, for the owner alone. Existing files keep their bits. To share a
    /// database with a group, pass 0o640 or 0o660 at every open.
    #[must_use]
    pub fn file_mode(mut self, mode: u32) -> Self {
        self.file_mode = mode;
        self
    }

    /// Permission bits of new directories, independent of the umask: 0o700 to 0o777; the owner's
    /// bits must be set. Default: the file mode with an `x` for each `r`, so 0o700.
    #[must_use]
    pub fn dir_mode(mut self, mode: u32) -> Self {
        self.dir_mode = Some(mode);
        self
    }

    /// The modes of new files and directories.
    pub(crate) fn modes(&self) -> Result<Modes> {
        Modes::new(self.file_mode, self.dir_mode)
    }

    pub(crate) fn without_log_dir(mut self) -> Self {
        self.log_dir = None;
        self
    }

    /// Whether other processes may ask this process for statistics and backups while it has the
    /// database open ([`Db::attach`](crate::Db::attach); `frondb stats` and `frondb backup` do).
    /// Default false. The database then has a socket in its directory, with the mode of its files,
    /// and a thread that waits for questions. Has no effect on a database that is opened read-only.
    #[must_use]
    pub fn attachable(mut self, on: bool) -> Self {
        self.attachable = on;
        self
    }

    /// Size of a log file, bytes: 64 KiB to 1 GiB; 0, the default, means a quarter of the write
    /// buffer and at most 100 MiB. A larger size means fewer files, and disk space is freed in
    /// larger pieces.
    #[must_use]
    pub fn log_segment_bytes(mut self, bytes: u64) -> Self {
        self.engine.wal_segment_bytes = bytes;
        self
    }

    /// Whether log records are compressed with lz4 if that makes them smaller. Default false: on a
    /// fast device, compression takes more time than it saves.
    #[must_use]
    pub fn log_compression(mut self, on: bool) -> Self {
        self.engine.wal_compression = on;
        self
    }

    /// Whether each block and log record that lz4 or zstd up to level 3 has compressed is decoded
    /// and compared before it is written, as is always done for the other codecs. A fault of a
    /// codec or of the memory then loses no data: output that does not decode is replaced by the
    /// uncompressed bytes and counted (`miscoded_blocks`). Default false: it adds about a seventh
    /// to the processor time of a load (rows of 100 bytes in random order). Debug builds always do
    /// it.
    #[must_use]
    pub fn verify_fast_codecs(mut self, on: bool) -> Self {
        self.engine.verify_fast_codecs = on;
        self
    }

    /// Number of threads that flush and merge, 0 to 256. With 0, this work happens inside the calls
    /// that need it, for deterministic tests. Default: half of the cores, at least 2.
    #[must_use]
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.engine.background_threads = threads;
        self
    }

    /// Whether data files bypass the operating system's page cache if the file system supports it,
    /// so that the memory option covers all caching. Default true.
    #[must_use]
    pub fn direct_io(mut self, on: bool) -> Self {
        self.engine.direct_io = on;
        self
    }

    /// Disk space reserved for deletes and one merge on a full disk, bytes. Default 24 MiB, at
    /// most 256 MiB.
    #[must_use]
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.engine.reserve_bytes = bytes;
        self
    }

    /// About how long a message may be on disk only in the log before it is flushed, even if the
    /// write buffer has room, so that recovery replays little. At most a year. Default
    /// `Duration::ZERO`: no limit on the time, only the log's limit of twice the write buffer.
    /// [`Db::set_checkpoint_period`](crate::Db::set_checkpoint_period) changes it later.
    #[must_use]
    pub fn checkpoint_period(mut self, length: Duration) -> Self {
        self.engine.checkpoint_period = length;
        self
    }

    /// The most bytes per second that flushes and merges write; if they fall behind, writers are
    /// slowed down. Default 0: no limit.
    /// [`Db::set_background_bytes_per_second`](crate::Db::set_background_bytes_per_second) changes
    /// it later.
    #[must_use]
    pub fn background_bytes_per_second(mut self, bytes: u64) -> Self {
        self.engine.background_bytes_per_second = bytes;
        self
    }

    /// Registers an update function; several versions of it may be registered. If the function of
    /// a tree is not registered, the tree accepts no updates, and keys with pending updates cannot
    /// be read.
    #[must_use]
    pub fn update_fn(mut self, function: impl UpdateFn + 'static) -> Self {
        let fns: &mut UpdateFns = &mut self.engine.update_fns;
        fns.register(Arc::new(function));
        self
    }
}
