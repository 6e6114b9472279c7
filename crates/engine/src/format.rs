//! Bytes that the engine puts into WAL records and manifest records.
//!
//! WAL record (payload of one frame):
//!
//! ```text
//! kind u8 (0 batch, 1 relog, 2 commit, 3 prepare, 4 commit of what was prepared, 5 its rollback)
//! batch: first SeqNo, section count, then each section: tree, messages, bytes, and the messages
//! relog: tree, message count, then each message with its SeqNo in front; it holds all that the
//!        tree has in memory, and takes the place of what was logged before (rule 10)
//! commit: transaction, first SeqNo, parts, then sections as in a batch
//! prepare: transaction, xid (length 1 to 256, bytes), parts, sections as in a batch
//! commit of what was prepared: transaction, first SeqNo, how many SeqNos
//! rollback of what was prepared: transaction
//! parts: count, then of each: tree, how many SeqNos. Its private runs are in the manifest.
//! message: see [`frondb_writeset::op`]
//! ```
//!
//! Messages of a batch take SeqNos in the order in which they stand. Those of a transaction begin
//! with its parts, in their order: local number `n` of a part gets the `n`-th of the part's SeqNos.
//!
//! Manifest edit: a sequence of [`Edit`]s that take effect together, each a tag byte and its
//! fields; a snapshot is the edits that make the state from nothing.

use frondb_core::codec::{Reader, Truncated, put_bytes, put_bytes_opt, put_varint};
use frondb_core::{Lsn, NodeId, RangeDelete, RunId, SeqNo, TreeId};
use frondb_run::RunMeta;
use frondb_space::Extent;
use frondb_trunk::NodeImage;
pub use frondb_writeset::op::{OP_RANGE_DELETE, Op, decode_op, encode_op, encode_range_delete};

use crate::options::TreeOptions;

const RECORD_BATCH: u8 = 0;
const RECORD_RELOG: u8 = 1;
const RECORD_COMMIT: u8 = 2;
const RECORD_PREPARE: u8 = 3;
const RECORD_COMMIT_PREPARED: u8 = 4;
const RECORD_ROLL_BACK_PREPARED: u8 = 5;

/// Longest name of a prepared transaction.
pub const XID_BYTES_MAX: usize = 256;

/// Head of a batch record.
pub fn encode_batch_head(out: &mut Vec<u8>, first: SeqNo, sections: usize) {
    out.push(RECORD_BATCH);
    put_varint(out, first.get());
    put_varint(out, sections as u64);
}

/// Head of the record of a commit with parts on disk; the sections follow.
pub fn encode_commit_head(
    out: &mut Vec<u8>,
    txn: u64,
    first: SeqNo,
    parts: &[(TreeId, u64)],
    sections: usize,
) {
    out.push(RECORD_COMMIT);
    put_varint(out, txn);
    put_varint(out, first.get());
    put_parts(out, parts);
    put_varint(out, sections as u64);
}

/// Head of the record of a prepare; the sections follow.
pub fn encode_prepare_head(
    out: &mut Vec<u8>,
    txn: u64,
    xid: &[u8],
    parts: &[(TreeId, u64)],
    sections: usize,
) {
    out.push(RECORD_PREPARE);
    put_varint(out, txn);
    put_bytes(out, xid);
    put_parts(out, parts);
    put_varint(out, sections as u64);
}

/// The record that commits what was prepared.
pub fn encode_commit_prepared(out: &mut Vec<u8>, txn: u64, first: SeqNo, numbers: u64) {
    out.push(RECORD_COMMIT_PREPARED);
    put_varint(out, txn);
    put_varint(out, first.get());
    put_varint(out, numbers);
}

/// The record that rolls back what was prepared.
pub fn encode_roll_back_prepared(out: &mut Vec<u8>, txn: u64) {
    out.push(RECORD_ROLL_BACK_PREPARED);
    put_varint(out, txn);
}

fn put_parts(out: &mut Vec<u8>, parts: &[(TreeId, u64)]) {
    put_varint(out, parts.len() as u64);
    for (tree, numbers) in parts {
        put_varint(out, u64::from(tree.get()));
        put_varint(out, *numbers);
    }
}

/// Head of a section.
pub fn encode_section_head(out: &mut Vec<u8>, tree: TreeId, count: u64, bytes: usize) {
    put_varint(out, u64::from(tree.get()));
    put_varint(out, count);
    put_varint(out, bytes as u64);
}

/// Head of a relog record.
pub fn encode_relog_head(out: &mut Vec<u8>, tree: TreeId, count: u64) {
    out.push(RECORD_RELOG);
    put_varint(out, u64::from(tree.get()));
    put_varint(out, count);
}

/// What replay hands out of a record.
pub trait RecordVisitor {
    /// All that `tree` has in memory is about to be given again.
    fn relog(&mut self, tree: TreeId) -> frondb_core::Result<()>;
    /// A message.
    fn op(&mut self, tree: TreeId, seq: SeqNo, op: Op<'_>) -> frondb_core::Result<()>;
    /// A transaction commits these parts, which take SeqNos from `first` on.
    fn attach(
        &mut self,
        txn: u64,
        first: SeqNo,
        parts: &[(TreeId, u64)],
    ) -> frondb_core::Result<()>;
    /// A transaction is prepared.
    fn prepare(&mut self, prepare: &PrepareRecord<'_>) -> frondb_core::Result<()>;
    /// A prepared transaction commits; its messages take SeqNos from `first` on.
    fn commit_prepared(&mut self, txn: u64, first: SeqNo) -> frondb_core::Result<()>;
    /// A prepared transaction is rolled back.
    fn roll_back_prepared(&mut self, txn: u64) -> frondb_core::Result<()>;
}

/// The record of a prepare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrepareRecord<'a> {
    /// The transaction.
    pub txn: u64,
    /// The name that its coordinator knows it by.
    pub xid: &'a [u8],
    /// Its parts on disk: trees, and how many SeqNos each takes.
    pub parts: Vec<(TreeId, u64)>,
    /// Its messages in the log: trees, how many, and their bytes, which decode.
    pub sections: Vec<(TreeId, u64, &'a [u8])>,
}

/// Why a record could not be applied.
#[derive(Debug)]
pub enum RecordError {
    /// Its bytes contradict themselves.
    Malformed,
    /// The visitor failed.
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

/// Decodes a WAL record. Returns the largest SeqNo it holds.
pub fn decode_record(
    payload: &[u8],
    visitor: &mut dyn RecordVisitor,
) -> Result<SeqNo, RecordError> {
    let mut input = Reader::new(payload);
    let last = match input.u8()? {
        RECORD_BATCH => {
            let first = SeqNo(input.varint()?);
            decode_sections(&mut input, first, visitor)?
        }
        RECORD_RELOG => decode_relog(&mut input, visitor)?,
        RECORD_COMMIT => decode_commit(&mut input, visitor)?,
        RECORD_PREPARE => {
            visitor.prepare(&decode_prepare(&mut input)?)?;
            SeqNo::MIN
        }
        RECORD_COMMIT_PREPARED => {
            let txn = input.varint()?;
            let (first, numbers) = (input.varint()?, input.varint()?);
            visitor.commit_prepared(txn, SeqNo(first))?;
            SeqNo(first.saturating_add(numbers).saturating_sub(1))
        }
        RECORD_ROLL_BACK_PREPARED => {
            visitor.roll_back_prepared(input.varint()?)?;
            SeqNo::MIN
        }
        _ => return Err(RecordError::Malformed),
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

fn xid<'a>(input: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
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

/// One change of the manifest's state.
#[derive(Clone, PartialEq, Debug)]
pub enum Edit {
    /// A tree exists, empty, with this root.
    CreateTree {
        /// The tree.
        tree: TreeId,
        /// Its name.
        name: String,
        /// Its options.
        options: TreeOptions,
        /// Its first node, an empty leaf.
        root: NodeId,
    },
    /// A tree has another name.
    RenameTree {
        /// The tree.
        tree: TreeId,
        /// Its new name.
        name: String,
    },
    /// A tree that was just created belongs to a transaction: it exists if that commits. True until the
    /// transaction's part of the tree ends.
    MadeBy {
        /// The tree.
        tree: TreeId,
        /// The transaction.
        txn: u64,
    },
    /// A tree and all its runs are gone.
    DropTree {
        /// The tree.
        tree: TreeId,
    },
    /// A run exists.
    AddRun(RunMeta),
    /// A run is gone.
    DropRun {
        /// The tree it belonged to.
        tree: TreeId,
        /// The run.
        run: RunId,
    },
    /// A node is new or changed.
    PutNode {
        /// The tree.
        tree: TreeId,
        /// The node.
        node: NodeImage,
    },
    /// A node is gone.
    DropNode {
        /// The tree.
        tree: TreeId,
        /// The node.
        node: NodeId,
    },
    /// A tree has another root.
    SetRoot {
        /// The tree.
        tree: TreeId,
        /// The root.
        root: NodeId,
    },
    /// All messages of the tree up to this SeqNo are in runs.
    Flushed {
        /// The tree.
        tree: TreeId,
        /// The SeqNo.
        seq: SeqNo,
    },
    /// A value in extents of its own is referred to by a run.
    AddValue {
        /// The tree.
        tree: TreeId,
        /// Its extents.
        extents: Vec<Extent>,
    },
    /// The last reference to a value is gone; named by its first extent.
    DropValue {
        /// The tree.
        tree: TreeId,
        /// Its first extent.
        first: Extent,
    },
    /// The log is needed from here on, and was durable up to there.
    Log {
        /// Oldest Lsn needed.
        start: Lsn,
        /// Known to be durable.
        durable: Lsn,
    },
    /// A part of a transaction's write set is on disk.
    Pending(PendingPart),
    /// A part is in runs of its tree's trunk, or given up. A transaction that was prepared in the
    /// manifest ends with its last part.
    EndPending {
        /// Its tree.
        tree: TreeId,
        /// Its transaction.
        txn: u64,
        /// Its place among the transaction's parts.
        part: u32,
    },
    /// A transaction is prepared, and all that it has written is in its pending parts: its record in
    /// the log is needed no more.
    Prepared {
        /// The transaction.
        txn: u64,
        /// The name that its coordinator knows it by.
        xid: Box<[u8]>,
        /// Where its record in the log began.
        logged: Lsn,
        /// How many parts it has had. What else is pending in its name was given up.
        parts: u32,
    },
    /// Such a transaction is rolled back, with all its parts. Its record may still be in the log.
    EndPrepared {
        /// The transaction.
        txn: u64,
        /// Where its record in the log began.
        logged: Lsn,
    },
    /// Largest numbers given out so far; none is used again.
    Ids {
        /// Largest tree id.
        tree: TreeId,
        /// Largest run id.
        run: RunId,
        /// Largest node id.
        node: NodeId,
        /// Largest SeqNo in runs.
        seq: SeqNo,
    },
}

/// What a transaction has written to one tree, on disk. Its numbers are local: the SeqNos of a
/// message are known when the transaction commits.
#[derive(Clone, PartialEq, Debug)]
pub struct PendingPart {
    /// The transaction.
    pub txn: u64,
    /// Its place among the transaction's parts.
    pub part: u32,
    /// The tree.
    pub tree: TreeId,
    /// How many SeqNos the parts before it take.
    pub offset: u64,
    /// How many it takes: its largest local number.
    pub numbers: u64,
    /// Whether the runs are fit for a base.
    pub are_base: bool,
    /// Its runs, newest first.
    pub runs: Vec<RunMeta>,
    /// Its range deletes.
    pub range_deletes: Vec<RangeDelete>,
    /// Extents of the large values that the runs refer to.
    pub values: Vec<Vec<Extent>>,
}

impl PendingPart {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.txn);
        put_varint(out, u64::from(self.part));
        put_varint(out, self.offset);
        put_varint(out, self.numbers);
        out.push(u8::from(self.are_base));
        put_varint(out, self.runs.len() as u64);
        for run in &self.runs {
            run.encode(out);
        }
        put_varint(out, self.range_deletes.len() as u64);
        for delete in &self.range_deletes {
            put_bytes(out, &delete.lo);
            put_bytes_opt(out, delete.hi.as_deref());
            put_varint(out, delete.seq.get());
        }
        put_varint(out, self.values.len() as u64);
        for extents in &self.values {
            put_extents(out, extents);
        }
    }

    fn decode(tree: TreeId, input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let (txn, part) = (input.varint()?, input.varint_u32()?);
        let (offset, numbers) = (input.varint()?, input.varint()?);
        let are_base = match input.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Truncated),
        };
        let mut runs = Vec::new();
        for _ in 0..input.varint()? {
            runs.push(RunMeta::decode(input)?);
        }
        let mut range_deletes = Vec::new();
        for _ in 0..input.varint()? {
            let lo = input.bytes()?.into();
            let hi = input.bytes_opt()?.map(Into::into);
            range_deletes.push(RangeDelete { lo, hi, seq: SeqNo(input.varint()?) });
        }
        let mut values = Vec::new();
        for _ in 0..input.varint()? {
            values.push(decode_extents(input)?);
        }
        let part = Self { txn, part, tree, offset, numbers, are_base, runs, range_deletes, values };
        if part.is_sound() { Ok(part) } else { Err(Truncated) }
    }

    /// Whether its numbers fit each other.
    fn is_sound(&self) -> bool {
        self.runs.iter().all(|run| run.tree == self.tree && run.max_seq.get() <= self.numbers)
            && self.range_deletes.iter().all(|delete| delete.seq.get() <= self.numbers)
            && self.offset.checked_add(self.numbers).is_some()
    }
}

fn put_extents(out: &mut Vec<u8>, extents: &[Extent]) {
    put_varint(out, extents.len() as u64);
    for extent in extents {
        extent.encode(out);
    }
}

fn decode_extents(input: &mut Reader<'_>) -> Result<Vec<Extent>, Truncated> {
    let mut extents = Vec::new();
    for _ in 0..input.varint()? {
        extents.push(Extent::decode(input)?);
    }
    if extents.is_empty() { Err(Truncated) } else { Ok(extents) }
}

/// Appends an edit.
pub fn encode_edit(out: &mut Vec<u8>, edit: &Edit) {
    let tag = |out: &mut Vec<u8>, tag: u8, tree: TreeId| {
        out.push(tag);
        put_varint(out, u64::from(tree.get()));
    };
    match edit {
        Edit::CreateTree { tree: id, name, options, root } => {
            tag(out, 1, *id);
            put_bytes(out, name.as_bytes());
            options.encode(out);
            put_varint(out, root.get());
        }
        Edit::RenameTree { tree: id, name } => {
            tag(out, 2, *id);
            put_bytes(out, name.as_bytes());
        }
        Edit::MadeBy { tree: id, txn } => {
            tag(out, 18, *id);
            put_varint(out, *txn);
        }
        Edit::DropTree { tree: id } => tag(out, 3, *id),
        Edit::AddRun(meta) => {
            out.push(4);
            meta.encode(out);
        }
        Edit::DropRun { tree: id, run } => {
            tag(out, 5, *id);
            put_varint(out, run.get());
        }
        Edit::PutNode { tree: id, node } => {
            tag(out, 6, *id);
            node.encode(out);
        }
        Edit::DropNode { tree: id, node } => {
            tag(out, 7, *id);
            put_varint(out, node.get());
        }
        Edit::SetRoot { tree: id, root } => {
            tag(out, 8, *id);
            put_varint(out, root.get());
        }
        Edit::Flushed { tree: id, seq } => {
            tag(out, 9, *id);
            put_varint(out, seq.get());
        }
        Edit::AddValue { tree: id, extents } => {
            tag(out, 10, *id);
            put_extents(out, extents);
        }
        Edit::DropValue { tree: id, first } => {
            tag(out, 11, *id);
            first.encode(out);
        }
        Edit::Log { start, durable } => {
            out.push(12);
            put_varint(out, start.get());
            put_varint(out, durable.get());
        }
        Edit::Pending(part) => {
            tag(out, 14, part.tree);
            part.encode(out);
        }
        Edit::EndPending { tree: id, txn, part } => {
            tag(out, 15, *id);
            put_varint(out, *txn);
            put_varint(out, u64::from(*part));
        }
        Edit::Prepared { txn, xid, logged, parts } => {
            out.push(16);
            put_varint(out, *txn);
            put_bytes(out, xid);
            put_varint(out, logged.get());
            put_varint(out, u64::from(*parts));
        }
        Edit::EndPrepared { txn, logged } => {
            out.push(17);
            put_varint(out, *txn);
            put_varint(out, logged.get());
        }
        Edit::Ids { tree, run, node, seq } => {
            tag(out, 13, *tree);
            put_varint(out, run.get());
            put_varint(out, node.get());
            put_varint(out, seq.get());
        }
    }
}

/// Reads one edit.
pub fn decode_edit(input: &mut Reader<'_>) -> Result<Edit, Truncated> {
    let tag = input.u8()?;
    match tag {
        4 => return Ok(Edit::AddRun(RunMeta::decode(input)?)),
        12 => {
            let start = Lsn(input.varint()?);
            return Ok(Edit::Log { start, durable: Lsn(input.varint()?) });
        }
        16 => {
            let (txn, xid) = (input.varint()?, xid(input)?.into());
            let logged = Lsn(input.varint()?);
            return Ok(Edit::Prepared { txn, xid, logged, parts: input.varint_u32()? });
        }
        17 => {
            let txn = input.varint()?;
            return Ok(Edit::EndPrepared { txn, logged: Lsn(input.varint()?) });
        }
        _ => {}
    }
    let tree = TreeId(input.varint_u32()?);
    Ok(match tag {
        1 => Edit::CreateTree {
            tree,
            name: string(input)?,
            options: TreeOptions::decode(input)?,
            root: NodeId(input.varint()?),
        },
        2 => Edit::RenameTree { tree, name: string(input)? },
        3 => Edit::DropTree { tree },
        18 => Edit::MadeBy { tree, txn: input.varint()? },
        5 => Edit::DropRun { tree, run: RunId(input.varint()?) },
        6 => Edit::PutNode { tree, node: NodeImage::decode(input)? },
        7 => Edit::DropNode { tree, node: NodeId(input.varint()?) },
        8 => Edit::SetRoot { tree, root: NodeId(input.varint()?) },
        9 => Edit::Flushed { tree, seq: SeqNo(input.varint()?) },
        10 => Edit::AddValue { tree, extents: decode_extents(input)? },
        11 => Edit::DropValue { tree, first: Extent::decode(input)? },
        14 => Edit::Pending(PendingPart::decode(tree, input)?),
        15 => Edit::EndPending { tree, txn: input.varint()?, part: input.varint_u32()? },
        13 => {
            let run = RunId(input.varint()?);
            let node = NodeId(input.varint()?);
            Edit::Ids { tree, run, node, seq: SeqNo(input.varint()?) }
        }
        _ => return Err(Truncated),
    })
}

fn string(input: &mut Reader<'_>) -> Result<String, Truncated> {
    std::str::from_utf8(input.bytes()?).map(Into::into).map_err(|_| Truncated)
}

/// The range delete that an op makes at `seq`.
#[must_use]
pub fn range_delete(lo: &[u8], hi: Option<&[u8]>, seq: SeqNo) -> RangeDelete {
    RangeDelete { lo: lo.into(), hi: hi.map(Into::into), seq }
}
