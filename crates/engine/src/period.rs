//! The checkpoint period of an open engine; what it does is in [`frondb_background`].

use std::time::Duration;

use frondb_background::check_period;
use frondb_core::Result;

use crate::engine::Engine;

impl Engine {
    /// Changes how long a record of the log may be the only place of its messages, about; zero for as
    /// long as the log is short enough.
    ///
    /// # Errors
    /// `Invalid` for more than a year; `Closed`.
    pub fn set_checkpoint_period(&self, length: Duration) -> Result<()> {
        check_period(length)?;
        let _call = self.begin_call()?;
        self.background().set_period(length);
        Ok(())
    }

    /// How long a record of the log may be the only place of its messages; zero for no limit.
    #[must_use]
    pub fn checkpoint_period(&self) -> Duration {
        self.background().period()
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "period_tests.rs"]
mod tests;
