//! The bytes of a run that are not blocks: the metadata in the manifest, and the block index.
//!
//! Metadata (all integers varints unless said otherwise):
//!
//! ```text
//! id, tree, flags (u8), writes (u8)
//!   flags: bit 0 per-entry seqs, bit 1 shifted, bit 2 unique keys, bit 3 several filter parts,
//!          bit 4 several index parts, bit 5 codec, bit 6 dictionary, bit 7 tree block bytes
//!   writes: how often its messages were written (rule 4); 255 for a base
//! extent count, then each extent: file, page, pages
//! blocks_bytes, blocks, index_bytes, filter_bytes
//! entries, deletes, updates, refs, raw_bytes, min_seq, max_seq
//! first_key, last_key        length and bytes
//! seq_shift                  if shifted: the number added to every SeqNo stored with a message
//! filter_parts               if the filter has several parts: their number
//! index_parts, top_index_bytes   if the index has several parts: their number, and the bytes of
//!                            the top index's frame, which are included in index_bytes
//! codec                      if flagged, bases only: two bytes, the algorithm (0 none, 1 lz4,
//!                            2 zstd, 3 zlib, 4 lzma, 5 zstd with a dictionary) and the level
//!                            or 0; absent before format version 4
//! dictionary                 if flagged: the bytes of its frame, and its hash (u64)
//! tree_block_bytes           if flagged, bases only: the block size in the options of the tree;
//!                            absent before format version 7
//! ```
//!
//! Block index of one part, the payload of an `Index` frame:
//!
//! ```text
//! count, then for each block:
//!   shared      bytes that its separator shares with the previous block's separator
//!   suffix      length and bytes
//!   bytes << 1 | continues     encoded length of the block; 1 if it begins with the key that the
//!                              block before ends with (versions of one key in two blocks)
//!   entries
//! if the filter has several parts, for each part:
//!   blocks      how many blocks it covers, after the blocks of the previous part
//!   bytes       length of its frame
//! ```
//!
//! If the block index has several parts, each of them is the payload of an `Index` frame:
//!
//! ```text
//! count, then for each block: as above; the first shares nothing
//! filters       number of the filter's parts that cover its blocks, then for each of them:
//!   blocks, bytes     as above
//! ```
//!
//! Top index, the payload of the `Index` frame that follows the frames of the parts:
//!
//! ```text
//! count, then for each part:
//!   shared, suffix    the separator of its first block, as above
//!   blocks      how many blocks it covers
//!   bytes << 1 | continues     encoded length of these blocks; 1 if the first one continues a key
//!   entries     messages in these blocks
//!   frame       length of its frame
//!   filters, filter_bytes      if the run has a filter: how many of its parts cover these blocks,
//!                              and the length of their frames
//! ```
//!
//! A separator is the shortest string above the last key of the previous block and not above the
//! first key of its own block; the first separator is empty. If a block continues a key, its
//! separator is that key. The sums of blocks, bytes and entries equal the numbers in the metadata.
//! If the filter was dropped while the run was written, the index parts may list parts of the
//! filter, which readers ignore.
//!
//! Reference to a value, the value of a `PutRef` message: `len` (at most 64 MiB), `checksum` (u64,
//! XXH3-64 of the value), and extents as above, together at least `len` bytes.

use frondb_block::Codec;
use frondb_cache::CacheKey;
use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use frondb_core::{RunId, SeqNo, TreeId};
use frondb_space::Extent;

/// Metadata flag: each message carries its own SeqNo.
const FLAG_PER_ENTRY_SEQS: u8 = 1;
/// Metadata flag: the SeqNos stored with messages are local numbers of a transaction; the number to
/// add to them follows.
const FLAG_SHIFTED: u8 = 2;
/// Metadata flag of a run with per-entry seqs: no key has several messages.
const FLAG_UNIQUE_KEYS: u8 = 4;
/// Metadata flag: the filter has several parts; their number follows.
const FLAG_FILTER_PARTS: u8 = 8;
/// Metadata flag: the block index has several parts; their number and the length of the top
/// index's frame follow.
const FLAG_INDEX_PARTS: u8 = 16;
/// Metadata flag: the codec of the blocks follows.
const FLAG_CODEC: u8 = 32;
/// Metadata flag: the blocks were packed with a dictionary; the length of its frame, and its
/// hash, follow.
const FLAG_DICTIONARY: u8 = 64;
/// Metadata flag: the tree's option for the size of base blocks follows. All eight flags are in
/// use.
const FLAG_TREE_BLOCK_BYTES: u8 = 128;

/// The dictionary of a run, as the manifest refers to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunDictionary {
    /// [`Dictionary::hash`](frondb_block::Dictionary::hash).
    pub hash: u64,
    /// Length of the dictionary's frame, which follows the frames of the filter.
    pub bytes: u32,
}

/// The manifest's description of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunMeta {
    /// Unique; never reused.
    pub id: RunId,
    /// The tree whose messages the run holds.
    pub tree: TreeId,
    /// The extents of the run's bytes, in order.
    pub extents: Vec<Extent>,
    /// Bytes of the run's data blocks; the frames of the index follow.
    pub blocks_bytes: u64,
    /// Number of data blocks.
    pub blocks: u32,
    /// Bytes of the block index's frames.
    pub index_bytes: u32,
    /// Number of parts of the block index; each covers consecutive blocks.
    pub index_parts: u32,
    /// Bytes of the top index, the last frame of the block index; 0 if the index has one part.
    pub top_index_bytes: u32,
    /// Bytes of the filter's frames; 0 if the run has no filter.
    pub filter_bytes: u32,
    /// Number of the filter's frames; each covers consecutive blocks.
    pub filter_parts: u32,
    /// Messages of all kinds.
    pub entries: u64,
    /// Deletes among the entries.
    pub deletes: u64,
    /// Updates among the entries.
    pub updates: u64,
    /// Entries that are references to values in extents of their own.
    pub refs: u64,
    /// Key and value bytes before encoding.
    pub raw_bytes: u64,
    /// Smallest SeqNo.
    pub min_seq: SeqNo,
    /// Largest SeqNo. If messages do not carry their own SeqNos, this is the SeqNo of every
    /// message.
    pub max_seq: SeqNo,
    /// Whether each message carries its own SeqNo, because readers must tell messages apart by
    /// SeqNo: for a snapshot between them, for several messages of a key, or for newer data with
    /// smaller SeqNos.
    pub per_entry_seqs: bool,
    /// Whether every key has a single message. Always true if messages have no SeqNos of their own;
    /// otherwise false if a key kept several messages, for snapshots or because of updates.
    pub unique_keys: bool,
    /// The number added to every SeqNo stored with a message: 0, except for a run written with a
    /// transaction's local numbers ([`attached`](Self::attached)).
    pub seq_shift: u64,
    /// How often the run's messages have been written so far (rule 4); 255 for a base.
    pub writes: u8,
    /// Smallest key.
    pub first_key: Box<[u8]>,
    /// Largest key.
    pub last_key: Box<[u8]>,
    /// The codec with which a base was packed; `None` for other runs, and bases of earlier
    /// versions.
    pub codec: Option<Codec>,
    /// The dictionary with which the blocks were packed; `None` if there is none.
    pub dictionary: Option<RunDictionary>,
    /// The tree's option for the size of base blocks when a base was written, in bytes; 0 for other
    /// runs, and bases of earlier versions. The blocks may be smaller, because of little memory or
    /// of a dictionary.
    pub tree_block_bytes: u32,
}

impl RunMeta {
    /// Returns the number of bytes on disk, with index, filter and dictionary, before padding.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.blocks_bytes
            + u64::from(self.index_bytes)
            + u64::from(self.filter_bytes)
            + u64::from(self.dictionary_bytes())
    }

    fn dictionary_bytes(&self) -> u32 {
        self.dictionary.map_or(0, |dictionary| dictionary.bytes)
    }

    /// Returns the same run with its local numbers turned into SeqNos: number `n` becomes
    /// `base + n`. The bytes on disk are unchanged.
    #[must_use]
    pub fn attached(&self, base: SeqNo) -> Self {
        let shifted = |seq: SeqNo| SeqNo(seq.get().saturating_add(base.get()));
        Self {
            min_seq: shifted(self.min_seq),
            max_seq: shifted(self.max_seq),
            seq_shift: if self.per_entry_seqs { self.seq_shift + base.get() } else { 0 },
            ..self.clone()
        }
    }

    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.id.get());
        put_varint(out, u64::from(self.tree.get()));
        let flag = |set, flag| if set { flag } else { 0 };
        let shifted = self.seq_shift != 0;
        out.push(
            flag(self.per_entry_seqs, FLAG_PER_ENTRY_SEQS)
                | flag(shifted, FLAG_SHIFTED)
                | flag(self.per_entry_seqs && self.unique_keys, FLAG_UNIQUE_KEYS)
                | flag(self.filter_parts > 1, FLAG_FILTER_PARTS)
                | flag(self.index_parts > 1, FLAG_INDEX_PARTS)
                | flag(self.codec.is_some(), FLAG_CODEC)
                | flag(self.dictionary.is_some(), FLAG_DICTIONARY)
                | flag(self.tree_block_bytes > 0, FLAG_TREE_BLOCK_BYTES),
        );
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
        if shifted {
            put_varint(out, self.seq_shift);
        }
        if self.filter_parts > 1 {
            put_varint(out, u64::from(self.filter_parts));
        }
        if self.index_parts > 1 {
            put_varint(out, u64::from(self.index_parts));
            put_varint(out, u64::from(self.top_index_bytes));
        }
        if let Some(codec) = self.codec {
            out.extend_from_slice(&codec.to_bytes());
        }
        if let Some(dictionary) = self.dictionary {
            put_varint(out, u64::from(dictionary.bytes));
            out.extend_from_slice(&dictionary.hash.to_le_bytes());
        }
        if self.tree_block_bytes > 0 {
            put_varint(out, u64::from(self.tree_block_bytes));
        }
    }

    /// Decodes what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Truncated`] if the bytes are cut short or contradict themselves.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let id = RunId(input.varint()?);
        let tree = TreeId(input.varint_u32()?);
        let flags = input.u8()?;
        let writes = input.u8()?;
        let count = input.varint()?;
        if count > input.rest().len() as u64 {
            return Err(Truncated);
        }
        let mut extents = Vec::with_capacity(count as usize);
        for _ in 0..count {
            extents.push(Extent::decode(input)?);
        }
        let mut meta = Self {
            id,
            tree,
            extents,
            blocks_bytes: input.varint()?,
            blocks: input.varint_u32()?,
            index_bytes: input.varint_u32()?,
            filter_bytes: input.varint_u32()?,
            filter_parts: 0,
            index_parts: 1,
            top_index_bytes: 0,
            entries: input.varint()?,
            deletes: input.varint()?,
            updates: input.varint()?,
            refs: input.varint()?,
            raw_bytes: input.varint()?,
            min_seq: SeqNo(input.varint()?),
            max_seq: SeqNo(input.varint()?),
            per_entry_seqs: flags & FLAG_PER_ENTRY_SEQS != 0,
            unique_keys: flags & FLAG_PER_ENTRY_SEQS == 0 || flags & FLAG_UNIQUE_KEYS != 0,
            writes,
            first_key: input.bytes()?.into(),
            last_key: input.bytes()?.into(),
            seq_shift: if flags & FLAG_SHIFTED == 0 { 0 } else { input.varint()? },
            codec: None,
            dictionary: None,
            tree_block_bytes: 0,
        };
        meta.filter_parts = match flags & FLAG_FILTER_PARTS {
            0 => u32::from(meta.filter_bytes > 0),
            _ => input.varint_u32()?,
        };
        if flags & FLAG_INDEX_PARTS != 0 {
            (meta.index_parts, meta.top_index_bytes) = (input.varint_u32()?, input.varint_u32()?);
        }
        if flags & FLAG_CODEC != 0 {
            meta.codec = Some(Codec::from_bytes([input.u8()?, input.u8()?]).ok_or(Truncated)?);
        }
        if flags & FLAG_DICTIONARY != 0 {
            let bytes = input.varint_u32()?;
            meta.dictionary = Some(RunDictionary { bytes, hash: input.u64()? });
        }
        if flags & FLAG_TREE_BLOCK_BYTES != 0 {
            meta.tree_block_bytes = input.varint_u32()?;
        }
        // A flag without effect is never written.
        let needless = flags & FLAG_UNIQUE_KEYS != 0 && !meta.per_entry_seqs
            || flags & FLAG_SHIFTED != 0 && meta.seq_shift == 0
            || flags & FLAG_FILTER_PARTS != 0 && meta.filter_parts < 2
            || flags & FLAG_INDEX_PARTS != 0 && meta.index_parts < 2
            || flags & FLAG_TREE_BLOCK_BYTES != 0 && meta.tree_block_bytes == 0;
        if needless {
            return Err(Truncated);
        }
        if meta.is_sound() { Ok(meta) } else { Err(Truncated) }
    }

    /// Returns whether the fields agree with each other.
    fn is_sound(&self) -> bool {
        let fits = self
            .blocks_bytes
            .checked_add(u64::from(self.index_bytes) + u64::from(self.filter_bytes))
            .and_then(|bytes| bytes.checked_add(u64::from(self.dictionary_bytes())))
            .is_some_and(|bytes| bytes <= extent_bytes(&self.extents));
        let kinds = self.deletes.checked_add(self.updates).and_then(|n| n.checked_add(self.refs));
        // The top index has no bytes if, and only if, the index has one part.
        let parts_bytes = self.index_bytes.saturating_sub(self.top_index_bytes);
        let index_fits =
            self.index_parts <= parts_bytes && (self.index_parts > 1) == (self.top_index_bytes > 0);
        fits && self.dictionary.is_none_or(|dictionary| dictionary.bytes > 0)
            && self.blocks > 0
            && self.blocks <= CacheKey::BLOCKS_MAX
            && index_fits
            && (1..=self.blocks.min(CacheKey::PARTS_MAX)).contains(&self.index_parts)
            && self.filter_parts <= CacheKey::PARTS_MAX
            && self.filter_parts <= self.blocks
            && self.filter_parts <= self.filter_bytes
            && self.entries >= u64::from(self.blocks)
            && kinds.is_some_and(|n| n <= self.entries)
            && self.min_seq <= self.max_seq
            && self.seq_shift <= self.min_seq.get()
            && (self.seq_shift == 0 || self.per_entry_seqs)
            && self.first_key <= self.last_key
            && self.first_key.len().max(self.last_key.len()) <= KEY_BYTES_MAX
    }
}

fn extent_bytes(extents: &[Extent]) -> u64 {
    extents.iter().fold(0, |sum, extent| sum.saturating_add(extent.bytes()))
}

/// Decodes one index entry; `separator` holds the previous separator and is replaced by the new
/// one. Returns the block's bytes, whether it continues a key, and its entries.
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

/// The place of a large value, which has extents of its own. This is the value of a [`PutRef`]
/// message (rule 17).
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
    /// The extents of the value, in order.
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
        let fits =
            len <= extent_bytes(&extents) && len <= VALUE_BYTES_MAX as u64 && !extents.is_empty();
        if fits && input.is_empty() { Ok(Self { len, checksum, extents }) } else { Err(Truncated) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> RunMeta {
        RunMeta {
            id: RunId(300),
            tree: TreeId(2),
            extents: vec![
                Extent { file: 0, page: 5, pages: 2 },
                Extent { file: 1, page: 130, pages: 1 },
            ],
            blocks_bytes: 9000,
            blocks: 3,
            index_bytes: 80,
            filter_bytes: 64,
            filter_parts: 1,
            index_parts: 1,
            top_index_bytes: 0,
            entries: 100,
            deletes: 7,
            updates: 1,
            refs: 2,
            raw_bytes: 20_000,
            min_seq: SeqNo(40),
            max_seq: SeqNo(1000),
            per_entry_seqs: true,
            unique_keys: false,
            seq_shift: 0,
            writes: 2,
            first_key: Box::from(*b"aa"),
            last_key: Box::from(*b"zebra"),
            codec: None,
            dictionary: None,
            tree_block_bytes: 0,
        }
    }

    #[test]
    fn metadata_has_these_bytes() {
        let mut out = Vec::new();
        meta().encode(&mut out);
        let expected = b"\xac\x02\x02\x01\x02\
            \x02\x00\x05\x02\x01\x82\x01\x01\
            \xa8\x46\x03\x50\x40\
            \x64\x07\x01\x02\xa0\x9c\x01\x28\xe8\x07\
            \x02aa\x05zebra";
        assert_eq!(out, expected);
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Ok(meta()));
        for cut in 0..out.len() {
            assert_eq!(RunMeta::decode(&mut Reader::new(&out[..cut])), Err(Truncated));
        }

        let value =
            ValueRef { len: 5000, checksum: 0x0102_0304_0506_0708, extents: meta().extents };
        let mut out = Vec::new();
        value.encode(&mut out);
        let expected = b"\x88\x27\x08\x07\x06\x05\x04\x03\x02\x01\
            \x02\x00\x05\x02\x01\x82\x01\x01";
        assert_eq!(out, expected);
        assert_eq!(ValueRef::decode(&out), Ok(value));
        for cut in 0..out.len() {
            assert_eq!(ValueRef::decode(&out[..cut]), Err(Truncated));
        }
        out.push(0);
        assert_eq!(ValueRef::decode(&out), Err(Truncated));
    }

    #[test]
    fn unique_keys_is_a_flag_of_runs_with_per_entry_seqs() {
        for (per_entry_seqs, unique_keys, flags) in
            [(true, false, 1), (true, true, 5), (false, true, 0)]
        {
            let (meta, mut out) = (RunMeta { per_entry_seqs, unique_keys, ..meta() }, Vec::new());
            meta.encode(&mut out);
            assert_eq!(out[3], flags);
            assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Ok(meta));
        }
    }

    #[test]
    fn an_attached_run_has_one_field_more() {
        let (local, mut plain, mut out) = (meta(), Vec::new(), Vec::new());
        let attached = local.attached(SeqNo(500));
        assert_eq!((attached.min_seq, attached.max_seq), (SeqNo(540), SeqNo(1500)));
        attached.encode(&mut out);
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Ok(attached.clone()));
        assert_eq!((out[3], &out[out.len() - 2..]), (3, &b"\xf4\x03"[..]));
        assert_eq!(attached.attached(SeqNo(1)).seq_shift, 501);
        // A run with one SeqNo for all messages has no stored SeqNos to shift.
        let attached =
            RunMeta { per_entry_seqs: false, unique_keys: true, ..local }.attached(SeqNo(500));
        assert_eq!((attached.seq_shift, attached.max_seq), (0, SeqNo(1500)));
        attached.encode(&mut plain);
        assert_eq!((plain[3], plain.len()), (0, out.len() - 2));
    }

    #[test]
    fn several_filter_parts_are_one_field_more() {
        let (parted, mut plain, mut out) =
            (RunMeta { filter_parts: 2, ..meta() }, Vec::new(), Vec::new());
        meta().encode(&mut plain);
        parted.encode(&mut out);
        assert_eq!((out[3], &out[plain.len()..]), (9, &b"\x02"[..]));
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Ok(parted));
        let bare = RunMeta { filter_bytes: 0, filter_parts: 0, ..meta() };
        out.clear();
        bare.encode(&mut out);
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Ok(bare));
    }

    #[test]
    fn several_index_parts_are_two_fields_more() {
        let parted = RunMeta { filter_parts: 2, index_parts: 3, top_index_bytes: 30, ..meta() };
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        meta().encode(&mut plain);
        parted.encode(&mut out);
        assert_eq!((out[3], &out[plain.len()..]), (25, &b"\x02\x03\x1e"[..]));
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Ok(parted));
        for cut in plain.len()..out.len() {
            assert_eq!(RunMeta::decode(&mut Reader::new(&out[..cut])), Err(Truncated));
        }
    }

    #[test]
    fn packing_follows_where_a_base_has_them() {
        let dictionary = Some(RunDictionary { hash: 0x0807_0605_0403_0201, bytes: 300 });
        let codec = Some(Codec::ZstdDictionary(19));
        let packed = RunMeta { codec, dictionary, tree_block_bytes: 128 << 10, ..meta() };
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        meta().encode(&mut plain);
        packed.encode(&mut out);
        let expected = b"\x05\x13\xac\x02\x01\x02\x03\x04\x05\x06\x07\x08\x80\x80\x08";
        assert_eq!((out[3], &out[plain.len()..]), (225, &expected[..]));
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Ok(packed.clone()));
        for cut in plain.len()..out.len() {
            assert_eq!(RunMeta::decode(&mut Reader::new(&out[..cut])), Err(Truncated));
        }
        out[plain.len()] = 9;
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Err(Truncated), "no such algorithm");
        assert_eq!(packed.disk_bytes(), meta().disk_bytes() + 300);
    }

    #[test]
    fn metadata_that_contradicts_itself_is_refused() {
        let refused = |change: fn(&mut RunMeta)| {
            let (mut meta, mut out) = (meta(), Vec::new());
            change(&mut meta);
            meta.encode(&mut out);
            assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Err(Truncated));
        };
        refused(|meta| meta.blocks_bytes = 3 * 4096);
        refused(|meta| meta.blocks_bytes = u64::MAX);
        refused(|meta| meta.blocks = 0);
        refused(|meta| meta.blocks = 101);
        refused(|meta| meta.index_bytes = 0);
        refused(|meta| (meta.index_parts, meta.top_index_bytes) = (4, 30));
        refused(|meta| (meta.index_parts, meta.top_index_bytes) = (2, 79));
        refused(|meta| (meta.index_parts, meta.top_index_bytes) = (2, 0));
        refused(|meta| meta.filter_parts = 4);
        refused(|meta| (meta.filter_parts, meta.filter_bytes) = (3, 2));
        refused(|meta| meta.deletes = 98);
        refused(|meta| meta.refs = u64::MAX);
        refused(|meta| meta.min_seq = SeqNo(1001));
        refused(|meta| meta.seq_shift = 41);
        refused(|meta| (meta.seq_shift, meta.per_entry_seqs) = (1, false));
        refused(|meta| meta.first_key = Box::from(*b"zz"));
        refused(|meta| meta.dictionary = Some(RunDictionary { hash: 1, bytes: 0 }));
        refused(|meta| meta.dictionary = Some(RunDictionary { hash: 1, bytes: 4096 }));
        refused(|meta| meta.last_key = vec![b'z'; KEY_BYTES_MAX + 1].into());
        for (flags, what) in [(128, "an unknown flag"), (4, "one that says nothing")] {
            let mut out = Vec::new();
            meta().encode(&mut out);
            out[3] = flags;
            assert_eq!(RunMeta::decode(&mut Reader::new(&out)), Err(Truncated), "{what}");
        }
    }
}
