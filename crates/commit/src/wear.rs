//! [`WearMeter`]: counts the bytes that a database writes to its files, since the open and in
//! total.
//!
//! ```text
//!   log, manifest, data files --> WriteCounters <-- commits (bytes of users)
//!   commits, installs --> tick() --> a sample a minute --> History
//!   superblock written --> note() --> totals and samples of the last hour in its spare bytes
//! ```
//!
//! The totals survive a restart in the superblocks. Superblocks are written anyway, so keeping the
//! totals costs no I/O. A crash loses the counts since the newest superblock.
//!
//! Any thread may use a [`WearMeter`]. No other lock is taken while the lock of the history is
//! held.

use std::time::Duration;

use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::wear::{History, Sample, Wear, WriteCause, WriteCounters, WriteSums};
use frondb_manifest::{NOTE_BYTES_MAX, NoteSource};
use frondb_records::{decode_history, encode_history};

/// Time between two samples while the database writes.
const SAMPLE_EVERY: Duration = Duration::from_secs(60);

// The longest encoded history: one byte and three numbers, then 16 numbers for each sample: its
// time, the users' bytes, and two for each of the seven causes. A number has at most 10 bytes.
const _: () = assert!(1 + 30 + frondb_core::wear::SAMPLES_MAX * 160 <= NOTE_BYTES_MAX);

/// Counts the writes of one open database.
pub struct WearMeter {
    /// Counts since the database was opened. `None` if it was opened read-only: then recovery
    /// writes only to memory.
    counters: Option<Arc<WriteCounters>>,
    /// The totals when the database was opened.
    before: WriteSums,
    clock: SharedClock,
    /// The time of the open: by `clock`, and in seconds since 1970.
    opened: (Nanos, u64),
    history: Mutex<History>,
    /// The time at which the next sample is due, nanoseconds of `clock`.
    sample_due: AtomicU64,
}

impl WearMeter {
    /// Continues the totals of `note`, the note in the superblock at the open; if `note` cannot be
    /// decoded or is empty, begins new totals. `unix_seconds` is the current time.
    #[must_use]
    pub fn new(
        counters: Option<Arc<WriteCounters>>,
        note: &[u8],
        clock: SharedClock,
        unix_seconds: u64,
    ) -> Arc<Self> {
        let mut history = decode_history(note).unwrap_or_else(|| History::new(unix_seconds));
        history.resume(unix_seconds);
        let newest = history.newest();
        let now = clock.now();
        Arc::new(Self {
            counters,
            before: newest.sums,
            opened: (now, unix_seconds.max(newest.at)),
            clock,
            history: Mutex::new(history),
            sample_due: AtomicU64::new(now.0),
        })
    }

    /// Counts the bytes of a batch or transaction that was committed or prepared.
    #[inline]
    pub fn add_user(&self, bytes: u64) {
        if let Some(counters) = &self.counters {
            counters.add_user(bytes);
        }
    }

    /// Counts a write to a file of the database that is neither log nor data file; its cause is
    /// `Manifest`.
    pub fn add_other(&self, bytes: u64) {
        if let Some(counters) = &self.counters {
            counters.add(WriteCause::Manifest, bytes);
        }
    }

    /// Takes a sample if one is due. Called after commits and before installs.
    #[inline]
    pub fn tick(&self, now: Nanos) {
        if now.0 >= self.sample_due.load(Ordering::Relaxed) {
            self.sample(now);
        }
    }

    /// Returns the writes since the database was opened.
    #[must_use]
    pub fn since_open(&self) -> WriteSums {
        self.counters.as_ref().map(|counters| counters.read()).unwrap_or_default()
    }

    /// Returns the writes until now, or until the newest superblock if the database was opened
    /// read-only.
    #[must_use]
    pub fn read(&self) -> Wear {
        let history = self.history.lock();
        let until = match self.counters {
            Some(_) => self.unix_seconds(self.clock.now()),
            None => history.newest().at,
        };
        history.wear(until, &self.totals())
    }

    #[cold]
    fn sample(&self, now: Nanos) {
        let mut history = self.history.lock();
        // Another thread may have taken the sample.
        if now.0 >= self.sample_due.load(Ordering::Relaxed) {
            self.sample_due.store((now + SAMPLE_EVERY).0, Ordering::Relaxed);
            history.add(Sample { at: self.unix_seconds(now), sums: self.totals() });
        }
    }

    fn totals(&self) -> WriteSums {
        self.before.plus(&self.since_open())
    }

    fn unix_seconds(&self, now: Nanos) -> u64 {
        let (opened, at) = self.opened;
        at + now.since(opened).as_secs()
    }
}

impl NoteSource for WearMeter {
    fn note(&self, bytes: u64) -> Vec<u8> {
        let mut history = self.history.lock();
        if self.counters.is_some() {
            // The superblock that will carry this note is a write, too.
            let sums = self.totals().with(WriteCause::Manifest, bytes);
            let at = self.unix_seconds(self.clock.now());
            history.add(Sample { at, sums });
        }
        encode_history(&history)
    }
}

impl std::fmt::Debug for WearMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WearMeter({:?})", self.since_open().total())
    }
}
