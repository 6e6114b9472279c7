//! FronDB for Python: the native module `frondb._frondb`, which the package in `python/frondb`
//! presents as `frondb`.
//!
//! # Rules
//! - Every call of the engine runs without the interpreter lock ([`errors::detached`]). A thread
//!   never waits for a latch of the engine or of this crate while it holds the interpreter lock: the
//!   holder of the latch may need the interpreter lock.
//! - A handle is used and dropped only by the process that made it ([`process::Owned`]).
//! - All classes are frozen and may be used by any thread; an object for one thread at a time
//!   raises `Busy` in a second one.
//!
//! ```text
//!  process.rs    forked processes              database.rs     Db, open
//!  errors.rs     exceptions                    tree.rs         Tree
//!  bytes.rs      bytes-like arguments          rows.rs         ranges, iterators, on scan.rs
//!  arguments.rs  other arguments               batch.rs        Batch, on writes.rs
//!  options.rs    options by name               transaction.rs  Transaction
//!  handle.rs     what objects share            bulk.rs         BulkLoad, BulkWriter
//!  progress.rs   long calls, Ctrl-C            files.rs        restore, verify_backup
//! ```

mod arguments;
mod batch;
mod bulk;
mod bytes;
mod counter;
mod database;
mod errors;
mod files;
mod handle;
mod options;
mod process;
mod progress;
mod report;
mod rows;
mod savepoint;
mod scan;
mod snapshot;
mod transaction;
mod tree;
mod writes;

use pyo3::prelude::*;

#[pymodule]
mod _frondb {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        batch::Batch,
        bulk::{BulkLoad, BulkWriter},
        database::{Db, open},
        files::{restore, verify_backup},
        report::{
            BackupContents, BackupReport, BulkReport, Estimate, OptimizeReport, RestoreReport,
            VerifyReport,
        },
        rows::Rows,
        savepoint::Savepoint,
        snapshot::Snapshot,
        transaction::Transaction,
        tree::Tree,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::errors::register(module.py())?;
        super::process::register(module.py())
    }
}
