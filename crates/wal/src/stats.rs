//! Counters of the log since it was opened, and its current size.

/// Counters of a [`Wal`](crate::Wal).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WalStats {
    /// Records appended.
    pub records: u64,
    /// Bytes of the payloads of these records.
    pub payload_bytes: u64,
    /// Bytes of records written to the device, with the headers of the records.
    pub written_bytes: u64,
    /// Writes to segments; one write may have the records of many commits.
    pub writes: u64,
    /// Syncs of segments: for commits, for the engine, at the end of a segment, and after a failed
    /// write.
    pub syncs: u64,
    /// Segments started.
    pub segments: u64,
    /// Segments started in the file of a former segment.
    pub segments_recycled: u64,
    /// Number of times that records were abandoned because they could not be written.
    pub failed_writes: u64,
    /// Bytes of live segments: the most that a recovery would read.
    pub live_bytes: u64,
    /// Former segments kept for reuse.
    pub spares: u64,
    /// Memory of the log's buffers, bytes.
    pub buffer_bytes: u64,
}
