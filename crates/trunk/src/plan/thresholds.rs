//! The fixed thresholds of the planner.

/// A leaf with more range deletes than this is rewritten (rule 14).
pub const RANGE_DELETES_MAX: usize = 64;

/// A base with more views than this is merged, so that small appends are consolidated from time to
/// time. If the percentage of garbage in the leaf is at least half of `garbage_percent`, the leaf
/// is rewritten instead.
pub const BASE_VIEWS_MAX: usize = 16;

/// A tombstone run longer than this makes a leaf worth rewriting immediately (rule 15). A reader
/// may have to step over two such runs, one in a memtable and one whose compaction is in progress,
/// and over the hidden put below each delete: 128 Ki messages in total.
pub const TOMBSTONE_RUN: u64 = 32 * 1024;

/// A tombstone run longer than this is worth a prefix truncation if it lies at the beginning of the
/// leaf (rule 15). The truncation reads the deletes and the messages that they hide once and writes
/// nothing, so it pays off early.
pub const TRUNCATION_RUN: u64 = 8 * 1024;

/// Rewriting a byte is assumed to cost this many times as much as reading and merging it in a scan.
pub const SCAN_DEBT_FACTOR: u64 = 4;

/// Divisor: a leaf is packed only if its runs are at most 1/4 of its base, and while the database
/// is not idle, only if also 1/4 of the base is unpacked.
pub(super) const PACK_PART: u64 = 4;

/// Divisor: when the database is idle, a leaf is packed if 1/16 of its base is unpacked.
pub(super) const PACK_IDLE_PART: u64 = 16;

/// Two leaves are joined only if they have at most this many runs together.
pub(super) const JOIN_RUNS_MAX: usize = 4;
