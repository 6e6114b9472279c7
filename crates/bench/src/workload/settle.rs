//! Waits until an engine is settled: no background work is due, and the log is on the disk.
//!
//! An engine that works in the background looks faster than it is if the clock stops at the last
//! acknowledgement, so `rows_per_s_settled`, the bytes and the processor time are taken here. No
//! call makes the engine hurry: a manual compaction would do work that the engine never does in
//! production. The sync is included because data that an engine left in the page cache must still
//! be written.

use std::thread;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::{Error, Result};

const POLL: Duration = Duration::from_millis(10);
/// How long an engine must stay settled before it counts as settled: one job may end a moment
/// before the next begins.
const STREAK: Duration = Duration::from_millis(200);
/// Longer than any legitimate background work takes.
const GIVE_UP: Duration = Duration::from_secs(3_600);

/// Waits until the engine is settled and synced. Returns how long that took, without the time in
/// which it only had to stay settled.
pub(super) fn settle(engine: &dyn Engine) -> Result<Duration> {
    settle_until(&mut || engine.is_settled(), &|| engine.sync())
}

/// As [`settle`], with functions that ask whether the engine is settled and that sync it.
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
