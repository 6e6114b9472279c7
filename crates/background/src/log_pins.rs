//! [`LogPins`]: the part of the log that prepared transactions need.

use frondb_core::{Lsn, Result};

/// The prepared transactions, which need old records of the log as memtables do. A checkpoint asks
/// for the first position that they need, and moves their writes out of the log.
pub trait LogPins: Send + Sync {
    /// Returns the first position of the log that a prepared transaction needs; `Lsn::MAX` if no
    /// prepared transaction needs the log.
    fn needed_from(&self) -> Lsn;

    /// Writes the prepared transactions that need the log below `limit` to disk. They do not need
    /// the log afterwards.
    ///
    /// # Errors
    /// `NoSpace`, after which the prepared transactions that the call did not reach are unchanged.
    /// Errors of reading and writing runs.
    fn unpin(&self, limit: Lsn) -> Result<()>;
}
