//! [`LogPins`]: what else needs old records of the log.

use frondb_core::{Lsn, Result};

/// What keeps old records of the log beside the memtables: prepared transactions.
pub trait LogPins: Send + Sync {
    /// Where the log begins that one of them needs; `Lsn::MAX` if none does.
    fn needed_from(&self) -> Lsn;

    /// Makes those that need the log below `limit` need it no more.
    ///
    /// # Errors
    /// `NoSpace`: those not reached yet are as they were. What reading and writing runs returns.
    fn unpin(&self, limit: Lsn) -> Result<()>;
}
