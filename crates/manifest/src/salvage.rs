//! Turns a damaged manifest into one that can be opened, on a device whose writes do not reach the
//! disk.
//!
//! A record, header or superblock with one damaged byte is repaired
//! ([`frondb_block::frame::repair`]). Where that fails, the manifest ends before the first invalid
//! record, because later records depend on it. Lost superblocks are rebuilt from the files: a file
//! with a `confirmed` record was in force.
//!
//! A salvage uses only records and headers whose checksums match, and lists everything that it
//! omits in the findings.

use frondb_block::frame::repair::{Findings, one_byte};
use frondb_block::frame::{RecordPlace, scan::Stop};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice, SharedFile};

use crate::file::LogFile;
use crate::format::{
    DecodeFault, FileHeader, HEADER_BYTES, SLOT_BYTES, SUPER_FILE, Superblock, WHAT_FILE,
    WHAT_HEADER, WHAT_RECORD, WHAT_SUPERBLOCK, file_name,
};
use crate::recovery::{Parser, manifest_files, scan};
use crate::snapshot::{confirm, end_snapshot};

/// Maximum number of records that are repaired in a file.
const REPAIRS_MAX: usize = 16;
/// Bytes read from the start of an invalid record on, to search for the damaged byte.
const PROBE_BYTES: usize = 256 * 1024;

/// The usable part of a manifest file.
struct UsableFile {
    header: FileHeader,
    file: SharedFile,
    end: u64,
    confirmed: bool,
    findings: Findings,
    /// Where and why the records end; `None` if they end before a valid record that is not allowed
    /// at its place, or if the loss of the rest is already in `findings`.
    stop: Option<Stop>,
}

impl UsableFile {
    /// Ends a snapshot of which only the first `bytes` bytes can be read. The trees in these bytes
    /// are complete, except the last tree.
    fn end_snapshot(&mut self, name: &str, bytes: u64) -> Result<()> {
        let message = "the snapshot cannot be read from here on: the other trees are lost";
        self.findings.lost(name, self.end, WHAT_RECORD, message);
        self.file.set_len(self.end)?;
        let mut log = LogFile {
            generation: self.header.generation,
            file: SharedFile::clone(&self.file),
            end: self.end,
            durable: self.end,
            reserved_to: self.end,
        };
        end_snapshot(&mut log, bytes)?;
        confirm(&mut log)?;
        (self.end, self.stop) = (log.end, None);
        Ok(())
    }
}

/// Changes the manifest in `device` so that it can be opened. REQUIRES: writes to `device` do not
/// reach the disk.
///
/// # Errors
/// `NotFound` without any manifest; `Unsupported`; `Corruption` if no file that was in force has a
/// snapshot of which a part can be read; `Io`.
pub fn salvage(device: &SharedDevice) -> Result<Findings> {
    let mut findings = Findings::default();
    let slots = read_slots(device, &mut findings)?;
    let newest = slots.iter().flatten().max_by_key(|slot| slot.age()).copied();
    let generations = manifest_files(device)?;
    if generations.is_empty() && newest.is_none() {
        let message = format!("there is no FronDB database in {}", device.describe());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    let mut chosen = None;
    for &generation in generations.iter().rev() {
        let named = newest.is_some_and(|slot| slot.generation == generation);
        match usable(device, generation)? {
            Some(usable) if named || usable.confirmed => {
                chosen = Some(usable);
                break;
            }
            // Nothing proves that this file was in force.
            Some(_) => {}
            None if named => {
                let message = "this is the manifest in force, but no part of it can be read";
                findings.lost(&file_name(generation), 0, WHAT_FILE, message);
            }
            None => {}
        }
    }
    let Some(usable) = chosen else {
        let message = "no manifest file that was in force has a readable snapshot";
        return Err(Error::corruption(SUPER_FILE, 0, WHAT_FILE, message));
    };
    let generation = usable.header.generation;
    if newest.is_some_and(|slot| slot.generation > generation) {
        let message = "this manifest was in force, but is missing or cannot be read";
        let newest = newest.map_or(0, |slot| slot.generation);
        findings.lost(&file_name(newest), 0, WHAT_FILE, message);
    }
    if newest.is_none_or(|slot| slot.generation < generation) {
        let message = "the superblock in force is lost; the manifest's last edits may be lost too";
        findings.lost(SUPER_FILE, 0, WHAT_SUPERBLOCK, message);
    }
    let known = newest.filter(|slot| slot.generation == generation);
    let known = known.map_or(0, |slot| slot.durable_bytes);
    findings.repaired.extend(usable.findings.repaired);
    findings.lost.extend(usable.findings.lost);
    if let Some(stop) = usable.stop
        && (stop.proves_damage() || stop.offset < known)
    {
        let message = format!("{}: edits from here on are lost", stop.fault);
        findings.lost(&file_name(generation), stop.offset, WHAT_RECORD, message);
    }
    usable.file.set_len(usable.end)?;
    put_in_force(device, &usable.header, usable.end)?;
    for other in generations.into_iter().filter(|&other| other != generation) {
        device.remove(&file_name(other))?;
    }
    Ok(findings)
}

fn read_slots(device: &SharedDevice, findings: &mut Findings) -> Result<[Option<Superblock>; 2]> {
    let mut slots = [None, None];
    let file = match device.open(SUPER_FILE, OpenOptions::READ) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(slots),
        opened => opened?,
    };
    for (slot, offset) in slots.iter_mut().zip([0, SLOT_BYTES as u64]) {
        let mut bytes = vec![0; SLOT_BYTES];
        let read = file.read_at(offset, &mut bytes)?;
        *slot = match Superblock::decode(&bytes[..read]) {
            Ok(superblock) => Some(superblock),
            Err(DecodeFault::Newer(version)) => return Err(newer(SUPER_FILE, version)),
            Err(DecodeFault::Foreign | DecodeFault::Damaged) => {
                let right = one_byte_of(&mut bytes, |bytes| Superblock::decode(bytes).ok());
                right.map(|(at, superblock)| {
                    findings.repaired(SUPER_FILE, offset + at as u64, WHAT_SUPERBLOCK);
                    superblock
                })
            }
        };
    }
    Ok(slots)
}

/// Finds the one byte whose change makes `bytes` decode. Returns its position and the decoded
/// value.
fn one_byte_of<T>(bytes: &mut [u8], decode: impl Fn(&[u8]) -> Option<T>) -> Option<(usize, T)> {
    if bytes.iter().all(|&byte| byte == 0) {
        return None;
    }
    for at in 0..bytes.len() {
        let right = bytes[at];
        for value in 0..=u8::MAX {
            bytes[at] = value;
            if let Some(found) = decode(bytes) {
                return Some((at, found));
            }
        }
        bytes[at] = right;
    }
    None
}

fn newer(name: &str, version: u32) -> Error {
    let message = format!("{name} has format version {version}: use a newer FronDB");
    Error::new(ErrorKind::Unsupported, message)
}

/// Makes both superblocks name this file.
fn put_in_force(device: &SharedDevice, header: &FileHeader, durable_bytes: u64) -> Result<()> {
    let FileHeader { db_id, generation } = *header;
    let slot = Superblock { db_id, generation, durable_bytes, update: 0 }.encode(&[]);
    let file = device.open(SUPER_FILE, OpenOptions::CREATE)?;
    file.set_len(0)?;
    file.write_vectored_at(0, &[&slot, &slot])
}

/// Reads a manifest file and repairs single bytes; `None` if its header is invalid or no part of
/// its snapshot can be read.
fn usable(device: &SharedDevice, generation: u64) -> Result<Option<UsableFile>> {
    let name = file_name(generation);
    let file = device.open(&name, OpenOptions::WRITE)?;
    let mut findings = Findings::default();
    let Some(header) = header(&name, &file, &mut findings)? else { return Ok(None) };
    if header.generation != generation {
        return Ok(None);
    }
    let mut repairs = 0;
    let (parser, end, stop) = loop {
        let (parser, end, stop) = parse(&file, generation)?;
        let repairable = stop.filter(|stop| repairs < REPAIRS_MAX && !stop.is_clean(false));
        match repairable {
            Some(stop) if repair(&name, &file, generation, stop.offset, &mut findings)? => {
                repairs += 1;
            }
            _ => break (parser, end, stop),
        }
    };
    if parser.snapshot.is_empty() && !parser.ended {
        return Ok(None);
    }
    if stop.is_none() && parser.ended {
        let message = "this record does not belong here: edits from here on are lost";
        findings.lost(&name, end, WHAT_RECORD, message);
    }
    let mut usable = UsableFile { header, file, end, confirmed: parser.confirmed, findings, stop };
    if !parser.ended {
        usable.end_snapshot(&name, parser.snapshot.len() as u64)?;
    }
    Ok(Some(usable))
}

/// Parses the records up to the first one that is invalid or is not allowed at its place.
fn parse(file: &SharedFile, generation: u64) -> Result<(Parser, u64, Option<Stop>)> {
    let (mut parser, mut end, mut fits) = (Parser::default(), HEADER_BYTES, true);
    let stop = scan(file, generation, |record, payload| {
        fits = fits && parser.take(record, payload).is_ok();
        if fits {
            end = record.offset + record.frame_bytes as u64;
        }
        Ok(())
    })?;
    Ok((parser, end, fits.then_some(stop)))
}

fn header(name: &str, file: &SharedFile, findings: &mut Findings) -> Result<Option<FileHeader>> {
    let mut bytes = [0; HEADER_BYTES as usize];
    let read = file.read_at(0, &mut bytes)?;
    match FileHeader::decode(&bytes[..read]) {
        Ok(header) => return Ok(Some(header)),
        Err(DecodeFault::Newer(version)) => return Err(newer(name, version)),
        Err(DecodeFault::Foreign | DecodeFault::Damaged) => {}
    }
    let right = one_byte_of(&mut bytes, |bytes| FileHeader::decode(bytes).ok());
    if let Some((at, header)) = right {
        file.write_at(at as u64, &bytes[at..=at])?;
        findings.repaired(name, at as u64, WHAT_HEADER);
        return Ok(Some(header));
    }
    Ok(None)
}

/// Repairs one byte of the record at `offset`; returns whether that succeeded.
fn repair(
    name: &str,
    file: &SharedFile,
    generation: u64,
    offset: u64,
    findings: &mut Findings,
) -> Result<bool> {
    let mut bytes = vec![0; PROBE_BYTES];
    let read = file.read_at(offset, &mut bytes)?;
    let place = RecordPlace { generation, position: offset };
    let Some((at, value)) = one_byte(&bytes[..read], place) else { return Ok(false) };
    file.write_at(offset + at as u64, &[value])?;
    findings.repaired(name, offset + at as u64, WHAT_RECORD);
    Ok(true)
}
