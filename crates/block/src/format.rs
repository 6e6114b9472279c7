//! Every byte of a block on disk. All integers are little-endian.
//!
//! Frame: what lies on disk, 28 bytes and the compressed payload.
//!
//! ```text
//!  0  u64  checksum      XXH3-64 of everything after it, up to the end of the frame
//!  8  u8   version       1; a block of a higher version with a right checksum is Unsupported
//!  9  u8   block kind    1 data, 2 index, 3 filter, 6 spool, 7 dictionary; not in use: 4 blob,
//!                        5 meta
//! 10  u8   codec         0 stored, 1 lz4, 2 zstd, 3 zlib, 4 xz (LZMA2)
//! 11  u8   flags         0 (reserved)
//! 12  u32  dictionary    tag of the zstd dictionary that the payload was compressed with; 0: none
//! 16  u32  body length   bytes after the header
//! 20  u32  raw length    of the payload, at most limits::BLOCK_RAW_BYTES_MAX
//! 24  u32  tail length   bytes at the end of the payload that are stored at the end of the body,
//!                        uncompressed, because their writer knew that they would not shrink
//! 28       compressed payload without its tail, then the tail
//! ```
//!
//! Payload of a data block, after decompression: 40 bytes of header, then areas without gaps.
//!
//! ```text
//!  0  u8   key layout    0 rows, 1 transposed
//!  1  u8   flags         1 kinds are stored, 2 keys have one length, 4 values have one length,
//!                        8 SeqNo deltas are a matrix, 16 values are a matrix, 32 each value has
//!                        an end byte
//!  2  u8   restart interval (rows; default 16), 0 if transposed
//!  3  u8   width of the shared and suffix lengths of rows: 1 or 2; 0 otherwise
//!  4  u8   width of the value lengths: 1, 2 or 4; 0 if values have one length or an end byte
//!  5  u8   width of the SeqNo deltas: 0 to 8
//!  6  u8   kind of every message, unless kinds are stored
//!  7  u8   1 if SeqNos are stored; else every message has the SeqNo of its run
//!  8  u32  count         at least 1
//! 12  u32  key length    the length of every key if all have the same length, else 0
//! 16  u32  key bytes     of the key area
//! 20  u32  value length  the length of every value if all have the same length; the end byte if
//!                        values have one; else 0
//! 24  u32  value bytes   of the value area
//! 28  u32  tail bytes    of the tail
//! 32  u64  SeqNo base    the smallest of the block; 0 if none are stored
//! 40       areas, in this order:
//!    rows    shared lengths     count x width: bytes a key shares with the one before;
//!                               0 at every restart (row number divisible by the interval)
//!    rows    suffix lengths     count x width; absent if keys have one length
//!            kinds              count bytes; absent unless stored
//!            SeqNo deltas       count x width, above the base; or a matrix
//!            value lengths      count x width; absent if values have one length or an end byte
//!            keys               rows: the rest of each key; transposed: a matrix
//!            values             one after the other, each with its end byte if they have one; or
//!                               a matrix
//!            tail               columns of mode 3 of the SeqNos, the keys and the values; if the
//!                               frame is compressed, this area is the tail of the frame
//! ```
//!
//! Matrix: `count` rows of one width, stored column by column.
//!
//! ```text
//!   modes      a byte for each column: 0 the column is constant in the block; else the column
//!              has count bytes, one a row: 1 plain; 2 the first byte, then the difference of
//!              each byte from the byte before; 3 plain, in the tail
//!   constants  a byte for each column of mode 0
//!   columns    those of modes 1 and 2, in the order of the columns
//!
//!   keys  00 07 1a     modes  0  1  1     constants  00     columns 07 07 08
//!         00 07 5c                                                  1a 5c 03
//!         00 08 03
//! ```
//!
//! Keys of one length, 1 to 64 bytes, are stored as byte-transposed columns, all other keys as
//! rows. A column that does not vary (the zeros of big-endian integers) takes two bytes per block,
//! similar bytes are adjacent for the codec, and columns of random bytes bypass the codec. The key
//! of any row can be read without the rows before it, and a search needs no decoded keys
//! (`transposed_keys.rs`). If the block has a codec and at least 16 messages, SeqNos are
//! transposed, and so are values if that makes the block smaller; a reader turns both back into
//! rows, unless the block is probably read only once. Values of different lengths have an end byte
//! if the codec is neither none nor lz4, and one of a few candidates is a byte that no value
//! contains (`values.rs`).

/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 28;

/// The version that this build writes, and the highest one that it reads.
pub(crate) const VERSION: u8 = 1;

/// Length of the checksum in front of a frame. The checksum covers everything after it.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// Bytes of a data payload's header.
pub(crate) const PAYLOAD_HEADER_BYTES: usize = 40;

/// Key layout: prefix-delta rows.
pub(crate) const LAYOUT_ROWS: u8 = 0;
/// Key layout: byte-transposed columns.
pub(crate) const LAYOUT_TRANSPOSED: u8 = 1;

/// Payload flag: each message has its own kind.
pub(crate) const FLAG_KINDS: u8 = 1;
/// Payload flag: all keys have one length.
pub(crate) const FLAG_KEYS_FIXED: u8 = 2;
/// Payload flag: all values have one length.
pub(crate) const FLAG_VALUES_FIXED: u8 = 4;
/// Payload flag: SeqNo deltas are a matrix.
pub(crate) const FLAG_SEQS_TRANSPOSED: u8 = 8;
/// Payload flag: values are a matrix.
pub(crate) const FLAG_VALUES_TRANSPOSED: u8 = 16;
/// Payload flag: each value is followed by an end byte, which no value contains.
pub(crate) const FLAG_VALUES_ENDED: u8 = 32;
/// All payload flags.
pub(crate) const FLAGS_ALL: u8 = FLAG_KINDS
    | FLAG_KEYS_FIXED
    | FLAG_VALUES_FIXED
    | FLAG_SEQS_TRANSPOSED
    | FLAG_VALUES_TRANSPOSED
    | FLAG_VALUES_ENDED;

/// Mode of a column: constant.
pub(crate) const MODE_CONSTANT: u8 = 0;
/// Mode of a column: its bytes.
pub(crate) const MODE_PLAIN: u8 = 1;
/// Mode of a column: the differences of its bytes.
pub(crate) const MODE_DELTA: u8 = 2;
/// Mode of a column: its bytes, in the tail.
pub(crate) const MODE_TAIL: u8 = 3;

/// Longest key of the transposed layout, bytes.
pub(crate) const TRANSPOSED_KEY_BYTES_MAX: usize = 64;

/// Longest value of the transposed layout, bytes.
pub(crate) const TRANSPOSED_VALUE_BYTES_MAX: usize = 512;

/// The contents of a block. The numbers are on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum BlockKind {
    /// Sorted messages.
    Data = 1,
    /// A run's block index.
    Index = 2,
    /// A run's filter.
    Filter = 3,
    /// Not in use: large values have no frames.
    Blob = 4,
    /// Not in use.
    Meta = 5,
    /// A part of a spool: entries of an external sort, gone after a restart.
    Spool = 6,
    /// A dictionary of a run's data blocks.
    Dictionary = 7,
}

impl BlockKind {
    /// Returns the name of this kind in error messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data block",
            Self::Index => "index block",
            Self::Filter => "filter block",
            Self::Blob => "blob block",
            Self::Meta => "meta block",
            Self::Spool => "spool block",
            Self::Dictionary => "dictionary block",
        }
    }

    /// Decodes the byte on disk; `None` for an unknown kind.
    #[must_use]
    pub const fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Data),
            2 => Some(Self::Index),
            3 => Some(Self::Filter),
            4 => Some(Self::Blob),
            5 => Some(Self::Meta),
            6 => Some(Self::Spool),
            7 => Some(Self::Dictionary),
            _ => None,
        }
    }
}

/// The header of a data payload as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PayloadHeader {
    pub(crate) layout: u8,
    pub(crate) flags: u8,
    pub(crate) restart_interval: u8,
    pub(crate) length_width: u8,
    pub(crate) value_width: u8,
    pub(crate) seq_width: u8,
    pub(crate) kind: u8,
    pub(crate) seqs_stored: u8,
    pub(crate) count: u32,
    pub(crate) key_len: u32,
    pub(crate) key_bytes: u32,
    pub(crate) value_len: u32,
    pub(crate) value_bytes: u32,
    pub(crate) tail_bytes: u32,
    pub(crate) seq_base: u64,
}

impl PayloadHeader {
    /// Appends the header's bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[
            self.layout,
            self.flags,
            self.restart_interval,
            self.length_width,
            self.value_width,
            self.seq_width,
            self.kind,
            self.seqs_stored,
        ]);
        for number in [
            self.count,
            self.key_len,
            self.key_bytes,
            self.value_len,
            self.value_bytes,
            self.tail_bytes,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.seq_base.to_le_bytes());
    }

    /// Overwrites the header at the front of `payload`.
    pub(crate) fn write(&self, payload: &mut [u8]) {
        let mut bytes = Vec::with_capacity(PAYLOAD_HEADER_BYTES);
        self.encode(&mut bytes);
        payload[..PAYLOAD_HEADER_BYTES].copy_from_slice(&bytes);
    }

    /// Decodes the header at the front of `payload`; `None` if it is cut short.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; PAYLOAD_HEADER_BYTES] = payload.first_chunk()?;
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Self {
            layout: bytes[0],
            flags: bytes[1],
            restart_interval: bytes[2],
            length_width: bytes[3],
            value_width: bytes[4],
            seq_width: bytes[5],
            kind: bytes[6],
            seqs_stored: bytes[7],
            count: u32_at(8),
            key_len: u32_at(12),
            key_bytes: u32_at(16),
            value_len: u32_at(20),
            value_bytes: u32_at(24),
            tail_bytes: u32_at(28),
            seq_base: u64::from(u32_at(32)) | u64::from(u32_at(36)) << 32,
        })
    }
}
