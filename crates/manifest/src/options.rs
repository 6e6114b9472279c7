//! The options of the manifest.

/// Options of a manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestOptions {
    /// Bytes of space allocated ahead of the end of the file, so that edits (of deletes and drops,
    /// which free space) can be logged on a full disk. 0 allocates nothing. Default 1 MiB.
    pub reserve_bytes: u64,
}

impl Default for ManifestOptions {
    fn default() -> Self {
        Self { reserve_bytes: 1 << 20 }
    }
}
