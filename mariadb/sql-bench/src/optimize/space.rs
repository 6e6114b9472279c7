//! Measures the most disk space that the engine's files take during a statement.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use frondb_bench::{Error, Result};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicBool, Ordering};

use crate::host::Host;

/// Time between two measurements of the files.
const EVERY: Duration = Duration::from_millis(20);

/// A thread that repeatedly measures the size of the files.
pub(super) struct Watched {
    before: u64,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Watched {
    pub(super) fn start(host: &Host) -> Result<Self> {
        let bytes = host.disk_bytes();
        let before = bytes()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut most = before;
            while !ends.load(Ordering::Relaxed) {
                thread::sleep(EVERY);
                most = most.max(bytes()?);
            }
            Ok(most)
        });
        Ok(Self { before, is_over, thread })
    }

    /// Stops the thread; returns by how many percent the files grew at most.
    pub(super) fn extra_percent(self) -> Result<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        let panicked = |_| Error::Engine("the thread that watches the files panicked".to_owned());
        let most = self.thread.join().map_err(panicked)??;
        Ok((most as f64 / self.before.max(1) as f64 - 1.0) * 100.0)
    }
}
