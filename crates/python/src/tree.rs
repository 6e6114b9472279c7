//! Trees: reads, single writes, and the methods of a mutable mapping.

use std::sync::Arc;

use frondb::{Batch, Isolation, TransactionOptions, Wait};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::arguments::Keys;
use crate::bytes::{self, Bytes, Entry, entry};
use crate::counter;
use crate::errors::{self, detached};
use crate::handle::{Life, OpenTree};
use crate::options;
use crate::process::Owned;
use crate::progress::Progress;
use crate::report::{Estimate, OptimizeReport, VerifyReport, statistics};
use crate::rows::{Place, Range, Rows};
use crate::scan::Part;
use crate::snapshot::{self, Snapshot};
use crate::writes::{Writes, for_each_row};

/// One ordered index of a database: a mutable mapping from bytes to bytes.
#[pyclass(frozen, mapping, weakref, module = "frondb")]
pub(crate) struct Tree {
    open: Owned<OpenTree>,
    /// Whether this handle was closed.
    life: Arc<Life>,
}

impl Tree {
    pub(crate) fn new(open: OpenTree) -> Self {
        Self { open: Owned::new(open), life: Life::new("tree") }
    }

    /// # Errors
    /// `Closed`; `ForkedProcess`.
    #[inline]
    pub(crate) fn get_open(&self) -> PyResult<&OpenTree> {
        self.life.check()?;
        self.open.get()
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        at: Option<&Bound<'py, Snapshot>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (tree, at) = (&self.get_open()?.tree, snapshot::at(at)?);
        let value = detached(py, move || match &at {
            None => tree.get(key),
            Some(at) => tree.get_at(key, at),
        })?;
        Ok(bytes::value(py, value))
    }

    #[inline]
    fn write(
        &self,
        py: Python<'_>,
        sync: Option<bool>,
        fill: impl FnOnce(&mut Batch, &frondb::Tree) + Send,
    ) -> PyResult<()> {
        let open = self.get_open()?;
        detached(py, || {
            let mut batch = Batch::new();
            fill(&mut batch, &open.tree);
            open.database.write(&batch, sync)
        })
    }

    fn view<'py>(
        &self,
        py: Python<'py>,
        part: Part,
        keys: Keys,
        is_reverse: bool,
        at: Option<&Bound<'py, Snapshot>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let place = Place::Tree(snapshot::at(at)?);
        Range::view(py, part, self.get_open()?.clone(), place, keys, is_reverse)
    }

    fn all(&self) -> PyResult<Range> {
        Ok(Range::new(self.get_open()?.clone(), Place::Tree(None), Keys::default(), false))
    }
}

#[pymethods]
impl Tree {
    /// The name of the tree.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        let tree = &self.get_open()?.tree;
        Ok(py.detach(|| tree.name()))
    }

    // --- Reads ---

    /// Returns the value of a key, or `default` if the key has none.
    #[pyo3(signature = (key, default=None, *, snapshot=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_, 'py>,
        default: Option<Bound<'py, PyAny>>,
        snapshot: Option<&Bound<'py, Snapshot>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.read(py, &key, snapshot)?.map(Bound::into_any).or(default))
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let value = self.read(py, &key.extract::<Bytes<'_, '_>>()?, None)?;
        value.ok_or_else(|| PyKeyError::new_err(key.unbind()))
    }

    /// Returns whether a key has a value.
    #[pyo3(signature = (key, *, snapshot=None))]
    fn exists(
        &self,
        py: Python<'_>,
        key: Bytes<'_, '_>,
        snapshot: Option<&Bound<'_, Snapshot>>,
    ) -> PyResult<bool> {
        let (tree, at, key) = (&self.get_open()?.tree, snapshot::at(snapshot)?, &*key);
        detached(py, move || match &at {
            None => tree.exists(key),
            Some(at) => tree.exists_at(key, at),
        })
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_, '_>) -> PyResult<bool> {
        self.exists(py, key, None)
    }

    /// Returns the values of several keys as of one moment, in the order of `keys`.
    #[pyo3(signature = (keys, *, snapshot=None))]
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        snapshot: Option<&Bound<'py, Snapshot>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (tree, at) = (&self.get_open()?.tree, snapshot::at(snapshot)?);
        let objects = keys.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let keys =
            objects.iter().map(|key| key.extract()).collect::<PyResult<Vec<Bytes<'_, '_>>>>();
        let keys = keys?;
        let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        let values = detached(py, move || match &at {
            None => tree.multi_get(&keys),
            Some(at) => tree.multi_get_at(&keys, at),
        })?;
        PyList::new(py, values.iter().map(|value| value.as_ref().map(|v| PyBytes::new(py, v))))
    }

    /// Returns the row with the smallest key; `None` if the tree is empty.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Entry<'py>>> {
        let tree = &self.get_open()?.tree;
        Ok(entry(py, detached(py, || tree.first())?))
    }

    /// Returns the row with the largest key; `None` if the tree is empty.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Entry<'py>>> {
        let tree = &self.get_open()?.tree;
        Ok(entry(py, detached(py, || tree.last())?))
    }

    /// Returns a view of the rows whose keys are in `[start, stop)` and begin with `prefix`.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, snapshot=None))]
    fn items<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
        reverse: bool,
        snapshot: Option<&Bound<'py, Snapshot>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.view(py, Part::Items, Keys::new(start, stop, prefix), reverse, snapshot)
    }

    /// Returns a view of the keys of a range; otherwise as `items`.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, snapshot=None))]
    fn keys<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
        reverse: bool,
        snapshot: Option<&Bound<'py, Snapshot>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.view(py, Part::Keys, Keys::new(start, stop, prefix), reverse, snapshot)
    }

    /// Returns a view of the values of a range; otherwise as `items`.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, snapshot=None))]
    fn values<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
        reverse: bool,
        snapshot: Option<&Bound<'py, Snapshot>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.view(py, Part::Values, Keys::new(start, stop, prefix), reverse, snapshot)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        self.all()?.iterate(py, Part::Keys, false)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Rows> {
        self.all()?.iterate(py, Part::Keys, true)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.all()?.count(py)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let tree = &self.get_open()?.tree;
        detached(py, || tree.cursor()?.first())
    }

    // --- Writes ---

    /// Sets the value of a key.
    #[pyo3(signature = (key, value, *, sync=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_, '_>,
        value: Bytes<'_, '_>,
        sync: Option<bool>,
    ) -> PyResult<()> {
        let (key, value) = (&*key, &*value);
        self.write(py, sync, |batch, tree| batch.put(tree, key, value))
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: Bytes<'_, '_>,
        value: Bytes<'_, '_>,
    ) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    /// Removes a key, which need not exist; unlike `del tree[key]`, reads nothing.
    #[pyo3(signature = (key, *, sync=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_, '_>, sync: Option<bool>) -> PyResult<()> {
        let key = &*key;
        self.write(py, sync, |batch, tree| batch.delete(tree, key))
    }

    /// Removes all keys that are in `[start, stop)` and begin with `prefix`, and reads nothing.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, sync=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
        sync: Option<bool>,
    ) -> PyResult<()> {
        let keys = Keys::new(start, stop, prefix);
        keys.check_given()?;
        let (lower, upper) = keys.bounds();
        self.write(py, sync, |batch, tree| batch.delete_range(tree, lower, upper))
    }

    /// Removes all keys.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.write(py, None, |batch, tree| batch.delete_range(tree, b"", None))
    }

    fn __delitem__<'py>(&self, py: Python<'py>, key: Bound<'py, PyAny>) -> PyResult<()> {
        let open = self.get_open()?;
        let bytes = key.extract::<Bytes<'_, '_>>()?;
        let bytes = &*bytes;
        let taken = detached(py, || open.tree.take(bytes))?;
        taken.map(drop).ok_or_else(|| PyKeyError::new_err(key.unbind()))
    }

    /// Removes a key and returns its value, or the default if the key has none.
    #[pyo3(signature = (key, /, *default))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: Bound<'py, PyAny>,
        default: &Bound<'py, pyo3::types::PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            let given = default.len() + 1;
            return Err(PyTypeError::new_err(format!(
                "pop takes a key and a default, not {given} arguments"
            )));
        }
        let open = self.get_open()?;
        let bytes = key.extract::<Bytes<'_, '_>>()?;
        let bytes = &*bytes;
        match detached(py, || open.tree.take(bytes))? {
            Some(value) => Ok(PyBytes::new(py, &value).into_any()),
            None => default.get_item(0).map_err(|_| PyKeyError::new_err(key.unbind())),
        }
    }

    /// Removes the row with the largest key and returns it.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<Entry<'py>> {
        let open = self.get_open()?;
        let taken = detached(py, || {
            open.in_transaction(|transaction| transaction.pop_last(&open.tree, Wait::Timeout))
        })?;
        entry(py, taken).ok_or_else(|| PyKeyError::new_err("the tree is empty"))
    }

    /// Returns the value of a key; sets it to `default` if the key has none.
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_, '_>,
        default: Bytes<'_, '_>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (open, key, value) = (self.get_open()?, &*key, &*default);
        let found = detached(py, || {
            open.in_transaction(|transaction| {
                let found = transaction.get_for_update(&open.tree, key, Wait::Timeout)?;
                if found.is_none() {
                    transaction.put(&open.tree, key, value)?;
                }
                Ok(found)
            })
        })?;
        Ok(PyBytes::new(py, found.as_deref().unwrap_or(value)))
    }

    /// Puts the rows of a mapping, or of an iterable of pairs, in batches of about 1 MiB.
    #[pyo3(signature = (rows, *, sync=None))]
    fn update(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        let open = self.get_open()?;
        let mut writes = Writes::new(open.database.clone());
        for_each_row(rows, |key, value| {
            writes.batch.put(&open.tree, key, value);
            writes.write_if_large(py, sync)
        })?;
        writes.write(py, sync)
    }

    /// Sets the value of a key and returns its former value; `None` if it had none.
    fn replace<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_, '_>,
        value: Bytes<'_, '_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (tree, key, value) = (&self.get_open()?.tree, &*key, &*value);
        Ok(bytes::value(py, detached(py, || tree.replace(key, value))?))
    }

    // --- Counters ---

    /// Adds a number of 64 bits to a counter, and reads nothing.
    #[pyo3(signature = (key, number=1, *, sync=None))]
    fn add(
        &self,
        py: Python<'_>,
        key: Bytes<'_, '_>,
        number: i64,
        sync: Option<bool>,
    ) -> PyResult<()> {
        let (key, operand) = (&*key, counter::value(number));
        self.write(py, sync, |batch, tree| batch.update(tree, key, operand))
    }

    /// Returns the number of a counter; 0 if the key has no value.
    #[pyo3(signature = (key, *, snapshot=None))]
    fn counter(
        &self,
        py: Python<'_>,
        key: Bytes<'_, '_>,
        snapshot: Option<&Bound<'_, Snapshot>>,
    ) -> PyResult<i64> {
        let Some(value) = self.read(py, &key, snapshot)? else { return Ok(0) };
        counter::number(value.as_bytes()).ok_or_else(|| {
            let bytes = value.as_bytes().len();
            errors::invalid(format!("a counter has 8 bytes, and the value of this key has {bytes}"))
        })
    }

    // --- Maintenance ---

    /// Estimates how many rows a range has, usually within a factor of two, and their size on
    /// disk.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn estimate(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
    ) -> PyResult<Estimate> {
        let (open, keys) = (self.get_open()?, Keys::new(start, stop, prefix));
        let (lower, upper) = keys.bounds();
        detached(py, || open.tree.estimate(lower, upper)).map(Estimate::from)
    }

    /// Durably changes options, such as `codec`, while others read and write.
    #[pyo3(signature = (**options))]
    fn set_options(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let tree = &self.get_open()?.tree;
        let old = py.detach(|| tree.options());
        let new = options::of_tree(old, options)?;
        detached(py, || tree.set_options(new))
    }

    /// Rewrites the leaves of the tree in key order while others read and write.
    #[pyo3(signature = (*, fraction=1.0, leaves_per_second=0, progress=None))]
    fn optimize(
        &self,
        py: Python<'_>,
        fraction: f64,
        leaves_per_second: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<OptimizeReport> {
        let tree = &self.get_open()?.tree;
        let options = frondb::OptimizeOptions::new();
        let options = options.fraction(fraction).leaves_per_second(leaves_per_second);
        let report = Progress::during(py, progress, |progress| {
            tree.optimize(options, &mut |done, total| progress.tell(done, total))
        })?;
        Ok(report.into())
    }

    /// Reads all data of the tree and checks it; `VerifyReport.faults` lists the faults.
    #[pyo3(signature = (*, progress=None))]
    fn verify(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<VerifyReport> {
        let tree = &self.get_open()?.tree;
        let report = Progress::during(py, progress, |progress| {
            tree.verify(&mut |done, total| progress.tell(done, total))
        })?;
        Ok(report.into())
    }

    /// Returns the statistics of the tree by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tree = &self.get_open()?.tree;
        let stats = detached(py, || tree.stats())?;
        statistics(py, stats.named_values())
    }

    /// Closes this handle; the tree and other handles of it stay as they are.
    fn close(&self) {
        self.life.close();
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().get_open()?;
        Ok(this)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.close();
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.name(py) {
            Ok(name) => format!("<frondb.Tree {name:?}>"),
            Err(_) => "<frondb.Tree, closed>".to_owned(),
        }
    }
}

impl OpenTree {
    /// Runs `call` in a transaction of its own, which locks only what the call reads and writes.
    fn in_transaction<T>(
        &self,
        call: impl FnOnce(&frondb::Transaction) -> frondb::Result<T>,
    ) -> frondb::Result<T> {
        // At read committed, a transaction takes no snapshot and locks only rows.
        let options = TransactionOptions::new().isolation(Isolation::ReadCommitted);
        let transaction = self.database.db.begin(options)?;
        let result = call(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }
}
