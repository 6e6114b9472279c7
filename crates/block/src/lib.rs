//! Layer 1: blocks, the unit of reading and of compression.
//!
//! A data block holds sorted messages in separate areas (keys, kinds, SeqNos, values), so that
//! like bytes stand together for the codec and whole ranges decode into the arrays of a
//! [`Chunk`](frondb_core::Chunk). [`BlockBuilder`] writes blocks, [`Block`] reads them; both are
//! for one thread at a time to mutate, and a decoded block may be read by any number of threads.
//!
//! ```text
//!   messages -> BlockBuilder -> payload -> codec -> frame {checksum, kind, codec, lengths} -> disk
//!   disk -> frame -> verify -> codec -> payload -> validate once -> Block -> fill(range) -> Chunk
//! ```
//!
//! Index and filter blocks share the frame ([`encode_frame`], [`decode_frame`]) and bring a
//! payload of their own. `format.rs` has every byte.

mod builder;
pub mod codec;
mod envelope;
pub mod format;
pub mod frame;
mod layout;
mod plane_keys;
mod planes;
mod reader;
mod rows;
mod stats;
mod trial;

#[doc(hidden)]
pub mod fuzz;

pub use builder::{BlockBuilder, BlockOptions, DEFAULT_RESTART_INTERVAL};
pub use codec::Codec;
pub use envelope::{
    Place, decode_frame, encode_frame, encode_frame_with, frame_checksum, frame_len, frame_raw_len,
    may_be_data_frame, seal_frame,
};
pub use format::{BlockKind, FRAME_HEADER_BYTES};
pub use reader::Block;
pub use stats::BlockSummary;
pub use trial::CodecTrial;
