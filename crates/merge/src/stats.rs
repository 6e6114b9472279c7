//! Counters of merges.

/// What a [`FoldMerge`](crate::FoldMerge) has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FoldStats {
    /// Messages taken from the sources.
    pub entries_in: u64,
    /// Messages handed out.
    pub entries_out: u64,
    /// Puts dropped because nobody can see them, those by reference included.
    pub dropped_puts: u64,
    /// Deletes dropped: nobody can see them, or nothing is left for them to hide.
    pub dropped_deletes: u64,
    /// Updates dropped or folded into other messages.
    pub dropped_updates: u64,
}

/// What a [`VisibleMerge`](crate::VisibleMerge) has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VisibleStats {
    /// Messages taken from the sources.
    pub entries_in: u64,
    /// Entries handed out. The rest was stepped over.
    pub entries_out: u64,
    /// Deletes, and messages under a range delete, that were stepped over as the newest of their
    /// key (rule 15).
    pub deletes_passed: u64,
    /// Deletes passed since the last entry handed out.
    pub deletes_in_a_row: u64,
}
