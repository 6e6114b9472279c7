//! [`LogPins`]: which part of the log prepared transactions need, and how a checkpoint ends that
//! need.

use frondb_core::{Lsn, Result};

/// The prepared transactions, which like memtables need old records of the log. A checkpoint reads
/// the first position that they need, and moves their writes out of the log.
pub trait LogPins: Send + Sync {
    /// The first position of the log that a prepared transaction needs; `Lsn::MAX` if no prepared
    /// transaction needs the log.
    fn needed_from(&self) -> Lsn;

    /// Writes the prepared transactions that need the log below `limit` to disk. They do not need
    /// the log afterwards.
    ///
    /// # Errors
    /// `NoSpace`: the prepared transactions not reached yet are unchanged. Errors of reading and
    /// writing runs.
    fn unpin(&self, limit: Lsn) -> Result<()>;
}
