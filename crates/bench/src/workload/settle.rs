//! Waiting until an engine owes nothing: no background work, and the log on the disk.
//!
//! Engines that work in the background look faster than they are if the clock stops at the last
//! acknowledgement, so `rows_per_s_settled`, the bytes and the processor time run on to here. No
//! call asks the engine to hurry: a compaction by hand would do work that it would never do in
//! service. The sync is part of it because what an engine left in the page cache is owed as well.

use std::thread;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::{Error, Result};

const POLL: Duration = Duration::from_millis(10);
/// How long it must stay settled to be believed: one job may end a moment before the next begins.
const STREAK: Duration = Duration::from_millis(200);
/// Longer than any honest debt.
const GIVE_UP: Duration = Duration::from_secs(3_600);

/// Waits until the engine is settled and synced. Returns the time that took from now, without the
/// time it took to believe it.
pub(super) fn settle(engine: &dyn Engine) -> Result<Duration> {
    settle_until(&|| engine.is_settled(), &|| engine.sync())
}

/// As [`settle`], of what is asked and synced so.
pub(super) fn settle_until(
    is_settled: &dyn Fn() -> Result<bool>,
    sync: &dyn Fn() -> Result<()>,
) -> Result<Duration> {
    let begin = Instant::now();
    let mut since: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if is_settled()? {
            let since = *since.get_or_insert(now);
            if now - since >= STREAK {
                let syncing = Instant::now();
                sync()?;
                return Ok(since - begin + syncing.elapsed());
            }
        } else {
            since = None;
        }
        if now - begin > GIVE_UP {
            return Err(Error::Engine(format!(
                "its background work did not end within {} s of the last write",
                GIVE_UP.as_secs()
            )));
        }
        thread::sleep(POLL);
    }
}
