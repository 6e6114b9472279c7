//! [`FilterPolicy`]: which runs of a tree get filters.

/// Which runs of a tree get filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterPolicy {
    /// No filters: lookups read a block of every run whose key range contains the key.
    None,
    /// Filters over whole keys, on runs and on the base: for trees that are searched by full key.
    Full,
    /// Filters over whole keys, on runs but not on the base.
    Runs,
    /// Filters over this many first bytes of keys, on runs only: for indexes that are scanned by
    /// prefix. If the bounds of a cursor or count share these bytes, it reads no block of a run
    /// that has no key with them; longer bounds work too, but a shorter prefix cannot use the
    /// filters. Shorter keys are hashed whole.
    Prefix(u16),
}
