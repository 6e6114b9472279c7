//! [`Snapshot`]: a fixed state of the whole database to read at.

use frondb_core::SeqNo;

/// A fixed state of the whole database to read at. Cheap to take, to clone and to drop. While a
/// snapshot lives, merges keep the messages that it sees. Any thread may use it.
#[derive(Clone)]
pub struct Snapshot {
    held: frondb_locks::Snapshot,
    engine: u64,
}

impl Snapshot {
    /// Creates a snapshot of the open database `engine`.
    #[must_use]
    pub fn new(held: frondb_locks::Snapshot, engine: u64) -> Self {
        Self { held, engine }
    }

    /// Returns the SeqNo of the newest message that the snapshot sees.
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.held.seq()
    }

    /// Returns the number of the open database that the snapshot belongs to.
    #[must_use]
    pub fn engine_id(&self) -> u64 {
        self.engine
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({})", self.seq())
    }
}
