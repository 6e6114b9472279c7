//! The state of a log that its threads share under its lock: positions, the buffer, the leaders.
//! Nothing here does I/O.

use std::collections::VecDeque;

use frondb_block::frame::{self, Body, RecordPlace};
use frondb_core::clock::Nanos;
use frondb_core::{Error, ErrorKind, Lsn, Result};
use frondb_device::SharedFile;

use crate::format::{HEADER_BYTES, KIND_PAYLOAD, SegmentHeader};
use crate::segment::Segment;
use crate::stats::WalStats;
use crate::waiters::Waiters;

/// A larger buffer is freed after use.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// The positions of an appended record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// The record's Lsn.
    pub start: Lsn,
    /// The Lsn after the record, for which callers wait.
    pub end: Lsn,
}

/// The state of a log under its lock. [`Wal`](crate::Wal) describes the protocol.
#[derive(Debug)]
pub(crate) struct LogState {
    /// Encoded records that no leader has taken yet. The first byte has the Lsn `buffered`.
    buffer: Vec<u8>,
    /// The second buffer, while no leader uses it.
    idle_buffer: Vec<u8>,
    /// The Lsn of the buffer's first byte.
    buffered: Lsn,
    /// Positions in the buffer at which segments begin.
    segment_starts: Vec<SegmentStart>,
    /// The Lsn of the next record. Larger than `end` only after records were abandoned.
    next: Lsn,
    /// The Lsn after the last record that was not abandoned.
    pub(crate) end: Lsn,
    pub(crate) written: Lsn,
    pub(crate) durable: Lsn,
    /// The durable position that was stored in a record most recently.
    reported: Lsn,
    /// The segment of the last record; `None` if the next record begins a segment.
    tail: Option<SegmentHeader>,
    last_generation: u64,
    /// The segment being written; `None` while a leader uses it, or if the next record begins one.
    current: Option<Segment>,
    /// The file of that segment, for the thread that syncs it.
    pub(crate) current_file: Option<SharedFile>,
    /// Whether the last attempt to allocate space, ahead or for a record, failed.
    pub(crate) reserve_failed: bool,
    /// Headers of all segments with a file, oldest first. The newest is never removed, because the
    /// next number follows from its number, also after a reopen.
    pub(crate) live: VecDeque<SegmentHeader>,
    /// Numbers of former segments whose files can be reused.
    pub(crate) spares: Vec<u64>,
    /// Maximum number of spares.
    pub(crate) spares_max: usize,
    /// Number of guards ([`KeptSegments`](crate::KeptSegments)); while there is one, no segment is
    /// recycled.
    pub(crate) keepers: usize,
    /// Number of times that kept segments were released for a writer on a full disk.
    pub(crate) given_up: u64,
    pub(crate) writing: bool,
    pub(crate) syncing: bool,
    /// The threads that wait for a sync.
    pub(crate) waiters: Waiters,
    failed: Vec<Failed>,
    poison: Option<Error>,
    pub(crate) synced_at: Nanos,
    pub(crate) stats: WalStats,
}

/// The position in the buffer at which a segment begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentStart {
    pub(crate) at: usize,
    pub(crate) header: SegmentHeader,
}

/// Abandoned records: all records that end in (from, to].
#[derive(Debug)]
struct Failed {
    from: Lsn,
    to: Lsn,
    error: Error,
}

/// The part of the buffer that a writing leader takes.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) start: Lsn,
    pub(crate) bytes: Vec<u8>,
    pub(crate) segment_starts: Vec<SegmentStart>,
}

impl LogState {
    pub(crate) fn new(
        end: Lsn,
        last_generation: u64,
        live: VecDeque<SegmentHeader>,
        spares_max: usize,
        now: Nanos,
    ) -> Self {
        Self {
            buffer: Vec::new(),
            idle_buffer: Vec::new(),
            buffered: end,
            segment_starts: Vec::new(),
            next: end,
            end,
            written: end,
            durable: end,
            reported: end,
            tail: None,
            last_generation,
            current: None,
            current_file: None,
            reserve_failed: false,
            live,
            spares: Vec::new(),
            spares_max,
            keepers: 0,
            given_up: 0,
            writing: false,
            syncing: false,
            waiters: Waiters::default(),
            failed: Vec::new(),
            poison: None,
            synced_at: now,
            stats: WalStats::default(),
        }
    }

    /// Encodes a record at the end of the buffer.
    pub(crate) fn append(
        &mut self,
        body: Body<'_>,
        db_id: u128,
        segment_bytes: u64,
    ) -> Result<Appended> {
        let start = self.next;
        let fits = |tail: &SegmentHeader| {
            let used = start.get() - tail.first.get();
            used == 0 || used + body.frame_bytes_max() <= segment_bytes
        };
        let begun = match &self.tail {
            Some(tail) if fits(tail) => None,
            _ => Some(self.next_segment(db_id)),
        };
        let generation = begun.or(self.tail).map_or(0, |tail| tail.generation);
        let at = self.buffer.len();
        if at == 0 {
            self.buffered = start;
        }
        let synced = (self.durable > self.reported).then_some(self.durable.get());
        let place = RecordPlace { generation, position: start.get() };
        let bytes = frame::append(&mut self.buffer, place, KIND_PAYLOAD, synced, body)?;
        if let Some(header) = begun {
            self.segment_starts.push(SegmentStart { at, header });
            self.tail = Some(header);
        }
        self.reported = self.durable;
        self.next = Lsn(start.get() + bytes as u64);
        self.end = self.next;
        Ok(Appended { start, end: self.end })
    }

    /// Begins a segment without a record, if all records were written and the file of the newest
    /// segment has at least `bytes` bytes. Returns whether a segment began. REQUIRES: no leader is
    /// writing.
    pub(crate) fn begin_segment(&mut self, db_id: u128, bytes: u64) -> bool {
        let Some(newest) = self.live.back() else { return false };
        let used = self.end.get().saturating_sub(newest.first.get());
        let reserved = self.current.as_ref().map_or(0, Segment::reserved_bytes);
        let is_settled = self.written == self.end && self.segment_starts.is_empty();
        if !is_settled || used.max(reserved) < bytes {
            return false;
        }
        let header = self.next_segment(db_id);
        self.buffered = self.next;
        self.segment_starts.push(SegmentStart { at: 0, header });
        self.tail = Some(header);
        true
    }

    /// Returns the header of the segment that begins with the next record.
    fn next_segment(&self, db_id: u128) -> SegmentHeader {
        let before = match self.segment_starts.last() {
            Some(begin) => begin.header.generation,
            None => self.last_generation,
        };
        SegmentHeader {
            db_id,
            generation: before + 1,
            first: self.next,
            end_before: self.end,
            used_before: false,
            marked: false,
        }
    }

    /// Takes everything in the buffer and makes the caller the writing leader.
    pub(crate) fn take_batch(&mut self) -> (Batch, Option<Segment>) {
        assert!(!self.writing, "another leader is writing");
        self.writing = true;
        let idle = std::mem::take(&mut self.idle_buffer);
        let bytes = std::mem::replace(&mut self.buffer, idle);
        let segment_starts = std::mem::take(&mut self.segment_starts);
        if let Some(begin) = segment_starts.last() {
            self.last_generation = begin.header.generation;
        }
        (Batch { start: self.buffered, bytes, segment_starts }, self.current.take())
    }

    /// Ends the lead of a leader that has finished writing its batch.
    pub(crate) fn end_batch(&mut self, mut bytes: Vec<u8>, segment: Option<Segment>) {
        bytes.clear();
        if bytes.capacity() <= BUFFER_BYTES_KEPT {
            self.idle_buffer = bytes;
        }
        self.current = segment;
        self.writing = false;
    }

    /// Abandons all records that were not written. The written records are durable now, because the
    /// file was cut and synced.
    pub(crate) fn abandon(&mut self, error: &Error) {
        match self.failed.last_mut() {
            Some(last) if last.from == self.written => {
                last.to = self.next;
                last.error = error.clone();
            }
            _ => {
                let (from, to) = (self.written, self.next);
                self.failed.push(Failed { from, to, error: error.clone() });
            }
        }
        self.end = self.written;
        self.durable = self.written;
        self.buffer.clear();
        self.segment_starts.clear();
        self.tail = None;
        // The numbers of segments that were never created can be used again.
        self.last_generation = self.highest_generation();
        self.stats.failed_writes += 1;
    }

    /// Returns the number of the newest segment, or the last number used if there is no segment.
    fn highest_generation(&self) -> u64 {
        self.live.back().map_or(self.last_generation, |header| header.generation)
    }

    /// Makes every later append, write and sync fail with `Poisoned`, because of `cause`.
    pub(crate) fn poison(&mut self, cause: &Error) {
        if self.poison.is_none() {
            let error = cause.clone().with_kind(ErrorKind::Poisoned);
            self.poison =
                Some(error.context("an earlier write of the log failed: reopen the database"));
        }
    }

    pub(crate) fn check_poison(&self) -> Result<()> {
        self.poison.clone().map_or(Ok(()), Err)
    }

    /// Fails if the record that ends at `lsn` can no longer become durable.
    pub(crate) fn check(&self, lsn: Lsn) -> Result<()> {
        self.check_poison()?;
        if lsn > self.next {
            let next = self.next;
            return Err(Error::invalid(format!(
                "lsn {lsn} lies beyond the end of the log at {next}"
            )));
        }
        let failed = self.failed.iter().rev().find(|f| f.from < lsn && lsn <= f.to);
        failed.map_or(Ok(()), |failed| Err(failed.error.clone()))
    }

    /// Removes the segments that lie completely below `before` from the list, unless a guard keeps
    /// them. Returns the numbers of the segments that become spares, and of the others.
    pub(crate) fn take_obsolete(
        &mut self,
        before: Lsn,
        segment_bytes: u64,
    ) -> (Vec<u64>, Vec<u64>) {
        let (mut spares, mut removed) = (Vec::new(), Vec::new());
        if self.keepers > 0 {
            return (spares, removed);
        }
        while let (Some(&oldest), Some(next)) = (self.live.front(), self.live.get(1))
            && next.end_before <= before
        {
            // A segment whose records were all abandoned "ends" before it begins.
            let bytes = next.end_before.get().saturating_sub(oldest.first.get());
            let wanted = self.spares.len() + spares.len() < self.spares_max;
            // The file is not worth keeping if a huge record made it long, or if the segment ended
            // early.
            let fits = (segment_bytes / 2..=segment_bytes).contains(&bytes);
            if wanted && fits { &mut spares } else { &mut removed }.push(oldest.generation);
            self.live.pop_front();
        }
        (spares, removed)
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        let first = self.live.front().map_or(self.end, |oldest| oldest.first);
        self.end.get().saturating_sub(first.get()) + HEADER_BYTES * self.live.len() as u64
    }

    pub(crate) fn stats(&self) -> WalStats {
        WalStats {
            live_bytes: self.live_bytes(),
            spares: self.spares.len() as u64,
            buffer_bytes: (self.buffer.capacity() + self.idle_buffer.capacity()) as u64,
            ..self.stats
        }
    }
}
