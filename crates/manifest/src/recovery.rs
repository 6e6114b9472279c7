//! Startup: finds the manifest in force, reads it, and distinguishes a torn tail from damage (rule
//! 9). `docs/design/recovery.md` has the table of all cases.

use std::fmt;

use frondb_block::frame::Fault;
use frondb_block::frame::scan::{Record, ScanRange, Scanner, Step, Stop, rewrite};
use frondb_core::codec::Reader;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice, SharedFile};

use crate::file::LogFile;
use crate::format::{
    DecodeFault, FORMAT_VERSION, FileHeader, HEADER_BYTES, RecordKind, SUPER_FILE, SUPER_FILE_NEW,
    Superblock, WHAT_FILE, WHAT_HEADER, WHAT_RECORD, WHAT_SUPERBLOCK, file_name, parse_file_name,
};
use crate::options::ManifestOptions;
use crate::snapshot::{confirm, new_file, write_snapshot};
use crate::state::{Files, Sizes};
use crate::superblock::{FoundSlots, Slots};

/// The content of a manifest when it was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// Id of the database.
    pub db_id: u128,
    /// The snapshot; empty for a new database.
    pub snapshot: Vec<u8>,
    /// The edits since the snapshot, in order.
    pub edits: Vec<Vec<u8>>,
    /// The torn tail that was cut off; `None` if there was none. None of its edits was secured, and
    /// unless the file was damaged, none was acknowledged as durable.
    pub torn_tail: Option<TornTail>,
    /// The note of the superblock in force; empty if it has none.
    pub note: Vec<u8>,
    /// Harmless irregularities, one sentence each.
    pub warnings: Vec<String>,
}

/// The torn tail that was cut off a manifest file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// The file.
    pub file: String,
    /// File offset at which its valid records end.
    pub offset: u64,
    /// Bytes from there to the last non-zero byte.
    pub dropped_bytes: u64,
    /// The fault found instead of a record.
    pub reason: String,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, dropped_bytes, reason } = self;
        write!(f, "cut {dropped_bytes} bytes off {file} at offset {offset}: {reason}")
    }
}

/// Returns whether there are superblocks. Fails if they are unusable or were lost.
pub(crate) fn exists(device: &SharedDevice) -> Result<bool> {
    if device.exists(SUPER_FILE)? {
        return Slots::open(&**device, OpenOptions::READ).map(|_| true);
    }
    lost_superblock(device, &manifest_files(device)?)?;
    Ok(false)
}

/// Reads the note of the superblock in force, and nothing else.
pub(crate) fn note(device: &SharedDevice) -> Result<Vec<u8>> {
    match Slots::open(&**device, OpenOptions::READ) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(no_database(device)),
        found => Ok(found?.slots.note().to_vec()),
    }
}

fn no_database(device: &SharedDevice) -> Error {
    let message = format!("there is no FronDB database in {}", device.describe());
    Error::new(ErrorKind::NotFound, message)
}

/// Creates the first manifest file, with a snapshot, and the superblocks, all durable.
pub(crate) fn create(
    device: &SharedDevice,
    db_id: u128,
    options: &ManifestOptions,
    snapshot: &[u8],
) -> Result<(Files, Sizes)> {
    if device.exists(SUPER_FILE)? {
        let message = format!("there is a database in {} already", device.describe());
        return Err(Error::new(ErrorKind::Exists, message));
    }
    let leftovers = manifest_files(device)?;
    lost_superblock(device, &leftovers)?;
    let generation = leftovers.last().copied().unwrap_or(0) + 1;
    let mut log = new_file(device, FileHeader { db_id, generation })?;
    write_snapshot(&mut log, snapshot)?;
    let sizes = Sizes { snapshot_bytes: log.end - HEADER_BYTES, ..Sizes::default() };
    log.reserve(log.end, options.reserve_bytes);
    log.sync()?;
    // The name of the file must be durable before the superblock that names it.
    device.sync_dir("")?;
    let slots = Slots::create(
        &**device,
        &Superblock { db_id, generation, durable_bytes: log.end, update: 0 },
    )?;
    confirm(&mut log)?;
    leftovers.iter().try_for_each(|&leftover| device.remove(&file_name(leftover)))?;
    let reserve_left = log.reserved_to.saturating_sub(log.end);
    Ok((Files { log, slots }, Sizes { reserve_left, ..sizes }))
}

/// Finds and reads the manifest in force, and makes everything it returns durable.
pub(crate) fn open(
    device: &SharedDevice,
    options: &ManifestOptions,
) -> Result<(Files, Sizes, Recovered)> {
    let others = manifest_files(device)?;
    let FoundSlots { mut slots, superblock, warning } =
        match Slots::open(&**device, OpenOptions::WRITE) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                lost_superblock(device, &others)?;
                return Err(no_database(device));
            }
            Err(error) => return Err(error),
        };
    for &newer in others.iter().filter(|&&other| other > superblock.generation) {
        if is_confirmed(device, newer)? {
            let message = format!(
                "the superblock of generation {newer} is damaged or lost, although it was in \
                 force; the one found is of generation {}",
                superblock.generation
            );
            return Err(Error::corruption(SUPER_FILE, 0, WHAT_SUPERBLOCK, message));
        }
    }
    let note = slots.note().to_vec();
    let (file, content) = read(device, &superblock)?;
    let mut log = make_durable(device, &mut slots, &superblock, file, &content)?;
    for &other in others.iter().filter(|&&other| other != superblock.generation) {
        device.remove(&file_name(other))?;
    }
    if device.exists(SUPER_FILE_NEW)? {
        device.remove(SUPER_FILE_NEW)?;
    }
    log.reserve(log.end, options.reserve_bytes);
    let sizes = Sizes {
        snapshot_bytes: content.snapshot_end - HEADER_BYTES,
        log_bytes: log.end - content.snapshot_end,
        reserve_left: log.reserved_to.saturating_sub(log.end),
    };
    let recovered = Recovered {
        db_id: superblock.db_id,
        torn_tail: content.torn_tail(&superblock),
        snapshot: content.snapshot,
        edits: content.edits,
        note,
        warnings: warning.into_iter().collect(),
    };
    Ok((Files { log, slots }, sizes, recovered))
}

/// Makes the data that was read durable, cuts off a torn tail, confirms the superblock if a crash
/// prevented that, and records in the superblocks how far the file is durable. Other manifest files
/// may be removed only after this.
fn make_durable(
    device: &SharedDevice,
    slots: &mut Slots,
    superblock: &Superblock,
    file: SharedFile,
    content: &Content,
) -> Result<LogFile> {
    slots.rewrite()?;
    device.sync_dir("")?;
    let end = content.stop.offset;
    let mut log = LogFile {
        generation: superblock.generation,
        reserved_to: file.len()?,
        file,
        end,
        durable: superblock.durable_bytes,
    };
    // Rewrite all bytes that no record and no superblock proves to have been durable; `rewrite`
    // explains why.
    let file = &log.file;
    let read = |at: u64, buf: &mut [u8]| file.read_at(at, buf);
    let durable = content.proven.max(superblock.durable_bytes);
    rewrite(durable, end, read, |at, bytes| file.write_at(at, bytes))?;
    if content.stop.is_clean(false) {
        log.sync()?;
    } else {
        log.cut()?;
    }
    if !content.confirmed {
        confirm(&mut log)?;
    }
    // The engine acts upon the result of recovery (it reuses space and removes log segments), so a
    // later loss of these edits must not look like a torn tail.
    slots.record_durable_twice(log.end)?;
    Ok(log)
}

/// The content of a manifest file.
#[derive(Debug)]
struct Content {
    snapshot: Vec<u8>,
    edits: Vec<Vec<u8>>,
    snapshot_end: u64,
    confirmed: bool,
    /// The offset below which everything was durable when the last records were written.
    proven: u64,
    stop: Stop,
}

impl Content {
    fn torn_tail(&self, superblock: &Superblock) -> Option<TornTail> {
        let torn = !self.stop.is_clean(false);
        torn.then(|| TornTail {
            file: file_name(superblock.generation),
            offset: self.stop.offset,
            dropped_bytes: self.stop.dropped_bytes,
            reason: self.stop.fault.to_string(),
        })
    }
}

/// Reads the manifest file that `superblock` names.
fn read(device: &SharedDevice, superblock: &Superblock) -> Result<(SharedFile, Content)> {
    let name = file_name(superblock.generation);
    let file = match device.open(&name, OpenOptions::WRITE) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let message = "the superblock names this file, but it is missing";
            return Err(Error::corruption(name, 0, WHAT_FILE, message));
        }
        opened => opened?,
    };
    let header = read_header(&name, &file)?;
    if (header.db_id, header.generation) != (superblock.db_id, superblock.generation) {
        let message = "the header has another database or generation than the superblock that names this file";
        return Err(Error::corruption(name, 0, WHAT_HEADER, message));
    }
    let mut parser = Parser::default();
    let mut proven = 0;
    let stop = scan(&file, superblock.generation, |record, payload| {
        proven = proven.max(record.synced.unwrap_or(0));
        parser
            .take(record, payload)
            .map_err(|message| Error::corruption(&*name, record.offset, WHAT_RECORD, message))
    })?;
    let damaged = stop.proves_damage() || stop.offset < superblock.durable_bytes;
    if damaged || !parser.ended {
        let known = superblock.durable_bytes;
        let message = match stop.fault {
            Fault::End | Fault::Short { .. } if stop.offset < known => format!(
                "{}, but {known} bytes of the file were durable: it was truncated or \
                 overwritten",
                stop.fault
            ),
            fault => format!("{fault}, but the record at this offset was durable"),
        };
        return Err(Error::corruption(name, stop.offset, WHAT_RECORD, message));
    }
    let content = Content {
        snapshot: parser.snapshot,
        edits: parser.edits,
        snapshot_end: parser.snapshot_end,
        confirmed: parser.confirmed,
        proven,
        stop,
    };
    Ok((file, content))
}

/// Assembles the records of a manifest file, in the order that the format allows.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    pub(crate) snapshot: Vec<u8>,
    pub(crate) edits: Vec<Vec<u8>>,
    pub(crate) snapshot_end: u64,
    pub(crate) ended: bool,
    pub(crate) confirmed: bool,
}

impl Parser {
    pub(crate) fn take(&mut self, record: Record, payload: &[u8]) -> Result<(), String> {
        match (RecordKind::from_number(record.kind), self.ended) {
            (Some(RecordKind::Snapshot), false) => self.snapshot.extend_from_slice(payload),
            (Some(RecordKind::SnapshotEnd), false) => {
                let bytes = Reader::new(payload).u64().map_err(|error| error.to_string())?;
                let found = self.snapshot.len();
                if bytes != found as u64 {
                    return Err(format!("the snapshot has {found} bytes instead of {bytes}"));
                }
                self.ended = true;
                self.snapshot_end = record.offset + record.frame_bytes as u64;
            }
            (Some(RecordKind::Edit), true) => self.edits.push(payload.to_vec()),
            (Some(RecordKind::Confirmed), true) if !self.confirmed => self.confirmed = true,
            _ => return Err(format!("unexpected record of kind {}", record.kind)),
        }
        Ok(())
    }
}

/// Steps through the records of a manifest file until they end.
pub(crate) fn scan(
    file: &SharedFile,
    generation: u64,
    mut each: impl FnMut(Record, &[u8]) -> Result<()>,
) -> Result<Stop> {
    let extent =
        ScanRange { generation, offset: HEADER_BYTES, position: HEADER_BYTES, end: file.len()? };
    let read = |offset: u64, buf: &mut [u8]| file.read_at(offset, buf);
    let mut scanner = Scanner::new(read, extent);
    loop {
        match scanner.step()? {
            Step::Record(record) => each(record, scanner.payload())?,
            Step::Stop(stop) => return Ok(stop),
        }
    }
}

fn read_header(name: &str, file: &SharedFile) -> Result<FileHeader> {
    let mut bytes = [0; HEADER_BYTES as usize];
    let read = file.read_at(0, &mut bytes)?;
    FileHeader::decode(&bytes[..read]).map_err(|bad| match bad {
        DecodeFault::Newer(version) => Error::new(
            ErrorKind::Unsupported,
            format!(
                "{name} has format version {version}; this build reads up to {FORMAT_VERSION}: use \
                 a newer FronDB"
            ),
        ),
        DecodeFault::Foreign | DecodeFault::Damaged => {
            Error::corruption(name, 0, WHAT_HEADER, "the file header is damaged")
        }
    })
}

/// Returns the generations of the existing manifest files, ascending.
pub(crate) fn manifest_files(device: &SharedDevice) -> Result<Vec<u64>> {
    let names = device.list("")?;
    let mut generations: Vec<u64> = names.iter().filter_map(|name| parse_file_name(name)).collect();
    generations.sort_unstable();
    Ok(generations)
}

/// Returns whether a `confirmed` record proves that the superblock of a manifest file was in force.
/// A file without a valid header proves nothing: an unfinished file may contain anything.
fn is_confirmed(device: &SharedDevice, generation: u64) -> Result<bool> {
    let name = file_name(generation);
    let file = device.open(&name, OpenOptions::READ)?;
    if read_header(&name, &file).is_err() {
        return Ok(false);
    }
    let mut confirmed = false;
    scan(&file, generation, |record, _| {
        confirmed |= RecordKind::from_number(record.kind) == Some(RecordKind::Confirmed);
        Ok(())
    })?;
    Ok(confirmed)
}

/// Fails if a manifest file proves that there was a superblock, although there is none.
fn lost_superblock(device: &SharedDevice, generations: &[u64]) -> Result<()> {
    for &generation in generations {
        if is_confirmed(device, generation)? {
            let message =
                format!("{SUPER_FILE} is missing, although {} was in force", file_name(generation));
            return Err(Error::corruption(SUPER_FILE, 0, WHAT_SUPERBLOCK, message));
        }
    }
    Ok(())
}
