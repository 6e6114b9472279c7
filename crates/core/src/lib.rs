//! Layer 0 of FronDB: the vocabulary that all crates share, and the shims for time, randomness,
//! threads and locks.
//!
//! The crate does not depend on upper layers. It has identifiers, messages, the arrays of messages
//! that runs, memtables and merges exchange ([`Chunk`], [`Source`]), errors by kind, limits, codecs
//! of bytes and tuples, checksums, memory and its budget, events, statistics of reads and wear, and
//! the shims.

pub mod budget;
pub mod checksum;
pub mod chunk;
pub mod clock;
pub mod codec;
pub mod error;
pub mod events;
pub mod executor;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
pub mod ids;
pub mod latency;
pub mod limits;
pub mod mem;
pub mod message;
pub mod option_value;
pub mod pool;
pub mod prng;
pub mod profile;
pub mod range_delete;
pub mod sync;
pub mod tuple;
pub mod wear;

pub use chunk::{Chunk, Direction, Source};
pub use error::{CorruptionPlace, Error, ErrorKind, Result};
pub use ids::{Lsn, NodeId, RunId, SeqNo, TreeId};
pub use message::{MessageKind, RangeDelete, UpdateFn};
