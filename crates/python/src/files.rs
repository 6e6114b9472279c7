//! Calls on databases and backups that are not open.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::options;
use crate::process;
use crate::progress::Progress;
use crate::report::{BackupContents, RestoreReport};

/// Makes a database in the directory `to` from a full backup and the incremental ones after it.
#[pyfunction]
#[pyo3(signature = (backups, to, *, file_mode=None, dir_mode=None, progress=None))]
pub(crate) fn restore(
    py: Python<'_>,
    backups: Vec<PathBuf>,
    to: PathBuf,
    file_mode: Option<u32>,
    dir_mode: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<RestoreReport> {
    process::check_parent()?;
    let mut options = options::of_database(None, None)?;
    if let Some(mode) = file_mode {
        options = options.file_mode(mode);
    }
    if let Some(mode) = dir_mode {
        options = options.dir_mode(mode);
    }
    let report = Progress::during(py, progress, |progress| {
        let tell = &mut |done, total| progress.tell(done, total);
        frondb::Db::restore(&backups, &to, &options, tell)
    })?;
    Ok(report.into())
}

/// Reads the backup in a directory and checks all its bytes with their checksums.
#[pyfunction]
#[pyo3(signature = (backup, *, progress=None))]
pub(crate) fn verify_backup(
    py: Python<'_>,
    backup: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<BackupContents> {
    process::check_parent()?;
    let contents = Progress::during(py, progress, |progress| {
        frondb::Db::verify_backup(&backup, &mut |done, total| progress.tell(done, total))
    })?;
    Ok(contents.into())
}
