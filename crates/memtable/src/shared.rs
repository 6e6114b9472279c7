//! The parts that the writer publishes and readers take: the tail, the arrays, the counters.
//!
//! [`Memtable`](crate::Memtable) shows how these parts belong together.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::AtomicU64;
use frondb_core::{MessageKind, SeqNo};

use crate::arena::{Chunks, Slot};
use crate::array::SortedArray;
use crate::probes::ProbeCount;

/// A message to be inserted into the memtable.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key; may be empty. At most `limits::KEY_BYTES_MAX`.
    pub key: &'a [u8],
    /// The message's own SeqNo, larger than all SeqNos inserted before this batch.
    pub seq: SeqNo,
    /// Put, put of a reference, delete or update.
    pub kind: MessageKind,
    /// Value, operand, or reference to a value in extents of its own; empty for a delete.
    pub value: &'a [u8],
}

#[derive(Default)]
pub(crate) struct Shared {
    /// Sorted; all messages are newer than the messages of the arrays.
    pub(crate) tail: Vec<Slot>,
    pub(crate) state: Option<Arc<Published>>,
}

/// All messages except the tail's messages; immutable, and replaced as a whole.
pub(crate) struct Published {
    /// Contains the messages of all slots in `arrays` and in the tail.
    pub(crate) chunks: Chunks,
    /// Newest first.
    pub(crate) arrays: Vec<Arc<SortedArray>>,
    pub(crate) probes: Arc<ProbeCount>,
}

/// Written under the writer's lock, except `probes`, to which readers add; read by any thread.
pub(crate) struct Counters {
    pub(crate) messages: AtomicU64,
    pub(crate) deletes: AtomicU64,
    pub(crate) tombstone_run: AtomicU64,
    pub(crate) data_bytes: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) range_deletes: AtomicU64,
    pub(crate) hidden: AtomicU64,
    pub(crate) probes: Arc<ProbeCount>,
    /// `u64::MAX` while the memtable is empty.
    pub(crate) min_seq: AtomicU64,
    pub(crate) max_seq: AtomicU64,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            messages: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            tombstone_run: AtomicU64::new(0),
            data_bytes: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            range_deletes: AtomicU64::new(0),
            hidden: AtomicU64::new(0),
            probes: Arc::default(),
            min_seq: AtomicU64::new(u64::MAX),
            max_seq: AtomicU64::new(0),
        }
    }
}
