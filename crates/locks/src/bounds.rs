//! [`Bounds`]: when a locker next packs or joins its locks, to bound their memory.

/// See `escalate.rs`.
#[derive(Default)]
pub(crate) struct Bounds {
    /// The locker packs its rows when its locks take more bytes than this and than its share.
    pub(crate) pack_at: u64,
    /// Bytes left by the last attempt to join neighbours; 0 if that is at most half of the share.
    pub(crate) left: u64,
    /// Bytes of the other lockers' locks at that attempt, if it saved hardly anything.
    pub(crate) in_vain: Option<u64>,
    /// Bytes of all locks when this locker, above its share, last found them to exceed `FULL` times
    /// their limit: its requests fail. 0 if they need not fail.
    pub(crate) full_at: u64,
}
