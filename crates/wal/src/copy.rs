//! Copies a part of an open log into another directory, for a backup.
//!
//! The copy is a log that ends at the record that the caller chooses: its last segment is shorter
//! than the original, and its `LOG.mark` says that the log was durable up to that record. So if the
//! copy is truncated later, it counts as damaged.

use std::ops::{Deref, Range};

use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::{Error, ErrorKind, Lsn, Result};
use frondb_device::{OpenOptions, SharedDevice};

use crate::files::Directory;
use crate::format::{DurableMark, FileName, HEADER_BYTES, SegmentHeader};
use crate::log::Wal;
use crate::mark::{self, Mark};
use crate::owner;

/// Bytes copied at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Keeps the segments of a log: while the guard exists, the log recycles no segment, unless
/// [`Wal::give_up_kept`] releases all of them. `W` is a pointer to the log.
#[derive(Debug)]
#[must_use = "segments are kept only until it is dropped"]
pub struct KeptSegments<W: Deref<Target = Wal>> {
    wal: W,
    /// The value of [`LogState::given_up`](crate::state::LogState) when the guard was created.
    given_up: u64,
    has_ended: AtomicBool,
}

impl<W: Deref<Target = Wal>> Drop for KeptSegments<W> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The part of a segment to copy.
struct Part {
    header: SegmentHeader,
    /// File range of the records to copy.
    records: Range<u64>,
}

/// Makes the copy of a log in `device` belong to database `to`. A restored database gets an id of
/// its own, because it and the database `from` may both continue.
///
/// # Errors
/// `Corruption`, `Unsupported`; `Invalid` if the log does not belong to `from`; `NoSpace`; `Io`.
pub fn give_to(device: &SharedDevice, from: u128, to: u128) -> Result<()> {
    let directory = Directory::new(SharedDevice::clone(device));
    for number in directory.list()?.segments {
        let (file, header) = directory.open(number, from)?;
        file.write_at(0, &SegmentHeader { db_id: to, ..header }.encode())?;
        file.sync()?;
    }
    let Some(mark) = mark::read(device, from)? else { return Err(mark::missing(device)) };
    device.remove(mark::MARK_FILE)?;
    device.remove(owner::OWNER_FILE)?;
    write_ends(device, DurableMark { db_id: to, ..mark })
}

/// Durably writes `LOG.mark` and `LOG`.
fn write_ends(device: &SharedDevice, mark: DurableMark) -> Result<()> {
    let Some(file) = Mark::open(device, mark)? else {
        return Err(Error::new(ErrorKind::NoSpace, "there is no space for the log's mark"));
    };
    // Not `Poisoned`: this was a sync of the target, and the state of the copied log is known.
    file.sync().map_err(|error| error.with_kind(ErrorKind::Io))?;
    owner::write_marked(device, mark.db_id)?;
    device.sync_dir("")
}

impl Wal {
    /// Releases the segments that [`KeptSegments`] keep, for a writer on a full disk. Running
    /// copies then fail with `NoSpace`. Returns whether any segments were kept.
    pub fn give_up_kept(&self) -> bool {
        let mut state = self.state.lock();
        let any = state.keepers > 0;
        if any {
            state.keepers = 0;
            state.given_up += 1;
        }
        any
    }
}

impl<W: Deref<Target = Wal>> KeptSegments<W> {
    /// Keeps all segments of the log until this guard is dropped. The log grows meanwhile. The
    /// first call of [`Wal::recycle`] after the drop recycles the segments.
    pub fn new(wal: W) -> Self {
        let given_up = {
            let mut state = wal.state.lock();
            state.keepers += 1;
            state.given_up
        };
        Self { wal, given_up, has_ended: AtomicBool::new(false) }
    }

    /// Returns the log whose segments are kept.
    pub fn wal(&self) -> &Wal {
        &self.wal
    }

    /// Releases the segments. Later calls of [`copy`](Self::copy) fail.
    pub fn end(&self) {
        let mut state = self.wal.state.lock();
        let has_ended = self.has_ended.swap(true, Ordering::Relaxed);
        if !has_ended && state.given_up == self.given_up {
            state.keepers -= 1;
        }
    }

    /// Copies the records from `start` to `end` durably into the empty directory `target`, as a log
    /// of the same database. Instead of older records, the first segment has a hole. Calls `piece`
    /// with the number of bytes of each copied piece; an error from `piece` ends the call.
    /// REQUIRES: records end at both positions, and the log is durable up to `end`.
    ///
    /// # Errors
    /// `NoSpace` and `Io`, also of the target; `NoSpace` if [`Wal::give_up_kept`] released the
    /// segments; `Internal` after [`end`](Self::end); `Exists` if the target has a log; errors of
    /// `piece`.
    pub fn copy(
        &self,
        target: &SharedDevice,
        start: Lsn,
        end: Lsn,
        piece: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let parts = self.parts(start, end)?;
        for part in &parts {
            self.copy_part(target, part, piece)?;
            self.check_kept()?;
        }
        let newest = parts.last().map_or(0, |part| part.header.generation);
        let db_id = self.wal.db_id();
        write_ends(target, DurableMark { db_id, newest, durable: end })
    }

    fn check_kept(&self) -> Result<()> {
        let has_ended = self.has_ended.load(Ordering::Relaxed);
        if has_ended {
            return Err(Error::internal("the segments of the log are no longer kept"));
        }
        if self.wal.state.lock().given_up == self.given_up {
            return Ok(());
        }
        let message = "the disk of the log got full, and the segments that the backup kept were \
                       needed: the backup is given up";
        Err(Error::new(ErrorKind::NoSpace, message))
    }

    /// Returns the parts of segments with records between the two positions, oldest first.
    fn parts(&self, start: Lsn, end: Lsn) -> Result<Vec<Part>> {
        let state = self.wal.state.lock();
        if state.durable < end {
            return Err(Error::internal("a part of the log that is not durable cannot be copied"));
        }
        let mut parts: Vec<Part> = Vec::new();
        for (at, header) in state.live.iter().enumerate() {
            let next = state.live.get(at + 1).map(|next| next.end_before);
            let ends = next.map_or(end, |ends| ends.min(end));
            let offset = |lsn: Lsn| HEADER_BYTES + lsn.get().saturating_sub(header.first.get());
            let records = offset(start)..offset(ends);
            // A segment whose records were all abandoned is empty, but belongs to the chain of
            // segments.
            if !records.is_empty() || !parts.is_empty() {
                parts.push(Part { header: *header, records });
            }
        }
        while parts.pop_if(|part| part.records.is_empty()).is_some() {}
        Ok(parts)
    }

    fn copy_part(
        &self,
        target: &SharedDevice,
        part: &Part,
        piece: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let name = FileName::Segment(part.header.generation).to_string();
        let opened = self.wal.directory.device().open(&name, OpenOptions::READ);
        let from = opened.or_else(|error| self.check_kept().and(Err(error)))?;
        let to = target.open(&name, OpenOptions::CREATE_NEW)?;
        let mut buf = vec![0; PIECE_BYTES as usize];
        // The range between the header and the first record is not written: it is a hole.
        for Range { start: mut at, end } in [0..HEADER_BYTES, part.records.clone()] {
            while at < end {
                let length = PIECE_BYTES.min(end - at);
                let buf = &mut buf[..length as usize];
                let read = from.read_exact_at(at, buf);
                read.or_else(|error| self.check_kept().and(Err(error)))?;
                to.write_at(at, buf)?;
                at += length;
                piece(length)?;
            }
        }
        to.sync()
    }
}
