//! [`Log`]: the write-ahead log, and how much of it recovery would read.

use frondb_core::Lsn;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_wal::Wal;

/// The write-ahead log of an open database, and the position from which recovery needs it. Any
/// thread may use it.
pub struct Log {
    /// The log itself.
    pub wal: Arc<Wal>,
    /// All records below this position have been inserted into memtables.
    applied: AtomicU64,
    /// The position at which recovery would begin to read, according to the durable part of the
    /// manifest.
    from: AtomicU64,
    /// The position up to which the log was durable when the manifest last recorded it.
    known: AtomicU64,
}

impl Log {
    /// Takes the log that recovery has opened. Recovery began to read at `from`. According to the
    /// manifest, the log is durable up to `known`.
    #[must_use]
    pub fn new(wal: Arc<Wal>, from: Lsn, known: Lsn) -> Arc<Self> {
        let applied = AtomicU64::new(wal.end_lsn().get());
        Arc::new(Self { wal, applied, from: from.get().into(), known: known.get().into() })
    }

    /// Returns the position below which all records have been inserted into memtables.
    #[must_use]
    pub fn applied(&self) -> Lsn {
        Lsn(self.applied.load(Ordering::Acquire))
    }

    /// Notes that all records below `end` have been inserted into memtables. REQUIRES: the commit
    /// lock, or recovery.
    pub fn set_applied(&self, end: Lsn) {
        self.applied.store(end.get(), Ordering::Release);
    }

    /// Returns the number of bytes of log that recovery would read.
    #[must_use]
    pub fn replay_bytes(&self) -> u64 {
        self.applied().get().saturating_sub(self.from().get())
    }

    /// Returns the position at which recovery would begin to read, according to the durable part of
    /// the manifest.
    #[must_use]
    pub fn from(&self) -> Lsn {
        Lsn(self.from.load(Ordering::Acquire))
    }

    /// Returns the position up to which the log was durable when the manifest last recorded it.
    #[must_use]
    pub fn known(&self) -> Lsn {
        Lsn(self.known.load(Ordering::Acquire))
    }

    /// Notes that the manifest durably records that the log is needed from `start` on, and that the
    /// log was durable up to `known`.
    pub fn note_trimmed(&self, start: Lsn, known: Lsn) {
        self.known.fetch_max(known.get(), Ordering::AcqRel);
        self.from.fetch_max(start.get(), Ordering::AcqRel);
    }
}
