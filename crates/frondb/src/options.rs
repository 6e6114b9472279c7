//! Options of a database. The defaults need no tuning; only memory, durability and
//! compression are worth considering.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use frondb_catalog::UpdateFns;
use frondb_core::message::UpdateFn;
use frondb_core::option_value::OptionValue;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};
use frondb_device::Modes;
use frondb_tree::{Memory, MemoryRules};
use frondb_wal::{SyncMode, WalOptions};

pub use frondb_records::TreeOptions;

/// Makes [`Options`] with a field, a method and a name for each row,
/// `NAME(ARGUMENT: TYPE) -> TYPE OF THE FIELD = DEFAULT, VALUE OF THE FIELD;`, without the last
/// value if it is the argument.
macro_rules! database_options {
    ($($(#[doc = $doc:literal])*
       $name:ident($arg:ident: $arg_type:ty) -> $type:ty = $default:expr $(, $value:expr)?;)*) => {
        /// Options for opening a database.
        #[derive(Clone, Debug)]
        pub struct Options {
            $(pub(crate) $name: $type,)*
            /// The update functions that trees may use.
            pub(crate) update_fns: UpdateFns,
        }

        impl Default for Options {
            fn default() -> Self {
                Self { $($name: $default,)* update_fns: UpdateFns::default() }
            }
        }

        impl Options {
            $($(#[doc = $doc])*
            #[must_use]
            pub fn $name(mut self, $arg: $arg_type) -> Self {
                self.$name = last!($arg $(, $value)?);
                self
            })*

            /// Name and setter of each option; without a text the setter sets the default.
            const ROWS: &'static [(&'static str, fn(&mut Self, Option<&str>) -> Result<()>)] = &[
                $((stringify!($name), |options, text| {
                    options.$name = match text {
                        Some(text) => OptionValue::read(text)?,
                        None => $default,
                    };
                    Ok(())
                }),)*
            ];
        }
    };
}

macro_rules! last {
    ($first:expr) => {
        $first
    };
    ($first:expr, $last:expr) => {
        $last
    };
}

database_options! {
    /// The memory budget, bytes: cache, memtables, filters, indexes and work buffers. At least 16
    /// MiB (4 MiB without background threads, for tests); default a quarter of the machine's
    /// memory. Measured peaks of the process stayed within 112 % of the budget (91 % with 64 MiB,
    /// 112 % with 32 MiB and 64 readers, 103 % with 16 MiB and a thousand cursors), plus the memory
    /// of an empty process and 32 KiB for each reading thread.
    /// [`Db::set_memory_bytes`](crate::Db::set_memory_bytes) changes it later.
    memory_bytes(bytes: u64) -> u64 = Self::default_memory_bytes();
    /// Bytes that all memtables together may take before the largest one is flushed: 16 KiB to half
    /// of the memory budget. 0, the default, means a quarter of the budget; with a budget below 64
    /// MiB it means a quarter of what remains of the budget beside the memory of the process itself
    /// (1.75 MiB of 16, 5.25 MiB of 32). The log keeps up to twice as much.
    write_buffer_bytes(bytes: u64) -> u64 = 0;
    /// Whether to create the database if the directory has none. Default true.
    create(create: bool) -> bool = true;
    /// Whether to fail if the directory has a database already. Default false.
    create_new(create_new: bool) -> bool = false;
    /// Whether to open the database without changing a byte of it, even on a read-only medium.
    /// Default false. Recovery happens in memory, and in a temporary file (`TMPDIR`) if it needs
    /// more. Several processes may have the database open read-only at the same time, but not while
    /// another process has it open for writing. Calls that would write fail with `Invalid`. The
    /// open never creates a database, even if [`create`](Self::create) is set.
    read_only(read_only: bool) -> bool = false;
    /// What a commit with [`Durability::Sync`](crate::Durability::Sync) waits for. Default
    /// [`SyncMode::Always`]; [`SyncMode::EveryMillis`] takes 1 to 86,400,000 ms (a day).
    /// [`Db::set_sync_mode`](crate::Db::set_sync_mode) changes it later.
    sync(mode: SyncMode) -> SyncMode = SyncMode::Always;
    /// The directory of the log, for a log on a device of its own. Default: `wal` in the
    /// directory of the database. Must be the same at every open.
    log_dir(dir: impl AsRef<Path>) -> Option<PathBuf> = None, Some(dir.as_ref().to_owned());
    /// Permission bits of new files, independent of the umask: 0o600 to 0o666; the owner's bits
    /// must be set. Default 0o600, for the owner alone. Existing files keep their bits. To share a
    /// database with a group, pass 0o640 or 0o660 at every open.
    file_mode(mode: u32) -> FileMode = FileMode(Modes::PRIVATE.file()), FileMode(mode);
    /// Permission bits of new directories, independent of the umask: 0o700 to 0o777; the owner's
    /// bits must be set. Default: the file mode with an `x` for each `r`, so 0o700.
    dir_mode(mode: u32) -> Option<FileMode> = None, Some(FileMode(mode));
    /// Whether other processes may ask this process for statistics and backups while it has the
    /// database open ([`Db::attach`](crate::Db::attach); `frondb stats` and `frondb backup` do).
    /// Default false. The database then has a socket in its directory, with the mode of its files,
    /// and a thread that waits for questions. Has no effect on a database that is opened read-only.
    attachable(on: bool) -> bool = false;
    /// Size of a log file, bytes: 64 KiB to 1 GiB; 0, the default, means a quarter of the write
    /// buffer and at most 100 MiB. A larger size means fewer files, and disk space is freed in
    /// larger pieces.
    log_segment_bytes(bytes: u64) -> u64 = 0;
    /// Whether log records are compressed with lz4 if that makes them smaller. Default false: on a
    /// fast device, compression takes more time than it saves.
    log_compression(on: bool) -> bool = false;
    /// Whether each block and log record that lz4 or zstd up to level 3 has compressed is decoded
    /// and compared before it is written, as is always done for the other codecs. A fault of a
    /// codec or of the memory then loses no data: output that does not decode is replaced by the
    /// uncompressed bytes and counted (`miscoded_blocks`). Default false: it adds about a seventh
    /// to the processor time of a load (rows of 100 bytes in random order). Debug builds always do
    /// it.
    verify_fast_codecs(on: bool) -> bool = false;
    /// Number of threads that flush and merge, 0 to 256. With 0, this work happens inside the calls
    /// that need it, for deterministic tests. Default: half of the cores, at least 2.
    background_threads(threads: usize) -> usize = Self::default_background_threads();
    /// Whether data files bypass the operating system's page cache if the file system supports it,
    /// so that the memory option covers all caching. Default true.
    direct_io(on: bool) -> bool = true;
    /// Disk space reserved for deletes and one merge on a full disk, bytes. Default 24 MiB, at
    /// most 256 MiB.
    reserve_bytes(bytes: u64) -> u64 = 24 << 20;
    /// About how long a message may be on disk only in the log before it is flushed, even if the
    /// write buffer has room, so that recovery replays little. At most a year. Default
    /// `Duration::ZERO`: no limit on the time, only the log's limit of twice the write buffer.
    /// [`Db::set_checkpoint_period`](crate::Db::set_checkpoint_period) changes it later.
    checkpoint_period(length: Duration) -> Duration = Duration::ZERO;
    /// The most bytes per second that flushes and merges write; if they fall behind, writers are
    /// slowed down. Default 0: no limit.
    /// [`Db::set_background_bytes_per_second`](crate::Db::set_background_bytes_per_second) changes
    /// it later.
    background_bytes_per_second(bytes: u64) -> u64 = 0;
}

/// Permission bits; as a text, an octal number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileMode(u32);

impl OptionValue for FileMode {
    fn read(text: &str) -> Result<Self> {
        let mode = u32::from_str_radix(text.trim_start_matches("0o"), 8);
        mode.map(Self).map_err(|_| Error::invalid(format!("{text:?} is no octal number")))
    }
}

impl Options {
    /// Smallest memory budget, bytes: the smallest that holds for the whole process.
    pub(crate) const MEMORY_BYTES_MIN: u64 = MemoryRules::BYTES_MIN;
    /// Smallest memory budget without background threads, bytes; for tests. Only the accounted
    /// parts keep within it, not the whole process.
    pub(crate) const MEMORY_BYTES_MIN_WITHOUT_THREADS: u64 = MemoryRules::BYTES_MIN_WITHOUT_THREADS;
    /// Largest reserve accepted, bytes.
    pub(crate) const RESERVE_BYTES_MAX: u64 = 256 << 20;
    /// Smallest segment of the log, bytes.
    pub(crate) const LOG_SEGMENT_BYTES_MIN: u64 = 64 << 10;
    /// Largest segment of the log, bytes.
    pub(crate) const LOG_SEGMENT_BYTES_MAX: u64 = 1 << 30;

    /// The defaults: create the database if there is none, use a quarter of the machine's memory,
    /// sync at every commit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an option by its name to the value that a text names, for a command line or a
    /// configuration: `on` or `off`; a number, with a suffix K, M or G if it is a size; a time,
    /// such as `60s` or `100ms`; an octal number for permission bits; `always`, `never` or a time
    /// for `sync`; a path. `default` means the default.
    ///
    /// # Errors
    /// `Invalid` if there is no such option, or the text is no value of its type. The open checks
    /// the ranges.
    pub fn set(mut self, name: &str, text: &str) -> Result<Self> {
        let row = Self::ROWS.iter().find(|(known, _)| *known == name);
        let (_, set) =
            row.ok_or_else(|| Error::invalid(format!("a database has no option {name:?}")))?;
        set(&mut self, Some(text).filter(|text| *text != "default"))
            .map_err(|error| Error::invalid(format!("{name}: {}", error.message())))?;
        Ok(self)
    }

    /// Registers an update function; several versions of it may be registered. If the function of
    /// a tree is not registered, the tree accepts no updates, and keys with pending updates cannot
    /// be read.
    #[must_use]
    pub fn update_fn(mut self, function: impl UpdateFn + 'static) -> Self {
        self.update_fns.register(Arc::new(function));
        self
    }

    /// A quarter of the machine's memory.
    pub(crate) fn default_memory_bytes() -> u64 {
        (frondb_device::memory_bytes() / 4).max(Self::MEMORY_BYTES_MIN)
    }

    /// At least two: one thread flushes and one merges. Larger machines use half of their cores.
    fn default_background_threads() -> usize {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        (cores / 2).max(2)
    }

    /// The modes of new files and directories.
    pub(crate) fn modes(&self) -> Result<Modes> {
        Modes::new(self.file_mode.0, self.dir_mode.map(|mode| mode.0))
    }

    pub(crate) fn without_log_dir(mut self) -> Self {
        self.log_dir = None;
        self
    }

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
        let segment = self.log_segment_bytes;
        let range = Self::LOG_SEGMENT_BYTES_MIN..=Self::LOG_SEGMENT_BYTES_MAX;
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
        let segment_bytes = match self.log_segment_bytes {
            0 => (self.memory().write_buffer_bytes() / 4)
                .clamp(Self::LOG_SEGMENT_BYTES_MIN, 100 << 20),
            bytes => bytes,
        };
        let others = WalOptions::default();
        WalOptions {
            segment_bytes,
            sync: self.sync,
            compression: self.log_compression,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_name_like_their_methods() {
        let by_name = |pairs: &[(&str, &str)]| {
            pairs.iter().try_fold(Options::new(), |options, (name, text)| options.set(name, text))
        };
        let set = by_name(&[
            ("memory_bytes", "64M"),
            ("create", "off"),
            ("sync", "100ms"),
            ("log_dir", "/l"),
            ("file_mode", "0640"),
            ("dir_mode", "750"),
            ("checkpoint_period", "60s"),
            ("background_threads", "0"),
        ]);
        let built = Options::new()
            .memory_bytes(64 << 20)
            .create(false)
            .sync(SyncMode::EveryMillis(100))
            .log_dir("/l")
            .file_mode(0o640)
            .dir_mode(0o750)
            .checkpoint_period(Duration::from_secs(60))
            .background_threads(0);
        assert_eq!(format!("{:?}", set.unwrap()), format!("{built:?}"));
        let reset = built.set("memory_bytes", "default").unwrap();
        assert_eq!(reset.memory_bytes, Options::default_memory_bytes());
        for (name, text, said) in [
            ("memory", "1", "no option \"memory\""),
            ("create", "maybe", "create: \"maybe\""),
            ("file_mode", "9", "octal"),
            ("sync", "sometimes", "sync mode"),
            ("checkpoint_period", "5", "no time"),
        ] {
            let error = Options::new().set(name, text).unwrap_err();
            assert!(error.message().contains(said), "{error}");
        }
    }
}
