//! [`Meter`]: the progress of a backup, its limit, and whether it goes on.

use frondb_background::Throttle;
use frondb_core::{Error, ErrorKind, Result};

use crate::engine::Engine;

/// Counts what a backup reads. It calls back only while no lock and no guard of the database is held.
pub(super) struct Meter<'a> {
    engine: &'a Engine,
    throttle: Throttle,
    done: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl<'a> Meter<'a> {
    /// A meter with a limit of bytes a second; 0 means none.
    pub(super) fn new(
        engine: &'a Engine,
        bytes_per_second: u64,
        progress: &'a mut dyn FnMut(u64, u64) -> bool,
    ) -> Self {
        let throttle = Throttle::new(bytes_per_second);
        Self { engine, throttle, done: 0, total: 0, progress }
    }

    /// Adds bytes that are still to be read.
    pub(super) fn expect(&mut self, bytes: u64) -> Result<()> {
        self.total += bytes;
        self.report()
    }

    /// Counts bytes that were read, and waits as long as the limit requires.
    ///
    /// # Errors
    /// `Cancelled`; `Closed` and `Poisoned` if the database is.
    pub(super) fn read(&mut self, bytes: u64) -> Result<()> {
        self.done += bytes;
        let Self { engine, throttle, done, total, progress } = self;
        let clock = &*engine.txns.reads.clock;
        throttle.pay(bytes, clock.now());
        let mut stops = || engine.health().is_closed() || !progress(*done, (*total).max(*done));
        throttle.wait(clock, &mut stops);
        self.report()
    }

    fn report(&mut self) -> Result<()> {
        self.engine.health().check()?;
        if (self.progress)(self.done, self.total.max(self.done)) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Cancelled, "the backup was cancelled"))
        }
    }
}
