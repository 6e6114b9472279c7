//! What a builder reports of a finished block.

/// Facts about one encoded block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockSummary {
    /// Messages.
    pub count: usize,
    /// Key and value bytes that went in.
    pub raw_bytes: usize,
    /// Bytes of the frame on disk.
    pub bytes: usize,
    /// The frame's checksum ([`frame_checksum`](crate::frame_checksum)).
    pub checksum: u64,
}
