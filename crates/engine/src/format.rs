//! Bytes that the engine puts into WAL records and manifest records.
//!
//! WAL record (payload of one frame):
//!
//! ```text
//! kind u8 (0 batch, 1 relog)
//! batch: first SeqNo, section count, then each section: tree, messages, bytes, and the messages
//! relog: tree, message count, then each message with its SeqNo in front; it holds all that the
//!        tree has in memory, and takes the place of what was logged before (rule 10)
//! message: see [`frondb_writeset::op`]
//! ```
//!
//! Messages of a batch take SeqNos in the order in which they stand.
//!
//! Manifest edit: a sequence of [`Edit`]s that take effect together, each a tag byte and its
//! fields; a snapshot is the edits that make the state from nothing.

use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_core::{Lsn, NodeId, RangeDelete, RunId, SeqNo, TreeId};
use frondb_run::RunMeta;
use frondb_space::Extent;
use frondb_trunk::NodeImage;
pub use frondb_writeset::op::{OP_RANGE_DELETE, Op, decode_op, encode_op, encode_range_delete};

use crate::options::TreeOptions;

const RECORD_BATCH: u8 = 0;
const RECORD_RELOG: u8 = 1;

/// Head of a batch record.
pub fn encode_batch_head(out: &mut Vec<u8>, first: SeqNo, sections: usize) {
    out.push(RECORD_BATCH);
    put_varint(out, first.get());
    put_varint(out, sections as u64);
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
        RECORD_BATCH => decode_batch(&mut input, visitor)?,
        RECORD_RELOG => decode_relog(&mut input, visitor)?,
        _ => return Err(RecordError::Malformed),
    };
    if input.is_empty() { Ok(last) } else { Err(RecordError::Malformed) }
}

fn decode_batch(
    input: &mut Reader<'_>,
    visitor: &mut dyn RecordVisitor,
) -> Result<SeqNo, RecordError> {
    let mut seq = SeqNo(input.varint()?);
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
            put_varint(out, extents.len() as u64);
            for extent in extents {
                extent.encode(out);
            }
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
    if tag == 4 {
        return Ok(Edit::AddRun(RunMeta::decode(input)?));
    }
    if tag == 12 {
        let start = Lsn(input.varint()?);
        return Ok(Edit::Log { start, durable: Lsn(input.varint()?) });
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
        5 => Edit::DropRun { tree, run: RunId(input.varint()?) },
        6 => Edit::PutNode { tree, node: NodeImage::decode(input)? },
        7 => Edit::DropNode { tree, node: NodeId(input.varint()?) },
        8 => Edit::SetRoot { tree, root: NodeId(input.varint()?) },
        9 => Edit::Flushed { tree, seq: SeqNo(input.varint()?) },
        10 => {
            let mut extents = Vec::new();
            for _ in 0..input.varint()? {
                extents.push(Extent::decode(input)?);
            }
            if extents.is_empty() {
                return Err(Truncated);
            }
            Edit::AddValue { tree, extents }
        }
        11 => Edit::DropValue { tree, first: Extent::decode(input)? },
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
