//! [`PinnedSource`]: a source of a walk that other threads can unpin.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Chunk, Error, Result, Source};

use super::{Cursors, Pins};

/// Without pressure, up to this many bytes of a cursor's chunks, in total, are not charged.
const SLACK_BYTES: u64 = 32 << 10;

impl Pins {
    /// Keeps the sources of a new walk under the lock of the pins. Returns, in the same order,
    /// sources that read them under that lock.
    pub fn pin_sources(
        self: &Arc<Self>,
        cursors: &Cursors,
        mut sources: Vec<Box<dyn Source>>,
    ) -> Vec<PinnedSource> {
        let pressure = cursors.pressure(self.budget.total());
        if let Some(pressure) = &pressure {
            sources.iter_mut().for_each(|source| source.keep_small(pressure.messages));
        }
        let reader = |at| PinnedSource { pins: Arc::clone(self), at };
        let readers = (0..sources.len()).map(reader).collect();
        let mut pinned = self.pinned.lock();
        debug_assert!(
            pinned.sources.is_empty(),
            "the beginning of a move drops the sources of the last walk"
        );
        pinned.chunk_bytes.clear();
        pinned.chunk_bytes.resize(sources.len(), 0);
        pinned.sources = sources;
        let is_pressure_high = pressure.as_ref().is_some_and(|pressure| pressure.is_high);
        self.is_pressure_high.store(is_pressure_high, Ordering::Relaxed);
        pinned.slack = if pressure.is_some() { 0 } else { SLACK_BYTES };
        pinned.recharge(&self.budget);
        drop(pinned);
        let walk = self.walk.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(pressure) = pressure {
            cursors.limit_walks(&pressure, Arc::clone(self), walk);
        }
        readers
    }
}

/// A source of a walk that reads the real source in [`Pins`], under its lock.
pub struct PinnedSource {
    pins: Arc<Pins>,
    at: usize,
}

impl Source for PinnedSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let pins = &self.pins;
        let mut pinned = pins.pinned.lock();
        if pins.stale.load(Ordering::Relaxed) && !pins.moving.load(Ordering::Relaxed) {
            let unpinned = pins.unpin(&mut pinned);
            if pinned.version.is_none() {
                drop(pinned);
                drop(unpinned);
                return Err(unpinned_error());
            }
        }
        let Some(source) = pinned.sources.get_mut(self.at) else { return Err(unpinned_error()) };
        let found = source.next_chunk(chunk);
        let bytes = chunk.allocated() as u64;
        // A chunk keeps the memory that it has grown to, so the charge of a walk only grows.
        if let Some(before) = pinned.chunk_bytes.get_mut(self.at).filter(|before| **before < bytes)
        {
            *before = bytes;
            pinned.recharge(&pins.budget);
        }
        found
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        let mut pinned = self.pins.pinned.lock();
        let Some(source) = pinned.sources.get_mut(self.at) else { return Err(unpinned_error()) };
        source.skip(key)
    }
}

/// Returns the error of a source that was unpinned. The cursor checks [`Pins::is_unpinned`] and
/// continues from the newest version, so a caller never sees the error.
#[cold]
fn unpinned_error() -> Error {
    Error::internal("the version of a cursor was unpinned")
}
