//! The options of the manifest.

/// Options of a manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestOptions {
    /// Bytes allocated ahead of the end of the file, so that edits can still be appended on a full
    /// disk, for example the edit of a drop or of a merge that frees space. 0 allocates nothing.
    /// Default 1 MiB.
    pub reserve_bytes: u64,
}

impl Default for ManifestOptions {
    fn default() -> Self {
        Self { reserve_bytes: 1 << 20 }
    }
}
