//! [`LogPins`]: what needs old records of the log, besides the memtables.

use frondb_core::{Lsn, Result};

/// What needs old records of the log, besides the memtables: prepared transactions.
pub trait LogPins: Send + Sync {
    /// The first position of the log that a prepared transaction needs; `Lsn::MAX` if none needs
    /// any.
    fn needed_from(&self) -> Lsn;

    /// Writes the prepared transactions that need the log below `limit` to disk, which ends that
    /// need.
    ///
    /// # Errors
    /// `NoSpace`: the prepared transactions not reached yet are unchanged. Errors of reading and
    /// writing runs.
    fn unpin(&self, limit: Lsn) -> Result<()>;
}
