//! Waits until an engine has compressed all data with its final codec.
//!
//! FronDB packs in the background. RocksDB uses the final codec in its bottommost level only. In
//! both, an unknown part of a load has another form until more is written: it is in memory and in
//! the log, or compressed with a quick codec. So RocksDB is asked for a compaction, and FronDB,
//! when its packing in the background is done, for an optimize.

use std::time::{Duration, Instant};

use super::Bench;
use crate::error::Result;
use crate::workload::settle::{settle, settle_until};

/// This time must pass without a change: small remainders are packed only when the database is
/// idle, which is one second after the last write.
const UNCHANGED: Duration = Duration::from_secs(3);

impl Bench<'_> {
    /// Waits until everything is packed, and notes how long after the last acknowledged batch that
    /// was: until background work had no more to do, or else until the engine's own call was done.
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

    /// Waits for background work to pack what it can, if the engine has such work.
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

    /// Records that all data was packed at this time after the engine had settled.
    fn packed(&mut self, after: Duration) {
        let settling = self.measurement.settle_s.unwrap_or_default();
        self.measurement.pack_s = Some(settling + after.as_secs_f64());
    }
}
