//! [`BackupList`]: the file `BACKUP`, which lists the contents of a backup.
//!
//! A text with one item per line, so that it can be read without a tool:
//!
//! ```text
//! FronDB backup 1
//! database 000102030405060708090a0b0c0d0e0f
//! since full                        or the checksum of the list of the backup before
//! log 4096 81920                    its beginning and its end
//! file manifest 1234 89abcdef01234567
//! file wal/000000000001.wal 77888 0123456789abcdef
//!                                   name (may have spaces), bytes, checksum
//! extent 0 16 4 7:89abcdef01234567 0123456789abcdef here
//!                                   file, page, pages, run, checksum, here or before; the run is
//!                                   its id and the checksum of its metadata, or - for a large
//!                                   value or a run in no tree yet
//! end 0123456789abcdef              the checksum of all lines above, which names the backup
//! ```
//!
//! Checksums are XXH3-64. There is a line for every extent of the database, ordered by address.
//! `before` means that an earlier backup has the bytes: the newest earlier one with the same
//! extent, run and checksum.

use std::collections::HashMap;
use std::fmt::Write;

use frondb_core::checksum::xxh3;
use frondb_core::{Error, ErrorKind, Lsn, Result, RunId};
use frondb_device::{OpenOptions, SharedDevice};
use frondb_space::Extent;

/// The list of a complete backup.
pub(super) const LIST_FILE: &str = "BACKUP";
/// The list while it is being written.
const LIST_FILE_NEW: &str = "BACKUP.new";
/// The file that marks a backup as not complete.
pub(super) const UNFINISHED_FILE: &str = "BACKUP.unfinished";
/// The state of the manifest.
pub(super) const MANIFEST_FILE: &str = "manifest";
/// The directory of the files that the caller has attached.
pub(super) const ATTACHED_DIR: &str = "attached";

const TITLE: &str = "FronDB backup 1";
const WHAT: &str = "list of a backup";

/// A file of a backup other than the data files and the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileEntry {
    /// The file's name in the directory of the backup.
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) checksum: u64,
}

/// Identifies a run across backups. The id is not reused within one history of a database; the
/// checksum of the metadata tells apart runs of two histories of a copied database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct RunName {
    pub(super) id: RunId,
    pub(super) meta: u64,
}

/// An extent of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ExtentEntry {
    pub(super) extent: Extent,
    /// The run that the extent belongs to; `None` for a large value or a run that is not in a tree
    /// yet.
    pub(super) run: Option<RunName>,
    pub(super) checksum: u64,
    /// Whether this backup has the bytes of the extent; otherwise an earlier one has them.
    pub(super) is_here: bool,
}

/// The contents of a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BackupList {
    pub(super) db_id: u128,
    /// The name of the backup that this one continues; `None` for a full backup.
    pub(super) since: Option<u64>,
    /// The beginning and the end of the log in the backup.
    pub(super) log: (Lsn, Lsn),
    pub(super) files: Vec<FileEntry>,
    /// Every extent that the database had in use at the moment of the backup.
    pub(super) extents: Vec<ExtentEntry>,
}

impl BackupList {
    /// Returns the name of the backup: the checksum of its list.
    pub(super) fn id(&self) -> u64 {
        xxh3(self.body().as_bytes())
    }

    /// Returns the entries by their extents.
    pub(super) fn by_extent(&self) -> HashMap<Extent, &ExtentEntry> {
        self.extents.iter().map(|entry| (entry.extent, entry)).collect()
    }

    pub(super) fn extent_bytes(&self) -> u64 {
        sum(self.extents.iter().map(|entry| entry.extent.bytes()))
    }

    /// Returns the number of bytes of the extents that this backup itself has.
    pub(super) fn here_bytes(&self) -> u64 {
        sum(self.extents.iter().filter(|entry| entry.is_here).map(|entry| entry.extent.bytes()))
    }

    pub(super) fn file_bytes(&self) -> u64 {
        sum(self.files.iter().map(|file| file.bytes))
    }

    fn body(&self) -> String {
        let mut text = format!("{TITLE}\ndatabase {:032x}\n", self.db_id);
        let since = self.since.map_or_else(|| "full".to_owned(), |since| format!("{since:016x}"));
        let (start, end) = self.log;
        let _ = writeln!(text, "since {since}\nlog {start} {end}");
        for FileEntry { name, bytes, checksum } in &self.files {
            let _ = writeln!(text, "file {name} {bytes} {checksum:016x}");
        }
        for ExtentEntry { extent, run, checksum, is_here } in &self.extents {
            let Extent { file, page, pages } = extent;
            let run = run.map_or_else(
                || "-".to_owned(),
                |RunName { id, meta }| format!("{}:{meta:016x}", id.get()),
            );
            let place = if *is_here { "here" } else { "before" };
            let _ = writeln!(text, "extent {file} {page} {pages} {run} {checksum:016x} {place}");
        }
        text
    }

    fn text(&self) -> String {
        let body = self.body();
        format!("{body}end {:016x}\n", xxh3(body.as_bytes()))
    }

    /// Durably writes the list: from then on the backup is complete.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(super) fn write(&self, target: &SharedDevice) -> Result<()> {
        let text = self.text();
        let file = target.open(LIST_FILE_NEW, OpenOptions::CREATE)?;
        file.set_len(0)?;
        file.write_at(0, text.as_bytes())?;
        file.sync()?;
        target.rename(LIST_FILE_NEW, LIST_FILE)?;
        target.sync_dir("")
    }

    /// Reads the list of a backup.
    ///
    /// # Errors
    /// `NotFound` if there is no complete backup; `Corruption`; `Unsupported` for a newer format;
    /// `Io`.
    pub(super) fn read(source: &SharedDevice) -> Result<Self> {
        let file = match source.open(LIST_FILE, OpenOptions::READ) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(no_backup(source)?),
            opened => opened?,
        };
        let length = usize::try_from(file.len()?).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| damaged("it is larger than the memory"))?;
        bytes.resize(length, 0);
        file.read_exact_at(0, &mut bytes)?;
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not a text"))?;
        let first = text.lines().next().unwrap_or_default();
        if first != TITLE && first.starts_with("FronDB backup ") {
            let message = format!("{LIST_FILE} has a newer format ({first:?}): use a newer FronDB");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let (body, checksum) = text
            .strip_suffix('\n')
            .and_then(|text| text.rsplit_once("\nend "))
            .ok_or_else(|| damaged("its end is missing"))?;
        let body = &text[..=body.len()];
        if hex(checksum)? != xxh3(body.as_bytes()) {
            return Err(damaged("the checksum does not match"));
        }
        let mut list = Self {
            db_id: 0,
            since: None,
            log: (Lsn(0), Lsn(0)),
            files: Vec::new(),
            extents: Vec::new(),
        };
        if first != TITLE {
            return Err(damaged("it is not the list of a backup"));
        }
        for line in body.lines().skip(1) {
            let words: Vec<&str> = line.split(' ').collect();
            list.take(&words).ok_or_else(|| damaged(&format!("it has the line {line:?}")))?;
        }
        Ok(list)
    }

    /// Parses a line; `None` if it is invalid.
    fn take(&mut self, words: &[&str]) -> Option<()> {
        match *words {
            ["database", id] => self.db_id = u128::from_str_radix(id, 16).ok()?,
            ["since", "full"] => self.since = None,
            ["since", id] => self.since = Some(u64::from_str_radix(id, 16).ok()?),
            ["log", start, end] => {
                self.log = (Lsn(start.parse().ok()?), Lsn(end.parse().ok()?));
            }
            ["file", ref name @ .., bytes, checksum] => {
                let name = name.join(" ");
                frondb_device::name::check(&name).ok()?;
                let checksum = u64::from_str_radix(checksum, 16).ok()?;
                self.files.push(FileEntry { name, bytes: bytes.parse().ok()?, checksum });
            }
            ["extent", file, page, pages, run, checksum, place] => {
                let extent = Extent {
                    file: file.parse().ok()?,
                    page: page.parse().ok()?,
                    pages: pages.parse().ok()?,
                };
                let run = match run {
                    "-" => None,
                    run => {
                        let (id, meta) = run.split_once(':')?;
                        let meta = u64::from_str_radix(meta, 16).ok()?;
                        Some(RunName { id: RunId(id.parse().ok()?), meta })
                    }
                };
                let checksum = u64::from_str_radix(checksum, 16).ok()?;
                let is_here = match place {
                    "here" => true,
                    "before" => false,
                    _ => return None,
                };
                extent.page.checked_add(extent.pages).filter(|_| extent.pages > 0)?;
                self.extents.push(ExtentEntry { extent, run, checksum, is_here });
            }
            _ => return None,
        }
        Some(())
    }
}

/// Adds without overflow, even for a crafted list.
fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

/// Checks, for fuzzing, that a list that can be parsed is the same after it was printed and parsed
/// again.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn check_list(bytes: &[u8]) {
    if let Ok(list) = BackupList::parse(bytes) {
        let again = BackupList::parse(list.text().as_bytes());
        assert_eq!(again.ok(), Some(list), "a list is read as it was written");
    }
}

fn hex(text: &str) -> Result<u64> {
    u64::from_str_radix(text, 16).map_err(|_| damaged("its last line makes no sense"))
}

fn damaged(message: &str) -> Error {
    Error::corruption(LIST_FILE, 0, WHAT, message.to_owned())
}

/// Returns the error for a directory without a complete backup.
fn no_backup(source: &SharedDevice) -> Result<Error> {
    let place = source.describe();
    let message = if source.exists(UNFINISHED_FILE)? {
        format!("the backup in {place} is not complete: it is being made, or was given up")
    } else {
        format!("there is no backup in {place}")
    };
    Ok(Error::new(ErrorKind::NotFound, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> BackupList {
        let file = |name: &str| FileEntry { name: name.into(), bytes: 5, checksum: 0xfe };
        let extent = |page, run: Option<u64>, is_here| ExtentEntry {
            extent: Extent { file: 1, page, pages: 3 },
            run: run.map(|id| RunName { id: RunId(id), meta: 5 * id }),
            checksum: u64::MAX - u64::from(page),
            is_here,
        };
        BackupList {
            db_id: 77,
            since: Some(12),
            log: (Lsn(10), Lsn(20)),
            files: vec![
                file(MANIFEST_FILE),
                file("wal/000000000001.wal"),
                file("attached/a b/c d.frm"),
            ],
            extents: vec![extent(3, Some(9), true), extent(6, None, false)],
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        for list in [list(), BackupList { since: None, extents: Vec::new(), ..list() }] {
            assert_eq!(BackupList::parse(list.text().as_bytes()).unwrap(), list);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_of_a_list_is_seen() {
        let good = list().text().into_bytes();
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // The case of a checksum's hexadecimal digits is not significant.
            let parsed = BackupList::parse(&bytes);
            assert!(parsed.is_err() || parsed.unwrap() == list(), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(BackupList::parse(&good[..length]).is_err(), "length {length}");
        }
    }

    #[test]
    fn random_lists_never_panic() {
        let sample = list().text().into_bytes();
        frondb_testkit::fuzz::smoke(1, 20_000, &[sample], crate::fuzz::backup_list);
    }

    #[test]
    fn names_that_lead_out_of_the_backup_are_damage() {
        for name in ["../manifest", "/etc/passwd", "wal//1", ""] {
            let files = vec![FileEntry { name: name.into(), bytes: 5, checksum: 7 }];
            let forged = BackupList { files, ..list() }.text();
            let error = BackupList::parse(forged.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{name}");
        }
    }

    #[test]
    fn a_newer_format_is_unsupported() {
        let newer = list().text().replacen("backup 1", "backup 2", 1);
        let error = BackupList::parse(newer.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
