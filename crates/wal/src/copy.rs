//! Copying a part of an open log into another directory, for a backup.
//!
//! The copy is a log that ends at the record where the caller wants it to end: its last segment is
//! shorter than the original, and its `LOG.mark` says that it was durable up to there. So a copy that
//! is truncated later counts as damaged.

use std::ops::Range;

use frondb_core::{Error, ErrorKind, Lsn, Result};
use frondb_device::{OpenOptions, SharedDevice};

use crate::format::{DurableMark, FileName, HEADER_BYTES, SegmentHeader};
use crate::log::Wal;
use crate::mark::Mark;
use crate::owner;

/// Bytes copied at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// While it exists, the log recycles no segment: they stay in the directory as they are.
#[derive(Debug)]
#[must_use = "segments are kept only until it is dropped"]
pub struct KeptSegments<'a>(&'a Wal);

impl Drop for KeptSegments<'_> {
    fn drop(&mut self) {
        self.0.state.lock().keepers -= 1;
    }
}

/// The part of a segment that is copied.
struct Part {
    header: SegmentHeader,
    /// Where in the file its records are.
    records: Range<u64>,
}

impl Wal {
    /// Keeps all segments of the log until the returned guard is dropped. The log grows meanwhile;
    /// the next call of [`recycle`](Self::recycle) after that makes up for it.
    pub fn keep_segments(&self) -> KeptSegments<'_> {
        self.state.lock().keepers += 1;
        KeptSegments(self)
    }
}

impl KeptSegments<'_> {
    /// Copies the records from `start` to `end` into the empty directory `target`, durably, as a log
    /// of the same database. Both are bounds of records; the log is durable up to `end`. `piece` gets
    /// the bytes of each piece that was copied; an error of it ends the call. The first segment has a
    /// hole in the place of older records.
    ///
    /// # Errors
    /// `NoSpace` and `Io`, also of the target; `Exists` if the target has a log; errors of `piece`.
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
        }
        let newest = parts.last().map_or(0, |part| part.header.generation);
        let db_id = self.0.db_id();
        let mark = Mark::open(target, DurableMark { db_id, newest, durable: end })?;
        let Some(mark) = mark else {
            return Err(Error::new(ErrorKind::NoSpace, "there is no space for the log's mark"));
        };
        // It is the target's fault, and nothing about the log that is copied is unknown.
        mark.sync().map_err(|error| error.with_kind(ErrorKind::Io))?;
        owner::write_marked(target, db_id)?;
        target.sync_dir("")
    }

    /// The segments with records between the two positions, oldest first.
    fn parts(&self, start: Lsn, end: Lsn) -> Result<Vec<Part>> {
        let state = self.0.state.lock();
        if state.durable < end {
            return Err(Error::internal("a part of the log that is not durable cannot be copied"));
        }
        let mut parts = Vec::new();
        for (at, header) in state.live.iter().enumerate() {
            let next = state.live.get(at + 1).map(|next| next.end_before);
            let ends = next.map_or(end, |ends| ends.min(end));
            let offset = |lsn: Lsn| HEADER_BYTES + lsn.get().saturating_sub(header.first.get());
            let records = offset(start)..offset(ends);
            if !records.is_empty() {
                parts.push(Part { header: *header, records });
            }
        }
        Ok(parts)
    }

    fn copy_part(
        &self,
        target: &SharedDevice,
        part: &Part,
        piece: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let name = FileName::Segment(part.header.generation).to_string();
        let from = self.0.directory.device().open(&name, OpenOptions::READ)?;
        let to = target.open(&name, OpenOptions::CREATE_NEW)?;
        let mut buf = vec![0; PIECE_BYTES as usize];
        // What lies between the header and the first record is a hole.
        for Range { start: mut at, end } in [0..HEADER_BYTES, part.records.clone()] {
            while at < end {
                let length = PIECE_BYTES.min(end - at);
                let buf = &mut buf[..length as usize];
                from.read_exact_at(at, buf)?;
                to.write_at(at, buf)?;
                at += length;
                piece(length)?;
            }
        }
        to.sync()
    }
}
