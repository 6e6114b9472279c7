//! What long calls report: objects with fields.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Makes a class with a field for each field of a report of the engine.
macro_rules! reports {
    ($($(#[doc = $doc:literal])* $name:ident of $from:ty, |$report:ident| {
        $($field:ident: $type:ty = $value:expr,)*
    })*) => {
        $($(#[doc = $doc])*
        #[pyclass(frozen, get_all, module = "frondb")]
        pub(crate) struct $name {
            $($field: $type,)*
        }

        impl From<$from> for $name {
            fn from($report: $from) -> Self {
                Self { $($field: $value,)* }
            }
        }

        #[pymethods]
        impl $name {
            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let fields = [$({
                    let value = self.$field.clone().into_bound_py_any(py)?;
                    format!("{}={}", stringify!($field), value.repr()?)
                }),*];
                Ok(format!("{}({})", stringify!($name), fields.join(", ")))
            }
        })*
    };
}

reports! {
    /// The result of a backup.
    BackupReport of frondb::BackupReport, |report| {
        bytes: u64 = report.bytes,
        database_bytes: u64 = report.database_bytes,
        log_bytes: u64 = report.log_bytes,
        log_end: u64 = report.log_end,
        is_incremental: bool = report.is_incremental,
    }

    /// The result of a restore.
    RestoreReport of frondb::RestoreReport, |report| {
        bytes: u64 = report.bytes,
        log_end: u64 = report.log_end,
    }

    /// What a backup contains.
    BackupContents of frondb::BackupContents, |report| {
        bytes: u64 = report.bytes,
        database_bytes: u64 = report.database_bytes,
        log_end: u64 = report.log_end,
        is_incremental: bool = report.is_incremental,
        faults: Vec<String> = report.faults,
    }

    /// The result of a bulk load.
    BulkReport of frondb::BulkReport, |report| {
        entries: u64 = report.entries,
        duplicates: u64 = report.duplicates,
        raw_bytes: u64 = report.raw_bytes,
        sorted_runs: u64 = report.sorted_runs,
    }

    /// The result of a verification.
    VerifyReport of frondb::VerifyReport, |report| {
        runs: u64 = report.runs,
        entries: u64 = report.entries,
        values: u64 = report.values,
        bytes: u64 = report.bytes,
        faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect(),
    }

    /// The result of an optimize.
    OptimizeReport of frondb::OptimizeReport, |report| {
        leaves: u64 = report.leaves,
        rewritten: u64 = report.rewritten,
        held: u64 = report.held,
        failed: u64 = report.failed,
        failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect(),
        disk_bytes_before: u64 = report.disk_bytes.0,
        disk_bytes_after: u64 = report.disk_bytes.1,
    }

    /// An estimate of a range.
    Estimate of frondb::RangeEstimate, |estimate| {
        entries: u64 = estimate.entries,
        disk_bytes: u64 = estimate.disk_bytes,
    }
}

/// Returns statistics by name.
pub(crate) fn statistics<'py>(
    py: Python<'py>,
    values: Vec<(&'static str, u64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in values {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
