//! Layer 9: transactions: private writes, locks and snapshots over any number of trees, and what commits
//! like one.
//!
//! | file | role |
//! |---|---|
//! | `context.rs` | what transactions share: [`Transactions`] |
//! | `transaction/`, `options.rs` | a transaction: reads, writes, cursors, commit and rollback |
//! | `prepared.rs`, `two_phase.rs` | transactions that wait for their coordinator |
//! | `registry.rs`, `pool.rs`, `spilling.rs` | which there are; memory of ended ones; write sets on disk |
//! | `batch_locks.rs` | locks of plain batches |
//! | `quiesce.rs` | a snapshot behind all writers |
//! | `bulk/` | unsorted data, sorted outside of the trees and attached with one commit |

mod batch_locks;
mod bulk;
mod context;
mod options;
mod pool;
pub mod prepared;
mod quiesce;
mod registry;
mod spilling;
mod transaction;
mod two_phase;

pub use batch_locks::BatchLocks;
pub use bulk::{
    BulkLoad, BulkOptions, BulkProgress, BulkReport, BulkWriter, Duplicate, Duplicates,
};
pub use context::{Transactions, TransactionsParts};
pub use options::{Isolation, TransactionOptions, Wait};
pub use prepared::Prepared;
pub use registry::{PreparedHold, TransactionInfo};
pub use spilling::Spilling;
pub use transaction::{
    Committing, KeepOpen, ReadLock, Savepoint, Transaction, TransactionCursor,
    TransactionCursorOptions,
};
pub use two_phase::lock_again;
