//! Measures the cost of isolation for a transaction of one row: creates a locker, locks one row
//! exclusively and releases the lock. One thread calls the lock manager, without the rest of the
//! engine.

use std::time::Instant;

use frondb_core::TreeId;
use frondb_core::budget::Budget;
use frondb_locks::{LockManager, LockMode, LockOptions, LockWait};

use super::parts::Parts;
use super::rows::key;
use crate::error::{Error, Result};
use crate::report::{Figure, median_of};

const TURNS: u64 = 9;

/// Maximum number of locks in a turn.
const LOCKS: u64 = 200_000;

pub(super) fn run(parts: &mut Parts<'_>) -> Result<()> {
    parts.progress.say("locks");
    let options = LockOptions::default();
    let budget = Budget::new(options.bytes_max);
    let manager = LockManager::new(options, budget);
    let table = manager.table(TreeId(1));
    let locks = LOCKS.min(parts.spec.rows).max(1);
    let mut turns = Vec::new();
    for turn in 0..TURNS {
        let start = Instant::now();
        for n in turn * locks..(turn + 1) * locks {
            let mut locker = manager.locker(n + 1);
            let key = key(parts.spec.seed, n);
            let locked = locker.lock_row(&table, &key, LockMode::Exclusive, LockWait::Forever);
            locked.map_err(Error::engine)?;
            locker.release_all();
        }
        turns.push(start.elapsed().as_secs_f64() * 1e6 / locks as f64);
    }
    let figure = Figure::plain("lock and unlock of one row", median_of(turns), "us");
    parts.add(figure.at_most(1.0, Some(0.3)));
    Ok(())
}
