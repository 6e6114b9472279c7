//! What the log has done since it was opened, and how large it is now.

/// Counters of a [`Wal`](crate::Wal).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WalStats {
    /// Records appended.
    pub records: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Bytes written to the device, headers included.
    pub written_bytes: u64,
    /// Writes of records.
    pub writes: u64,
    /// Syncs that commits or the engine asked for.
    pub syncs: u64,
    /// Segments begun.
    pub segments: u64,
    /// Segments begun in a former segment's file.
    pub segments_recycled: u64,
    /// Times that records were given up because they could not be written.
    pub failed_writes: u64,
    /// Bytes of live segments: what recovery would read at most.
    pub live_bytes: u64,
    /// Former segments kept to be written again.
    pub spares: u64,
    /// Bytes of memory the log's buffers hold.
    pub buffer_bytes: u64,
}
