//! Counts of the engine's actions in a history.

/// Counts of the engine's actions in a history, which show whether a test exercised the engine.
/// Sums over all times that the database was open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Largest height of a tree.
    pub height_max: u64,
    /// Largest number of leaves in all trees.
    pub leaves_max: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Merges of runs, and of parts of a leaf's base.
    pub merges: u64,
    /// Bases rewritten.
    pub rewrites: u64,
    /// Bases rewritten because of scan debt (the additional bytes that scans of a leaf have read
    /// because it has several runs).
    pub scan_rewrites: u64,
    /// Inner nodes flushed.
    pub node_flushes: u64,
    /// Memtables logged again.
    pub relogs: u64,
    /// Manifests replaced.
    pub manifest_rotations: u64,
    /// Records of the log replayed.
    pub replayed: u64,
    /// Trees created, renamed, changed to another codec, and dropped.
    pub catalog_changes: [u64; 4],
    /// Parts of large transactions written to disk.
    pub spills: u64,
    /// Bulk statements finished.
    pub bulk_statements: u64,
    /// Transactions attached as runs of their own.
    pub attaches: u64,
    /// Trees that were stowed after an operation.
    pub stowed: u64,
}

impl Coverage {
    /// Adds the coverage of another history.
    pub fn add(&mut self, other: &Self) {
        self.height_max = self.height_max.max(other.height_max);
        self.leaves_max = self.leaves_max.max(other.leaves_max);
        self.flushes += other.flushes;
        self.merges += other.merges;
        self.rewrites += other.rewrites;
        self.scan_rewrites += other.scan_rewrites;
        self.node_flushes += other.node_flushes;
        self.relogs += other.relogs;
        self.manifest_rotations += other.manifest_rotations;
        self.replayed += other.replayed;
        for (sum, other) in self.catalog_changes.iter_mut().zip(other.catalog_changes) {
            *sum += other;
        }
        self.spills += other.spills;
        self.bulk_statements += other.bulk_statements;
        self.attaches += other.attaches;
        self.stowed += other.stowed;
    }
}
