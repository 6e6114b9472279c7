//! Clocks for tests, besides the clocks of `frondb_core`.

use std::time::Duration;

use frondb_core::clock::{Clock, Nanos};

/// A clock that always shows one second, and whose sleeps return immediately, so that no decision
/// of the engine depends on the machine. It has no lock and no atomic, so that it adds no point at
/// which shuttle switches threads.
#[derive(Clone, Copy, Debug)]
pub struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> Nanos {
        Nanos(1_000_000_000)
    }

    fn sleep(&self, _: Duration) {}
}
