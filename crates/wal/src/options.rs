//! The options of the log.

use frondb_core::{Error, Result};

/// When a commit's record is made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum SyncMode {
    /// Before the commit returns. Commits that wait at the same time share one sync.
    #[default]
    Always,
    /// At most this many milliseconds after the commit returned; until then it survives the end
    /// of the process, not of the power.
    EveryMillis(u64),
    /// When the log is synced for another reason.
    Never,
}

/// How a log is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalOptions {
    /// A segment is closed before it grows beyond this many bytes, unless a single record does.
    /// At least 4,096, at most 1 GiB. Default 64 MiB; the engine sets the smaller of 100 MB and a
    /// quarter of the write buffer.
    pub segment_bytes: u64,
    /// What [`Wal::commit_to`](crate::Wal::commit_to) waits for. Default [`SyncMode::Always`].
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
        if let SyncMode::EveryMillis(0) = self.sync {
            return Err(Error::invalid("WAL sync interval must be at least 1 millisecond"));
        }
        Ok(())
    }
}
