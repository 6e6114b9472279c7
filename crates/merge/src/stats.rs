//! Counters of merges.

/// Work of a [`FoldMerge`](crate::FoldMerge) so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FoldStats {
    /// Messages taken from the sources.
    pub entries_in: u64,
    /// Messages returned.
    pub entries_out: u64,
    /// Puts dropped because no reader can see them, including puts by reference.
    pub dropped_puts: u64,
    /// Deletes dropped because no reader can see them, or because nothing is left for them to hide.
    pub dropped_deletes: u64,
    /// Updates dropped or folded into other messages.
    pub dropped_updates: u64,
}

/// Work of a [`VisibleMerge`](crate::VisibleMerge) so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VisibleStats {
    /// Messages taken from the sources.
    pub entries_in: u64,
    /// Entries returned. All other messages were skipped.
    pub entries_out: u64,
    /// Deletes, and messages hidden by a range delete, that were skipped as the newest message of
    /// their key (rule 15).
    pub deletes_passed: u64,
    /// The transaction's own deletes that were skipped.
    pub own_deletes_passed: u64,
    /// Deletes skipped since the last entry that was returned.
    pub deletes_in_a_row: u64,
}
