//! Edits of the manifest.
//!
//! A record of the manifest is a sequence of [`Edit`]s that take effect together. An edit is a tag
//! byte and its fields. A snapshot of the manifest is the sequence of edits that creates its state
//! from an empty one. Fields are varints, or have the encoding of their type.
//!
//! The tags are stored on disk: do not change them.

use frondb_core::codec::{Reader, Truncated, put_bytes, put_bytes_opt, put_varint};
use frondb_core::{Lsn, NodeId, RangeDelete, RunId, SeqNo, TreeId};
use frondb_run::RunMeta;
use frondb_space::Extent;
use frondb_trunk::NodeImage;

use crate::log::xid;
use crate::options::TreeOptions;

/// The first byte of an edit. The numbers are stored on disk: do not change them.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    CreateTree = 1,
    RenameTree = 2,
    DropTree = 3,
    AddRun = 4,
    DropRun = 5,
    PutNode = 6,
    DropNode = 7,
    SetRoot = 8,
    Flushed = 9,
    AddValue = 10,
    DropValue = 11,
    Log = 12,
    Ids = 13,
    Pending = 14,
    EndPending = 15,
    Prepared = 16,
    EndPrepared = 17,
    CreatedBy = 18,
    SetOptions = 19,
}

impl Tag {
    const ALL: [Self; 19] = [
        Self::CreateTree,
        Self::RenameTree,
        Self::DropTree,
        Self::AddRun,
        Self::DropRun,
        Self::PutNode,
        Self::DropNode,
        Self::SetRoot,
        Self::Flushed,
        Self::AddValue,
        Self::DropValue,
        Self::Log,
        Self::Ids,
        Self::Pending,
        Self::EndPending,
        Self::Prepared,
        Self::EndPrepared,
        Self::CreatedBy,
        Self::SetOptions,
    ];

    fn put(self, out: &mut Vec<u8>) {
        out.push(self as u8);
    }

    /// Appends the tag of an edit of one tree, and the id of the tree.
    fn put_of(self, out: &mut Vec<u8>, tree: TreeId) {
        self.put(out);
        put_varint(out, u64::from(tree.get()));
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let byte = input.u8()?;
        Self::ALL.into_iter().find(|tag| *tag as u8 == byte).ok_or(Truncated)
    }
}

/// One change of the manifest's state.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names and the types of its fields say it")]
pub enum Edit {
    /// A tree was created; it is empty.
    CreateTree {
        tree: TreeId,
        name: String,
        options: TreeOptions,
        /// The root, an empty leaf.
        root: NodeId,
    },
    /// A tree was renamed.
    RenameTree { tree: TreeId, name: String },
    /// The options of a tree were changed.
    SetOptions {
        tree: TreeId,
        /// All options, the unchanged ones too.
        options: TreeOptions,
    },
    /// A transaction created the tree, so the tree exists only if the transaction commits. The edit
    /// applies until the transaction's pending part for the tree ends.
    CreatedBy { tree: TreeId, txn: u64 },
    /// A tree was dropped with all its runs.
    DropTree { tree: TreeId },
    /// A run was added; its metadata names the tree.
    AddRun(RunMeta),
    /// A run was dropped.
    DropRun {
        /// The tree that the run belonged to.
        tree: TreeId,
        run: RunId,
    },
    /// A node is new or changed.
    PutNode { tree: TreeId, node: NodeImage },
    /// A node was dropped.
    DropNode { tree: TreeId, node: NodeId },
    /// A tree has a new root.
    SetRoot { tree: TreeId, root: NodeId },
    /// All messages of the tree up to this SeqNo are in runs of the trunk.
    Flushed { tree: TreeId, seq: SeqNo },
    /// A run of the tree refers to this large value.
    AddValue {
        tree: TreeId,
        /// The extents of the value.
        extents: Vec<Extent>,
    },
    /// No run of the tree refers to this large value any more.
    DropValue {
        tree: TreeId,
        /// The first extent of the value, which identifies the value.
        first: Extent,
    },
    /// The part of the log that recovery needs.
    Log {
        /// The beginning of the needed part.
        start: Lsn,
        /// The position up to which the log was durable when the edit was written.
        durable: Lsn,
    },
    /// A part of a transaction's write set is in private runs that the manifest names.
    Pending(PendingPart),
    /// A pending part has ended: its runs are in the trunk of the tree, or were discarded. When the
    /// last part of a transaction that is prepared in the manifest ends, the transaction ends.
    EndPending {
        /// The tree of the part.
        tree: TreeId,
        txn: u64,
        /// The number of the part in the transaction, from 0.
        part: u32,
    },
    /// A transaction is prepared, and its pending parts contain all its writes: recovery does not
    /// need its record in the log.
    Prepared {
        txn: u64,
        /// The name that the coordinator gave the transaction.
        xid: Box<[u8]>,
        /// Start of the transaction's record in the log.
        logged: Lsn,
        /// Number of parts, which are numbered from 0. Pending parts of the transaction with this
        /// number or a larger one were discarded.
        parts: u32,
    },
    /// A transaction that is prepared in the manifest was rolled back, with all its parts. Its
    /// record may still be in the log.
    EndPrepared {
        txn: u64,
        /// Start of the transaction's record in the log.
        logged: Lsn,
    },
    /// The largest ids that were ever used. Ids are never reused.
    Ids {
        /// The largest tree id.
        tree: TreeId,
        /// The largest run id.
        run: RunId,
        /// The largest node id.
        node: NodeId,
        /// The visible SeqNo when the edit was made: at least the largest SeqNo in runs.
        seq: SeqNo,
    },
}

/// A part of a transaction's write set: writes to one tree, in private runs on disk. Until the
/// transaction commits, the messages have local numbers from 1 on in place of SeqNos.
#[derive(Clone, PartialEq, Debug)]
pub struct PendingPart {
    /// The number of the transaction.
    pub txn: u64,
    /// The number of the part in the transaction, from 0.
    pub part: u32,
    /// The tree.
    pub tree: TreeId,
    /// Number of SeqNos that the earlier parts of the transaction take.
    pub offset: u64,
    /// Number of SeqNos that this part takes, which is its largest local number.
    pub numbers: u64,
    /// Whether the runs may become bases of leaves.
    pub are_base: bool,
    /// The runs of the part, newest first.
    pub runs: Vec<RunMeta>,
    /// The range deletes of the part, with local numbers.
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

    /// Returns whether no local number is above `numbers`, all runs are of the part's tree, and
    /// `offset + numbers` does not overflow.
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

/// Appends the encoding of an edit.
pub fn encode_edit(out: &mut Vec<u8>, edit: &Edit) {
    match edit {
        Edit::CreateTree { tree: id, name, options, root } => {
            Tag::CreateTree.put_of(out, *id);
            put_bytes(out, name.as_bytes());
            options.encode(out);
            put_varint(out, root.get());
        }
        Edit::RenameTree { tree: id, name } => {
            Tag::RenameTree.put_of(out, *id);
            put_bytes(out, name.as_bytes());
        }
        Edit::SetOptions { tree: id, options } => {
            Tag::SetOptions.put_of(out, *id);
            options.encode(out);
        }
        Edit::CreatedBy { tree: id, txn } => {
            Tag::CreatedBy.put_of(out, *id);
            put_varint(out, *txn);
        }
        Edit::DropTree { tree: id } => Tag::DropTree.put_of(out, *id),
        Edit::AddRun(meta) => {
            Tag::AddRun.put(out);
            meta.encode(out);
        }
        Edit::DropRun { tree: id, run } => {
            Tag::DropRun.put_of(out, *id);
            put_varint(out, run.get());
        }
        Edit::PutNode { tree: id, node } => {
            Tag::PutNode.put_of(out, *id);
            node.encode(out);
        }
        Edit::DropNode { tree: id, node } => {
            Tag::DropNode.put_of(out, *id);
            put_varint(out, node.get());
        }
        Edit::SetRoot { tree: id, root } => {
            Tag::SetRoot.put_of(out, *id);
            put_varint(out, root.get());
        }
        Edit::Flushed { tree: id, seq } => {
            Tag::Flushed.put_of(out, *id);
            put_varint(out, seq.get());
        }
        Edit::AddValue { tree: id, extents } => {
            Tag::AddValue.put_of(out, *id);
            put_extents(out, extents);
        }
        Edit::DropValue { tree: id, first } => {
            Tag::DropValue.put_of(out, *id);
            first.encode(out);
        }
        Edit::Log { start, durable } => {
            Tag::Log.put(out);
            put_varint(out, start.get());
            put_varint(out, durable.get());
        }
        Edit::Pending(part) => {
            Tag::Pending.put_of(out, part.tree);
            part.encode(out);
        }
        Edit::EndPending { tree: id, txn, part } => {
            Tag::EndPending.put_of(out, *id);
            put_varint(out, *txn);
            put_varint(out, u64::from(*part));
        }
        Edit::Prepared { txn, xid, logged, parts } => {
            Tag::Prepared.put(out);
            put_varint(out, *txn);
            put_bytes(out, xid);
            put_varint(out, logged.get());
            put_varint(out, u64::from(*parts));
        }
        Edit::EndPrepared { txn, logged } => {
            Tag::EndPrepared.put(out);
            put_varint(out, *txn);
            put_varint(out, logged.get());
        }
        Edit::Ids { tree, run, node, seq } => {
            Tag::Ids.put_of(out, *tree);
            put_varint(out, run.get());
            put_varint(out, node.get());
            put_varint(out, seq.get());
        }
    }
}

/// Why an edit cannot be decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EditFault {
    /// The bytes end too early or are not an edit.
    Malformed,
    /// A tree has the option of this name, which this build does not know.
    UnknownOption(String),
}

impl From<Truncated> for EditFault {
    fn from(_: Truncated) -> Self {
        Self::Malformed
    }
}

/// Reads one edit.
///
/// # Errors
/// See [`EditFault`].
pub fn decode_edit(input: &mut Reader<'_>) -> Result<Edit, EditFault> {
    let tag = Tag::read(input)?;
    match tag {
        Tag::AddRun => return Ok(Edit::AddRun(RunMeta::decode(input)?)),
        Tag::Log => {
            let start = Lsn(input.varint()?);
            return Ok(Edit::Log { start, durable: Lsn(input.varint()?) });
        }
        Tag::Prepared => {
            let (txn, xid) = (input.varint()?, xid(input)?.into());
            let logged = Lsn(input.varint()?);
            return Ok(Edit::Prepared { txn, xid, logged, parts: input.varint_u32()? });
        }
        Tag::EndPrepared => {
            let txn = input.varint()?;
            return Ok(Edit::EndPrepared { txn, logged: Lsn(input.varint()?) });
        }
        _ => {}
    }
    let tree = TreeId(input.varint_u32()?);
    decode_edit_of(tag, tree, input)
}

/// Reads the other fields of an edit of one tree, after its tag and tree.
fn decode_edit_of(tag: Tag, tree: TreeId, input: &mut Reader<'_>) -> Result<Edit, EditFault> {
    Ok(match tag {
        Tag::CreateTree => Edit::CreateTree {
            tree,
            name: string(input)?,
            options: TreeOptions::decode(input)?,
            root: NodeId(input.varint()?),
        },
        Tag::RenameTree => Edit::RenameTree { tree, name: string(input)? },
        Tag::SetOptions => Edit::SetOptions { tree, options: TreeOptions::decode(input)? },
        Tag::DropTree => Edit::DropTree { tree },
        Tag::CreatedBy => Edit::CreatedBy { tree, txn: input.varint()? },
        Tag::DropRun => Edit::DropRun { tree, run: RunId(input.varint()?) },
        Tag::PutNode => Edit::PutNode { tree, node: NodeImage::decode(input)? },
        Tag::DropNode => Edit::DropNode { tree, node: NodeId(input.varint()?) },
        Tag::SetRoot => Edit::SetRoot { tree, root: NodeId(input.varint()?) },
        Tag::Flushed => Edit::Flushed { tree, seq: SeqNo(input.varint()?) },
        Tag::AddValue => Edit::AddValue { tree, extents: decode_extents(input)? },
        Tag::DropValue => Edit::DropValue { tree, first: Extent::decode(input)? },
        Tag::Pending => Edit::Pending(PendingPart::decode(tree, input)?),
        Tag::EndPending => {
            Edit::EndPending { tree, txn: input.varint()?, part: input.varint_u32()? }
        }
        Tag::Ids => {
            let run = RunId(input.varint()?);
            let node = NodeId(input.varint()?);
            Edit::Ids { tree, run, node, seq: SeqNo(input.varint()?) }
        }
        Tag::AddRun | Tag::Log | Tag::Prepared | Tag::EndPrepared => {
            return Err(EditFault::Malformed);
        }
    })
}

fn string(input: &mut Reader<'_>) -> Result<String, Truncated> {
    std::str::from_utf8(input.bytes()?).map(Into::into).map_err(|_| Truncated)
}
