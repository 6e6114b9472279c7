//! Names in a database directory: the lock file and the log's directory.

/// Name of the lock file in the database directory.
pub(crate) const LOCK_FILE: &str = "LOCK";
/// Name of the log's directory in the database directory.
pub(crate) const LOG_DIR: &str = "wal";
