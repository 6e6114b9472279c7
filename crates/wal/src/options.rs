//! The options of the log.

use std::time::Duration;

use frondb_core::option_value::OptionValue;
use frondb_core::{Error, Result};

/// When a commit's record is made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum SyncMode {
    /// Before the commit returns. Commits that wait at the same time share one sync.
    #[default]
    Always,
    /// At most this many milliseconds, plus the time of a sync, after the commit has returned.
    /// Until then the commit survives the end of the process but not a power loss. 1 to
    /// [`MILLIS_MAX`](Self::MILLIS_MAX).
    EveryMillis(u64),
    /// Only when the log is synced for another reason.
    Never,
}

impl OptionValue for SyncMode {
    /// Parses `always`, `never`, or the longest time without a sync, such as `100ms`.
    fn read(text: &str) -> Result<Self> {
        match text {
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => match Duration::read(text) {
                Ok(time) => {
                    Ok(Self::EveryMillis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
                }
                Err(_) => Err(Error::invalid(format!(
                    "{text:?} is no sync mode: use always, never, or a time such as 100ms"
                ))),
            },
        }
    }

    /// Checks the interval against `limits`, in milliseconds.
    fn check(&self, name: &str, limits: Option<&(u64, u64)>) -> Result<()> {
        match self {
            Self::EveryMillis(millis) => Duration::from_millis(*millis).check(name, limits),
            Self::Always | Self::Never => Ok(()),
        }
    }
}

impl SyncMode {
    /// Longest accepted interval, milliseconds: a day.
    pub const MILLIS_MAX: u64 = 86_400_000;

    /// Checks the range of the interval.
    ///
    /// # Errors
    /// `Invalid` naming the range.
    pub fn check(self) -> Result<()> {
        match self {
            Self::EveryMillis(millis) if !(1..=Self::MILLIS_MAX).contains(&millis) => {
                Err(Error::invalid(format!(
                    "the sync interval is {millis} milliseconds; it must be 1 to {}",
                    Self::MILLIS_MAX
                )))
            }
            _ => Ok(()),
        }
    }

    /// Encodes the mode as one number, for an atomic.
    pub(crate) fn to_bits(self) -> u64 {
        match self {
            Self::Always => 0,
            Self::EveryMillis(millis) => millis,
            Self::Never => u64::MAX,
        }
    }

    /// Decodes the result of [`to_bits`](Self::to_bits).
    pub(crate) fn from_bits(bits: u64) -> Self {
        match bits {
            0 => Self::Always,
            u64::MAX => Self::Never,
            millis => Self::EveryMillis(millis),
        }
    }
}

/// Options of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalOptions {
    /// A segment ends before it grows beyond this many bytes, unless a single record is longer. At
    /// least 4,096, at most 1 GiB. Default 64 MiB; in the engine, unless its option
    /// `log_segment_bytes` is set, the smaller of 100 MiB and a quarter of the write buffer.
    pub segment_bytes: u64,
    /// The durability for which [`Wal::commit_to`](crate::Wal::commit_to) waits at first;
    /// [`Wal::set_sync_mode`](crate::Wal::set_sync_mode) changes it later. Default
    /// [`SyncMode::Always`].
    pub sync: SyncMode,
    /// Whether to compress a record with lz4 if that saves at least a tenth. After a record that
    /// did not shrink, the next 32 records are written uncompressed. Default false: measured on
    /// rows with three secondary keys, compression saved 30 % of the bytes and cost 1.6 ns of CPU
    /// per byte, whereas writing an uncompressed byte costs 0.5 ns, including the kernel's copy.
    pub compression: bool,
    /// Whether to decode each compressed record and compare; a record that differs is written
    /// uncompressed. Default false; debug builds always do it.
    pub verify: bool,
    /// Bytes of space allocated beyond the end of the log, so that this much can still be logged
    /// when the disk is full. 0 allocates nothing. Default 1 MiB, at most `segment_bytes`.
    pub reserve_bytes: u64,
    /// Bytes written after which the operating system is asked to start writing them to disk, so
    /// that the next sync is short. 0 never asks. Default 4 MiB.
    pub writeback_bytes: u64,
    /// Maximum number of former segments whose files are kept for reuse, unless
    /// [`Wal::keep_spares`](crate::Wal::keep_spares) says that none is. Default 2.
    pub spares_max: usize,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            sync: SyncMode::Always,
            compression: false,
            verify: false,
            reserve_bytes: 1 << 20,
            writeback_bytes: 4 << 20,
            spares_max: 2,
        }
    }
}

impl WalOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// `Invalid` naming the option.
    pub fn check(&self) -> Result<()> {
        if !(4096..=1 << 30).contains(&self.segment_bytes) {
            return Err(Error::invalid(format!(
                "WAL segment_bytes must be 4096 to 1073741824, not {}",
                self.segment_bytes
            )));
        }
        self.sync.check()
    }
}
