//! A writer at a fixed rate: 1,000 rows every 50 ms.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use frondb_bench::{Error, Result};
use frondb_core::sync::{Arc, Mutex};
use frondb_mariadb_harness::Client;

use crate::row;

/// Rows of a statement, which is also a commit.
const BATCH: u64 = 1_000;
/// Time from one statement to the next.
const EVERY: Duration = Duration::from_millis(50);

/// What was written since the last look.
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

/// A part of the writer's time.
pub(super) struct Lap {
    pub(super) rows_per_s: f64,
    pub(super) worst_ms: f64,
}

/// A thread that inserts rows.
pub(super) struct Writer {
    since: Arc<Mutex<Since>>,
    thread: JoinHandle<Result<u64>>,
}

impl Writer {
    /// Begins to insert the rows of this seed from `first` on.
    pub(super) fn start(mut client: Client, seed: u64, first: u64) -> Self {
        let since = Arc::new(Mutex::new(Since::now()));
        let shared = Arc::clone(&since);
        let thread = thread::spawn(move || {
            let (mut next, mut statement, mut due) = (first, Vec::new(), Instant::now());
            client.query("SET NAMES latin1").map_err(Error::engine)?;
            while !shared.lock().is_over {
                row::insert(&mut statement, seed, next..next + BATCH);
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let begin = Instant::now();
                client.query(&statement).map_err(Error::engine)?;
                let took = begin.elapsed();
                next += BATCH;
                due += EVERY;
                let mut since = shared.lock();
                since.rows += BATCH;
                since.worst = since.worst.max(took);
            }
            Ok(next)
        });
        Self { since, thread }
    }

    /// What was written since the start or the last call.
    pub(super) fn lap(&self) -> Lap {
        let since = std::mem::replace(&mut *self.since.lock(), Since::now());
        let seconds = since.begin.elapsed().as_secs_f64();
        Lap {
            rows_per_s: since.rows as f64 / seconds.max(1e-9),
            worst_ms: since.worst.as_secs_f64() * 1e3,
        }
    }

    /// Ends; returns the number behind the last row.
    pub(super) fn end(self) -> Result<u64> {
        self.since.lock().is_over = true;
        let panicked = |_| Error::Engine("the writer panicked".to_owned());
        self.thread.join().map_err(panicked)?
    }
}
