//! Layer 9: transactions and bulk loads. A transaction has private writes, locks and a snapshot
//! over any number of trees; a bulk load commits like a transaction.
//!
//! | file | role |
//! |---|---|
//! | `context.rs` | [`Transactions`], handles of the parts that all transactions use |
//! | `transaction/`, `options.rs` | a transaction: reads, writes, cursors, commit and rollback |
//! | `prepared.rs`, `two_phase.rs` | prepared transactions, which wait for their coordinator |
//! | `registry.rs` | the transaction registry: lists the live transactions |
//! | `pool.rs` | the object pool, which reuses the memory of ended transactions |
//! | `spilling.rs` | writes large write sets to disk before their commit |
//! | `batch_locks.rs` | locks of plain batches |
//! | `quiesce.rs` | a snapshot that waits for all writers |
//! | `bulk/` | bulk load: sorts data outside of the trees and attaches it with one commit |

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
pub use context::{KeepOpen, Transactions};
pub use options::{Isolation, TransactionCursorOptions, TransactionOptions, Wait};
pub use prepared::Prepared;
pub use registry::{PreparedHold, TransactionInfo};
pub use spilling::Spilling;
pub use transaction::{
    BulkStatement, Committing, Savepoint, Transaction, TransactionCursor, TransactionRange,
};
pub use two_phase::lock_again;
