//! Waits until an engine has compressed everything that it compresses again in the background.

use std::time::{Duration, Instant};

use super::Bench;
use crate::error::Result;
use crate::workload::settle::settle_until;

/// Small rests are packed only when the database is idle, which it is one second after the last
/// write. So this time must pass without a change.
const UNCHANGED: Duration = Duration::from_secs(3);

impl Bench<'_> {
    /// Waits until the engine packs no more, and notes how long after the last acknowledged batch
    /// that was. Engines that pack nothing are not waited for.
    pub(super) fn pack(&mut self) -> Result<()> {
        let Some(mut last) = self.engine.packed_bytes() else { return Ok(()) };
        self.progress.say("packing");
        let (begin, mut changed) = (Instant::now(), Instant::now());
        let mut is_packed = || {
            let now = self.engine.packed_bytes().unwrap_or(last);
            if now != last || !self.engine.is_settled()? {
                (last, changed) = (now, Instant::now());
            }
            Ok(changed.elapsed() >= UNCHANGED)
        };
        settle_until(&mut is_packed, &|| self.engine.sync())?;
        let settling = self.measurement.settle_s.unwrap_or_default();
        self.measurement.pack_s = Some(settling + (changed - begin).as_secs_f64());
        self.measurement.packed_bytes = Some(last);
        Ok(())
    }
}
