//! Waits until an engine has compressed everything as it is in the end.
//!
//! FronDB packs in the background. RocksDB compresses with the codec of the bottommost level what
//! comes there; an unknown part of a load stays in the levels above, with a quick codec, until more
//! is written, so it is asked for a compaction.

use std::time::{Duration, Instant};

use super::Bench;
use crate::error::Result;
use crate::workload::settle::{settle, settle_until};

/// Small rests are packed only when the database is idle, which it is one second after the last
/// write. So this time must pass without a change.
const UNCHANGED: Duration = Duration::from_secs(3);

impl Bench<'_> {
    /// Waits until everything is packed, and notes how long after the last acknowledged batch that
    /// was. Engines that pack nothing are not waited for.
    pub(super) fn pack(&mut self) -> Result<()> {
        self.progress.say("packing");
        let begin = Instant::now();
        if self.engine.pack()? {
            self.packed(begin.elapsed() + settle(self.engine)?);
        }
        let Some(mut last) = self.engine.packed_bytes() else { return Ok(()) };
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
        self.measurement.packed_bytes = Some(last);
        Ok(())
    }

    /// Notes that everything was packed so long after the engine had settled.
    fn packed(&mut self, after: Duration) {
        let settling = self.measurement.settle_s.unwrap_or_default();
        self.measurement.pack_s = Some(settling + after.as_secs_f64());
    }
}
