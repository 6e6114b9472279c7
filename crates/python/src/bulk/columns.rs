//! Columns of byte strings in two buffers, as Apache Arrow has them: the bytes of all strings one
//! after the other, and the offset at which each string begins and the last one ends.
//!
//! Another thread may change or free the memory of a buffer while a call runs without the
//! interpreter lock. So pieces of a column are copied with the lock held, which takes a hundredth
//! of the time that the load of the rows takes.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};

use crate::errors;

/// Byte strings in two buffers. The offsets are copied and checked.
pub(super) struct Column<'py> {
    name: &'static str,
    offsets: Vec<usize>,
    /// A `memoryview` of single bytes.
    data: Bound<'py, PyAny>,
}

/// Copies of some strings.
pub(super) struct Piece<'a, 'py> {
    bytes: Bound<'py, PyBytes>,
    /// The offset of the first byte in the column.
    first: usize,
    offsets: &'a [usize],
}

impl Piece<'_, '_> {
    /// Returns the strings. The iterator may move to a thread without the interpreter lock.
    pub(super) fn strings(&self) -> impl Iterator<Item = &[u8]> + Send {
        let (bytes, first) = (self.bytes.as_bytes(), self.first);
        self.offsets.windows(2).map(move |ends| &bytes[ends[0] - first..ends[1] - first])
    }
}

impl<'py> Column<'py> {
    /// # Errors
    /// `TypeError` for an object that is no buffer, or has other elements; `Invalid` for offsets
    /// that descend or lead out of the data.
    pub(super) fn new(
        name: &'static str,
        offsets: &Bound<'py, PyAny>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let no_data = |_| {
            let kind = "a bytes-like object in one piece of memory";
            PyTypeError::new_err(format!("{name}_data is not {kind}"))
        };
        let data = PyMemoryView::from(data).map_err(no_data)?;
        let data = data.call_method1("cast", ("B",)).map_err(no_data)?;
        let column = Self { name, offsets: integers(offsets.py(), name, offsets)?, data };
        column.check()?;
        Ok(column)
    }

    fn check(&self) -> PyResult<()> {
        let Self { name, offsets, data } = self;
        let Some(&last) = offsets.last() else {
            return Err(errors::invalid(format!(
                "{name}_offsets is empty; it has one more number than there are rows"
            )));
        };
        if let Some(row) = offsets.windows(2).position(|ends| ends[0] > ends[1]) {
            return Err(errors::invalid(format!("{name}_offsets descend at row {row}")));
        }
        let bytes = data.len()?;
        if last > bytes {
            return Err(errors::invalid(format!(
                "{name}_offsets end at {last}, and {name}_data has {bytes} bytes"
            )));
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// # Errors
    /// `Invalid` if the columns have different numbers of rows.
    pub(super) fn check_rows_of(&self, other: &Self) -> PyResult<()> {
        let (rows, others) = (self.rows(), other.rows());
        if rows == others {
            return Ok(());
        }
        Err(errors::invalid(format!(
            "there are {rows} {}s and {others} {}s; each row has one of both",
            self.name, other.name
        )))
    }

    /// Returns how many rows from `row` on have at most `bytes` bytes, at least 1.
    pub(super) fn rows_within(&self, row: usize, bytes: usize) -> usize {
        let end = self.offsets[row].saturating_add(bytes);
        let rest = &self.offsets[row + 1..];
        rest.partition_point(|&offset| offset <= end).max(1)
    }

    /// Copies rows.
    ///
    /// # Errors
    /// `ValueError` if the caller released a `memoryview` meanwhile.
    pub(super) fn copy(&self, row: usize, rows: usize) -> PyResult<Piece<'_, 'py>> {
        let offsets = &self.offsets[row..=row + rows];
        let (first, end) = (offsets[0], offsets[rows]);
        let slice = PySlice::new(self.data.py(), first as isize, end as isize, 1);
        let bytes = self.data.get_item(slice)?.call_method0("tobytes")?;
        Ok(Piece { bytes: bytes.cast_into()?, first, offsets })
    }
}

/// Copies a buffer of integers of 4 or 8 bytes.
fn integers(py: Python<'_>, name: &str, buffer: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    /// Converts integers, or returns the first that is negative.
    fn offsets<T: Copy + Into<i128>>(integers: Vec<T>) -> Result<Vec<usize>, i128> {
        let offset = |integer: T| usize::try_from(integer.into()).map_err(|_| integer.into());
        integers.into_iter().map(offset).collect()
    }
    // An empty array may have no address, or one that is not aligned.
    if PyMemoryView::from(buffer).is_ok() && buffer.len().is_ok_and(|numbers| numbers == 0) {
        return Ok(Vec::new());
    }
    let converted = if let Ok(buffer) = PyBuffer::<i32>::get(buffer) {
        offsets(buffer.to_vec(py)?)
    } else if let Ok(buffer) = PyBuffer::<i64>::get(buffer) {
        offsets(buffer.to_vec(py)?)
    } else if let Ok(buffer) = PyBuffer::<u32>::get(buffer) {
        offsets(buffer.to_vec(py)?)
    } else if let Ok(buffer) = PyBuffer::<u64>::get(buffer) {
        offsets(buffer.to_vec(py)?)
    } else {
        return Err(PyTypeError::new_err(format!(
            "{name}_offsets is a buffer of aligned integers of 4 or 8 bytes, such as \
             array.array(\"q\"), a numpy array, or memoryview(buffer).cast(\"i\") of an Arrow buffer"
        )));
    };
    converted.map_err(|integer| errors::invalid(format!("{name}_offsets has {integer}")))
}
