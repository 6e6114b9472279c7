//! The causes of writes to the files of a database, and sums and counters of writes by cause.

use crate::sync::atomic::{AtomicU64, Ordering};

/// The cause of a write. Every write to the files of a database has exactly one cause.
///
/// The numbers are on disk: do not change them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[non_exhaustive]
#[repr(usize)]
pub enum WriteCause {
    /// The log: records of commits and the mark beside them.
    Log = 0,
    /// Flushes of memtables.
    Flush = 1,
    /// Merges, rewrites of bases, and flushes of inner nodes.
    Merge = 2,
    /// Runs moved away from the end of a data file, so that the file can be truncated.
    Relocation = 3,
    /// The manifest, its superblocks, and the file with the names of backups.
    Manifest = 4,
    /// Private runs of large transactions; bulk loads, including their spools.
    PrivateRuns = 5,
    /// Large values, which have extents of their own.
    LargeValues = 6,
}

impl WriteCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Log,
        Self::Flush,
        Self::Merge,
        Self::Relocation,
        Self::Manifest,
        Self::PrivateRuns,
        Self::LargeValues,
    ];

    /// Returns the name of the cause, for JSON and lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Flush => "flush",
            Self::Merge => "merge",
            Self::Relocation => "relocation",
            Self::Manifest => "manifest",
            Self::PrivateRuns => "private_runs",
            Self::LargeValues => "large_values",
        }
    }

    const fn position(self) -> usize {
        self as usize
    }
}

/// Bytes written, and the number of write requests that wrote them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Writes {
    /// Bytes that were written.
    pub bytes: u64,
    /// Requests to the file system, a count.
    pub requests: u64,
}

impl Writes {
    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            requests: self.requests.saturating_add(other.requests),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            requests: self.requests.saturating_sub(other.requests),
        }
    }
}

/// The writes of a period, by cause, and the bytes that users committed in the period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteSums {
    user_bytes: u64,
    causes: [Writes; WriteCause::ALL.len()],
}

impl WriteSums {
    /// Creates sums. `causes` has the writes of each cause, in the order of [`WriteCause::ALL`].
    #[must_use]
    pub const fn new(user_bytes: u64, causes: [Writes; WriteCause::ALL.len()]) -> Self {
        Self { user_bytes, causes }
    }

    /// Returns the bytes of batches and transactions that were committed or prepared.
    #[must_use]
    pub const fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// Returns the writes for one cause.
    #[must_use]
    pub const fn of(&self, cause: WriteCause) -> Writes {
        self.causes[cause.position()]
    }

    /// Returns the writes for all causes together.
    #[must_use]
    pub fn total(&self) -> Writes {
        self.causes.iter().fold(Writes::default(), |sum, part| sum.plus(*part))
    }

    /// Returns the write amplification: bytes written for each byte that the user committed. `None`
    /// if nothing was committed.
    #[must_use]
    pub fn amplification(&self) -> Option<f64> {
        (self.user_bytes > 0).then(|| self.total().bytes as f64 / self.user_bytes as f64)
    }

    /// Returns these sums plus `other`.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.combined(other, u64::saturating_add, Writes::plus)
    }

    /// Returns these sums minus `other`, which is an earlier state of the same sums.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.combined(other, u64::saturating_sub, Writes::minus)
    }

    /// Returns these sums plus one write.
    #[must_use]
    pub fn with(mut self, cause: WriteCause, bytes: u64) -> Self {
        let part = &mut self.causes[cause.position()];
        *part = part.plus(Writes { bytes, requests: 1 });
        self
    }

    /// Returns these sums times `n / of`, rounded down.
    pub(super) fn share(&self, n: u64, of: u64) -> Self {
        let share = |value: u64| {
            let share = u128::from(value) * u128::from(n) / u128::from(of.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let part =
            |part: Writes| Writes { bytes: share(part.bytes), requests: share(part.requests) };
        Self { user_bytes: share(self.user_bytes), causes: self.causes.map(part) }
    }

    fn combined(
        &self,
        other: &Self,
        number: fn(u64, u64) -> u64,
        writes: fn(Writes, Writes) -> Writes,
    ) -> Self {
        Self {
            user_bytes: number(self.user_bytes, other.user_bytes),
            causes: WriteCause::ALL.map(|cause| writes(self.of(cause), other.of(cause))),
        }
    }
}

/// The counters of the writes of a database. Any thread may add; an addition costs two relaxed
/// atomic adds.
#[derive(Debug, Default)]
pub struct WriteCounters {
    user_bytes: AtomicU64,
    causes: [Counter; WriteCause::ALL.len()],
}

/// Counts the writes of one cause.
#[derive(Debug, Default)]
struct Counter {
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl WriteCounters {
    /// Counts a write of `bytes`.
    #[inline]
    pub fn add(&self, cause: WriteCause, bytes: u64) {
        let counter = &self.causes[cause.position()];
        counter.bytes.fetch_add(bytes, Ordering::Relaxed);
        counter.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the bytes of a batch or transaction that was committed or prepared.
    #[inline]
    pub fn add_user(&self, bytes: u64) {
        self.user_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the current counts.
    #[must_use]
    pub fn read(&self) -> WriteSums {
        let read = |counter: &Counter| Writes {
            bytes: counter.bytes.load(Ordering::Relaxed),
            requests: counter.requests.load(Ordering::Relaxed),
        };
        let causes = WriteCause::ALL.map(|cause| read(&self.causes[cause.position()]));
        WriteSums::new(self.user_bytes.load(Ordering::Relaxed), causes)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn each_write_counts_for_its_cause_and_for_the_total() {
        let counters = WriteCounters::default();
        for (i, cause) in WriteCause::ALL.into_iter().enumerate() {
            assert_eq!(cause.position(), i);
            counters.add(cause, 10 << i);
            counters.add(cause, 1);
        }
        counters.add_user(254);
        let sums = counters.read();
        for (i, cause) in WriteCause::ALL.into_iter().enumerate() {
            assert_eq!(sums.of(cause), Writes { bytes: (10 << i) + 1, requests: 2 });
        }
        assert_eq!(sums.total(), Writes { bytes: 1270 + 7, requests: 14 });
        assert_eq!(sums.amplification(), Some(1277.0 / 254.0));
        assert_eq!(WriteSums::default().amplification(), None);
        assert_eq!(sums.plus(&sums).minus(&sums), sums);
        let more = sums.with(WriteCause::Manifest, 5);
        assert_eq!(more.minus(&sums).total(), Writes { bytes: 5, requests: 1 });
    }
}
