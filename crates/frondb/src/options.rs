//! Options of a database. The defaults need no tuning; consider only memory, durability and
//! compression.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
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

/// Makes [`Options`] with a field, a method and a row of [`Options::ROWS`] for each option. An
/// option is `NAME(ARGUMENT: TYPE) -> TYPE OF FIELD = DEFAULT, MIN..=MAX => VALUE OF FIELD;`. The
/// range is left out if there is none, or if [`Options::check`] computes it. The value of the field
/// is left out if it is the argument. Ranges of times are in milliseconds. The default is accepted
/// even if it is outside of the range.
macro_rules! database_options {
    ($($(#[doc = $doc:literal])*
       $name:ident($arg:ident: $arg_type:ty) -> $type:ty = $default:expr
       $(, $range:expr)? $(=> $value:expr)?;)*) => {
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
            ///
            #[doc = concat!("Default `", stringify!($default), "`"
                $(, ", range `", stringify!($range), "`")?, ".")]
            #[must_use]
            pub fn $name(mut self, $arg: $arg_type) -> Self {
                self.$name = last!($arg $(, $value)?);
                self
            })*

            /// One row for each option.
            const ROWS: &'static [Row] = &[$(Row {
                name: stringify!($name),
                set: |options, text| {
                    options.$name = match text {
                        Some(text) => OptionValue::read(text)?,
                        None => $default,
                    };
                    Ok(())
                },
                limits: &[$(limits($range))?],
                check: |options| {
                    let default: $type = $default;
                    if options.$name == default {
                        return Ok(());
                    }
                    Self::check_value(stringify!($name), &options.$name)
                },
            }),*];
        }
    };
}

/// One option.
struct Row {
    name: &'static str,
    /// Sets the value that the text names; without a text, the default.
    set: fn(&mut Options, Option<&str>) -> Result<()>,
    /// The smallest and the largest value; empty if the row has no range.
    limits: &'static [(u64, u64)],
    /// Checks the value against the range.
    check: fn(&Options) -> Result<()>,
}

const fn limits(range: RangeInclusive<u64>) -> (u64, u64) {
    (*range.start(), *range.end())
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
    /// The memory budget, bytes: cache, memtables, filters, indexes and work buffers. 0 means a
    /// quarter of the machine's memory. The process also needs the memory of an empty process and
    /// 32 KiB for each reading thread. [`Db::set_memory_bytes`](crate::Db::set_memory_bytes)
    /// changes it later.
    memory_bytes(bytes: u64) -> u64 = 0, 16 << 20..=u64::MAX;
    /// Bytes that all memtables together may take before the largest one is flushed: 16 KiB to half
    /// of the memory budget. 0 means a quarter of the budget (below 64 MiB, a quarter of what is
    /// left after 7 MiB and an eighth of it). The log may grow to twice this size.
    write_buffer_bytes(bytes: u64) -> u64 = 0;
    /// Whether to create the database if the directory has none.
    create(create: bool) -> bool = true;
    /// Whether to fail if the directory has a database already.
    create_new(create_new: bool) -> bool = false;
    /// Whether to open the database without changing a byte of it, even on a read-only medium.
    /// Several processes may have it open read-only, but not while another process has it open for
    /// writing. Recovery happens in memory, and in a temporary file (`TMPDIR`) if it needs more.
    ///
    /// Calls that would write fail with `Invalid`. The open never creates a database, even if
    /// [`create`](Self::create) is set.
    read_only(read_only: bool) -> bool = false;
    /// When a commit with [`Durability::Sync`](crate::Durability::Sync) becomes durable: `Always`,
    /// before it returns; `EveryMillis(n)`, at most `n` ms and one sync later; `Never`, at the next
    /// sync for another reason. [`Db::set_sync_mode`](crate::Db::set_sync_mode) changes it later.
    sync(mode: SyncMode) -> SyncMode = SyncMode::Always, 1..=SyncMode::MILLIS_MAX;
    /// The directory of the log, for a log on a device of its own; without this option, `wal` in
    /// the directory of the database. Must be the same at every open. In a new database it must be
    /// outside of the database's directory, or be that directory or its `wal`.
    log_dir(dir: impl AsRef<Path>) -> Option<PathBuf> = None => Some(dir.as_ref().to_owned());
    /// Permission bits of new files, independent of the umask: 0o600 to 0o666; the owner's bits
    /// must be set. Default 0o600, for the owner alone. Existing files keep their bits. To share a
    /// database with a group, pass 0o640 or 0o660 at every open.
    file_mode(mode: u32) -> FileMode = FileMode(Modes::PRIVATE.file()) => FileMode(mode);
    /// Permission bits of new directories, independent of the umask: 0o700 to 0o777; the owner's
    /// bits must be set. Default: the file mode with an `x` for each `r`, so 0o700.
    dir_mode(mode: u32) -> Option<FileMode> = None => Some(FileMode(mode));
    /// Whether other processes may ask this process for statistics and backups, as `frondb stats`
    /// and `frondb backup` do ([`Db::attach`](crate::Db::attach)). Costs a thread, and a socket in
    /// the database's directory with the mode of its files. Has no effect on a database that is
    /// opened read-only.
    attachable(on: bool) -> bool = false;
    /// Size of a log file, bytes; 0 means a quarter of the write buffer, at least 64 KiB and at
    /// most 100 MiB. A larger size means fewer files, and disk space is freed in larger pieces.
    log_segment_bytes(bytes: u64) -> u64 = 0, 64 << 10..=1 << 30;
    /// Whether log records are compressed with lz4 where that saves at least a tenth. On a fast
    /// device, compression takes more time than it saves.
    log_compression(on: bool) -> bool = false;
    /// Whether blocks and log records of lz4 and of zstd up to level 3 are decoded and compared
    /// before they are written, as those of other codecs always are. A block that does not decode
    /// is written uncompressed and counted (`miscoded_blocks`). Adds a seventh to the CPU time of a
    /// load.
    ///
    /// Without the check, a fault of a codec or of the memory loses data. A debug build always
    /// checks. The seventh was measured with rows of 100 bytes in random order.
    verify_fast_codecs(on: bool) -> bool = false;
    /// Number of threads that flush and merge. With 0, this work happens inside the calls that need
    /// it, for deterministic tests. The default, half of the cores, is at least 2.
    background_threads(threads: usize) -> usize = Self::half_of_the_cores(), 0..=256;
    /// Whether data files bypass the operating system's page cache if the file system supports it,
    /// so that the memory budget covers all caching.
    direct_io(on: bool) -> bool = true;
    /// Disk space reserved for deletes and one merge on a full disk, bytes.
    reserve_bytes(bytes: u64) -> u64 = 24 << 20, 0..=256 << 20;
    /// About the longest time between a commit and the flush of its messages from the memtable, so
    /// that recovery replays little. 0 means no limit on the time, only the log's limit of twice
    /// the write buffer. [`Db::set_checkpoint_period`](crate::Db::set_checkpoint_period) changes it
    /// later.
    checkpoint_period(length: Duration) -> Duration = Duration::ZERO, 0..=365 * 86_400_000;
    /// The most bytes per second that flushes and merges write; if they fall behind, writers are
    /// slowed down. 0 means no limit.
    /// [`Db::set_background_bytes_per_second`](crate::Db::set_background_bytes_per_second) changes
    /// it later.
    background_bytes_per_second(bytes: u64) -> u64 = 0;
}

/// Permission bits; as a text, an octal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileMode(u32);

impl OptionValue for FileMode {
    fn read(text: &str) -> Result<Self> {
        let mode = u32::from_str_radix(text.trim_start_matches("0o"), 8);
        mode.map(Self).map_err(|_| Error::invalid(format!("{text:?} is no octal number")))
    }
}

impl Options {
    /// Smallest memory budget without background threads, bytes; for tests. Only the memory that
    /// parts charge keeps within it, not the whole process.
    pub(crate) const MEMORY_BYTES_MIN_WITHOUT_THREADS: u64 = MemoryRules::BYTES_MIN_WITHOUT_THREADS;

    /// Returns the defaults: create the database if there is none, use a quarter of the machine's
    /// memory, sync at every commit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the option `name` to the value of `text`: `on` or `off`; a number, for a size also with
    /// a suffix, such as K or KiB; a time, such as `60s` or `100ms`; an octal number for permission
    /// bits; `always`, `never` or a time for `sync`; a path; or `default`, which means the default
    /// value.
    ///
    /// # Errors
    /// `Invalid` if there is no such option, or the text is no value of its type. The open checks
    /// the ranges.
    pub fn set(mut self, name: &str, text: &str) -> Result<Self> {
        let row = Self::ROWS.iter().find(|row| row.name == name);
        let row =
            row.ok_or_else(|| Error::invalid(format!("a database has no option {name:?}")))?;
        (row.set)(&mut self, Some(text).filter(|text| *text != "default"))
            .map_err(|error| Error::invalid(format!("{name}: {}", error.message())))?;
        Ok(self)
    }

    /// Registers an update function. Several versions of one function may be registered. If the
    /// function of a tree is not registered, the tree accepts no updates, and keys with pending
    /// updates cannot be read.
    #[must_use]
    pub fn update_fn(mut self, function: impl UpdateFn + 'static) -> Self {
        self.update_fns.register(Arc::new(function));
        self
    }

    /// Returns the memory budget for the option value `bytes`: 0 means a quarter of the machine's
    /// memory.
    pub(crate) fn memory_bytes_of(bytes: u64) -> u64 {
        match bytes {
            0 => (frondb_device::memory_bytes() / 4).max(Self::memory_bytes_min()),
            bytes => bytes,
        }
    }

    /// Returns the smallest memory budget, bytes.
    pub(crate) fn memory_bytes_min() -> u64 {
        Self::min_of("memory_bytes")
    }

    /// Returns half of the number of cores, and at least two: one thread flushes and one merges.
    fn half_of_the_cores() -> usize {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        (cores / 2).max(2)
    }

    /// Returns the modes of new files and directories.
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
        // `memory_bytes` was checked above: its minimum depends on the number of threads.
        let mut rows = Self::ROWS.iter().filter(|row| row.name != "memory_bytes");
        rows.try_for_each(|row| (row.check)(self))
    }

    /// Returns the range of an option; `None` if its row has no range.
    fn limits_of(name: &str) -> Option<&'static (u64, u64)> {
        Self::ROWS.iter().find(|row| row.name == name)?.limits.first()
    }

    /// Returns the smallest value of an option; 0 if its row has no range.
    fn min_of(name: &str) -> u64 {
        Self::limits_of(name).map_or(0, |limits| limits.0)
    }

    /// Checks a value for the option `name`.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(crate) fn check_value(name: &str, value: &impl OptionValue) -> Result<()> {
        value.check(name, Self::limits_of(name))
    }

    /// Returns the options of the log.
    pub(crate) fn wal(&self) -> WalOptions {
        let segment_bytes = match self.log_segment_bytes {
            0 => {
                let quarter = self.memory().write_buffer_bytes() / 4;
                quarter.clamp(Self::min_of("log_segment_bytes"), 100 << 20)
            }
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

    /// Returns the shares into which the memory is divided at the open.
    pub(crate) fn memory(&self) -> Memory {
        self.memory_rules().of(Self::memory_bytes_of(self.memory_bytes))
    }

    /// Returns the rules for dividing any amount of memory.
    pub(crate) fn memory_rules(&self) -> MemoryRules {
        MemoryRules {
            bytes_min: Self::memory_bytes_min(),
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
        assert_eq!(reset.memory_bytes, 0);
        let quarter = reset.memory().total();
        assert!(quarter >= Options::memory_bytes_min() && reset.check().is_ok(), "{quarter}");
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

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        for (name, text, said) in [
            ("log_segment_bytes", "1000", "65536 to 1073741824"),
            ("background_threads", "257", "0 to 256"),
            ("reserve_bytes", "257M", "0 to 268435456"),
            ("checkpoint_period", "8761h", "0 to 31536000000 ms"),
            ("sync", "25h", "1 to 86400000"),
        ] {
            let error = Options::new().set(name, text).unwrap().check().unwrap_err();
            assert!(error.message().contains(said), "{name}: {error}");
        }
        Options::new().log_segment_bytes(0).check().unwrap();
    }
}
