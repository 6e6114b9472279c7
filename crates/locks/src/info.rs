//! Descriptions of locks and waits for the status and for messages. Locking itself never needs
//! these descriptions.

use std::fmt::Write;
use std::time::Duration;

use frondb_core::TreeId;

use crate::class::{Class, LockMode};
use crate::key::{Area, Extent, Key, UpperBound};
use crate::queue::Request;

/// Maximum bytes of a key in a message.
const SHOWN_BYTES: usize = 48;

/// The keys that a lock covers. Ranges are half-open: `hi` is the first key that is not covered, or
/// `None` if the range has no end. A range that includes key `k` as its last key has `hi` = `k` and
/// a zero byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Locked {
    /// One key.
    Row {
        /// The key.
        key: Vec<u8>,
    },
    /// A gap: keys where a locking read found no row.
    Gap {
        /// First key of the gap.
        lo: Vec<u8>,
        /// First key after the gap.
        hi: Option<Vec<u8>>,
    },
    /// Rows and gaps that a locking scan passed.
    Scanned {
        /// First key of the range.
        lo: Vec<u8>,
        /// First key after the range.
        hi: Option<Vec<u8>>,
    },
    /// All keys of a range: a range lock that was requested, or the result of joining many rows.
    Range {
        /// First key of the range.
        lo: Vec<u8>,
        /// First key after the range.
        hi: Option<Vec<u8>>,
    },
}

/// A lock that a transaction holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockInfo {
    /// Id of the transaction.
    pub transaction: u64,
    /// The tree that contains these keys.
    pub tree: TreeId,
    /// The keys that are locked.
    pub locked: Locked,
    /// The mode of the lock.
    pub mode: LockMode,
}

/// A lock for which a transaction waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitInfo {
    /// Id of the waiting transaction.
    pub transaction: u64,
    /// The tree that contains these keys.
    pub tree: TreeId,
    /// The keys that are requested.
    pub wanted: Locked,
    /// The requested mode.
    pub mode: LockMode,
    /// Ids of the transactions for which this one waits, ascending: they hold conflicting locks, or
    /// their conflicting requests go before this one (earlier requests and upgrades).
    pub blockers: Vec<u64>,
    /// Length of the transaction's current lock wait.
    pub waited: Duration,
}

/// Counters of a lock manager since it was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCounts {
    /// Requests that had to wait.
    pub waits: u64,
    /// Transactions chosen as the victim of a deadlock.
    pub deadlocks: u64,
    /// Waits that timed out.
    pub timeouts: u64,
    /// Number of times that locks of a transaction were joined into ranges because of the memory
    /// limit.
    pub escalations: u64,
    /// Total duration of waits that have ended.
    pub waited: Duration,
}

/// Counters of a lock manager, and the locks that it holds now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockStats {
    /// Counters since the lock manager was created.
    pub counts: LockCounts,
    /// Number of requests waiting now.
    pub waiting: u64,
    /// Number of keys locked now as rows. A key that several transactions share counts once among
    /// the rows that are not packed, and once in each pack.
    pub rows: u64,
    /// Number of gaps and ranges locked now.
    pub ranges: u64,
    /// Estimated bytes of these locks, without the heap memory of long keys.
    pub bytes: u64,
}

pub(crate) fn locked(area: Area) -> Locked {
    let lo = area.lo.as_slice().to_vec();
    let hi = match area.extent {
        Extent::Row => return Locked::Row { key: lo },
        Extent::To(hi) => hi.map(|hi| hi.as_slice().to_vec()),
    };
    match area.class {
        Class::Gap => Locked::Gap { lo, hi },
        Class::ScanShared | Class::ScanExclusive => Locked::Scanned { lo, hi },
        _ => Locked::Range { lo, hi },
    }
}

/// Describes a request: `exclusive lock on row "abc"`. The caller, which knows the tree's name,
/// adds that name to the error.
pub(crate) fn describe(want: &Request) -> String {
    let mode = want.mode().name();
    let on = match want {
        Request::Row { key, .. } => format!("row {}", show(key)),
        Request::Step { row, lo, hi, .. } => {
            format!("row {} and {}", show(row), show_range(lo, hi))
        }
        Request::Range { lo, hi, class: Class::Gap } => format!("gap {}", show_range(lo, hi)),
        Request::Range { lo, hi, .. } => format!("range {}", show_range(lo, hi)),
    };
    format!("{mode} lock on {on}")
}

fn show_range(lo: &Key, hi: &UpperBound) -> String {
    match hi {
        Some(hi) => format!("[{}, {})", show(lo), show(hi)),
        None => format!("[{}, end)", show(lo)),
    }
}

/// Returns a key in quotes, escaped, and truncated if it is long.
fn show(key: &Key) -> String {
    let bytes = key.as_slice();
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let mut text = format!("\"{}\"", shown.escape_ascii());
    if shown.len() < bytes.len() {
        // Writing to a string does not fail.
        let _ = write!(text, "... ({} bytes)", bytes.len());
    }
    text
}

/// Lists the first eight ids, and the number of the others.
pub(crate) fn ids(ids: &[u64]) -> String {
    let shown: Vec<String> = ids.iter().take(8).map(u64::to_string).collect();
    let more = ids.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}
