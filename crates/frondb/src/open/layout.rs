//! Names in a database directory, except the names of data files, log segments and the manifest.

/// Name of the lock file in the database directory.
pub(crate) const LOCK_FILE: &str = "LOCK";
/// Name of the log's directory in the database directory.
pub(crate) const LOG_DIR: &str = "wal";
