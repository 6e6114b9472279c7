//! [`LogPins`]: what needs old records of the log, beside the memtables.

use frondb_core::{Lsn, Result};

/// What needs old records of the log, beside the memtables: prepared transactions.
pub trait LogPins: Send + Sync {
    /// The first position of the log that one of them needs; `Lsn::MAX` if none needs any.
    fn needed_from(&self) -> Lsn;

    /// Writes to disk what still needs the log below `limit`, so that it needs it no more.
    ///
    /// # Errors
    /// `NoSpace`: those not reached yet are unchanged. Errors of reading and writing runs.
    fn unpin(&self, limit: Lsn) -> Result<()>;
}
