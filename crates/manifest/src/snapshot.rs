//! A new manifest file under construction; [`Manifest`](crate::Manifest) describes the protocol.

use frondb_block::frame::{self, Body};
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};

use crate::file::LogFile;
use crate::format::{FileHeader, HEADER_BYTES, RecordKind, Superblock, file_name};
use crate::state::{Edit, Files, Shared, Sizes};

/// Maximum number of bytes of a snapshot in one record.
const CHUNK_BYTES: usize = 256 * 1024;

/// Writes a snapshot into a new manifest file, which [`SnapshotWriter::finish`] puts in force.
/// Dropping the writer without `finish` abandons the new file.
#[derive(Debug)]
pub struct SnapshotWriter {
    shared: Arc<Shared>,
    log: LogFile,
    /// Ticket of the newest edit that is in the snapshot or was carried over.
    carried_to: u64,
    body: SnapshotBody,
    /// Whether the new file must not be removed: it is in force, or it is unknown which file is in
    /// force.
    keep: bool,
}

/// A snapshot that is being written: `chunk` has the bytes that are not yet in a record, `block` is
/// a buffer, and `bytes` counts all bytes so far.
#[derive(Debug, Default)]
struct SnapshotBody {
    chunk: Vec<u8>,
    block: Vec<u8>,
    bytes: u64,
}

/// Creates a manifest file with a header and no record. Its name is not durable yet.
pub(crate) fn new_file(device: &SharedDevice, header: FileHeader) -> Result<LogFile> {
    let file = device.open(&file_name(header.generation), OpenOptions::CREATE)?;
    file.set_len(0)?;
    file.write_at(0, &header.encode())?;
    Ok(LogFile {
        generation: header.generation,
        file,
        end: HEADER_BYTES,
        durable: HEADER_BYTES,
        reserved_to: HEADER_BYTES,
    })
}

/// Appends a part of a snapshot; `block` is a buffer.
fn write_chunk(log: &mut LogFile, chunk: &[u8], block: &mut Vec<u8>) -> Result<()> {
    let parts = [chunk];
    // A snapshot replaces all edits before it, and is seldom written: so its compressed bytes are
    // always verified.
    let body = match frame::compress(&parts, &mut Vec::new(), block, true) {
        Some(raw_bytes) => Body::Lz4 { raw_bytes, block },
        None => Body::Raw(&parts),
    };
    log.write(RecordKind::Snapshot, [body], 0).map(drop)
}

/// Appends a whole snapshot.
pub(crate) fn write_snapshot(log: &mut LogFile, bytes: &[u8]) -> Result<()> {
    let mut block = Vec::new();
    bytes.chunks(CHUNK_BYTES).try_for_each(|chunk| write_chunk(log, chunk, &mut block))?;
    end_snapshot(log, bytes.len() as u64)
}

/// Appends the record that ends a snapshot of `bytes` bytes.
pub(crate) fn end_snapshot(log: &mut LogFile, bytes: u64) -> Result<()> {
    log.write(RecordKind::SnapshotEnd, [Body::Raw(&[&bytes.to_le_bytes()])], 0).map(drop)
}

/// Durably appends the `confirmed` record, the proof that the superblock of this file is durable.
pub(crate) fn confirm(log: &mut LogFile) -> Result<()> {
    log.write(RecordKind::Confirmed, [Body::Raw(&[])], 0)?;
    log.sync()
}

impl SnapshotWriter {
    pub(crate) fn begin(shared: &Arc<Shared>) -> Result<Self> {
        // The caller holds a lock of its own, so this must be fast: it creates a file and syncs
        // nothing.
        let mut state = shared.state.lock();
        state.check_poison()?;
        if state.snapshot_open {
            return Err(Error::new(
                ErrorKind::Busy,
                "another snapshot of the manifest is being written",
            ));
        }
        state.snapshot_open = true;
        state.carried = Some(Vec::new());
        let header = FileHeader { db_id: shared.db_id, generation: state.next_generation() };
        let carried_to = state.last();
        drop(state);
        match new_file(&shared.device, header) {
            Ok(log) => Ok(Self {
                shared: Arc::clone(shared),
                log,
                carried_to,
                body: SnapshotBody::default(),
                keep: false,
            }),
            Err(error) => {
                abandon(shared, header.generation);
                Err(error)
            }
        }
    }

    /// Appends bytes to the snapshot.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: the snapshot cannot be finished any more, and the old file stays in force.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = CHUNK_BYTES - self.body.chunk.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.body.chunk.extend_from_slice(now);
            self.body.bytes += now.len() as u64;
            rest = later;
            if self.body.chunk.len() == CHUNK_BYTES {
                self.write_chunk()?;
            }
        }
        Ok(())
    }

    fn write_chunk(&mut self) -> Result<()> {
        let SnapshotBody { chunk, block, .. } = &mut self.body;
        if !chunk.is_empty() {
            write_chunk(&mut self.log, chunk, block)?;
            chunk.clear();
        }
        Ok(())
    }

    /// Puts the new file in force and removes the old one. When this returns, no startup will read
    /// the old file again, and every edit appended before the call is durable.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: the old file stays in force and nothing is lost. `Busy` if edits were
    /// abandoned since the snapshot was begun: the caller must begin a new one. `Poisoned` if it is
    /// unknown which file is in force.
    pub fn finish(mut self) -> Result<()> {
        self.write_chunk()?;
        end_snapshot(&mut self.log, self.body.bytes)?;
        let snapshot_end = self.log.end;
        // The long sync happens before this thread takes the lead, so that edits wait only for
        // short syncs.
        let edits = self.new_edits()?;
        self.carry(&edits)?;
        self.log.sync().map_err(|error| self.fail(error))?;

        let shared = Arc::clone(&self.shared);
        let (state, mut files) = shared.take_lead()?;
        drop(state);
        let old = files.log.generation;
        let switched = self.switch(&mut files);
        let mut state = shared.state.lock();
        match &switched {
            Ok(()) => {
                state.mark_durable(self.carried_to);
                state.mark_secured();
                state.sizes = Sizes {
                    snapshot_bytes: snapshot_end - HEADER_BYTES,
                    log_bytes: files.log.end - snapshot_end,
                    ..state.sizes
                };
                state.stats.snapshots += 1;
                state.stats.written_bytes += files.log.end;
            }
            Err(error) if error.kind() == ErrorKind::Poisoned => state.poison(error),
            Err(_) => {}
        }
        shared.end_lead(state, files);
        switched?;
        // If the file stays, the next startup removes it.
        let _ = shared.device.remove(&file_name(old)).and_then(|()| shared.device.sync_dir(""));
        Ok(())
    }

    /// Does the part of [`finish`](Self::finish) that only the leader may do: from the last carried
    /// edits to the confirmed superblock.
    fn switch(&mut self, files: &mut Files) -> Result<()> {
        let edits = self.new_edits()?;
        self.carry(&edits)?;
        self.log.reserve(self.log.end, self.shared.options.reserve_bytes);
        let device = &self.shared.device;
        let poisoned = |error: Error| error.with_kind(ErrorKind::Poisoned);
        self.log.sync().and_then(|()| device.sync_dir("")).map_err(poisoned)?;
        let superblock = Superblock {
            db_id: self.shared.db_id,
            generation: self.log.generation,
            durable_bytes: self.log.end,
            update: 0,
        };
        self.keep = true;
        files.slots.replace(&superblock).map_err(poisoned)?;
        confirm(&mut self.log).map_err(poisoned)?;
        files.log = self.log.clone();
        Ok(())
    }

    /// Returns the edits appended since the snapshot was begun that are not yet in the new file.
    fn new_edits(&self) -> Result<Vec<Edit>> {
        let mut state = self.shared.state.lock();
        state.check_poison()?;
        match &mut state.carried {
            Some(carried) => Ok(std::mem::take(carried)),
            None => Err(Error::new(
                ErrorKind::Busy,
                "edits failed while the snapshot was written: start the snapshot again",
            )),
        }
    }

    fn carry(&mut self, edits: &[Edit]) -> Result<()> {
        let Some(last) = edits.last() else { return Ok(()) };
        let parts: Vec<[&[u8]; 1]> = edits.iter().map(|edit| [edit.bytes.as_slice()]).collect();
        self.log.write(RecordKind::Edit, parts.iter().map(|parts| Body::Raw(parts)), 0)?;
        self.carried_to = last.ticket;
        Ok(())
    }

    /// Poisons the manifest after a failed sync of the new file: the content of the disk is then
    /// unknown.
    fn fail(&self, error: Error) -> Error {
        let mut state = self.shared.state.lock();
        state.poison(&error);
        state.check_poison().err().unwrap_or(error)
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if self.keep {
            let mut state = self.shared.state.lock();
            state.carried = None;
            state.snapshot_open = false;
        } else {
            abandon(&self.shared, self.log.generation);
        }
    }
}

/// Abandons a new file that no superblock names.
fn abandon(shared: &Shared, generation: u64) {
    let mut state = shared.state.lock();
    state.carried = None;
    state.snapshot_open = false;
    drop(state);
    // If the file stays, the next startup removes it.
    let _ = shared.device.remove(&file_name(generation));
}
