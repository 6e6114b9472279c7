//! Ranges of keys and iterators over them, as Python objects.

use std::sync::Arc;

use frondb::{CursorOptions, Snapshot, TransactionCursorOptions};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};

use crate::arguments::Keys;
use crate::bytes::Bytes;
use crate::errors;
use crate::handle::{Database, Life, OpenTransaction, OpenTree};
use crate::process::{Owned, Running};
use crate::scan::{Part, Scan, Source, part_of};

/// Rows counted between two checks for Ctrl-C.
const COUNT_ROWS: u64 = 1 << 20;

/// Returns the module with the views of ranges.
fn views(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static VIEWS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let import = || py.import("frondb._views").map(Bound::unbind);
    Ok(VIEWS.get_or_try_init(py, import)?.bind(py))
}

/// What a range reads.
pub(crate) enum Place {
    /// The newest commits, or the state of a snapshot.
    Tree(Option<Arc<Snapshot>>),
    /// What a transaction sees; the options name its locks.
    Transaction(Arc<OpenTransaction>, TransactionCursorOptions, bool),
}

struct Contents {
    tree: OpenTree,
    place: Place,
    keys: Keys,
    is_reverse: bool,
}

/// The rows of a range. `frondb/_views.py` makes the views of it that users see.
#[pyclass(frozen, module = "frondb._frondb")]
pub(crate) struct Range {
    contents: Owned<Contents>,
}

impl Range {
    pub(crate) fn new(tree: OpenTree, place: Place, keys: Keys, is_reverse: bool) -> Self {
        Self { contents: Owned::new(Contents { tree, place, keys, is_reverse }) }
    }

    pub(crate) fn iterate(&self, py: Python<'_>, part: Part, flip: bool) -> PyResult<Rows> {
        self.contents.get()?.rows(py, part, flip)
    }

    /// Returns the view of the range that shows this part of its rows.
    pub(crate) fn view<'py>(
        py: Python<'py>,
        part: Part,
        tree: OpenTree,
        place: Place,
        keys: Keys,
        is_reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = match part {
            Part::Keys => "Keys",
            Part::Values => "Values",
            Part::Items => "Items",
        };
        let range = Self::new(tree, place, keys, is_reverse);
        views(py)?.getattr(class)?.call1((range,))
    }
}

#[pymethods]
impl Range {
    /// Returns an iterator over the rows, in the other direction if `flip` is set.
    fn rows(&self, py: Python<'_>, part: &str, flip: bool) -> PyResult<Rows> {
        let part = part_of(part).map_err(|error| errors::of(py, &error))?;
        self.iterate(py, part, flip)
    }

    /// Counts the rows.
    pub(crate) fn count(&self, py: Python<'_>) -> PyResult<usize> {
        let rows = self.iterate(py, Part::Keys, false)?;
        let scan = rows.scan.get()?;
        let mut sum = 0;
        loop {
            let (count, goes_on) = errors::detached(py, || match &mut *scan.lock() {
                Some(scan) => scan.count(COUNT_ROWS),
                None => Ok((0, false)),
            })?;
            sum += count as usize;
            if !goes_on {
                return Ok(sum);
            }
            py.check_signals()?;
        }
    }

    /// Returns the value of a key of the range.
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_, '_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Contents { tree, place, keys, .. } = self.contents.get()?;
        if !keys.contains(&key) {
            return Ok(None);
        }
        let (tree, key) = (&tree.tree, &*key);
        let value = errors::detached(py, || match place {
            Place::Tree(None) => tree.get(key),
            Place::Tree(Some(at)) => tree.get_at(key, at),
            Place::Transaction(open, ..) => open.transaction.get(tree, key),
        })?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }
}

impl Contents {
    fn rows(&self, py: Python<'_>, part: Part, flip: bool) -> PyResult<Rows> {
        let Self { tree, place, keys, is_reverse } = self;
        let ends = keys.ends();
        let (source, takes_locks, transaction) = match place {
            Place::Tree(at) => {
                let options = CursorOptions::new().range(ends);
                let options = at.iter().fold(options, |options, at| options.at(at));
                let cursor = errors::detached(py, || tree.tree.cursor_with(options))?;
                (Source::Tree(cursor), false, None)
            }
            Place::Transaction(open, options, takes_locks) => {
                let options = options.clone().range(ends);
                let cursor =
                    errors::detached(py, || open.transaction.cursor_with(&tree.tree, options))?;
                (Source::Transaction(cursor), *takes_locks, Some(Arc::clone(&open.life)))
            }
        };
        let scan = Scan::new(source, part, is_reverse ^ flip, takes_locks);
        let scan = Owned::new(Mutex::new(Some(scan)));
        let Database { life, running, .. } = &tree.database;
        Ok(Rows { scan, database: Arc::clone(life), transaction, _running: Arc::clone(running) })
    }
}

/// An iterator over a range, for one thread at a time. It ends after its first error.
#[pyclass(frozen, generic, module = "frondb")]
pub(crate) struct Rows {
    /// `None` after the end.
    scan: Owned<Mutex<Option<Scan>>>,
    database: Arc<Life>,
    transaction: Option<Arc<Life>>,
    /// After `scan`: the cursor of a transaction keeps the database open.
    _running: Arc<Running>,
}

#[pymethods]
impl Rows {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let scan = self.scan.get()?;
        self.database.check()?;
        if let Some(transaction) = &self.transaction {
            transaction.check()?;
        }
        // The holder of the latch may need the interpreter lock, so a wait here could be for ever.
        let mut guard = scan.try_lock().ok_or_else(|| errors::busy("iterator"))?;
        let Some(scan) = &mut *guard else { return Ok(None) };
        if let Some(row) = row(py, scan) {
            return row.map(Some);
        }
        match py.detach(|| scan.fill()) {
            Ok(true) => row(py, scan).transpose(),
            ended => {
                // The cursor holds a snapshot, and merges keep what a snapshot sees.
                let cursor = guard.take();
                py.detach(|| drop(cursor));
                ended.map(|_| None).map_err(|error| errors::of(py, &error))
            }
        }
    }

    /// Ends the iterator and releases its snapshot.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let scan = self.scan.get()?;
        let cursor = scan.try_lock().ok_or_else(|| errors::busy("iterator"))?.take();
        py.detach(|| drop(cursor));
        Ok(())
    }
}

/// Returns the next row that was read already.
#[inline]
fn row<'py>(py: Python<'py>, scan: &mut Scan) -> Option<PyResult<Bound<'py, PyAny>>> {
    let part = scan.part();
    let (key, value) = scan.take()?;
    Some(match part {
        Part::Keys => Ok(PyBytes::new(py, key).into_any()),
        Part::Values => Ok(PyBytes::new(py, value).into_any()),
        Part::Items => {
            let row = [PyBytes::new(py, key), PyBytes::new(py, value)];
            PyTuple::new(py, row).map(Bound::into_any)
        }
    })
}
