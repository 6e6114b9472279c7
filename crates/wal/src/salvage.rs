//! Makes a damaged log readable again, on a device whose writes do not reach the disk.
//!
//! A record or header with one damaged byte is repaired ([`frondb_block::frame::repair`]). If that
//! fails, the log ends there: later records may depend on the lost ones, so none of the later
//! records is returned.

use frondb_block::frame::RecordPlace;
use frondb_block::frame::repair::{Findings, one_byte};
use frondb_block::frame::scan::{ScanRange, Scanner, Step, Stop};
use frondb_core::{ErrorKind, Lsn, Result};
use frondb_device::{OpenOptions, SharedDevice, SharedFile};

use crate::files::Directory;
use crate::format::{FileName, HEADER_BYTES, SegmentHeader, WHAT_HEADER, WHAT_RECORD};
use crate::mark::{self, MARK_FILE, WHAT_MARK};
use crate::owner;

/// Maximum number of repairs in a segment.
const REPAIRS_MAX: usize = 16;
/// Bytes that are read from the start of an invalid record on, to search for its damaged byte.
const PROBE_BYTES: usize = 256 * 1024;
const WHAT_SEGMENT: &str = "wal segment";

/// Changes the log in `device` so that [`Wal::open`](crate::Wal::open) can read it from `start` on,
/// with `start` also as its `known_durable`. The log is known to have been durable up to
/// `known_durable`; if it ends below this Lsn, reports a loss. REQUIRES: writes to `device` may be
/// discarded.
///
/// # Errors
/// `Invalid` if the log belongs to another database; `Unsupported`; `Io`.
pub fn salvage(
    device: &SharedDevice,
    db_id: u128,
    start: Lsn,
    known_durable: Lsn,
) -> Result<Findings> {
    owner::restore_owner(device, db_id)?;
    let mark = mark::read(device, db_id)?;
    let unmarked = mark.is_none().then(|| mark::missing(device));
    let is_marked = owner::is_marked(device, db_id)?;
    mark::forget(device, db_id)?;
    let known = known_durable.max(mark.map_or(Lsn(0), |mark| mark.durable));
    let directory = Directory::new(SharedDevice::clone(device));
    let numbers = directory.list()?.segments;
    let mut log = Log { device, db_id, start, known, findings: Findings::default() };
    let segments = log.headers(&numbers)?;
    let is_marked = is_marked || segments.iter().any(|segment| segment.header.marked);
    if let Some(unmarked) = unmarked.filter(|_| is_marked) {
        // The log may have been truncated anywhere after `known`.
        log.findings.lost(MARK_FILE, 0, WHAT_MARK, unmarked.message());
    }
    let kept = log.keep(&segments)?;
    for &number in numbers.iter().filter(|number| !kept.contains(number)) {
        device.remove(&FileName::Segment(number).to_string())?;
    }
    Ok(log.findings)
}

struct Log<'a> {
    device: &'a SharedDevice,
    db_id: u128,
    start: Lsn,
    known: Lsn,
    findings: Findings,
}

struct Segment {
    name: String,
    file: SharedFile,
    header: SegmentHeader,
}

impl Segment {
    fn offset(&self, lsn: Lsn) -> u64 {
        HEADER_BYTES + lsn.get().saturating_sub(self.header.first.get())
    }
}

impl Log<'_> {
    /// Returns the needed segments, up to the first that is missing or whose header cannot be read.
    fn headers(&mut self, numbers: &[u64]) -> Result<Vec<Segment>> {
        // From the newest segment down, as in a replay: segments completely below `start` are not
        // read, so damage in them is harmless.
        let mut found = Vec::new();
        for &number in numbers.iter().rev() {
            let segment = self.segment(number)?;
            let is_oldest =
                segment.as_ref().is_some_and(|segment| segment.header.end_before <= self.start);
            found.push((number, segment));
            if is_oldest {
                break;
            }
        }
        let mut segments: Vec<Segment> = Vec::new();
        for (number, segment) in found.into_iter().rev() {
            if let Some(before) = segments.last()
                && before.header.generation + 1 != number
            {
                let missing = FileName::Segment(number - 1).to_string();
                let message = "this segment is missing, so later segments cannot be used";
                self.findings.lost(&missing, 0, WHAT_SEGMENT, message);
                break;
            }
            let Some(segment) = segment else {
                let name = FileName::Segment(number).to_string();
                let message =
                    "the header cannot be read, so this and later segments cannot be used";
                self.findings.lost(&name, 0, WHAT_HEADER, message);
                break;
            };
            segments.push(segment);
        }
        Ok(segments)
    }

    /// Opens a segment; `None` if its header cannot be read or is not the header of this segment.
    fn segment(&mut self, number: u64) -> Result<Option<Segment>> {
        let name = FileName::Segment(number).to_string();
        let file = self.device.open(&name, OpenOptions::WRITE)?;
        let header = self
            .header(&name, &file)?
            .filter(|header| header.generation == number && header.db_id == self.db_id);
        Ok(header.map(|header| Segment { name, file, header }))
    }

    fn header(&mut self, name: &str, file: &SharedFile) -> Result<Option<SegmentHeader>> {
        let mut bytes = [0; HEADER_BYTES as usize];
        let read = file.read_at(0, &mut bytes)?;
        match SegmentHeader::decode(name, &bytes[..read]) {
            Err(error) if error.kind() == ErrorKind::Corruption => {}
            decoded => return decoded.map(Some),
        }
        for at in 0..bytes.len() {
            let right = bytes[at];
            for value in 0..=u8::MAX {
                bytes[at] = value;
                if let Ok(header) = SegmentHeader::decode(name, &bytes) {
                    file.write_at(at as u64, &[value])?;
                    self.findings.repaired(name, at as u64, WHAT_HEADER);
                    return Ok(Some(header));
                }
            }
            bytes[at] = right;
        }
        Ok(None)
    }

    /// Reads the needed segments and truncates the log at the first hole. Returns the numbers of
    /// the segments that are kept.
    fn keep(&mut self, segments: &[Segment]) -> Result<Vec<u64>> {
        let ends = |at: usize| segments.get(at + 1).map(|next| next.header.end_before);
        let first = (0..segments.len()).find(|&at| ends(at).is_none_or(|end| end > self.start));
        let mut kept = Vec::new();
        let Some(first) = first else {
            self.check_end(self.start, None);
            return Ok(kept);
        };
        let oldest = &segments[first];
        if oldest.header.first > self.start && oldest.header.end_before > self.start {
            let message =
                format!("records from lsn {} on are needed; the log begins after it", self.start);
            self.findings.lost(&oldest.name, 0, WHAT_SEGMENT, message);
            return Ok(kept);
        }
        for (at, segment) in segments.iter().enumerate().skip(first) {
            let from = self.start.max(segment.header.first);
            let stop = self.read(segment, from, ends(at))?;
            let end = Lsn(stop.position);
            let goes_on = ends(at) == Some(end);
            if end < self.start {
                break;
            }
            kept.push(segment.header.generation);
            if goes_on {
                continue;
            }
            if ends(at).is_some() || stop.proves_damage() || end < self.known {
                let unused = match stop.valid_after {
                    0 => String::new(),
                    n => format!("; {n} complete records after it are not used"),
                };
                let message = format!("{}: the log is lost from lsn {end} on{unused}", stop.fault);
                self.findings.lost(&segment.name, stop.offset, WHAT_RECORD, message);
            }
            segment.file.set_len(stop.offset)?;
            return Ok(kept);
        }
        let end = segments.last().map_or(self.start, |last| last.header.first);
        self.check_end(end, segments.last());
        Ok(kept)
    }

    /// Reports a loss if the log ends below the Lsn up to which it was durable.
    fn check_end(&mut self, end: Lsn, last: Option<&Segment>) {
        if end < self.known && self.findings.lost.is_empty() {
            let name = last.map_or_else(|| self.device.describe(), |last| last.name.clone());
            let message =
                format!("the log ends at lsn {end}, but was durable up to lsn {}", self.known);
            self.findings.lost(&name, 0, WHAT_SEGMENT, message);
        }
    }

    /// Reads the records of a segment from `from` on, and repairs single bytes. Returns the end of
    /// the records.
    fn read(&mut self, segment: &Segment, from: Lsn, end: Option<Lsn>) -> Result<Stop> {
        let generation = segment.header.generation;
        let len = segment.file.len()?;
        let range = ScanRange {
            generation,
            offset: segment.offset(from),
            position: from.get(),
            end: end.map_or(len, |end| segment.offset(end)),
        };
        let mut repairs = 0;
        loop {
            let file = &segment.file;
            let mut scanner = Scanner::new(|at: u64, buf: &mut [u8]| file.read_at(at, buf), range);
            let stop = loop {
                if let Step::Stop(stop) = scanner.step()? {
                    break stop;
                }
            };
            let is_end = end.is_some_and(|end| Lsn(stop.position) == end);
            if is_end || stop.is_clean(segment.header.used_before) || repairs == REPAIRS_MAX {
                return Ok(stop);
            }
            let mut bytes = vec![0; PROBE_BYTES];
            let read = file.read_at(stop.offset, &mut bytes)?;
            let place = RecordPlace { generation, position: stop.position };
            let Some((at, value)) = one_byte(&bytes[..read], place) else { return Ok(stop) };
            file.write_at(stop.offset + at as u64, &[value])?;
            self.findings.repaired(&segment.name, stop.offset + at as u64, WHAT_RECORD);
            repairs += 1;
        }
    }
}
