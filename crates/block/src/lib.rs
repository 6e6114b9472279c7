//! Layer 1: blocks, the unit of reading and of compression.
//!
//! A data block holds sorted messages in separate areas (keys, kinds, SeqNos, values), so that
//! similar bytes are adjacent for the codec, and whole ranges decode into the arrays of a
//! [`Chunk`](frondb_core::Chunk). [`BlockBuilder`] writes blocks, [`Block`] reads them. One thread
//! at a time may use a builder; any number of threads may read a decoded block.
//!
//! ```text
//!   messages -> BlockBuilder -> payload -> codec -> frame {checksum, kind, codec, lengths} -> disk
//!   disk -> frame -> verify -> codec -> payload -> validate once -> Block -> fill(range) -> Chunk
//! ```
//!
//! Index and filter blocks use the same frame ([`encode_frame`], [`decode_frame`]) with payloads of
//! their own. `format.rs` describes every byte.

mod areas;
mod builder;
pub mod codec;
mod columns;
mod context;
mod dictionary;
mod dictionary_frames;
mod envelope;
mod fill;
pub mod format;
pub mod frame;
mod layout;
mod miscoded;
mod passing;
mod reader;
mod rows;
mod stats;
mod suited;
mod transpose;
mod transposed;
mod transposed_keys;
mod trial;
mod values;

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod faulty;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;

pub use builder::{BlockBuilder, BlockOptions, DEFAULT_RESTART_INTERVAL};
pub use codec::Codec;
pub use dictionary::{
    DICTIONARY_BYTES_MAX, DICTIONARY_BYTES_MIN, Dictionary, DictionaryEncoder, SAMPLE_FACTOR,
};
pub use dictionary_frames::decode_frame_with_dictionary;
pub use envelope::{
    Place, Verify, decode_frame, encode_frame, encode_frame_with, frame_checksum, frame_len,
    frame_raw_len, may_be_data_frame, seal_frame,
};
pub use format::{BlockKind, FRAME_HEADER_BYTES};
pub use miscoded::miscoded_blocks;
pub use passing::{DamagedFrame, PassingFrames};
pub use reader::Block;
pub use stats::BlockSummary;
pub use trial::CodecTrial;
