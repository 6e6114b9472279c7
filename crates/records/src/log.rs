//! The payloads of the records of the write-ahead log.
//!
//! | record | fields after the kind byte |
//! |---|---|
//! | batch | first SeqNo, section count, sections |
//! | relog | tree, message count, then each message with its SeqNo in front |
//! | commit | transaction, first SeqNo, parts, section count, sections |
//! | prepare | transaction, xid (length 1 to 256, bytes), parts, section count, sections |
//! | commit prepared | transaction, first SeqNo, number of SeqNos |
//! | roll back prepared | transaction |
//!
//! A section is a tree, a message count, a length in bytes and the messages
//! ([`frondb_writeset::op`]). Parts are a count, then for each part its tree and its number of
//! SeqNos; the manifest names the private runs of a part. All numbers are varints.
//!
//! A relog record contains all messages that its tree has in memory. The record replaces all
//! earlier records of these messages (rule 10).
//!
//! The messages of a batch have SeqNos in the order in which they are encoded. In a transaction,
//! the parts take the first SeqNos, in their order: the message with local number `n` of a part
//! gets the part's `n`-th SeqNo. The messages in the record take the SeqNos after them.
//!
//! The kind bytes are stored on disk: do not change them.

use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_core::{RangeDelete, SeqNo, TreeId};
pub use frondb_writeset::op::{OP_RANGE_DELETE, Op, decode_op, encode_op, encode_range_delete};

/// The first byte of a record. The numbers are stored on disk: do not change them.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    Batch = 0,
    Relog = 1,
    Commit = 2,
    Prepare = 3,
    CommitPrepared = 4,
    RollBackPrepared = 5,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Batch,
        Self::Relog,
        Self::Commit,
        Self::Prepare,
        Self::CommitPrepared,
        Self::RollBackPrepared,
    ];

    fn put(self, out: &mut Vec<u8>) {
        out.push(self as u8);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let byte = input.u8()?;
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte).ok_or(Truncated)
    }
}

/// Maximum length in bytes of the name (XID) of a prepared transaction.
pub const XID_BYTES_MAX: usize = 256;

/// Appends the header of a batch record; the sections follow.
pub fn encode_batch_head(out: &mut Vec<u8>, first: SeqNo, sections: usize) {
    Kind::Batch.put(out);
    put_varint(out, first.get());
    put_varint(out, sections as u64);
}

/// Appends the header of the record of a commit with pending parts; the sections follow.
pub fn encode_commit_head(
    out: &mut Vec<u8>,
    txn: u64,
    first: SeqNo,
    parts: &[(TreeId, u64)],
    sections: usize,
) {
    Kind::Commit.put(out);
    put_varint(out, txn);
    put_varint(out, first.get());
    put_parts(out, parts);
    put_varint(out, sections as u64);
}

/// Appends the header of the record that prepares a transaction; the sections follow.
pub fn encode_prepare_head(
    out: &mut Vec<u8>,
    txn: u64,
    xid: &[u8],
    parts: &[(TreeId, u64)],
    sections: usize,
) {
    Kind::Prepare.put(out);
    put_varint(out, txn);
    put_bytes(out, xid);
    put_parts(out, parts);
    put_varint(out, sections as u64);
}

/// Appends the record that commits a prepared transaction. Its messages take `numbers` SeqNos from
/// `first` on.
pub fn encode_commit_prepared(out: &mut Vec<u8>, txn: u64, first: SeqNo, numbers: u64) {
    Kind::CommitPrepared.put(out);
    put_varint(out, txn);
    put_varint(out, first.get());
    put_varint(out, numbers);
}

/// Appends the record that rolls back a prepared transaction.
pub fn encode_roll_back_prepared(out: &mut Vec<u8>, txn: u64) {
    Kind::RollBackPrepared.put(out);
    put_varint(out, txn);
}

fn put_parts(out: &mut Vec<u8>, parts: &[(TreeId, u64)]) {
    put_varint(out, parts.len() as u64);
    for (tree, numbers) in parts {
        put_varint(out, u64::from(tree.get()));
        put_varint(out, *numbers);
    }
}

/// Appends the header of a section with `count` messages in `bytes` bytes; the messages follow.
pub fn encode_section_head(out: &mut Vec<u8>, tree: TreeId, count: u64, bytes: usize) {
    put_varint(out, u64::from(tree.get()));
    put_varint(out, count);
    put_varint(out, bytes as u64);
}

/// Appends the header of a relog record with `count` messages. The messages follow, each with its
/// SeqNo as a varint in front.
pub fn encode_relog_head(out: &mut Vec<u8>, tree: TreeId, count: u64) {
    Kind::Relog.put(out);
    put_varint(out, u64::from(tree.get()));
    put_varint(out, count);
}

/// Receives the contents of a log record, in order. An error ends the decoding.
pub trait RecordVisitor {
    /// Begins a relog record. The messages that follow are all messages that `tree` had in memory,
    /// and replace earlier records of them.
    fn relog(&mut self, tree: TreeId) -> frondb_core::Result<()>;
    /// Receives a message of a batch, a commit or a relog record.
    fn op(&mut self, tree: TreeId, seq: SeqNo, op: Op<'_>) -> frondb_core::Result<()>;
    /// Receives the pending parts of a transaction that commits: for each part its tree and its
    /// number of SeqNos. The parts take SeqNos from `first` on.
    fn attach(
        &mut self,
        txn: u64,
        first: SeqNo,
        parts: &[(TreeId, u64)],
    ) -> frondb_core::Result<()>;
    /// Receives the record that prepares a transaction.
    fn prepare(&mut self, prepare: &PrepareRecord<'_>) -> frondb_core::Result<()>;
    /// Receives the commit of a prepared transaction. Its parts and messages take SeqNos from
    /// `first` on.
    fn commit_prepared(&mut self, txn: u64, first: SeqNo) -> frondb_core::Result<()>;
    /// Receives the rollback of a prepared transaction.
    fn roll_back_prepared(&mut self, txn: u64) -> frondb_core::Result<()>;
}

/// The record that prepares a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrepareRecord<'a> {
    /// The number of the transaction.
    pub txn: u64,
    /// The name that the coordinator gave the transaction.
    pub xid: &'a [u8],
    /// The transaction's pending parts: for each part its tree and its number of SeqNos.
    pub parts: Vec<(TreeId, u64)>,
    /// The transaction's messages in the log: for each section the tree, the number of messages,
    /// and their bytes, which the decoder has already checked.
    pub sections: Vec<(TreeId, u64, &'a [u8])>,
}

/// Why a record could not be decoded or applied.
#[derive(Debug)]
pub enum RecordError {
    /// The bytes are not a record.
    Malformed,
    /// The visitor returned this error.
    Visitor(frondb_core::Error),
}

impl From<Truncated> for RecordError {
    fn from(_: Truncated) -> Self {
        Self::Malformed
    }
}

impl From<frondb_core::Error> for RecordError {
    fn from(error: frondb_core::Error) -> Self {
        Self::Visitor(error)
    }
}

/// Decodes a log record and passes its contents to `visitor`. Returns the largest SeqNo in the
/// record; [`SeqNo::MIN`] for a record without SeqNos.
///
/// # Errors
/// See [`RecordError`]. The visitor may have received a part of a malformed record.
pub fn decode_record(
    payload: &[u8],
    visitor: &mut dyn RecordVisitor,
) -> Result<SeqNo, RecordError> {
    let mut input = Reader::new(payload);
    let last = match Kind::read(&mut input)? {
        Kind::Batch => {
            let first = SeqNo(input.varint()?);
            decode_sections(&mut input, first, visitor)?
        }
        Kind::Relog => decode_relog(&mut input, visitor)?,
        Kind::Commit => decode_commit(&mut input, visitor)?,
        Kind::Prepare => {
            visitor.prepare(&decode_prepare(&mut input)?)?;
            SeqNo::MIN
        }
        Kind::CommitPrepared => {
            let txn = input.varint()?;
            let (first, numbers) = (input.varint()?, input.varint()?);
            visitor.commit_prepared(txn, SeqNo(first))?;
            SeqNo(first.saturating_add(numbers).saturating_sub(1))
        }
        Kind::RollBackPrepared => {
            visitor.roll_back_prepared(input.varint()?)?;
            SeqNo::MIN
        }
    };
    if input.is_empty() { Ok(last) } else { Err(RecordError::Malformed) }
}

fn decode_commit(
    input: &mut Reader<'_>,
    visitor: &mut dyn RecordVisitor,
) -> Result<SeqNo, RecordError> {
    let (txn, first) = (input.varint()?, SeqNo(input.varint()?));
    let parts = decode_parts(input)?;
    visitor.attach(txn, first, &parts)?;
    let behind = parts.iter().fold(first.get(), |seq, part| seq.saturating_add(part.1));
    let last = decode_sections(input, SeqNo(behind), visitor)?;
    Ok(last.max(SeqNo(behind.saturating_sub(1))))
}

fn decode_prepare<'a>(input: &mut Reader<'a>) -> Result<PrepareRecord<'a>, Truncated> {
    let (txn, xid) = (input.varint()?, xid(input)?);
    let parts = decode_parts(input)?;
    let mut sections = Vec::new();
    for _ in 0..input.varint()? {
        let (tree, count) = (TreeId(input.varint_u32()?), input.varint()?);
        let bytes = input.bytes()?;
        let mut section = Reader::new(bytes);
        for _ in 0..count {
            decode_op(&mut section)?;
        }
        if !section.is_empty() {
            return Err(Truncated);
        }
        sections.push((tree, count, bytes));
    }
    Ok(PrepareRecord { txn, xid, parts, sections })
}

fn decode_parts(input: &mut Reader<'_>) -> Result<Vec<(TreeId, u64)>, Truncated> {
    let mut parts = Vec::new();
    for _ in 0..input.varint()? {
        parts.push((TreeId(input.varint_u32()?), input.varint()?));
    }
    Ok(parts)
}

/// Reads the name of a prepared transaction and checks its length.
pub(crate) fn xid<'a>(input: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let xid = input.bytes()?;
    if xid.is_empty() || xid.len() > XID_BYTES_MAX { Err(Truncated) } else { Ok(xid) }
}

fn decode_sections(
    input: &mut Reader<'_>,
    first: SeqNo,
    visitor: &mut dyn RecordVisitor,
) -> Result<SeqNo, RecordError> {
    let mut seq = first;
    let mut last = SeqNo::MIN;
    for _ in 0..input.varint()? {
        let tree = TreeId(input.varint_u32()?);
        let count = input.varint()?;
        let mut section = Reader::new(input.bytes()?);
        for _ in 0..count {
            visitor.op(tree, seq, decode_op(&mut section)?)?;
            last = seq;
            seq = seq.next();
        }
        if !section.is_empty() {
            return Err(RecordError::Malformed);
        }
    }
    Ok(last)
}

fn decode_relog(
    input: &mut Reader<'_>,
    visitor: &mut dyn RecordVisitor,
) -> Result<SeqNo, RecordError> {
    let tree = TreeId(input.varint_u32()?);
    visitor.relog(tree)?;
    let mut last = SeqNo::MIN;
    for _ in 0..input.varint()? {
        let seq = SeqNo(input.varint()?);
        visitor.op(tree, seq, decode_op(input)?)?;
        last = last.max(seq);
    }
    Ok(last)
}

/// Makes the range delete of `[lo, hi)` with this SeqNo.
#[must_use]
pub fn range_delete(lo: &[u8], hi: Option<&[u8]>, seq: SeqNo) -> RangeDelete {
    RangeDelete { lo: lo.into(), hi: hi.map(Into::into), seq }
}
