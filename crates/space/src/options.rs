//! Options of the space.

/// Options of [`Space`](crate::Space).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpaceOptions {
    /// Size at which a data file stops growing and the next one is created, in bytes. Files are few
    /// and large, so that each can stay open. 1 MiB to 16 TiB, default 1 TiB.
    pub file_bytes_max: u64,
    /// Maximum number of bytes by which a file grows in one step, unless a request needs more. The
    /// step is 1/16 of the file, at least 1 MiB and at most this many bytes, so a small database
    /// stays small and the file system does not fragment a large one. 1 MiB to 16 GiB, default
    /// 64 MiB.
    pub grow_bytes: u64,
    /// Bypass the operating system's cache if the file system supports it. Default true.
    pub direct: bool,
    /// Bytes of disk space that stay allocated and are used only by
    /// [`acquire_reserved`](crate::Space::acquire_reserved), so that deletes and one merge work on
    /// a full disk (rule 25). Reserved at the first acquisition. Default 0: none.
    pub reserve_bytes: u64,
    /// Limits the free space that stays allocated on disk for new extents while the engine is busy,
    /// in bytes. The free space is 1/8 of the space in use, at least 8 MiB, but not more than this
    /// limit or 1/20 of the space in use, whichever is larger. Default 64 MiB.
    pub slack_bytes: u64,
}

impl Default for SpaceOptions {
    fn default() -> Self {
        Self {
            file_bytes_max: 1 << 40,
            grow_bytes: 64 << 20,
            direct: true,
            reserve_bytes: 0,
            slack_bytes: 64 << 20,
        }
    }
}

impl SpaceOptions {
    /// Returns the options, clamped to the documented ranges.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self {
            file_bytes_max: self.file_bytes_max.clamp(1 << 20, (1 << 44) - (1 << 20)),
            grow_bytes: self.grow_bytes.clamp(1 << 20, 1 << 34),
            ..self
        }
    }
}
