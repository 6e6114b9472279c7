//! [`Meter`]: progress, rate limit and cancellation of a backup.

use frondb_background::Throttle;
use frondb_core::{Error, ErrorKind, Result};

use crate::open::Open;

/// Counts the bytes that a backup reads, and calls `progress`. REQUIRES: callers hold no lock and
/// no guard of the database.
pub(super) struct Meter<'a> {
    open: &'a Open,
    throttle: Throttle,
    done: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl<'a> Meter<'a> {
    /// Creates a meter with a limit of bytes per second; 0 means no limit.
    pub(super) fn new(
        open: &'a Open,
        bytes_per_second: u64,
        progress: &'a mut dyn FnMut(u64, u64) -> bool,
    ) -> Self {
        let throttle = Throttle::new(bytes_per_second);
        Self { open, throttle, done: 0, total: 0, progress }
    }

    /// Adds `bytes` to the bytes that are to be read, and calls `progress`.
    pub(super) fn expect(&mut self, bytes: u64) -> Result<()> {
        self.total += bytes;
        self.report()
    }

    /// Counts bytes that were read, and waits as long as the limit requires.
    ///
    /// # Errors
    /// `Cancelled`; `Closed` or `Poisoned` if the database is closed or poisoned.
    pub(super) fn read(&mut self, bytes: u64) -> Result<()> {
        self.done += bytes;
        self.throttle.pay(bytes, self.open.reads.now());
        // `progress` may return `false` only once, so remember the result of each call.
        let mut stopped = Ok(());
        let Self { open, throttle, done, total, progress } = self;
        throttle.wait(&*open.reads.clock, &mut || {
            stopped = report(open, *progress, *done, *total);
            stopped.is_err()
        });
        stopped.and_then(|()| self.report())
    }

    fn report(&mut self) -> Result<()> {
        report(self.open, self.progress, self.done, self.total)
    }
}

fn report(
    open: &Open,
    progress: &mut dyn FnMut(u64, u64) -> bool,
    done: u64,
    total: u64,
) -> Result<()> {
    open.health.check()?;
    if progress(done, total.max(done)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Cancelled, "the backup was cancelled"))
}
