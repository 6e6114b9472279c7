//! Counters of the manifest since it was opened.

/// Counters of a [`Manifest`](crate::Manifest).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ManifestStats {
    /// Edits made durable.
    pub edits: u64,
    /// Bytes of the payloads of these edits.
    pub edit_bytes: u64,
    /// Syncs of edits; fewer than edits if several edits shared one.
    pub syncs: u64,
    /// Number of calls that recorded in the superblocks how far the file is durable. Each call
    /// costs a sync for each superblock that it has to write: none, one or two.
    pub superblocks: u64,
    /// Bytes written to the device: edits and new files with a snapshot, without superblocks.
    pub written_bytes: u64,
    /// New files with a snapshot that were put in force.
    pub snapshots: u64,
    /// Number of times that edits were abandoned because they could not be written.
    pub failed_writes: u64,
}
