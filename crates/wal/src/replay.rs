//! Reading the log at start-up: every record that is still needed, in order, in bounded memory,
//! and the decision whether the log ends or is damaged.
//!
//! # The decision (rule 9)
//! Where no valid record follows, the reader has one of these in front of it:
//!
//! | place | verdict |
//! |---|---|
//! | a segment that is not the last, at the next one's `end before` | the log goes on there |
//! | a segment that is not the last, elsewhere | Corruption: the segment was synced before the next began |
//! | the last segment, below an Lsn known to be durable | Corruption: known from the manifest, from `LOG.mark`, or from a later valid record of the segment that was written after that sync |
//! | `LOG` or a segment says that there is a `LOG.mark`, and no slot of it can be read | Corruption, naming it: any end could be missing |
//! | a segment that `LOG.mark` knows is not there | Corruption, naming it |
//! | the last segment, elsewhere | a torn tail: cut off, durably, and reported |
//!
//! A later valid record that does not prove durability is not enough for Corruption: after power
//! loss pages that were never synced are there or missing in any pattern.

use std::fmt;

use frondb_block::frame::scan::{Extent, ReadAt, Scanner, Step, Stop, rewrite};
use frondb_core::clock::SharedClock;
use frondb_core::{Error, ErrorKind, Lsn, Result};
use frondb_device::{SharedDevice, SharedFile};

use crate::files::Directory;
use crate::format::{FileName, HEADER_BYTES, KIND_PAYLOAD, SegmentHeader, WHAT_RECORD};
use crate::log::Wal;
use crate::mark;
use crate::options::WalOptions;
use crate::owner;

/// What was cut off the end of the log: records that were never acknowledged as durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// The segment's file.
    pub file: String,
    /// Where in the file the valid records end.
    pub offset: u64,
    /// The Lsn there.
    pub lsn: Lsn,
    /// Bytes from there to the last one that is not zero. In a file that was used before they may
    /// be of its former use.
    pub dropped_bytes: u64,
    /// Whole records among them, which cannot be used because one before is missing.
    pub dropped_records: u64,
    /// What was there instead of a record.
    pub reason: String,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cut {} bytes ({} whole records) off {} at offset {} (lsn {}): {}",
            self.dropped_bytes, self.dropped_records, self.file, self.offset, self.lsn, self.reason
        )
    }
}

/// One record of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Its Lsn.
    pub start: Lsn,
    /// The Lsn behind it.
    pub end: Lsn,
    /// What was appended.
    pub payload: &'a [u8],
}

/// A log that is being read. [`Replay::next_record`] until it gives `None`, then
/// [`Replay::finish`], which makes it a [`Wal`] to append to.
#[derive(Debug)]
pub struct Replay {
    pub(crate) directory: Directory,
    pub(crate) options: WalOptions,
    pub(crate) db_id: u128,
    pub(crate) clock: SharedClock,
    /// Ascending; those wholly below `start` are not among them.
    pub(crate) segments: Vec<Found>,
    /// Wholly below `start`.
    pub(crate) obsolete: Vec<u64>,
    pub(crate) spares: Vec<u64>,
    start: Lsn,
    known_durable: Lsn,
    /// The segment that is being read.
    at: usize,
    scanner: Option<Scanner<Source>>,
    stop: Option<Stop>,
    /// The highest Lsn that a valid record proves to have been durable.
    proven: Lsn,
    records: u64,
    bytes: u64,
}

/// A segment of the log as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) file: SharedFile,
    pub(crate) header: SegmentHeader,
    pub(crate) len: u64,
}

impl Found {
    fn name(&self) -> String {
        FileName::Segment(self.header.generation).to_string()
    }

    fn offset(&self, lsn: Lsn) -> u64 {
        HEADER_BYTES + lsn.get().saturating_sub(self.header.first.get())
    }
}

/// The records of a log once more, for who must know how it ends before taking the first.
///
/// Segments may be recycled meanwhile as far as they have been read.
#[derive(Debug)]
pub struct Reread {
    log: Replay,
    /// The Lsn behind the record that was read last.
    at: Lsn,
}

impl Reread {
    /// The next record below `end`, where a record ended at the first reading; `None` once that is reached.
    ///
    /// # Errors
    /// As [`Replay::next_record`]; `Corruption` too if the records end before `end`.
    pub fn next_record(&mut self, end: Lsn) -> Result<Option<Record<'_>>> {
        if self.at >= end {
            return Ok(None);
        }
        // What the first reading found and this one does not is lost, and no torn tail.
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
            // What is still needed begins where something had been durable.
            known_durable: known_durable.max(start),
            at: 0,
            scanner: None,
            stop: None,
            proven: Lsn(0),
            records: 0,
            bytes: 0,
        })
    }

    /// A second reader of the same records, from the first one on.
    #[must_use]
    pub fn again(&self) -> Reread {
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
        Reread { log, at: self.start }
    }

    /// The next record at or above the Lsn the log was opened with; `None` at the end.
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

    /// Records and bytes of payload read so far.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.records, self.bytes)
    }

    /// Ends the replay: cuts off a torn tail, durably, and opens the log for appending behind the
    /// last valid record.
    ///
    /// # Errors
    /// As [`Replay::next_record`] if records are left, and those of the device.
    pub fn finish(mut self) -> Result<(Wal, Option<TornTail>)> {
        while self.advance()?.is_some() {}
        let torn = self.trim()?;
        let end = self.end();
        // Names that a killed process left behind are made durable before the files are written.
        self.directory.sync()?;
        Ok((Wal::resume(self, end)?, torn))
    }

    /// Goes to the next record, through as many segments as needed.
    fn advance(&mut self) -> Result<Option<(Lsn, Lsn)>> {
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
                        let message = format!("a record of unknown kind {}", record.kind);
                        return Err(self.corruption(record.offset, message));
                    }
                    return Ok(Some((Lsn(record.position), end)));
                }
                Step::Stop(stop) => self.judge(stop)?,
            }
        }
    }

    /// Starts reading the current segment; false if there is none because the log is empty.
    fn open_segment(&mut self) -> Result<bool> {
        while let [this, next, ..] = self.segments.get(self.at..).unwrap_or_default()
            && is_empty(&this.header, &next.header)
        {
            self.at += 1;
        }
        let Some(found) = self.segments.get(self.at) else {
            if self.known_durable > self.start {
                let message = format!(
                    "there is no log, but records up to lsn {} were durable",
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
        let extent = Extent {
            generation: found.header.generation,
            offset: found.offset(first),
            position: first.get(),
            end,
        };
        self.scanner = Some(Scanner::new(Source(SharedFile::clone(&found.file)), extent));
        Ok(true)
    }

    /// Decides what the end of a segment's valid records means; see the head of this file.
    fn judge(&mut self, stop: Stop) -> Result<()> {
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
                    "{}, but a valid record behind it was written when all below lsn {synced} was \
                     durable",
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
        let file =
            self.segments.get(self.at).map_or_else(|| self.directory.describe(), Found::name);
        Error::corruption(file, offset, WHAT_RECORD, message)
    }

    /// Where the log ends.
    fn end(&self) -> Lsn {
        self.stop.map_or(self.start, |stop| Lsn(stop.position))
    }

    /// Cuts off what follows the last valid record, and makes the cut and all before it durable.
    fn trim(&mut self) -> Result<Option<TornTail>> {
        let (Some(found), Some(stop)) = (self.segments.last_mut(), self.stop) else {
            return Ok(None);
        };
        if found.len > stop.offset {
            found.file.set_len(stop.offset)?;
            found.len = stop.offset;
        }
        // What is whole may have reached only the operating system, by a process that was killed or
        // one whose sync failed.
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

/// Splits the segments into those that hold `start` or what is above it, checked to be a chain, and
/// those that do not.
fn needed(
    directory: &Directory,
    numbers: &[u64],
    db_id: u128,
    start: Lsn,
) -> Result<(Vec<Found>, Vec<u64>)> {
    let mut found: Vec<Found> = Vec::new();
    let mut rest = numbers.len();
    // Downwards, so that what is no longer needed is not even looked at.
    while found.last().is_none_or(|oldest| oldest.header.end_before > start) && rest > 0 {
        rest -= 1;
        let number = numbers[rest];
        let (file, header) = directory.open(number, db_id)?;
        let len = file.len()?;
        if let Some(next) = found.last() {
            check_chain(&header, &next.header)?;
        }
        found.push(Found { file, header, len });
    }
    if let Some(oldest) = found.last()
        && oldest.header.first > start
        && oldest.header.end_before > start
    {
        let missing = FileName::Segment(oldest.header.generation.saturating_sub(1)).to_string();
        let message = format!(
            "the log begins at lsn {}, but records from lsn {start} on are still needed",
            oldest.header.first
        );
        return Err(Error::corruption(missing, 0, "wal segment", message));
    }
    found.reverse();
    Ok((found, numbers[..rest].to_vec()))
}

/// Checks that `next` follows `header` directly.
fn check_chain(header: &SegmentHeader, next: &SegmentHeader) -> Result<()> {
    if header.generation + 1 != next.generation {
        let missing = FileName::Segment(next.generation - 1).to_string();
        let message = format!("the segment before {} is missing", next.generation);
        return Err(Error::corruption(missing, 0, "wal segment", message));
    }
    if header.first > next.end_before && !is_empty(header, next) {
        let file = FileName::Segment(next.generation).to_string();
        let message = format!(
            "the segment before begins at lsn {}, but is said to end at {}",
            header.first, next.end_before
        );
        return Err(Error::corruption(file, 0, crate::format::WHAT_HEADER, message));
    }
    Ok(())
}

/// Whether no record of a segment was kept: `next` then ends the same segment as it did.
fn is_empty(header: &SegmentHeader, next: &SegmentHeader) -> bool {
    next.end_before == header.end_before
}
