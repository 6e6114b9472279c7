//! The leaders of group commit: the only code that writes and syncs segments of an open log.

use frondb_core::sync::MutexGuard;
use frondb_core::{ErrorKind, Lsn, Result};
use frondb_device::SharedFile;

use crate::format::{HEADER_BYTES, SegmentHeader};
use crate::log::Wal;
use crate::segment::Segment;
use crate::state::{Batch, LogState};

impl Wal {
    /// Writes a batch, also for the threads that wait for its records. The caller became the leader
    /// in `take_batch`, and is not the leader any more when this returns.
    pub(crate) fn lead_write(&self, batch: Batch, mut segment: Option<Segment>) {
        let result = self.write_pieces(&batch, &mut segment);
        let outcome = result.map_err(|error| match (&mut segment, error.kind()) {
            (_, ErrorKind::Poisoned) | (None, _) => error,
            // The file must contain no part of the batch when a thread learns of the failure.
            (Some(segment), _) => match self.cut(segment) {
                Ok(()) => error,
                Err(poisoned) => poisoned,
            },
        });
        let mut state = self.state.lock();
        let mut wakeups = None;
        if let Err(error) = outcome {
            if error.kind() == ErrorKind::Poisoned {
                state.poison(&error);
            } else {
                segment = None;
                state.abandon(&error);
            }
            // Threads that wait for a sync have to check whether their records were abandoned.
            wakeups = Some(state.waiters.take_all());
        }
        // No segment means that the last write failed.
        state.reserve_failed = segment.as_ref().is_none_or(|segment| segment.reserve_failed);
        state.end_batch(batch.bytes, segment);
        drop(state);
        self.progress.notify_all();
        if let Some(wakeups) = wakeups {
            wakeups.wake();
        }
    }

    /// Writes the records of a batch, each into the segment for which it was encoded.
    fn write_pieces(&self, batch: &Batch, segment: &mut Option<Segment>) -> Result<()> {
        let mut at = batch.start;
        let mut from = 0;
        for begin in &batch.segment_starts {
            self.write_piece(segment, at, &batch.bytes[from..begin.at])?;
            self.roll(segment, begin.header)?;
            (at, from) = (begin.header.first, begin.at);
        }
        self.write_piece(segment, at, &batch.bytes[from..])
    }

    fn write_piece(&self, segment: &mut Option<Segment>, at: Lsn, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(segment) = segment else {
            // `append` begins a segment whenever there is none.
            return Err(frondb_core::Error::internal(
                "log records were written before a segment was created",
            ));
        };
        segment.write(at, bytes, &self.options)?;
        let mut state = self.state.lock();
        state.written = Lsn(at.get() + bytes.len() as u64);
        state.stats.written_bytes += bytes.len() as u64;
        state.stats.writes += 1;
        Ok(())
    }

    /// Durably ends a segment and begins the next one.
    fn roll(&self, segment: &mut Option<Segment>, header: SegmentHeader) -> Result<()> {
        if let Some(old) = segment.take() {
            self.sync_as_leader(self.state.lock(), || old.file.sync())?;
        }
        let spare = self.state.lock().spares.pop();
        let (file, header, reserved_to) = self.make_file(spare, header)?;
        let mut state = self.state.lock();
        state.live.push_back(header);
        state.current_file = Some(SharedFile::clone(&file));
        state.stats.segments += 1;
        state.stats.segments_recycled += u64::from(header.used_before);
        let reserve_failed = !header.used_before && reserved_to <= HEADER_BYTES;
        let reserve_failed = reserve_failed && self.options.reserve_bytes > 0;
        *segment = Some(Segment::new(header, file, reserved_to, reserve_failed));
        drop(state);
        self.note_durable(header.end_before);
        self.sync_mark()
    }

    /// Cuts off what a failed write has left after the last written record.
    fn cut(&self, segment: &Segment) -> Result<()> {
        let state = self.state.lock();
        let end = state.written;
        self.sync_as_leader(state, || segment.cut(end))
    }

    fn make_file(
        &self,
        spare: Option<u64>,
        header: SegmentHeader,
    ) -> Result<(SharedFile, SegmentHeader, u64)> {
        let header = SegmentHeader { marked: self.marked, ..header };
        if let Some(number) = spare {
            let header = SegmentHeader { used_before: true, ..header };
            match self.directory.reuse(number, &header) {
                Ok((file, len)) => return Ok((file, header, len)),
                Err(error) if error.kind() == ErrorKind::Poisoned => return Err(error),
                // A spare that cannot be used is harmless; the next open removes it.
                Err(_) => {}
            }
        }
        let (file, reserved_to) = self.directory.create(&header, &self.options)?;
        Ok((file, header, reserved_to))
    }

    /// Runs `sync`, which makes everything written durable, while no other sync is under way: the
    /// operating system reports a failure to only one of several concurrent callers.
    pub(crate) fn sync_as_leader<'a>(
        &'a self,
        mut state: MutexGuard<'a, LogState>,
        sync: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        while state.syncing {
            self.progress.wait(&mut state);
        }
        state.check_poison()?;
        state.syncing = true;
        let target = state.written;
        drop(state);
        let begun = self.clock.now();
        let synced = sync();
        if synced.is_ok() {
            // Write the mark before any waiter is notified, but do not sync it: see `mark`.
            self.note_durable(target);
        }
        let now = self.clock.now();
        self.sync_latency.add(now.since(begun).as_nanos() as u64);
        let mut state = self.state.lock();
        state.syncing = false;
        state.stats.syncs += 1;
        match synced {
            Ok(()) => {
                state.durable = state.durable.max(target);
                state.synced_at = now;
            }
            Err(error) => state.poison(&error),
        }
        let result = state.check_poison();
        let durable = state.durable;
        let waiters = &mut state.waiters;
        let wakeups = if result.is_ok() { waiters.after_sync(durable) } else { waiters.take_all() };
        drop(state);
        self.progress.notify_all();
        wakeups.wake();
        result
    }
}
