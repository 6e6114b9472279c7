//! Reads the records of one file in order and in bounded memory, and reports exactly why the
//! records end.
//!
//! The scanner keeps a window of the file, which contains the whole current record and has at least
//! [`WINDOW_BYTES`], or the rest of the file if that is shorter. After the first invalid record,
//! the scanner searches the rest of the file for valid records, because only they can distinguish
//! damage from a torn tail ([`Stop::proves_damage`]).

use frondb_core::Result;

use super::{Fault, HEADER_BYTES, RecordPlace, decode, find, peek};

/// Bytes read at once, unless a record is longer or the file ends.
pub const WINDOW_BYTES: usize = 256 * 1024;

/// A source of bytes, such as a file.
pub trait ReadAt {
    /// Reads bytes from `offset` on until `buf` is full or the file ends. Returns their number.
    ///
    /// # Errors
    /// The errors of the device.
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize>;
}

impl<F: FnMut(u64, &mut [u8]) -> Result<usize>> ReadAt for F {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self(offset, buf)
    }
}

impl ReadAt for &[u8] {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let bytes = buf.len().min(self.len() - from);
        buf[..bytes].copy_from_slice(&self[from..from + bytes]);
        Ok(bytes)
    }
}

/// The part of a file that holds the records, and their positions.
#[derive(Clone, Copy, Debug)]
pub struct ScanRange {
    /// The generation of the file.
    pub generation: u64,
    /// File offset of the first record.
    pub offset: u64,
    /// Position of the first record.
    pub position: u64,
    /// File offset at which reading stops: the length of the file, or the offset from which the log
    /// is known to continue in another file.
    pub end: u64,
}

impl ScanRange {
    fn place(&self, offset: u64) -> RecordPlace {
        let position = self.position.wrapping_add(offset.wrapping_sub(self.offset));
        RecordPlace { generation: self.generation, position }
    }
}

/// The scanner's current record; [`Scanner::payload`] returns its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Offset of the record in the file.
    pub offset: u64,
    /// Position of the record: its Lsn, or its offset in the file.
    pub position: u64,
    /// The kind that the owner of the file chose.
    pub kind: u8,
    /// Position below which everything was durable when the record was written; `None` if the
    /// record does not state one.
    pub synced: Option<u64>,
    /// Bytes that the record takes in the file.
    pub frame_bytes: usize,
}

/// The result of a [`Scanner`]'s step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A valid record.
    Record(Record),
    /// There is no valid record at this place, so the scan ends.
    Stop(Stop),
}

/// Where the records end, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// File offset after the last valid record.
    pub offset: u64,
    /// Position after the last valid record.
    pub position: u64,
    /// What was found instead of a record.
    pub fault: Fault,
    /// Number of valid records of the same generation after the bad place.
    pub valid_after: u64,
    /// Highest position below which everything was durable, as stated by one of these records.
    pub synced: Option<u64>,
    /// Bytes from `offset` to the last byte that is not zero or belongs to a valid record.
    pub dropped_bytes: u64,
}

impl Stop {
    /// Whether the missing bytes had been durable: then they are damaged and not a torn tail.
    #[must_use]
    pub fn proves_damage(&self) -> bool {
        // `Content`: the checksum is valid, so the record was written completely and is not a torn
        // tail.
        self.fault == Fault::Content || self.synced.is_some_and(|synced| synced > self.position)
    }

    /// Whether the log simply ends here. `used_before` says that the file is reused, so that bytes
    /// of its former contents may follow.
    #[must_use]
    pub fn is_clean(&self, used_before: bool) -> bool {
        self.fault == Fault::End
            && self.valid_after == 0
            && (used_before || self.dropped_bytes == 0)
    }
}

/// Steps through the records of one file.
#[derive(Debug)]
pub struct Scanner<R> {
    read: R,
    range: ScanRange,
    /// File offset of the next record.
    offset: u64,
    window: Window,
    scratch: Vec<u8>,
    payload: Payload,
}

/// Where the payload of the current record is.
#[derive(Clone, Copy, Debug)]
enum Payload {
    Window { offset: u64, bytes: usize },
    Scratch,
}

impl<R: ReadAt> Scanner<R> {
    /// Creates a scanner of the records in `range`. Reads nothing yet.
    pub fn new(read: R, range: ScanRange) -> Self {
        Self {
            read,
            range,
            offset: range.offset,
            window: Window::default(),
            scratch: Vec::new(),
            payload: Payload::Window { offset: range.offset, bytes: 0 },
        }
    }

    /// Moves to the next record, or reports why there is none.
    ///
    /// # Errors
    /// The errors of the device.
    pub fn step(&mut self) -> Result<Step> {
        match self.load()? {
            Ok(record) => Ok(Step::Record(record)),
            Err(fault) => stop(&mut self.read, self.range, self.offset, fault).map(Step::Stop),
        }
    }

    /// Returns the payload of the record that the last step returned.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        match self.payload {
            Payload::Window { offset, bytes } => self.window.bytes(offset, bytes),
            Payload::Scratch => &self.scratch,
        }
    }

    fn load(&mut self) -> Result<Result<Record, Fault>> {
        let frame_bytes = match self.fill()? {
            Ok(frame_bytes) => frame_bytes,
            Err(fault) => return Ok(Err(fault)),
        };
        let (offset, place) = (self.offset, self.range.place(self.offset));
        let frame = match decode(self.window.bytes(offset, frame_bytes), place, &mut self.scratch) {
            Ok(frame) => frame,
            Err(fault) => return Ok(Err(fault)),
        };
        self.offset += frame_bytes as u64;
        let bytes = frame.payload.len();
        let record = Record {
            offset,
            position: place.position,
            kind: frame.kind,
            synced: frame.synced,
            frame_bytes,
        };
        self.payload = match frame.in_scratch {
            true => Payload::Scratch,
            false => Payload::Window { offset: self.offset - bytes as u64, bytes },
        };
        Ok(Ok(record))
    }

    /// Reads the record at the current offset into the window and returns its length.
    fn fill(&mut self) -> Result<Result<usize, Fault>> {
        let rest = self.range.end.saturating_sub(self.offset);
        self.window.fill(&mut self.read, self.offset, HEADER_BYTES, self.range.end)?;
        let head = self.window.bytes(self.offset, HEADER_BYTES);
        let header = match peek(head, self.range.place(self.offset)) {
            Ok(header) => header,
            Err(fault) => return Ok(Err(fault)),
        };
        let frame_bytes = header.frame_bytes();
        if frame_bytes as u64 > rest {
            return Ok(Err(Fault::Short { frame_bytes }));
        }
        self.window.fill(&mut self.read, self.offset, frame_bytes, self.range.end)?;
        Ok(Ok(frame_bytes))
    }
}

/// A part of the file in memory.
#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    offset: u64,
}

impl Window {
    /// Returns the bytes from `offset` on that the window holds, at most `want`.
    fn bytes(&self, offset: u64, want: usize) -> &[u8] {
        let from = offset.checked_sub(self.offset).and_then(|skip| usize::try_from(skip).ok());
        let rest = from.and_then(|from| self.bytes.get(from..)).unwrap_or_default();
        &rest[..want.min(rest.len())]
    }

    /// Makes the window hold `want` bytes from `offset` on, or fewer if `end` comes first.
    fn fill(&mut self, read: &mut impl ReadAt, offset: u64, want: usize, end: u64) -> Result<()> {
        let rest = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        if self.bytes(offset, want).len() == want.min(rest) {
            return Ok(());
        }
        let held = self.bytes(offset, usize::MAX).len();
        let kept = self.bytes.len() - held;
        self.bytes.drain(..kept);
        self.offset = offset;
        self.bytes.resize(want.max(WINDOW_BYTES).min(rest), 0);
        let got = read.read_at(offset + held as u64, &mut self.bytes[held..])?;
        self.bytes.truncate(held + got);
        Ok(())
    }
}

/// Searches the file after the invalid record at `offset` for valid records, and combines the
/// results.
fn stop(read: &mut impl ReadAt, range: ScanRange, offset: u64, fault: Fault) -> Result<Stop> {
    let mut stop = Stop {
        offset,
        position: range.place(offset).position,
        fault,
        valid_after: 0,
        synced: None,
        dropped_bytes: 0,
    };
    let mut at = offset;
    let mut window = vec![0; WINDOW_BYTES];
    while at < range.end {
        let rest = usize::try_from(range.end - at).unwrap_or(usize::MAX);
        let got = read.read_at(at, &mut window[..WINDOW_BYTES.min(rest)])?;
        let bytes = &window[..got];
        if let Some(last) = bytes.iter().rposition(|&byte| byte != 0) {
            stop.dropped_bytes = stop.dropped_bytes.max(at - offset + last as u64 + 1);
        }
        let searched = search(read, range, at, bytes, &mut stop)?;
        // The last bytes of this window may be the beginning of a header.
        let step = searched.max((got + 1).saturating_sub(HEADER_BYTES));
        if got < WINDOW_BYTES || step == 0 {
            break;
        }
        at += step as u64;
    }
    Ok(stop)
}

/// Counts the valid records that begin in `bytes`, which are at file offset `at`. Returns the
/// distance from `at` to the end of the last valid record.
fn search(
    read: &mut impl ReadAt,
    range: ScanRange,
    at: u64,
    bytes: &[u8],
    stop: &mut Stop,
) -> Result<usize> {
    let mut from = 0;
    let mut long = Vec::new();
    let mut scratch = Vec::new();
    while let Some(rest) = bytes.get(from..) {
        let place = range.place(at + from as u64);
        let base = at + from as u64;
        let found = find(rest, place, |skip, frame_bytes| {
            is_valid(read, range, base + skip as u64, frame_bytes, &mut long)
        })?;
        let Some((skip, frame_bytes)) = found else { break };
        let frame = rest.get(skip..skip + frame_bytes).unwrap_or(&long);
        if let Ok(frame) = decode(frame, range.place(base + skip as u64), &mut scratch) {
            stop.synced = stop.synced.max(frame.synced);
        }
        stop.valid_after += 1;
        from += skip + frame_bytes;
        stop.dropped_bytes = stop.dropped_bytes.max(at + from as u64 - stop.offset);
    }
    Ok(from)
}

/// Reads and verifies a candidate that does not fit the window.
fn is_valid(
    read: &mut impl ReadAt,
    range: ScanRange,
    offset: u64,
    frame_bytes: usize,
    frame: &mut Vec<u8>,
) -> Result<bool> {
    if frame_bytes as u64 > range.end.saturating_sub(offset) {
        return Ok(false);
    }
    frame.resize(frame_bytes, 0);
    let got = read.read_at(offset, frame)?;
    Ok(got == frame_bytes && super::verify(frame, range.place(offset)))
}

/// Writes the bytes of a file from `from` to `to` again, unchanged.
///
/// A failed sync may leave pages that are not on disk although the operating system believes that
/// they are: a process that opens the file again reads these pages, and its sync does nothing.
/// Rewriting the bytes makes the next sync reliable.
///
/// # Errors
/// The errors of `read` and `write`.
pub fn rewrite(
    from: u64,
    to: u64,
    mut read: impl ReadAt,
    mut write: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut buf = vec![0; WINDOW_BYTES];
    let mut at = from;
    while at < to {
        let want = buf.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
        let got = read.read_at(at, &mut buf[..want])?;
        if got == 0 {
            break;
        }
        write(at, &buf[..got])?;
        at += got as u64;
    }
    Ok(())
}
