//! Bytes of a run that are not blocks: the metadata kept in the manifest and the block index.
//!
//! Metadata (all integers varints unless said otherwise):
//!
//! ```text
//! id, tree, flags (u8: bit 0 per-entry seqs), writes (u8)
//! extent count, then each extent (space's encoding)
//! blocks_bytes, blocks, index_bytes, filter_bytes
//! entries, deletes, updates, refs, raw_bytes, min_seq, max_seq
//! first_key, last_key        length and bytes
//! ```
//!
//! Block index, the payload of one `Index` frame:
//!
//! ```text
//! count, then for each block:
//!   shared      bytes its separator shares with the one before
//!   suffix      length and bytes
//!   bytes << 1 | continues     encoded length of the block; 1 if it begins with the key the
//!                              block before ends with (versions of one key in two blocks)
//!   entries
//! ```
//!
//! A separator is the shortest string above the last key of the block before and not above the
//! first key of its own block; the first is empty.

use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use frondb_core::{RunId, SeqNo, TreeId};
use frondb_space::Extent;

/// Everything the manifest keeps of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunMeta {
    /// Never reused.
    pub id: RunId,
    /// The tree whose messages it holds.
    pub tree: TreeId,
    /// Where its bytes lie, in order.
    pub extents: Vec<Extent>,
    /// Bytes of its data blocks; the index frame follows.
    pub blocks_bytes: u64,
    /// Number of data blocks.
    pub blocks: u32,
    /// Bytes of the index frame.
    pub index_bytes: u32,
    /// Bytes of the filter frame; 0 if it has none.
    pub filter_bytes: u32,
    /// Messages of all kinds.
    pub entries: u64,
    /// Deletes among them.
    pub deletes: u64,
    /// Updates among them.
    pub updates: u64,
    /// References to values in extents of their own among them.
    pub refs: u64,
    /// Key and value bytes before encoding.
    pub raw_bytes: u64,
    /// Smallest SeqNo.
    pub min_seq: SeqNo,
    /// Largest SeqNo. The SeqNo of every message when none is stored with each.
    pub max_seq: SeqNo,
    /// Whether each message carries its own SeqNo, because a snapshot lay below `max_seq` when
    /// the run was written.
    pub per_entry_seqs: bool,
    /// How often its messages have been written so far (rule 4).
    pub writes: u8,
    /// Smallest key.
    pub first_key: Box<[u8]>,
    /// Largest key.
    pub last_key: Box<[u8]>,
}

impl RunMeta {
    /// Bytes on disk, index and filter included, before padding.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.blocks_bytes + u64::from(self.index_bytes) + u64::from(self.filter_bytes)
    }

    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.id.get());
        put_varint(out, u64::from(self.tree.get()));
        out.push(u8::from(self.per_entry_seqs));
        out.push(self.writes);
        put_varint(out, self.extents.len() as u64);
        for extent in &self.extents {
            extent.encode(out);
        }
        for number in [
            self.blocks_bytes,
            u64::from(self.blocks),
            u64::from(self.index_bytes),
            u64::from(self.filter_bytes),
            self.entries,
            self.deletes,
            self.updates,
            self.refs,
            self.raw_bytes,
            self.min_seq.get(),
            self.max_seq.get(),
        ] {
            put_varint(out, number);
        }
        put_bytes(out, &self.first_key);
        put_bytes(out, &self.last_key);
    }

    /// Decodes what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Truncated`] if the bytes are cut short or contradict themselves.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let id = RunId(input.varint()?);
        let tree = TreeId(input.varint_u32()?);
        let flags = input.u8()?;
        if flags > 1 {
            return Err(Truncated);
        }
        let writes = input.u8()?;
        let count = input.varint()?;
        if count > input.rest().len() as u64 {
            return Err(Truncated);
        }
        let mut extents = Vec::with_capacity(count as usize);
        for _ in 0..count {
            extents.push(Extent::decode(input)?);
        }
        let meta = Self {
            id,
            tree,
            extents,
            blocks_bytes: input.varint()?,
            blocks: input.varint_u32()?,
            index_bytes: input.varint_u32()?,
            filter_bytes: input.varint_u32()?,
            entries: input.varint()?,
            deletes: input.varint()?,
            updates: input.varint()?,
            refs: input.varint()?,
            raw_bytes: input.varint()?,
            min_seq: SeqNo(input.varint()?),
            max_seq: SeqNo(input.varint()?),
            per_entry_seqs: flags & 1 == 1,
            writes,
            first_key: input.bytes()?.into(),
            last_key: input.bytes()?.into(),
        };
        let room: u64 = meta.extents.iter().map(|extent| extent.bytes()).sum();
        let fits = meta
            .blocks_bytes
            .checked_add(u64::from(meta.index_bytes) + u64::from(meta.filter_bytes))
            .is_some_and(|bytes| bytes <= room);
        let ordered = meta.first_key <= meta.last_key && meta.min_seq <= meta.max_seq;
        if fits && ordered && meta.blocks > 0 { Ok(meta) } else { Err(Truncated) }
    }
}

/// Reads one index entry; `separator` holds the one before and becomes this one's. Returns the
/// block's bytes, whether it continues a key, and its entries.
pub(crate) fn decode_index_entry(
    input: &mut Reader<'_>,
    separator: &mut Vec<u8>,
) -> Result<(u64, bool, u64), Truncated> {
    let shared = input.varint()? as usize;
    if shared > separator.len() {
        return Err(Truncated);
    }
    separator.truncate(shared);
    separator.extend_from_slice(input.bytes()?);
    if separator.len() > KEY_BYTES_MAX {
        return Err(Truncated);
    }
    let bytes = input.varint()?;
    let entries = input.varint()?;
    Ok((bytes >> 1, bytes & 1 == 1, entries))
}

/// Where a value lies that has extents of its own: what a [`PutRef`] message carries as its value
/// (rule 17).
///
/// ```text
/// len (varint), checksum (u64, XXH3 of the value), extent count, each extent
/// ```
///
/// [`PutRef`]: frondb_core::MessageKind::PutRef
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueRef {
    /// Bytes of the value.
    pub len: u64,
    /// XXH3 of the value.
    pub checksum: u64,
    /// Where it lies, in order.
    pub extents: Vec<Extent>,
}

impl ValueRef {
    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len);
        out.extend_from_slice(&self.checksum.to_le_bytes());
        put_varint(out, self.extents.len() as u64);
        for extent in &self.extents {
            extent.encode(out);
        }
    }

    /// Decodes the value of a `PutRef` message.
    ///
    /// # Errors
    /// [`Truncated`] if the bytes are cut short or contradict themselves.
    pub fn decode(bytes: &[u8]) -> Result<Self, Truncated> {
        let mut input = Reader::new(bytes);
        let len = input.varint()?;
        let checksum = input.u64()?;
        let mut extents = Vec::new();
        for _ in 0..input.varint()? {
            extents.push(Extent::decode(&mut input)?);
        }
        let room: u64 = extents.iter().map(|extent| extent.bytes()).sum();
        let fits = len <= room && len <= VALUE_BYTES_MAX as u64 && !extents.is_empty();
        if fits && input.is_empty() { Ok(Self { len, checksum, extents }) } else { Err(Truncated) }
    }
}
