//! The checkpoint period of an open database; [`frondb_background`] implements it.

use std::time::Duration;

use frondb_background::check_period;
use frondb_core::Result;

use crate::engine::Engine;

impl Engine {
    /// Changes the checkpoint period: the approximate limit for how long a message may be in the
    /// log only, before it is flushed. Zero means no limit while the log is short enough.
    ///
    /// # Errors
    /// `Invalid` for more than a year; `Closed`.
    pub fn set_checkpoint_period(&self, length: Duration) -> Result<()> {
        check_period(length)?;
        let _call = self.begin_call()?;
        self.background().set_period(length);
        Ok(())
    }

    /// The checkpoint period; zero means no limit.
    #[must_use]
    pub fn checkpoint_period(&self) -> Duration {
        self.background().period()
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "period_tests.rs"]
mod tests;
