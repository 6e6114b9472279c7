//! A thread that samples a process, for the chart and the live progress. It takes a sample four
//! times a second, passes each to the observer, and keeps one a second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use serde::{Deserialize, Serialize};

use super::process::Process;

const TICK: Duration = Duration::from_millis(250);
const TICKS_PER_SAMPLE: u32 = 4;

/// Figures of the process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the `start` given to [`Sampler::start`].
    pub t_s: f64,
    /// Rows acknowledged so far.
    pub rows: u64,
    /// Bytes written so far.
    pub written_bytes: u64,
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Processor time so far, in seconds.
    pub cpu_s: f64,
}

/// Called at each tick with the sample, and with the rows a second that were acknowledged since the
/// last tick.
pub type Observer = Box<dyn FnMut(&Sample, f64) + Send>;

/// The running thread. Dropping it ends the thread.
pub struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Vec<Sample>>>,
}

impl Sampler {
    /// Begins to sample `process`. The workload counts its acknowledged rows in `rows`. Times of
    /// samples count from `start`.
    #[must_use]
    pub fn start(
        process: Process,
        start: Instant,
        rows: Arc<AtomicU64>,
        mut observer: Observer,
    ) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut series: Vec<Sample> = Vec::new();
            let (mut ticks, mut last_rows, mut last_t) = (0, 0, 0.0);
            while stopped.recv_timeout(next_tick(start)) == Err(RecvTimeoutError::Timeout) {
                // Skip a sample that cannot be read.
                let Some(sample) = take(&process, start, &rows) else { continue };
                let rate = (sample.rows - last_rows) as f64 / (sample.t_s - last_t).max(1e-9);
                observer(&sample, rate);
                (last_rows, last_t) = (sample.rows, sample.t_s);
                ticks += 1;
                if ticks % TICKS_PER_SAMPLE == 0 {
                    series.push(sample);
                }
            }
            series
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }

    /// Ends the thread and returns the samples.
    #[must_use]
    pub fn finish(mut self) -> Vec<Sample> {
        self.join()
    }

    fn join(&mut self) -> Vec<Sample> {
        drop(self.stop.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

/// Returns the time until the next multiple of the tick since `start`, so that samples do not
/// drift.
fn next_tick(start: Instant) -> Duration {
    let elapsed = start.elapsed().as_nanos();
    let tick = TICK.as_nanos();
    Duration::from_nanos(u64::try_from(tick - elapsed % tick).unwrap_or(0))
}

fn take(process: &Process, start: Instant, rows: &AtomicU64) -> Option<Sample> {
    Some(Sample {
        t_s: start.elapsed().as_secs_f64(),
        rows: rows.load(Ordering::Relaxed),
        written_bytes: process.io().ok()?.written_bytes,
        resident_bytes: process.resident_bytes().ok()?,
        cpu_s: process.cpu_time().ok()?.as_secs_f64(),
    })
}
