//! Dictionaries of zstd: bytes that many blocks of a tree have in common, kept once.
//!
//! A block of 128 KiB repeats few of its own bytes. Most repetitions are in the neighbouring
//! blocks, where only a codec with a window of megabytes would find them. A [`Dictionary`] is
//! trained from some blocks of a tree, and every block is compressed as if the dictionary came
//! before it. So a block shrinks nearly as much as a far larger one, but can still be read alone.
//!
//! The frame of such a block has the dictionary's tag in its header. The dictionary is stored with
//! the blocks; a run stores it in a frame of its own ([`Dictionary::frame`]).
//!
//! ```text
//!   samples -> train -> Dictionary -> DictionaryEncoder -> frames with its tag
//!                            |                                    |
//!                            +----------- Block::decode <---------+
//! ```

use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use frondb_core::checksum::xxh3;
use frondb_core::codec::{Reader, Truncated, put_varint};
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};
use zstd::zstd_safe::zstd_sys::ZSTD_cParameter as Parameter;
use zstd::zstd_safe::{DDict, compress_bound, train_from_buffer};

use crate::codec::{self, Check, Codec, trim_contexts};
use crate::context::Context;
use crate::envelope::{Place, decode_frame, encode_frame};
#[cfg(any(test, feature = "testing"))]
use crate::faulty;
use crate::format::BlockKind;
use crate::miscoded;

/// Smallest dictionary, bytes. A smaller one would save less than it costs.
pub const DICTIONARY_BYTES_MIN: usize = 16 << 10;
/// Largest dictionary, bytes.
pub const DICTIONARY_BYTES_MAX: usize = 1 << 20;
/// Size of the samples from which a dictionary is trained, as a multiple of the size of the
/// dictionary. zstd's documentation recommends 100, which would take longer to read and to search.
pub const SAMPLE_FACTOR: usize = 16;

/// Length of the pieces into which samples are cut. The trainer looks for bytes that several pieces
/// have in common.
const PIECE_BYTES: usize = 2048;

/// The fields of a dictionary's frame besides the dictionary.
#[derive(Clone, Copy)]
struct Fields {
    trained_on: u64,
    block_bytes: u32,
}

/// A dictionary, ready for decoding. Any number of threads may use it.
pub struct Dictionary {
    /// The frame in which the dictionary is stored; far smaller than the decoder's own copy.
    frame: Box<[u8]>,
    hash: u64,
    fields: Fields,
    decoder: DDict<'static>,
}

impl Dictionary {
    /// Trains a dictionary of at most `size` bytes from `samples`, which are decompressed payloads
    /// of blocks. `tree_bytes` is the size of the data from which the samples were taken. Returns
    /// `None` if there are too few samples, or they have nothing in common.
    ///
    /// Takes one to four seconds for 256 KiB to 1 MiB, on one core. The algorithm is zstd's fast
    /// COVER (Liao, Petri, Moffat, Wirth: *Effective Construction of Relative Lempel-Ziv
    /// Dictionaries*, WWW 2016).
    ///
    /// # Errors
    /// Internal if zstd cannot use the dictionary that it trained.
    pub fn train(samples: &[u8], size: usize, tree_bytes: u64) -> Result<Option<Self>> {
        let size = size.min(DICTIONARY_BYTES_MAX).min(samples.len() / 4);
        if size < DICTIONARY_BYTES_MIN {
            return Ok(None);
        }
        let lengths: Vec<usize> = samples.chunks(PIECE_BYTES).map(<[u8]>::len).collect();
        let mut bytes = Vec::with_capacity(size);
        // An error means that the samples cannot be used for training: random bytes, for example.
        match train_from_buffer(&mut bytes, samples, &lengths) {
            Ok(_) if bytes.len() >= DICTIONARY_BYTES_MIN => {
                Self::made_of(&bytes, Fields { trained_on: tree_bytes, block_bytes: 0 }).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns `None` if zstd cannot use the bytes.
    fn new(frame: Box<[u8]>, bytes: &[u8], fields: Fields) -> Option<Self> {
        let decoder = DDict::try_create(bytes)?;
        // The hash includes the block size, because trees may have equal dictionary bytes and
        // blocks of different sizes.
        let size = u64::from(fields.block_bytes).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Some(Self { hash: xxh3(bytes) ^ size, frame, fields, decoder })
    }

    fn made_of(bytes: &[u8], fields: Fields) -> Result<Self> {
        let mut payload = Vec::with_capacity(bytes.len() + 20);
        put_varint(&mut payload, fields.trained_on);
        put_varint(&mut payload, u64::from(fields.block_bytes));
        payload.extend_from_slice(bytes);
        let mut frame = Vec::new();
        encode_frame(BlockKind::Dictionary, DICTIONARY_CODEC, &payload, &mut frame)?;
        // Otherwise the pool would keep the context, whose tables for this level have megabytes.
        trim_contexts();
        Self::new(frame.into(), bytes, fields).ok_or_else(|| Error::internal(UNUSABLE))
    }

    /// Returns the same dictionary, but for blocks of at most `bytes` raw bytes, 256 bytes to 4
    /// MiB. 0 means that no sizes were compared ([`suited_block_bytes`](Self::suited_block_bytes)).
    ///
    /// # Errors
    /// Internal if the dictionary in memory is damaged, or zstd has no memory.
    pub fn for_blocks(&self, bytes: usize) -> Result<Self> {
        let block_bytes = u32::try_from(bytes).unwrap_or(0);
        let payload = decode_frame(&self.frame, BlockKind::Dictionary, &IN_MEMORY)?;
        let (fields, bytes) = parse(&payload)
            .map_err(|_| Error::internal("a dictionary in memory cannot be decoded"))?;
        Self::made_of(bytes, Fields { block_bytes, ..fields })
    }

    /// Returns the dictionary's name: XXH3 of its bytes, combined with
    /// [`block_bytes`](Self::block_bytes).
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the size of the data for which the dictionary was trained, bytes.
    #[must_use]
    pub fn trained_on(&self) -> u64 {
        self.fields.trained_on
    }

    /// Returns the largest raw size of the blocks for which the dictionary is used, bytes; `None`
    /// if no sizes were compared.
    #[must_use]
    pub fn block_bytes(&self) -> Option<usize> {
        (self.fields.block_bytes > 0).then_some(self.fields.block_bytes as usize)
    }

    /// Returns the tag that names the dictionary in the header of a frame.
    #[must_use]
    pub(crate) fn tag(&self) -> NonZeroU32 {
        NonZeroU32::new(self.hash as u32).unwrap_or(NonZeroU32::MIN)
    }

    /// Memory that the dictionary takes, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.frame.len() + self.decoder.sizeof()
    }

    pub(crate) fn decoder(&self) -> &DDict<'static> {
        &self.decoder
    }

    /// Returns the dictionary as a frame, compressed with zstd level 19, to be stored with the
    /// blocks.
    ///
    /// ```text
    /// trained_on   varint: size of the tree when the dictionary was trained
    /// block_bytes  varint: largest raw size of the blocks for which it is used, 256 bytes to 4
    ///              MiB; 0 if no sizes were compared; absent before format version 6
    /// bytes        the dictionary in zstd's format
    /// ```
    ///
    /// The dictionary's hash is the XXH3-64 of `bytes`, xor `block_bytes` times 0x9E3779B97F4A7C15.
    /// The frames of data blocks have its tag, which is the lower half of the hash (1 if that half
    /// is 0).
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Decodes a [`frame`](Self::frame).
    ///
    /// # Errors
    /// Corruption with `place` if a byte differs from the bytes written, or if zstd cannot use the
    /// dictionary; Unsupported if a newer version wrote it.
    pub fn decode(frame: &[u8], place: &Place<'_>) -> Result<Self> {
        let payload = decode_frame(frame, BlockKind::Dictionary, place)?;
        match parse(&payload) {
            Ok((fields, bytes)) => Self::new(frame.into(), bytes, fields)
                .ok_or_else(|| place.corruption(BlockKind::Dictionary, UNUSABLE)),
            Err(Truncated) => Err(place.corruption(BlockKind::Dictionary, "malformed")),
        }
    }
}

/// Parses the payload of a dictionary's frame.
fn parse(payload: &[u8]) -> Result<(Fields, &[u8]), Truncated> {
    let mut input = Reader::new(payload);
    let trained_on = input.varint()?;
    // Dictionaries of format 5 and before do not store a block size.
    let is_old = input.rest().starts_with(&MAGIC);
    let block_bytes = if is_old { 0 } else { input.varint_u32()? };
    let bytes = input.rest();
    let is_sound = (DICTIONARY_BYTES_MIN..=DICTIONARY_BYTES_MAX).contains(&bytes.len())
        && (block_bytes == 0 || BLOCK_BYTES.contains(&block_bytes));
    if is_sound { Ok((Fields { trained_on, block_bytes }, bytes)) } else { Err(Truncated) }
}

/// The block sizes that a tree's options may have, bytes.
const BLOCK_BYTES: RangeInclusive<u32> = 256..=4 << 20;

/// The first bytes of each dictionary of zstd. No block size in use is encoded as these bytes.
const MAGIC: [u8; 4] = [0x37, 0xA4, 0x30, 0xEC];

/// A dictionary consists of bytes of the tree, so it compresses as well as the tree's blocks. The
/// level may be slow, because a dictionary is compressed only when it is made: runs copy its frame.
const DICTIONARY_CODEC: Codec = Codec::Zstd(19);

/// The error for bytes that are no dictionary; zstd reports a lack of memory in the same way.
const UNUSABLE: &str = "zstd cannot use the dictionary, or has no memory";

/// The place of a frame that was checked when it was read.
const IN_MEMORY: Place<'static> = Place { file: "memory", offset: 0 };

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({:016x}, {} bytes)", self.hash, self.decoder.sizeof())
    }
}

/// Compresses blocks with a dictionary at a level of zstd. For one thread at a time. At high levels
/// the tables of an encoder take about 16 times the size of the dictionary, so each job has an
/// encoder of its own; encoders are not pooled.
pub struct DictionaryEncoder {
    dictionary: Arc<Dictionary>,
    level: u8,
    /// `None` before the first block and after an error; the next block then gets a new context.
    context: Option<Context>,
    scratch: Vec<u8>,
}

/// The level from which zstd searches with binary trees.
const TREES_FROM_LEVEL: u8 = 13;
/// log2 of the number of entries of the hash table that leads to the search trees. zstd itself
/// would choose about as many entries as the dictionary has bytes. Each entry leads to a tree, so a
/// table with fewer entries finds as much, and zstd copies less for each block: text compresses 12
/// to 24 % faster, in a quarter of the memory.
const TREES_HASH_LOG: u32 = 16;

/// Size of an encoder's first input, bytes: a block of the size that pays off with a dictionary,
/// with room for lengths. It must be large, because zstd copies the dictionary's tables only for
/// large blocks.
const FIRST_BLOCK_BYTES: usize = 144 << 10;

impl DictionaryEncoder {
    /// Creates an encoder at `level`, 1 to 19.
    #[must_use]
    pub fn new(dictionary: &Arc<Dictionary>, level: u8) -> Self {
        let (dictionary, scratch) = (Arc::clone(dictionary), Vec::new());
        let mut encoder = Self { dictionary, level, context: None, scratch };
        // zstd makes the tables of the dictionary with the first block, and the tables of the
        // context with the first large block. Make both now, so that `memory_bytes` includes them.
        let first = encoder.compress(&vec![0; FIRST_BLOCK_BYTES], &mut Vec::new(), Check::Decode);
        if let Err(fault) = first {
            // Do not fail: blocks that the encoder cannot encode are stored uncompressed.
            miscoded::note("trial block", "zstd with a dictionary", FIRST_BLOCK_BYTES, &fault);
        }
        encoder
    }

    /// Returns the dictionary whose tag the frames get.
    #[must_use]
    pub fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// Memory that the encoder takes, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        // The tables of the dictionary and of the context, and the scratch buffer.
        self.context.as_ref().map_or(0, Context::memory_bytes) + self.scratch.capacity()
    }

    /// As [`codec::compress`](crate::codec::compress). Also fails if there is no memory.
    pub(crate) fn compress(
        &mut self,
        raw: &[u8],
        out: &mut Vec<u8>,
        check: Check<'_>,
    ) -> Result<bool, String> {
        let room = compress_bound(raw.len());
        self.scratch.resize(room.max(self.scratch.len()), 0);
        // On an error the context is dropped.
        let mut context = match self.context.take() {
            Some(context) => context,
            None => context_of(&self.dictionary, self.level).map_err(|e| e.to_string())?,
        };
        let n = context.compress(raw, &mut self.scratch).map_err(|e| e.to_string())?;
        #[cfg(any(test, feature = "testing"))]
        faulty::spoil(&mut self.scratch[..n]);
        let is_smaller = n < raw.len();
        if is_smaller {
            check.run(raw, |back| {
                codec::decompress_with(self.dictionary.decoder(), &self.scratch[..n], back)
            })?;
            out.extend_from_slice(&self.scratch[..n]);
        }
        self.context = Some(context);
        Ok(is_smaller)
    }
}

/// Creates a context at `level`, 1 to 19, with the dictionary.
fn context_of(dictionary: &Dictionary, level: u8) -> Result<Context> {
    let payload = decode_frame(&dictionary.frame, BlockKind::Dictionary, &IN_MEMORY)?;
    let (_, bytes) =
        parse(&payload).map_err(|_| Error::internal("a dictionary in memory cannot be decoded"))?;
    let mut parameters = vec![
        (Parameter::ZSTD_c_compressionLevel, u32::from(level)),
        // The frame's header has the size, a checksum and the dictionary's tag.
        (Parameter::ZSTD_c_contentSizeFlag, 0),
        (Parameter::ZSTD_c_checksumFlag, 0),
        (Parameter::ZSTD_c_dictIDFlag, 0),
    ];
    if level >= TREES_FROM_LEVEL {
        // A tree has two links for each byte of the dictionary.
        let links = bytes.len().next_power_of_two().ilog2() + 1;
        parameters.push((Parameter::ZSTD_c_hashLog, TREES_HASH_LOG));
        parameters.push((Parameter::ZSTD_c_chainLog, links));
    }
    Context::new(&parameters, bytes)
}

impl fmt::Debug for DictionaryEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DictionaryEncoder({:?})", self.dictionary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_core::ErrorKind;
    use frondb_core::prng::Prng;

    const PLACE: Place<'static> = Place { file: "data/1", offset: 4096 };

    fn text(seed: u64, bytes: usize) -> Vec<u8> {
        let mut prng = Prng::new(seed);
        let words: Vec<String> = {
            let mut words = Prng::new(7);
            (0..2_000).map(|_| format!("{:x}", words.below(1 << 40))).collect()
        };
        let mut text = Vec::with_capacity(bytes + 16);
        while text.len() < bytes {
            text.extend_from_slice(words[prng.index(2_000).min(prng.index(2_000))].as_bytes());
            text.push(b' ');
        }
        text
    }

    #[test]
    fn a_dictionary_survives_its_frame_and_any_flipped_bit_is_found() {
        let trained = Dictionary::train(&text(1, 1 << 20), 20_000, 77).unwrap().unwrap();
        let mut frame = trained.frame().to_vec();
        let decoded = Dictionary::decode(&frame, &PLACE).unwrap();
        assert_eq!((decoded.hash(), decoded.trained_on()), (trained.hash(), 77));
        for at in (0..frame.len()).step_by(97) {
            frame[at] ^= 4;
            let error = Dictionary::decode(&frame, &PLACE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}");
            frame[at] ^= 4;
        }
        let mut short = Vec::new();
        encode_frame(BlockKind::Dictionary, Codec::None, b"\x05too short", &mut short).unwrap();
        let error = Dictionary::decode(&short, &PLACE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }

    #[test]
    fn every_level_decodes_and_takes_little_memory() {
        let trained = Dictionary::train(&text(1, 1 << 20), 64 << 10, 0).unwrap().unwrap();
        let (trained, raw) = (Arc::new(trained), text(2, 100_000));
        let mut before = usize::MAX;
        for level in 1..=19 {
            let mut encoder = DictionaryEncoder::new(&trained, level);
            for raw in [&raw[..], &raw[..5_000]] {
                let mut packed = Vec::new();
                assert!(encoder.compress(raw, &mut packed, Check::No).unwrap());
                let mut back = vec![0; raw.len()];
                crate::codec::decompress_with(trained.decoder(), &packed, &mut back).unwrap();
                assert_eq!(back, raw, "level {level}");
                if raw.len() > 5_000 && matches!(level, 1 | 19) {
                    assert!(packed.len() < before, "level {level}: {} bytes", packed.len());
                    before = packed.len();
                }
            }
            let bytes = encoder.memory_bytes();
            assert!(level < TREES_FROM_LEVEL || bytes < 4 << 20, "level {level}: {bytes} bytes");
        }
    }

    #[test]
    fn a_size_of_blocks_is_optional_and_in_its_range() {
        let trained = Dictionary::train(&text(1, 1 << 20), 20_000, 77).unwrap().unwrap();
        let payload = decode_frame(trained.frame(), BlockKind::Dictionary, &PLACE).unwrap();
        let (_, bytes) = parse(&payload).unwrap();
        let decode = |fields: &[u64]| {
            let (mut payload, mut frame) = (Vec::new(), Vec::new());
            fields.iter().for_each(|&field| put_varint(&mut payload, field));
            payload.extend_from_slice(bytes);
            encode_frame(BlockKind::Dictionary, Codec::Zstd(1), &payload, &mut frame).unwrap();
            Dictionary::decode(&frame, &PLACE)
        };
        // Format 5 stores no block size, and names the dictionary by its bytes alone.
        let old = decode(&[77]).unwrap();
        assert_eq!((old.trained_on(), old.block_bytes(), old.hash()), (77, None, xxh3(bytes)));
        for (size, expected) in [(0, None), (256, Some(256)), (4 << 20, Some(4 << 20))] {
            let decoded = decode(&[77, size]).unwrap();
            assert_eq!(decoded.block_bytes(), expected);
            assert_eq!(decoded.hash() == old.hash(), size == 0);
        }
        for size in [1, 255, (4 << 20) + 1, u64::from(u32::MAX), 1 << 40] {
            assert_eq!(decode(&[77, size]).unwrap_err().kind(), ErrorKind::Corruption, "{size}");
        }
    }

    #[test]
    fn a_new_encoder_takes_as_much_memory_as_a_used_one() {
        let trained = Dictionary::train(&text(1, 1 << 20), 64 << 10, 0).unwrap().unwrap();
        let (trained, raw) = (Arc::new(trained), text(2, 128 << 10));
        for level in [1, 9, 12, 13, 19] {
            let mut encoder = DictionaryEncoder::new(&trained, level);
            let new = encoder.memory_bytes();
            encoder.compress(&raw, &mut Vec::new(), Check::Decode).unwrap();
            let used = encoder.memory_bytes();
            assert!(used <= new, "level {level}: {new} bytes when new, {used} when used");
        }
    }

    #[test]
    fn too_few_samples_and_random_ones_give_no_dictionary() {
        assert!(Dictionary::train(&text(1, 1000), 20_000, 0).unwrap().is_none());
        assert!(Dictionary::train(&[], 20_000, 0).unwrap().is_none());
    }
}
