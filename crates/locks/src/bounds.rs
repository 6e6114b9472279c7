//! [`Bounds`]: when a locker joins its locks next.

/// The conditions under which a locker next bounds its memory.
#[derive(Default)]
pub(crate) struct Bounds {
    /// The locker packs its rows when its locks take more bytes than this and than its share.
    pub(crate) pack_at: u64,
    /// Bytes left by the last attempt to join neighbours; 0 if that is at most half of the share.
    pub(crate) left: u64,
    /// Bytes of the other lockers' locks at that attempt, if it saved hardly anything.
    pub(crate) in_vain: Option<u64>,
    /// Bytes of all locks when this locker last could not free memory while all locks together took
    /// `FULL` times their limit; 0 if that does not apply.
    pub(crate) full_at: u64,
}
