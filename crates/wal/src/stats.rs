//! Counters of the log since it was opened, and its present size.

/// Counters of a [`Wal`](crate::Wal).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WalStats {
    /// Records appended.
    pub records: u64,
    /// Bytes of the payloads of these records.
    pub payload_bytes: u64,
    /// Bytes written to the device, headers included.
    pub written_bytes: u64,
    /// Writes of records.
    pub writes: u64,
    /// Syncs of the records: for commits, for the engine, at the end of a segment and after a
    /// failed write.
    pub syncs: u64,
    /// Segments started.
    pub segments: u64,
    /// Segments started in a former segment's file.
    pub segments_recycled: u64,
    /// Number of times that records were abandoned because they could not be written.
    pub failed_writes: u64,
    /// Bytes of live segments: the most that recovery would read.
    pub live_bytes: u64,
    /// Former segments kept for reuse.
    pub spares: u64,
    /// Memory of the log's buffers in bytes.
    pub buffer_bytes: u64,
}
