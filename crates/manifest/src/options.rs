//! The options of the manifest.

/// How the manifest is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestOptions {
    /// Space that is taken ahead of the end of the file, bytes, so that edits (of deletes and
    /// drops, which free space) can be logged on a full disk. 0 takes none. Default 1 MiB.
    pub reserve_bytes: u64,
}

impl Default for ManifestOptions {
    fn default() -> Self {
        Self { reserve_bytes: 1 << 20 }
    }
}
