//! The record: the framed unit of the WAL and of the manifest.
//!
//! A log file is a header defined by its owner, followed by records without gaps. A record states
//! its length, proves that it was written *at this place* and since the file was last created or
//! recycled, and may state how much of the log was durable when it was written:
//!
//! ```text
//!  offset size field
//!       0    8 checksum   XXH3-64 of bytes 8 .. 16 + stored, seeded by the place
//!       8    4 stored     bytes after the header, at most 2^30 - 1
//!      12    1 flags      1 = lz4, 2 = synced; all other bits are zero
//!      13    1 kind       for the owner to choose
//!      14    2 check      16 bits of XXH3 of bytes 8 .. 14, seeded by the place
//!      16    . if synced: varint, the record's position minus the position known to be durable
//!            . if lz4:    varint, length of the payload before compression
//!            . payload, to the end of the stored bytes
//! ```
//!
//! All integers are little-endian. The place is (generation, position): a file gets a generation
//! that no earlier use of the file had, and the position is an Lsn or a file offset. Both are part
//! of the checksum's seed and not of the record, so an old record in a recycled file, or a record
//! that a faulty device wrote elsewhere, does not verify.
//!
//! The small check lets a reader reject a length before reading that far, distinguish a truncated
//! record from bytes that never were a record, and search forward quickly. It is never trusted:
//! only the checksum makes a record valid.
//!
//! The `synced` distance distinguishes a torn tail from damage (rule 9). After power loss an
//! unsynced page can be missing while a later one is present, so a valid record after a bad one
//! proves nothing by itself. A valid record that says "everything below X was durable when I was
//! written" proves that a bad record below X is damage.
//!
//! Nothing here opens a file; [`scan`] reads a file's records in bounded memory.

pub mod repair;
pub mod scan;

use frondb_core::checksum::xxh3_seeded;
use frondb_core::codec::{Reader, put_varint};
use frondb_core::{Error, Result};

use crate::codec::{self, CODEC_LZ4, Check};
use crate::miscoded;

/// Bytes of a record's header.
pub const HEADER_BYTES: usize = 16;

/// Longest payload, stored or decompressed: the largest number of 30 bits.
pub const PAYLOAD_BYTES_MAX: usize = (1 << 30) - 1;

const FLAG_LZ4: u8 = 1;
const FLAG_SYNCED: u8 = 2;
const FLAGS_KNOWN: u8 = FLAG_LZ4 | FLAG_SYNCED;

/// Longest pair of varints in front of a payload, bytes.
const PREFIX_BYTES_MAX: usize = 20;

/// Shorter payloads are not compressed: lz4 would save too little to be worth the call.
const COMPRESS_BYTES_MIN: usize = 128;

/// The place of a record, which is part of its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordPlace {
    /// Identifies this use of the file: no earlier use of a file of this log had this generation.
    pub generation: u64,
    /// Position of the record's first byte: its Lsn, or its offset in the file.
    pub position: u64,
}

impl RecordPlace {
    fn seed(self) -> u64 {
        xxh3_seeded(&self.position.to_le_bytes(), self.generation)
    }
}

/// The payload of a record, before its place is known.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// Parts that are stored uncompressed, one after the other.
    Raw(&'a [&'a [u8]]),
    /// The result of [`compress`].
    Lz4 {
        /// Length before compression.
        raw_bytes: usize,
        /// The lz4 block.
        block: &'a [u8],
    },
}

impl Body<'_> {
    /// Returns the maximum size in bytes of a record with this payload, header included.
    #[must_use]
    pub fn frame_bytes_max(&self) -> u64 {
        (HEADER_BYTES + PREFIX_BYTES_MAX + self.stored_bytes()) as u64
    }

    /// Checks that the payload fits a record.
    ///
    /// # Errors
    /// `Invalid` if it does not.
    pub fn check(&self) -> Result<()> {
        let (bytes, most) = (self.stored_bytes(), PAYLOAD_BYTES_MAX - PREFIX_BYTES_MAX);
        if bytes <= most {
            return Ok(());
        }
        Err(Error::invalid(format!("a record of {bytes} bytes exceeds the limit of {most} bytes")))
    }

    fn stored_bytes(&self) -> usize {
        match self {
            Self::Raw(parts) => parts.iter().map(|part| part.len()).sum(),
            Self::Lz4 { block, .. } => block.len(),
        }
    }
}

/// A decoded record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// The kind that the owner of the file chose.
    pub kind: u8,
    /// Position below which everything was durable when the record was written; `None` if the
    /// record does not state one.
    pub synced: Option<u64>,
    /// The payload, decompressed.
    pub payload: &'a [u8],
    /// Whether the payload was decompressed into the caller's scratch memory. If not, the payload
    /// is the last bytes of the record.
    pub in_scratch: bool,
    /// Bytes that the record takes in the file, header included.
    pub frame_bytes: usize,
}

/// The reason why bytes are not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing was written here: the bytes end, or a header of zeros follows.
    End,
    /// The bytes are not the header of a record for this place.
    Header,
    /// The header is valid, but the record is longer than the available bytes.
    Short {
        /// Bytes that the record would take.
        frame_bytes: usize,
    },
    /// The header is valid, but the checksum is not.
    Checksum,
    /// The checksum is valid, but this version does not write such content.
    Content,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::End => f.write_str("no record was written here"),
            Self::Header => f.write_str("invalid record header"),
            Self::Short { frame_bytes } => write!(f, "a truncated record of {frame_bytes} bytes"),
            Self::Checksum => f.write_str("the checksum does not match"),
            Self::Content => f.write_str("the content of the record cannot be decoded"),
        }
    }
}

/// Appends a record to `out` and returns how many bytes it took.
///
/// `synced` is a position below which everything is known to be durable. REQUIRES: `synced` is not
/// above the position of the record.
///
/// # Errors
/// `Invalid` if the payload does not fit a record ([`Body::check`]); `out` is then unchanged.
pub fn append(
    out: &mut Vec<u8>,
    place: RecordPlace,
    kind: u8,
    synced: Option<u64>,
    body: Body<'_>,
) -> Result<usize> {
    body.check()?;
    let start = out.len();
    out.reserve(HEADER_BYTES + PREFIX_BYTES_MAX + body.stored_bytes());
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let mut flags = 0;
    if let Some(synced) = synced {
        assert!(synced <= place.position, "durable up to {synced}, beyond the record");
        flags |= FLAG_SYNCED;
        put_varint(out, place.position - synced);
    }
    match body {
        Body::Raw(parts) => parts.iter().for_each(|part| out.extend_from_slice(part)),
        Body::Lz4 { raw_bytes, block } => {
            flags |= FLAG_LZ4;
            put_varint(out, raw_bytes as u64);
            out.extend_from_slice(block);
        }
    }
    let frame = &mut out[start..];
    seal(frame, place.seed(), flags, kind);
    Ok(frame.len())
}

/// Fills in the header of a record whose stored bytes are in place.
fn seal(frame: &mut [u8], seed: u64, flags: u8, kind: u8) {
    let stored = u32::try_from(frame.len() - HEADER_BYTES).unwrap_or(u32::MAX);
    assert!(stored as usize <= PAYLOAD_BYTES_MAX, "the caller checks the length");
    frame[8..12].copy_from_slice(&stored.to_le_bytes());
    frame[12] = flags;
    frame[13] = kind;
    let check = header_check(&frame[8..14], seed);
    frame[14..16].copy_from_slice(&check.to_le_bytes());
    let checksum = xxh3_seeded(&frame[8..], seed);
    frame[..8].copy_from_slice(&checksum.to_le_bytes());
}

#[allow(clippy::cast_possible_truncation)]
fn header_check(fields: &[u8], seed: u64) -> u16 {
    xxh3_seeded(fields, seed) as u16
}

/// A header that passed its small check. Do not trust its length before the checksum of the record
/// is verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    stored: usize,
    flags: u8,
    kind: u8,
}

impl Header {
    /// Bytes of the whole record.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.stored
    }
}

/// Checks the header at the front of `bytes` without reading further.
///
/// # Errors
/// [`Fault::End`] or [`Fault::Header`].
pub fn peek(bytes: &[u8], place: RecordPlace) -> Result<Header, Fault> {
    let Some(head) = bytes.get(..HEADER_BYTES) else {
        return Err(if bytes.iter().all(|&byte| byte == 0) { Fault::End } else { Fault::Header });
    };
    if head == [0; HEADER_BYTES] {
        return Err(Fault::End);
    }
    let fields = Fields::of(head).ok_or(Fault::Header)?;
    let header = fields.plausible().ok_or(Fault::Header)?;
    if fields.check != header_check(&head[8..14], place.seed()) {
        return Err(Fault::Header);
    }
    Ok(header)
}

/// The fields of a header, before they are verified.
struct Fields {
    checksum: u64,
    stored: u32,
    flags: u8,
    kind: u8,
    check: u16,
}

impl Fields {
    #[inline]
    fn of(head: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(head);
        Some(Self {
            checksum: reader.u64().ok()?,
            stored: reader.u32().ok()?,
            flags: reader.u8().ok()?,
            kind: reader.u8().ok()?,
            check: reader.u16().ok()?,
        })
    }

    #[inline]
    fn plausible(&self) -> Option<Header> {
        let stored = self.stored as usize;
        // Unknown flags pass: the checksum decides whether they are damage or from a newer version.
        (stored <= PAYLOAD_BYTES_MAX).then_some(Header {
            stored,
            flags: self.flags,
            kind: self.kind,
        })
    }
}

/// Decodes the record at the front of `bytes`. Decompresses a compressed payload into `scratch`.
///
/// # Errors
/// The [`Fault`] for which the bytes are not a valid record.
pub fn decode<'a>(
    bytes: &'a [u8],
    place: RecordPlace,
    scratch: &'a mut Vec<u8>,
) -> Result<Frame<'a>, Fault> {
    let header = peek(bytes, place)?;
    let frame_bytes = header.frame_bytes();
    let frame = bytes.get(..frame_bytes).ok_or(Fault::Short { frame_bytes })?;
    let checksum = Fields::of(frame).ok_or(Fault::Header)?.checksum;
    if checksum != xxh3_seeded(&frame[8..], place.seed()) {
        return Err(Fault::Checksum);
    }
    let (synced, payload) =
        open(header, &frame[HEADER_BYTES..], place, scratch).ok_or(Fault::Content)?;
    let in_scratch = header.flags & FLAG_LZ4 != 0;
    Ok(Frame { kind: header.kind, synced, payload, in_scratch, frame_bytes })
}

/// Parses the stored bytes of a record whose checksum is valid.
fn open<'a>(
    header: Header,
    stored: &'a [u8],
    place: RecordPlace,
    scratch: &'a mut Vec<u8>,
) -> Option<(Option<u64>, &'a [u8])> {
    if header.flags & !FLAGS_KNOWN != 0 {
        return None;
    }
    let mut reader = Reader::new(stored);
    let mut synced = None;
    if header.flags & FLAG_SYNCED != 0 {
        synced = Some(place.position.checked_sub(reader.varint().ok()?)?);
    }
    if header.flags & FLAG_LZ4 == 0 {
        return Some((synced, reader.rest()));
    }
    let raw_bytes = usize::try_from(reader.varint().ok()?).ok()?;
    // One byte of lz4 expands to at most 255 bytes. A claimed length above that must not allocate
    // memory.
    let most = reader.rest().len().saturating_mul(255).min(PAYLOAD_BYTES_MAX);
    if raw_bytes > most {
        return None;
    }
    scratch.clear();
    scratch.resize(raw_bytes, 0);
    let written = lz4_flex::block::decompress_into(reader.rest(), scratch).ok()?;
    (written == raw_bytes).then_some((synced, scratch.as_slice()))
}

/// Compresses `parts`, one after the other, into `block` and returns their length before
/// compression. Returns `None` if that saves less than a tenth, or if the parts together are too
/// short or too long. `gather` is scratch memory. `block` is cleared first. With `verify`, and in
/// every debug build, decodes the output and compares. If the decoded bytes differ from `parts`,
/// returns `None` and adds 1 to [`miscoded_blocks`](crate::miscoded_blocks).
pub fn compress(
    parts: &[&[u8]],
    gather: &mut Vec<u8>,
    block: &mut Vec<u8>,
    verify: bool,
) -> Option<usize> {
    block.clear();
    let raw_bytes: usize = parts.iter().map(|part| part.len()).sum();
    if !(COMPRESS_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&raw_bytes) {
        return None;
    }
    let raw = match parts {
        [one] => one,
        _ => {
            gather.clear();
            parts.iter().for_each(|part| gather.extend_from_slice(part));
            gather.as_slice()
        }
    };
    block.resize(lz4_flex::block::get_maximum_output_size(raw_bytes), 0);
    let written = lz4_flex::block::compress_into(raw, block).ok()?;
    block.truncate(written);
    let is_smaller = written <= raw_bytes - raw_bytes / 10;
    if is_smaller && (verify || cfg!(debug_assertions)) {
        let decoded = Check::Decode.run(raw, |back| codec::decompress(CODEC_LZ4, block, back));
        if let Err(fault) = decoded {
            miscoded::note("record", "lz4", raw_bytes, &fault);
            return None;
        }
    }
    is_smaller.then_some(raw_bytes)
}

/// Finds the first complete record of this generation in `bytes` that verifies. Returns its offset
/// in `bytes` and its length.
///
/// The position of `bytes[0]` is `place.position`. If the header of a candidate is valid but the
/// record extends beyond `bytes`, calls `beyond` with the candidate's offset and length. `beyond`
/// may read further, and returns whether the candidate is a valid record.
///
/// # Errors
/// Errors of `beyond`.
pub fn find(
    bytes: &[u8],
    place: RecordPlace,
    mut beyond: impl FnMut(usize, usize) -> Result<bool>,
) -> Result<Option<(usize, usize)>> {
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + HEADER_BYTES) {
        // Skip zeros fast: most of the bytes that are ever searched are preallocated space.
        if head == [0; HEADER_BYTES] {
            at += 1 + leading_zeros(&bytes[at + HEADER_BYTES..]);
            continue;
        }
        if may_be_header(head) {
            let here = RecordPlace { position: place.position + at as u64, ..place };
            if let Ok(header) = peek(head, here) {
                let frame_bytes = header.frame_bytes();
                let valid = match bytes.get(at..at + frame_bytes) {
                    Some(frame) => verify(frame, here),
                    None => beyond(at, frame_bytes)?,
                };
                if valid {
                    return Ok(Some((at, frame_bytes)));
                }
            }
        }
        at += 1;
    }
    Ok(None)
}

/// Whether the checksum of a complete record is valid.
fn verify(frame: &[u8], place: RecordPlace) -> bool {
    frame.len() >= HEADER_BYTES
        && Fields::of(frame).is_some_and(|f| f.checksum == xxh3_seeded(&frame[8..], place.seed()))
}

/// Rejects most bytes that are not a header, without hashing.
#[inline]
fn may_be_header(head: &[u8]) -> bool {
    Fields::of(head)
        .is_some_and(|f| f.flags & !FLAGS_KNOWN == 0 && f.stored as usize <= PAYLOAD_BYTES_MAX)
}

/// Number of zero bytes at the front.
fn leading_zeros(bytes: &[u8]) -> usize {
    let words = bytes.chunks_exact(64).take_while(|chunk| chunk.iter().all(|&b| b == 0)).count();
    words * 64 + bytes[words * 64..].iter().take_while(|&&byte| byte == 0).count()
}

/// For fuzzers: decodes any bytes as a record, first unchanged and then with a correct header and
/// checksum, so that the stored bytes are parsed too.
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let place = RecordPlace { generation: 3, position: 1000 };
    let mut scratch = Vec::new();
    let _ = decode(data, place, &mut scratch);
    let _ = find(data, place, |_, _| Ok(false));
    let [flags, kind, stored @ ..] = data else { return };
    let mut frame = vec![0; HEADER_BYTES];
    frame.extend_from_slice(stored);
    seal(&mut frame, place.seed(), *flags, *kind);
    match decode(&frame, place, &mut scratch) {
        Ok(found) => assert_eq!((found.kind, found.frame_bytes), (*kind, frame.len())),
        Err(fault) => assert_eq!(fault, Fault::Content),
    }
}

#[cfg(test)]
mod tests;
