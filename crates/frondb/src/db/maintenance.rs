//! Flushes, checkpoints, background work, files and statistics of a database.

use frondb_background::LogPins;
use frondb_core::events::EventListener;
use frondb_core::{Lsn, Result};

use super::Db;
use crate::files::{self, FileInfo};
use crate::open::Open;
use crate::open::parts::Parts;
use crate::stats::{self, EngineStats, Latencies, collect};

impl Db {
    /// Flushes all memtables, and returns when all are flushed.
    ///
    /// # Errors
    /// `NoSpace`: no data is lost, because the log still has it; `Poisoned`; `Closed`.
    pub fn flush(&self) -> Result<()> {
        let _call = self.open.begin_call()?;
        self.open.background.flush()
    }

    /// Flushes all memtables and frees the log, so that the next open replays nothing that was
    /// committed before this call.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn checkpoint(&self) -> Result<()> {
        let _call = self.open.begin_call()?;
        let Parts { background, prepared, .. } = &self.open.parts;
        background.flush()?;
        // Move prepared transactions to the manifest, so that they no longer need the log (rule
        // 19).
        let result = prepared
            .unpin(Lsn::MAX)
            .and_then(|()| background.trim_log())
            .and_then(|()| background.rotate_manifest(true))
            .map(|_| ());
        result.inspect_err(|error| self.open.health.poison_if_unknown(error))
    }

    /// Returns whether background work has caught up: no task runs, and none waits that slows
    /// writers down or may lead to such a task.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.open.background.is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled), and frees the space of deleted and overwritten
    /// large values (over 64 KiB, stored outside of the rows), which otherwise happens after a
    /// second without writes. A leaf is rewritten only where the freed values are worth the work: a
    /// few deleted values in a much larger leaf stay until the leaf is rewritten for another
    /// reason. Values that an open snapshot or cursor may still see stay too.
    ///
    /// # Errors
    /// `NoSpace` if the disk stays full; `Poisoned`; `Closed`.
    pub fn wait_settled(&self) -> Result<()> {
        self.open.background.wait_settled(|| self.open.begin_call())
    }

    /// Runs one background task if one is due, and returns whether one ran. With
    /// [`background_threads(0)`](crate::Options::background_threads), background work otherwise
    /// happens only inside of the calls that need it, such as writes. `idle` also allows the jobs
    /// that normally wait until nothing is written.
    pub fn run_one(&self, idle: bool) -> bool {
        self.open.begin_call().is_ok_and(|_call| self.open.background.run_one(idle))
    }

    /// Returns the files of the database, ordered by kind and path.
    ///
    /// # Errors
    /// `Io`; `Closed`.
    pub fn files(&self) -> Result<Vec<FileInfo>> {
        let Open { device, log_device, .. } = &*self.open;
        self.open.health.while_open(|| files::list([device, log_device]))
    }

    /// Returns the statistics of the whole database. `Display` shows them as a readable page.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        collect::stats(&self.open.parts)
    }

    /// Sets a listener for flushes, merges, failed background work, stalls of commits, a full disk,
    /// a poisoned database and damage; `None` removes it. The thread on which an event happens
    /// calls the listener, sometimes with locks of the database held. So the listener must be
    /// quick, must not call the database, and must not take a lock that the application holds while
    /// it calls the database. If the listener panics, the panic is logged and nothing else happens.
    /// Another thread may still be in a call of the old listener when this call returns. Events
    /// during recovery are not reported, because no listener can be set before recovery has ended.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use frondb::{Db, Event, Options, TreeOptions};
    ///
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let flushed = Arc::new(AtomicU64::new(0));
    /// let sum = Arc::clone(&flushed);
    /// db.set_event_listener(Some(Arc::new(move |event: &Event<'_>| {
    ///     if let Event::FlushEnded { bytes, .. } = event {
    ///         sum.fetch_add(*bytes, Ordering::Relaxed);
    ///     }
    /// })));
    /// db.create_tree("t", TreeOptions::default())?.put(b"k", b"v")?;
    /// db.flush()?;
    /// assert!(flushed.load(Ordering::Relaxed) > 0);
    /// # db.close()
    /// # }
    /// ```
    pub fn set_event_listener(&self, listener: Option<EventListener>) {
        self.open.events.set(listener);
    }

    /// Returns histograms of how long calls and background work have taken since the database was
    /// opened. They are always recorded. `Display` shows them as a readable page.
    ///
    /// ```
    /// # use frondb::{Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// db.create_tree("t", TreeOptions::default())?.put(b"k", b"v")?;
    /// let commits = db.latencies().commit;
    /// assert_eq!(commits.count(), 1);
    /// println!("99 % of commits took at most {} ns", commits.quantile_nanos(990_000));
    /// # db.close()
    /// # }
    /// ```
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        collect::latencies(&self.open.parts)
    }

    /// Returns the statistics and latencies as a page in Prometheus' text format, version 0.0.4,
    /// for a program that serves its own metrics. Counters end in `_total`, times are in seconds;
    /// the latencies are one histogram, `frondb_latency_seconds`, with a label `kind`.
    ///
    /// ```
    /// # use frondb::{Db, Options};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// assert!(db.prometheus().contains("# TYPE frondb_commits_total counter"));
    /// # db.close()
    /// # }
    /// ```
    #[must_use]
    pub fn prometheus(&self) -> String {
        stats::page(&self.stats(), &self.latencies())
    }
}
