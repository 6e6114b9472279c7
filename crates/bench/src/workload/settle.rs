//! Waits until an engine is settled: no background work is due, and the log is on the disk.
//!
//! An engine that works in the background looks faster than it is if the clock stops at the last
//! acknowledgement. So `rows_per_s_settled`, written bytes and processor time count up to the
//! settled state. No call makes the engine hurry: a manual compaction would do work that the engine
//! never does in production. The sync counts too, because data that an engine left in the page
//! cache must still be written.

use std::thread;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::{Error, Result};

const POLL: Duration = Duration::from_millis(10);
/// How long no work must be due before the engine counts as settled: one job may end a moment
/// before the next begins.
const STREAK: Duration = Duration::from_millis(200);
/// Longer than any legitimate background work takes.
const GIVE_UP: Duration = Duration::from_secs(3_600);

/// Waits until the engine is settled and synced. Returns how long that took, without the [`STREAK`]
/// at the end.
pub(super) fn settle(engine: &dyn Engine) -> Result<Duration> {
    settle_until(&mut || engine.is_settled(), &|| engine.sync())
}

/// Does what [`settle`] does, for anything with a function that returns whether it is settled and a
/// function that syncs it.
pub(super) fn settle_until(
    is_settled: &mut dyn FnMut() -> Result<bool>,
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
