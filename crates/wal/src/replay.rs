//! Reads the log at startup: every record that is still needed, in order, in bounded memory.
//! Decides whether the log has ended or is damaged.
//!
//! # The decision (rule 9)
//! If the next bytes are not a valid record, the log is in one of these situations:
//!
//! | where the records end | verdict |
//! |---|---|
//! | not the last segment, at the next one's `end before` | the log continues in the next segment |
//! | not the last segment, elsewhere | Corruption: the segment was synced before the next began |
//! | the last segment, below an Lsn known to be durable | Corruption (1) |
//! | `LOG` or a segment says that `LOG.mark` exists, and no slot of it is valid | Corruption (2) |
//! | a segment that `LOG.mark` names is missing | Corruption, naming the segment |
//! | a record with a valid checksum and contents that make no sense | Corruption: it was not torn |
//! | the last segment, elsewhere | a torn tail: durably cut off, and reported |
//!
//! 1. The Lsn is known from the manifest, from `LOG.mark`, or from a later valid record of the
//!    segment that was written after the Lsn had become durable.
//! 2. The error names `LOG.mark`. Wherever the log ends now, records may be missing after that end.
//!
//! A later valid record that proves nothing about durability is not sufficient for Corruption:
//! after a power loss, pages that were never synced are present or missing in any pattern.

mod segments;

use std::fmt;

use frondb_block::frame::scan::{ReadAt, ScanRange, Scanner, Step, Stop, rewrite};
use frondb_core::clock::SharedClock;
use frondb_core::{Error, ErrorKind, Lsn, Result};
use frondb_device::{SharedDevice, SharedFile};

use crate::files::Directory;
use crate::format::{FileName, KIND_PAYLOAD, WHAT_RECORD};
use crate::mark;
use crate::options::WalOptions;
use crate::owner;
use segments::{FoundSegment, is_empty, needed};

/// Records cut off the end of the log. Nothing proves that they were durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// The segment's file.
    pub file: String,
    /// File offset at which the valid records end.
    pub offset: u64,
    /// The Lsn at that offset.
    pub lsn: Lsn,
    /// Bytes from that offset to the last non-zero byte. In a reused file some of them may be bytes
    /// of the former segment.
    pub dropped_bytes: u64,
    /// Complete records among these bytes. They cannot be used, because an earlier record is
    /// missing.
    pub dropped_records: u64,
    /// The fault found instead of a record.
    pub reason: String,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cut {} bytes ({} complete records) off {} at offset {} (lsn {}): {}",
            self.dropped_bytes, self.dropped_records, self.file, self.offset, self.lsn, self.reason
        )
    }
}

/// One record of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// The record's Lsn.
    pub start: Lsn,
    /// The Lsn after the record.
    pub end: Lsn,
    /// The appended bytes.
    pub payload: &'a [u8],
}

/// A log that is being read. Call [`Replay::next_record`] until it returns `None`, and then
/// [`Replay::finish`], which returns a [`Wal`](crate::Wal) to append to.
#[derive(Debug)]
pub struct Replay {
    pub(crate) directory: Directory,
    pub(crate) options: WalOptions,
    pub(crate) db_id: u128,
    pub(crate) clock: SharedClock,
    /// The segments to read, ascending; without those completely below `start`.
    pub(crate) segments: Vec<FoundSegment>,
    /// Numbers of the segments completely below `start`.
    pub(crate) obsolete: Vec<u64>,
    pub(crate) spares: Vec<u64>,
    start: Lsn,
    known_durable: Lsn,
    /// Index of the segment being read.
    at: usize,
    scanner: Option<Scanner<Source>>,
    stop: Option<Stop>,
    /// The highest Lsn that a valid record proves to have been durable.
    proven: Lsn,
    records: u64,
    bytes: u64,
}

/// A second pass over the records of a log, for callers that must know where the log ends before
/// they use its first record.
///
/// Segments that the second pass has read completely may be recycled before it ends.
#[derive(Debug)]
pub struct SecondPass {
    log: Replay,
    /// The Lsn after the last record that this pass has read.
    at: Lsn,
}

impl SecondPass {
    /// Returns the next record below `end`; `None` once `end` is reached. REQUIRES: a record of the
    /// first pass ended at `end`.
    ///
    /// # Errors
    /// Like [`Replay::next_record`]; also `Corruption` if the records end before `end`.
    pub fn next_record(&mut self, end: Lsn) -> Result<Option<Record<'_>>> {
        if self.at >= end {
            return Ok(None);
        }
        // A record that the first pass found and this pass does not find is damaged, and not a torn
        // tail.
        self.log.known_durable = self.log.known_durable.max(end);
        let Some(record) = self.log.next_record()? else { return Ok(None) };
        self.at = record.end;
        Ok(Some(record))
    }
}

#[derive(Debug)]
struct Source(SharedFile);

impl ReadAt for Source {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.0.read_at(offset, buf)
    }
}

impl Replay {
    pub(crate) fn open(
        device: SharedDevice,
        options: WalOptions,
        db_id: u128,
        start: Lsn,
        known_durable: Lsn,
        clock: SharedClock,
    ) -> Result<Self> {
        options.check()?;
        let directory = Directory::new(device);
        let listing = directory.list()?;
        let mark = mark::read(directory.device(), db_id)?;
        if mark.is_none() && owner::is_marked(directory.device(), db_id)? {
            return Err(mark::missing(directory.device()));
        }
        if let Some(mark) = &mark
            && listing.segments.last().copied().unwrap_or(0) < mark.newest
        {
            let missing = FileName::Segment(mark.newest).to_string();
            return Err(mark::missing_segment(missing, mark));
        }
        let known_durable = known_durable.max(mark.map_or(Lsn(0), |mark| mark.durable));
        let (segments, obsolete) = needed(&directory, &listing.segments, db_id, start)?;
        if mark.is_none() && segments.iter().any(|found| found.header.marked) {
            return Err(mark::missing(directory.device()));
        }
        Ok(Self {
            directory,
            options,
            db_id,
            clock,
            segments,
            obsolete,
            spares: listing.spares,
            start,
            // The log was durable up to `start` when the caller recorded it.
            known_durable: known_durable.max(start),
            at: 0,
            scanner: None,
            stop: None,
            proven: Lsn(0),
            records: 0,
            bytes: 0,
        })
    }

    /// Returns a second pass over the same records, from the first one on.
    #[must_use]
    pub fn second_pass(&self) -> SecondPass {
        let log = Self {
            directory: self.directory.clone(),
            options: self.options.clone(),
            clock: SharedClock::clone(&self.clock),
            segments: self.segments.clone(),
            obsolete: Vec::new(),
            spares: Vec::new(),
            at: 0,
            scanner: None,
            stop: None,
            proven: Lsn(0),
            records: 0,
            bytes: 0,
            ..*self
        };
        SecondPass { log, at: self.start }
    }

    /// Returns the next record at or above the Lsn with which the log was opened; `None` at the
    /// end.
    ///
    /// # Errors
    /// `Corruption` naming file and offset; `Io`.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        let Some((position, end)) = self.advance()? else { return Ok(None) };
        let payload = self.scanner.as_ref().map(Scanner::payload).unwrap_or_default();
        self.records += 1;
        self.bytes += payload.len() as u64;
        Ok(Some(Record { start: position, end, payload }))
    }

    /// Returns the numbers of records and of payload bytes read so far.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.records, self.bytes)
    }

    /// Advances to the next record, through as many segments as needed, and returns its Lsn and its
    /// end.
    pub(crate) fn advance(&mut self) -> Result<Option<(Lsn, Lsn)>> {
        loop {
            if self.stop.is_some() {
                return Ok(None);
            }
            if self.scanner.is_none() && !self.open_segment()? {
                return Ok(None);
            }
            let Some(scanner) = &mut self.scanner else { return Ok(None) };
            match scanner.step()? {
                Step::Record(record) => {
                    let end = Lsn(record.position + record.frame_bytes as u64);
                    self.proven = self.proven.max(Lsn(record.synced.unwrap_or(0)));
                    if record.kind != KIND_PAYLOAD {
                        let message = format!("unknown record kind {}", record.kind);
                        return Err(self.corruption(record.offset, message));
                    }
                    return Ok(Some((Lsn(record.position), end)));
                }
                Step::Stop(stop) => self.classify_stop(stop)?,
            }
        }
    }

    /// Starts to read the current segment. Returns `false` if the log has no segments.
    fn open_segment(&mut self) -> Result<bool> {
        while let [this, next, ..] = self.segments.get(self.at..).unwrap_or_default()
            && is_empty(&this.header, &next.header)
        {
            self.at += 1;
        }
        let Some(found) = self.segments.get(self.at) else {
            if self.known_durable > self.start {
                let message = format!(
                    "the log has no segments, but records up to lsn {} were durable",
                    self.known_durable
                );
                return Err(Error::corruption(self.directory.describe(), 0, "wal", message));
            }
            return Ok(false);
        };
        let first = self.start.max(found.header.first);
        let end = match self.segments.get(self.at + 1) {
            Some(next) => found.offset(next.header.end_before),
            None => found.len,
        };
        let range = ScanRange {
            generation: found.header.generation,
            offset: found.offset(first),
            position: first.get(),
            end,
        };
        self.scanner = Some(Scanner::new(Source(SharedFile::clone(&found.file)), range));
        Ok(true)
    }

    /// Decides what the end of the valid records of a segment means; see the module documentation.
    fn classify_stop(&mut self, stop: Stop) -> Result<()> {
        let end = Lsn(stop.position);
        if let Some(next) = self.segments.get(self.at + 1) {
            let expected = next.header.end_before;
            if end == expected {
                self.at += 1;
                self.scanner = None;
                return Ok(());
            }
            let message = format!(
                "{}, but this segment was durable up to lsn {expected} when the next one began",
                stop.fault
            );
            return Err(self.corruption(stop.offset, message));
        }
        if stop.proves_damage() {
            let message = match stop.synced {
                Some(synced) => format!(
                    "{}, but a later valid record was written when everything below lsn {synced} \
                     was durable",
                    stop.fault
                ),
                None => stop.fault.to_string(),
            };
            return Err(self.corruption(stop.offset, message));
        }
        if end < self.known_durable {
            let known = self.known_durable;
            let message = format!("{}, but records up to lsn {known} were durable", stop.fault);
            return Err(self.corruption(stop.offset, message));
        }
        self.stop = Some(stop);
        Ok(())
    }

    fn corruption(&self, offset: u64, message: String) -> Error {
        let file = self
            .segments
            .get(self.at)
            .map_or_else(|| self.directory.describe(), FoundSegment::name);
        Error::corruption(file, offset, WHAT_RECORD, message)
    }

    /// Returns the Lsn at which the log ends.
    pub(crate) fn end(&self) -> Lsn {
        self.stop.map_or(self.start, |stop| Lsn(stop.position))
    }

    /// Cuts off everything after the last valid record, and makes the cut and everything before it
    /// durable. Returns the torn tail, if there was one.
    pub(crate) fn cut_torn_tail(&mut self) -> Result<Option<TornTail>> {
        let (Some(found), Some(stop)) = (self.segments.last_mut(), self.stop) else {
            return Ok(None);
        };
        if found.len > stop.offset {
            found.file.set_len(stop.offset)?;
            found.len = stop.offset;
        }
        // Complete records may have reached only the operating system, because the process was
        // killed or its sync failed. So write all bytes again that are not proven to be durable;
        // `rewrite` explains why a sync alone is not enough.
        let durable = self.proven.max(self.known_durable);
        let file = &found.file;
        rewrite(
            found.offset(durable),
            stop.offset,
            Source(SharedFile::clone(file)),
            |at, bytes| file.write_at(at, bytes),
        )?;
        file.sync().map_err(|error| error.with_kind(ErrorKind::Poisoned))?;
        let torn = !stop.is_clean(found.header.used_before);
        Ok(torn.then(|| TornTail {
            file: found.name(),
            offset: stop.offset,
            lsn: Lsn(stop.position),
            dropped_bytes: stop.dropped_bytes,
            dropped_records: stop.valid_after,
            reason: stop.fault.to_string(),
        }))
    }
}
