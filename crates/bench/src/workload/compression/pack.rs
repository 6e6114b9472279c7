//! Waits until an engine has compressed all data with its final codec.
//!
//! FronDB packs in the background. RocksDB uses the final codec in its bottommost level only. In
//! both, an unknown part of a load is still in memory and in the log, or compressed with a quick
//! codec, until more is written. So the benchmark makes RocksDB compact all data. For FronDB, it
//! waits for the packing in the background and then runs an optimize.

use std::time::{Duration, Instant};

use super::Bench;
use crate::error::Result;
use crate::workload::settle::{settle, settle_until};

/// Packing counts as done after this time without a change. FronDB packs small remainders only when
/// the database is idle, which is one second after the last write.
const UNCHANGED: Duration = Duration::from_secs(3);

impl Bench<'_> {
    /// Waits until all data is packed. Sets `pack_s` to the time from the last acknowledged batch
    /// to the end of the packing: the end of background work, or the end of
    /// [`Engine::pack`](crate::engine::Engine::pack) if that call packs.
    pub(super) fn pack(&mut self) -> Result<()> {
        self.progress.say("packing");
        self.pack_in_background()?;
        let begin = Instant::now();
        let is_packing = self.engine.pack()?;
        let took = begin.elapsed() + settle(self.engine)?;
        if is_packing {
            self.packed(took);
        }
        self.measurement.packed_bytes = self.engine.packed_bytes();
        self.return_space()
    }

    /// Waits until the engine returns no more free space to the file system.
    fn return_space(&self) -> Result<()> {
        let (mut last, mut changed) = (self.engine.free_bytes(), Instant::now());
        if last == 0 {
            return Ok(());
        }
        let mut is_returned = || {
            let now = self.engine.free_bytes();
            if now != last {
                (last, changed) = (now, Instant::now());
            }
            Ok(changed.elapsed() >= UNCHANGED)
        };
        settle_until(&mut is_returned, &|| Ok(()))?;
        Ok(())
    }

    /// Waits until background work has packed all data that it can, if the engine has such work.
    fn pack_in_background(&mut self) -> Result<()> {
        let Some(mut last) = self.engine.packed_bytes() else { return Ok(()) };
        let begin = Instant::now();
        let mut changed = begin;
        let mut is_packed = || {
            let now = self.engine.packed_bytes().unwrap_or(last);
            if now != last || !self.engine.is_settled()? {
                (last, changed) = (now, Instant::now());
            }
            Ok(changed.elapsed() >= UNCHANGED)
        };
        settle_until(&mut is_packed, &|| self.engine.sync())?;
        self.packed(changed - begin);
        Ok(())
    }

    /// Sets `pack_s`. `after` is the time from the settled state to the end of the packing.
    fn packed(&mut self, after: Duration) {
        let settling = self.measurement.settle_s.unwrap_or_default();
        self.measurement.pack_s = Some(settling + after.as_secs_f64());
    }
}
