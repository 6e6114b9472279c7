//! A thread that writes rows beside the measured work: 1,000 rows a statement, at a fixed rate or
//! as fast as possible.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use frondb_bench::{Error, Result};
use frondb_core::sync::{Arc, Mutex};
use frondb_mariadb_harness::Client;

/// Rows of a statement, which is also a commit.
pub(crate) const BATCH: u64 = 1_000;

/// What was written since the last call of [`Writer::lap`].
struct Since {
    begin: Instant,
    rows: u64,
    worst: Duration,
    is_over: bool,
}

impl Since {
    fn now() -> Self {
        Self { begin: Instant::now(), rows: 0, worst: Duration::ZERO, is_over: false }
    }
}

/// The rate and the longest statement between two calls of [`Writer::lap`].
pub(crate) struct Lap {
    pub(crate) rows_per_s: f64,
    pub(crate) worst_ms: f64,
}

pub(crate) struct Writer {
    since: Arc<Mutex<Since>>,
    thread: JoinHandle<Result<u64>>,
}

impl Writer {
    /// Starts a thread that executes the statements made by `next`, each of [`BATCH`] rows: one
    /// statement every `every`, or without pauses while the thread is behind that rate.
    pub(crate) fn start(
        mut client: Client,
        every: Duration,
        mut next: impl FnMut(&mut Vec<u8>) + Send + 'static,
    ) -> Self {
        let since = Arc::new(Mutex::new(Since::now()));
        let shared = Arc::clone(&since);
        let thread = thread::spawn(move || {
            let (mut rows, mut statement, mut due) = (0, Vec::new(), Instant::now());
            client.query("SET NAMES latin1").map_err(Error::engine)?;
            while !shared.lock().is_over {
                next(&mut statement);
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let begin = Instant::now();
                client.query(&statement).map_err(Error::engine)?;
                let took = begin.elapsed();
                due += every;
                rows += BATCH;
                let mut since = shared.lock();
                since.rows += BATCH;
                since.worst = since.worst.max(took);
            }
            Ok(rows)
        });
        Self { since, thread }
    }

    /// Returns what was written since the start or since the last call.
    pub(crate) fn lap(&self) -> Lap {
        let since = std::mem::replace(&mut *self.since.lock(), Since::now());
        let seconds = since.begin.elapsed().as_secs_f64();
        Lap {
            rows_per_s: since.rows as f64 / seconds.max(1e-9),
            worst_ms: since.worst.as_secs_f64() * 1e3,
        }
    }

    /// Stops the thread; returns the number of rows that it wrote.
    pub(crate) fn end(self) -> Result<u64> {
        self.since.lock().is_over = true;
        let panicked = |_| Error::Engine("the writer panicked".to_owned());
        self.thread.join().map_err(panicked)?
    }
}
