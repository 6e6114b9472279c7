//! The options of the log.

use frondb_core::{Error, Result};

/// When a commit's record is made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum SyncMode {
    /// Before the commit returns. Commits that wait at the same time share one sync.
    #[default]
    Always,
    /// At most this many milliseconds, and the time of a sync, after the commit returned; until
    /// then it survives the end of the process, not of the power. 1 to 86,400,000 (a day).
    EveryMillis(u64),
    /// When the log is synced for another reason.
    Never,
}

impl SyncMode {
    /// Longest interval accepted, milliseconds.
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

    /// As one number, for an atomic.
    pub(crate) fn to_bits(self) -> u64 {
        match self {
            Self::Always => 0,
            Self::EveryMillis(millis) => millis,
            Self::Never => u64::MAX,
        }
    }

    /// What [`to_bits`](Self::to_bits) made.
    pub(crate) fn from_bits(bits: u64) -> Self {
        match bits {
            0 => Self::Always,
            u64::MAX => Self::Never,
            millis => Self::EveryMillis(millis),
        }
    }
}

/// How a log is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalOptions {
    /// A segment is closed before it grows beyond this many bytes, unless a single record does.
    /// At least 4,096, at most 1 GiB. Default 64 MiB; the engine sets the smaller of 100 MB and a
    /// quarter of the write buffer.
    pub segment_bytes: u64,
    /// What [`Wal::commit_to`](crate::Wal::commit_to) waits for at first; it can be changed later
    /// ([`Wal::set_sync_mode`](crate::Wal::set_sync_mode)). Default [`SyncMode::Always`].
    pub sync: SyncMode,
    /// Compress a record with lz4 when that saves a tenth of it or more; where it did not pay,
    /// the next records are not tried. Off by default: measured on rows with three secondary
    /// keys it saved 30 % of the bytes and cost 1.6 ns of CPU for each, where writing a byte
    /// without costs 0.5 ns, the kernel's copy included.
    pub compression: bool,
    /// Space that is taken ahead of the end of the log, bytes: so much can be logged on a disk
    /// that is full otherwise. 0 takes none. Default 1 MiB, at most `segment_bytes`.
    pub reserve_bytes: u64,
    /// Bytes that may be written before the operating system is asked to begin writing them to
    /// disk, so that the next sync is short. 0 never asks. Default 4 MiB.
    pub writeback_bytes: u64,
    /// Most former segments kept to be written again. Default 2.
    pub spares_max: usize,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            sync: SyncMode::Always,
            compression: false,
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
