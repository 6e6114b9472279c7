//! Counters of merges.

/// Work of a [`FoldMerge`](crate::FoldMerge) so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FoldStats {
    /// Messages taken from the sources. A message that two sources have counts once.
    pub entries_in: u64,
    /// Messages returned.
    pub entries_out: u64,
    /// Puts dropped because no reader can see them, or folded with updates into a newer put.
    /// Includes puts by reference.
    pub dropped_puts: u64,
    /// Deletes dropped because no reader can see them, because nothing is left for them to hide, or
    /// because the updates above them became a put.
    pub dropped_deletes: u64,
    /// Updates dropped or folded into other messages.
    pub dropped_updates: u64,
}

/// Work of a [`VisibleMerge`](crate::VisibleMerge) so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VisibleStats {
    /// Messages taken from the sources, also messages that the reader does not see.
    pub entries_in: u64,
    /// Entries returned, one for each visible key.
    pub entries_out: u64,
    /// Keys whose newest visible message was a delete, or was hidden by a range delete, and that
    /// were skipped for that reason (rule 15). Keys that would not have been skipped without the
    /// writes of the reader's transaction and its overlay do not count, nor do keys whose newest
    /// visible message is one of these writes.
    pub deletes_passed: u64,
    /// The number of other keys that were skipped because of a delete or a range delete.
    pub own_deletes_passed: u64,
}
