//! [`Bounds`]: when a locker packs or joins its locks next, to bound their memory.

/// The thresholds of one locker; `escalate.rs` explains them.
#[derive(Default)]
pub(crate) struct Bounds {
    /// Bytes of the locker's locks after it last packed its rows; 0 if it never has.
    pub(crate) packed: u64,
    /// Bytes of the locker's locks after the last attempt to join neighbours; 0 if they are at most
    /// half of the share.
    pub(crate) left: u64,
    /// If that attempt saved hardly anything: bytes of the other lockers' locks then; else `None`.
    pub(crate) in_vain: Option<u64>,
    /// Bytes of all locks when they last were above `FULL` times their limit and this locker was
    /// above its share, so that its requests fail. 0 if its requests need not fail.
    pub(crate) full_at: u64,
}
