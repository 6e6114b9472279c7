//! The builder's report on a finished block.

/// Statistics of one block that a builder has finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockSummary {
    /// Number of messages.
    pub count: usize,
    /// Key and value bytes before encoding.
    pub raw_bytes: usize,
    /// Bytes of the frame on disk.
    pub bytes: usize,
    /// The frame's checksum ([`frame_checksum`](crate::frame_checksum)).
    pub checksum: u64,
}
