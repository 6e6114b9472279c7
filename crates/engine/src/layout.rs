//! Names in the directory of a database; data files, log segments and the manifest have their own.

/// Name of the lock file in the database directory.
pub(crate) const LOCK_FILE: &str = "LOCK";
/// Name of the log's directory in the database directory.
pub const LOG_DIR: &str = "wal";
