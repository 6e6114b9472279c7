//! Options of a database and of a tree. The defaults need no tuning; only memory, durability and
//! compression are worth considering.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::open::options::EngineOptions;
use frondb_block::Codec;
use frondb_catalog::UpdateFns;
use frondb_core::Result;
use frondb_core::message::UpdateFn;
use frondb_core::sync::Arc;
use frondb_device::Modes;
use frondb_trunk::{FilterPolicy, TrunkOptions};
use frondb_wal::SyncMode;

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

/// Smallest leaf of a tree with a dictionary, bytes: each leaf has a copy of the dictionary, which
/// takes some percent of the leaf's disk space.
const DICTIONARY_LEAF_BYTES: u64 = 64 << 20;

/// Options of a tree. Stored with the tree; [`Tree::set_options`](crate::Tree::set_options) changes
/// the codec and the block size later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeOptions {
    pub(crate) trunk: TrunkOptions,
    pub(crate) update_fn: Option<(String, u32)>,
}

impl From<TreeOptions> for frondb_records::TreeOptions {
    fn from(TreeOptions { trunk, update_fn }: TreeOptions) -> Self {
        Self { trunk, update_fn }
    }
}

impl From<&frondb_records::TreeOptions> for TreeOptions {
    fn from(stored: &frondb_records::TreeOptions) -> Self {
        Self { trunk: stored.trunk, update_fn: stored.update_fn.clone() }
    }
}

impl TreeOptions {
    /// Options for a primary or unique index: point reads by full key, values stored with the keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Options for a non-unique secondary index: scanned by prefix and rarely probed for a full
    /// key, so its bases have no filters. If most scans give the same number of first bytes of the
    /// key, such as its first columns, `filter(FilterPolicy::Prefix(bytes))` makes short scans
    /// cheaper.
    #[must_use]
    pub fn secondary() -> Self {
        Self::default().filter(FilterPolicy::Runs)
    }

    /// Options for the smallest files: zstd at level 19 with a dictionary that is trained from the
    /// tree's data, in blocks of 128 KiB, or down to a quarter of that if smaller blocks take
    /// hardly any more space, and leaves of 64 MiB or more. Rows are first written with a quick
    /// codec, and packed in the background ([`codec`](Self::codec)). A lookup that reads a block
    /// decompresses all of it.
    #[must_use]
    pub fn aggressive() -> Self {
        Self::default().codec_with_blocks(Codec::AGGRESSIVE)
    }

    /// The codec of bases, which hold consolidated data. Default zstd level 1. [`Codec::None`]
    /// also turns off the compression of runs that are not consolidated yet; otherwise runs use
    /// lz4.
    ///
    /// A slow codec (`Codec::is_slow`) never delays writers: bases are first written with
    /// [`Codec::QUICK`], and packed leaf by leaf by background threads that have nothing more urgent
    /// to do. `packed_bytes` of [`Stats`](crate::Stats) is the data that is packed already;
    /// [`Tree::optimize`](crate::Tree::optimize) packs the rest and waits for it.
    ///
    /// A codec with a dictionary also sets the smallest leaf to 64 MiB, because each leaf has a
    /// copy of the dictionary; changing to a codec without one resets the smallest leaf to its
    /// default.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        let has_dictionary = |codec| matches!(codec, Codec::ZstdDictionary(_));
        let had_dictionary = has_dictionary(self.trunk.base_codec);
        self.trunk.base_codec = codec;
        self.trunk.run_codec = if codec == Codec::None { Codec::None } else { Codec::Lz4 };
        let large = DICTIONARY_LEAF_BYTES.min(self.trunk.leaf_bytes_max);
        if has_dictionary(codec) {
            self.trunk.leaf_bytes_min = self.trunk.leaf_bytes_min.max(large);
        } else if had_dictionary && self.trunk.leaf_bytes_min == large {
            let default = TrunkOptions::default().leaf_bytes_min;
            self.trunk.leaf_bytes_min = default.min(self.trunk.leaf_bytes_max);
        }
        self
    }

    /// As [`codec`](Self::codec), and sets the block size that suits the codec
    /// ([`Codec::preferred_block_bytes`]). If the codec has none, a block size that suited the
    /// former codec is reset to the default.
    #[must_use]
    pub fn codec_with_blocks(mut self, codec: Codec) -> Self {
        let suited = self.trunk.base_codec.preferred_block_bytes();
        let had_suiting = suited == Some(self.trunk.base_block_bytes);
        self = self.codec(codec);
        match codec.preferred_block_bytes() {
            Some(bytes) => self.block_bytes(bytes),
            None if had_suiting => self.block_bytes(TrunkOptions::default().base_block_bytes),
            None => self,
        }
    }

    /// Key and value bytes in a block of consolidated data, 256 bytes to 4 MiB. Default 16 KiB. The
    /// size that a codec with a dictionary prefers (`Codec::preferred_block_bytes`), 128 KiB, is an
    /// upper limit: blocks are smaller if that takes hardly any more space. With any other size,
    /// all blocks have that size.
    #[must_use]
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.trunk.base_block_bytes = bytes;
        self
    }

    /// Target number of children of an inner node below the root, 2 to 1,024; a node may have up to
    /// twice as many. Default 16.
    #[must_use]
    pub fn fanout(mut self, fanout: usize) -> Self {
        self.trunk.fanout = fanout;
        self
    }

    /// Which runs have filters, for point reads or for short scans. Default
    /// [`FilterPolicy::Full`].
    #[must_use]
    pub fn filter(mut self, policy: FilterPolicy) -> Self {
        self.trunk.filter = policy;
        self
    }

    /// The tree's update function, by name and version; it must be registered in [`Options`].
    #[must_use]
    pub fn update_fn(mut self, name: impl Into<String>, version: u32) -> Self {
        self.update_fn = Some((name.into(), version));
        self
    }

    /// The tree's shape, for experts and tests: sizes of leaves and slices, merge schedule.
    #[must_use]
    pub fn shape(mut self, change: impl FnOnce(&mut TrunkOptions)) -> Self {
        change(&mut self.trunk);
        self
    }
}

impl TreeOptions {
    /// The [codec](Self::codec) of bases.
    #[must_use]
    pub fn base_codec(&self) -> Codec {
        self.trunk.base_codec
    }
}
