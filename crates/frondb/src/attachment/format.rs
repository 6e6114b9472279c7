//! The bytes that the owner of a database and an asking process exchange.
//!
//! ```text
//!   offset  size
//!        0     8  magic "FRONDASK", once, from the asking process
//!   then frames, in both directions
//!        0     4  length of the rest
//!        4     1  number of the frame, see below
//!        5        fields of the frame
//!
//!   frame     number  fields
//!   stats          1  -
//!   prometheus     2  -
//!   backup         3  number: bytes a second; number: file mode; bytes: to; bytes: since, or empty
//!   progress      16  number: done; number: total
//!   done          17  the result of the question
//!   error         18  bytes: kind; bytes: message; bytes: file; number: offset
//!   tree          19  bytes: name; bytes: page; named numbers
//! ```
//! A number has 8 bytes, little-endian. Bytes are preceded by their length as a number, and named
//! numbers by their count. An answer is any number of progress or tree frames and then done or
//! error. The two programs may be of different versions: do not change the numbers, only add new
//! ones. An unknown question is answered with `Unsupported`, and fields beyond the known ones are
//! ignored.

use std::io::{Read, Write};

use frondb_core::{Error, ErrorKind, Result};

/// The socket in the directory of a database.
pub(super) const SOCKET: &str = "SOCKET";

/// The first bytes of a connection, sent by the asking process.
pub(super) const MAGIC: &[u8; 8] = b"FRONDASK";
pub(super) const STATS: u8 = 1;
pub(super) const PROMETHEUS: u8 = 2;
pub(super) const BACKUP: u8 = 3;
pub(super) const PROGRESS: u8 = 16;
pub(super) const DONE: u8 = 17;
pub(super) const ERROR: u8 = 18;
pub(super) const TREE: u8 = 19;

/// The longest question, bytes: a backup question has two paths.
pub(super) const QUESTION_BYTES_MAX: usize = 64 << 10;
/// The longest frame of an answer, bytes: a page for Prometheus has some 100 KiB.
pub(super) const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Fields of a frame under construction.
#[derive(Default)]
pub(crate) struct Fields(Vec<u8>);

impl Fields {
    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let mut fields = self.number(bytes.len() as u64);
        fields.0.extend_from_slice(bytes);
        fields
    }

    /// Appends named numbers, preceded by their count.
    pub(super) fn numbers(self, numbers: &[(&str, u64)]) -> Self {
        let fields = self.number(numbers.len() as u64);
        numbers
            .iter()
            .fold(fields, |fields, (name, value)| fields.bytes(name.as_bytes()).number(*value))
    }
}

pub(super) fn send(mut out: impl Write, what: u8, fields: &Fields) -> std::io::Result<()> {
    let mut frame = Vec::with_capacity(fields.0.len() + 5);
    let len = u32::try_from(fields.0.len() + 1).map_err(std::io::Error::other)?;
    frame.extend_from_slice(&len.to_le_bytes());
    frame.push(what);
    frame.extend_from_slice(&fields.0);
    out.write_all(&frame)
}

/// A frame that was received.
pub(crate) struct Frame {
    pub(super) what: u8,
    fields: Vec<u8>,
    at: usize,
}

/// Receives a frame of at most `most` bytes.
pub(super) fn receive(mut input: impl Read, most: usize) -> Result<Frame> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::TimedOut => Error::new(ErrorKind::Busy, error.to_string()),
        std::io::ErrorKind::UnexpectedEof => closed(),
        _ => Error::io("read", "the socket of the database", &error),
    };
    let mut len = [0; 4];
    input.read_exact(&mut len).map_err(failed)?;
    let len = u32::from_le_bytes(len) as usize;
    if !(1..=most).contains(&len) {
        return Err(Error::invalid(format!(
            "a frame of {len} bytes on the socket of the database"
        )));
    }
    let mut frame = Vec::new();
    input.take(len as u64).read_to_end(&mut frame).map_err(failed)?;
    match frame.first() {
        Some(&what) if frame.len() == len => Ok(Frame { what, fields: frame, at: 1 }),
        _ => Err(closed()),
    }
}

impl Frame {
    pub(super) fn number(&mut self) -> Result<u64> {
        let bytes = self.fields.get(self.at..).and_then(|rest| rest.first_chunk::<8>());
        let number = bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(cut)?;
        self.at += 8;
        Ok(number)
    }

    pub(super) fn bytes(&mut self) -> Result<&[u8]> {
        let len = usize::try_from(self.number()?).map_err(|_| cut())?;
        let end = self.at.checked_add(len).ok_or_else(cut)?;
        let bytes = self.fields.get(self.at..end).ok_or_else(cut)?;
        self.at = end;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn numbers(&mut self) -> Result<Vec<(String, u64)>> {
        let count = self.number()?;
        // Each entry takes bytes of the frame, so a wrong count causes an error, not a large
        // allocation.
        (0..count).map(|_| Ok((self.text()?, self.number()?))).collect()
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the other process has closed the socket of the database")
}

fn cut() -> Error {
    Error::invalid("a frame on the socket of the database is cut short")
}

pub(super) fn of_error(error: &Error) -> Fields {
    let (file, offset) = error.place().map_or(("", 0), |place| (place.file.as_str(), place.offset));
    let fields = Fields::default().bytes(error.kind().name().as_bytes());
    fields.bytes(error.message().as_bytes()).bytes(file.as_bytes()).number(offset)
}

pub(super) fn error_in(frame: &mut Frame) -> Result<Error> {
    let (kind, message, file) = (frame.text()?, frame.text()?, frame.text()?);
    let offset = frame.number()?;
    let known = KINDS.into_iter().find(|known| known.name() == kind);
    Ok(match known.unwrap_or(ErrorKind::Io) {
        ErrorKind::Corruption => Error::corruption(file, offset, "data", message),
        kind => Error::new(kind, message),
    })
}

const KINDS: [ErrorKind; 16] = [
    ErrorKind::Conflict,
    ErrorKind::Deadlock,
    ErrorKind::LockTimeout,
    ErrorKind::TooManyLocks,
    ErrorKind::Busy,
    ErrorKind::Invalid,
    ErrorKind::NotFound,
    ErrorKind::Exists,
    ErrorKind::NoSpace,
    ErrorKind::Corruption,
    ErrorKind::Poisoned,
    ErrorKind::Io,
    ErrorKind::Closed,
    ErrorKind::Cancelled,
    ErrorKind::Unsupported,
    ErrorKind::Internal,
];

/// Receives any bytes as a frame, and reads its fields in turn as the fields of each kind of frame.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn fuzz(bytes: &[u8]) {
    type Read = fn(&mut Frame) -> Result<()>;
    let reads: [Read; 4] = [
        |frame| error_in(frame).map(drop),
        |frame| frame.numbers().map(drop),
        |frame| frame.text().and_then(|_| frame.text()).and_then(|_| frame.numbers()).map(drop),
        |frame| frame.number().and_then(|_| frame.number()).and_then(|_| frame.bytes().map(drop)),
    ];
    for read in reads {
        if let Ok(mut frame) = receive(bytes, QUESTION_BYTES_MAX) {
            let _ = read(&mut frame);
            assert!(frame.at <= frame.fields.len(), "only bytes of the frame are read");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_messages_are_received() {
        let mut wire = Vec::new();
        let fields =
            Fields::default().number(7).bytes(b"a\0b").numbers(&[("x", 1), ("y", u64::MAX)]);
        send(&mut wire, STATS, &fields).unwrap();
        let broken = Error::corruption("data/1", 4096, "block", "wrong checksum");
        send(&mut wire, ERROR, &of_error(&broken)).unwrap();
        let mut input = wire.as_slice();
        let mut frame = receive(&mut input, 1000).unwrap();
        assert_eq!((frame.what, frame.number().unwrap()), (STATS, 7));
        assert_eq!(frame.bytes().unwrap(), b"a\0b");
        let numbers = [("x".to_owned(), 1), ("y".to_owned(), u64::MAX)];
        assert_eq!(frame.numbers().unwrap(), numbers);
        assert!(frame.number().is_err(), "there is no more");
        let error = error_in(&mut receive(&mut input, 1000).unwrap()).unwrap();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Corruption, "wrong checksum"));
        assert_eq!(error.place().map(|place| place.offset), Some(4096));
        assert!(receive(wire.as_slice(), 4).is_err(), "too long");
    }
}
