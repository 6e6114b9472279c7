//! Transactions.

use std::sync::Arc;

use frondb::{TransactionCursorOptions, TransactionOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::{self, Keys};
use crate::bytes::{Bytes, Entry, entry, value};
use crate::counter;
use crate::errors::{self, detached};
use crate::handle::{Database, Life, OpenTransaction};
use crate::process::Owned;
use crate::rows::{Place, Range};
use crate::savepoint::Savepoint;
use crate::scan::Part;
use crate::tree::Tree;

/// Reads and writes over any number of trees that take effect together; `Db.begin` makes one.
#[pyclass(frozen, weakref, module = "frondb")]
pub(crate) struct Transaction {
    open: Owned<Arc<OpenTransaction>>,
}

impl Transaction {
    /// Begins a transaction.
    pub(crate) fn begin(
        py: Python<'_>,
        database: &Database,
        options: TransactionOptions,
        is_serializable: bool,
    ) -> PyResult<Self> {
        let transaction = detached(py, || database.db.begin(options))?;
        let (life, running) = (Life::new("transaction"), Arc::clone(&database.running));
        let open = Owned::new(Arc::new(OpenTransaction {
            transaction,
            _running: running,
            life,
            is_serializable,
        }));
        Ok(Self { open })
    }

    /// Runs a call on the transaction and a tree.
    fn on<T: Send>(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        call: impl FnOnce(&frondb::Transaction, &frondb::Tree) -> frondb::Result<T> + Send,
    ) -> PyResult<T> {
        let (open, tree) = (self.open.get()?, &tree.get().get_open()?.tree);
        detached(py, || call(&open.transaction, tree))
    }

    /// Runs a call that ends or prepares the transaction if it succeeds.
    fn end(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&frondb::Transaction) -> frondb::Result<()> + Send,
    ) -> PyResult<()> {
        let open = self.open.get()?;
        detached(py, || call(&open.transaction))?;
        open.life.close();
        Ok(())
    }

    /// Returns a place with what the transaction sees; `lock` and `wait` are the arguments of its
    /// caller.
    fn place(&self, lock: Option<&str>, wait: &str) -> PyResult<Place> {
        let (open, wait) = (self.open.get()?, arguments::wait(wait)?);
        let options = TransactionCursorOptions::new();
        let options = match lock {
            None => options,
            Some("update") => options.for_update(wait),
            Some("share") => options.for_share(wait),
            Some(other) => {
                return Err(errors::invalid(format!(
                    "lock is {other:?}; it must be update, share or None"
                )));
            }
        };
        let takes_locks = lock.is_some() || open.is_serializable;
        Ok(Place::Transaction(Arc::clone(open), options, takes_locks))
    }
}

#[pymethods]
impl Transaction {
    /// The number of the transaction; numbers ascend in the order of the begins.
    #[getter]
    fn id(&self) -> PyResult<u64> {
        Ok(self.open.get()?.transaction.id())
    }

    // --- Reads ---

    /// Returns the value of a key as the isolation level shows it, or `default`.
    #[pyo3(signature = (tree, key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        key: Bytes<'_, 'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = &*key;
        let found = self.on(py, tree, |transaction, tree| transaction.get(tree, key))?;
        Ok(value(py, found).map(Bound::into_any).or(default))
    }

    /// Returns whether a key has a value.
    fn exists(&self, py: Python<'_>, tree: &Bound<'_, Tree>, key: Bytes<'_, '_>) -> PyResult<bool> {
        let key = &*key;
        self.on(py, tree, |transaction, tree| transaction.exists(tree, key))
    }

    /// Locks a key, which need not exist, for writing, and returns its newest value.
    #[pyo3(signature = (tree, key, *, wait="timeout"))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        key: Bytes<'_, 'py>,
        wait: &str,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (key, wait) = (&*key, arguments::wait(wait)?);
        let call = |transaction: &frondb::Transaction, tree: &frondb::Tree| {
            transaction.get_for_update(tree, key, wait)
        };
        Ok(value(py, self.on(py, tree, call)?))
    }

    /// Locks a key against writes of others, and returns its newest value.
    #[pyo3(signature = (tree, key, *, wait="timeout"))]
    fn get_for_share<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        key: Bytes<'_, 'py>,
        wait: &str,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (key, wait) = (&*key, arguments::wait(wait)?);
        let call = |transaction: &frondb::Transaction, tree: &frondb::Tree| {
            transaction.get_for_share(tree, key, wait)
        };
        Ok(value(py, self.on(py, tree, call)?))
    }

    /// Returns a view of the rows of a range as the transaction sees them.
    #[pyo3(signature = (tree, start=None, stop=None, *, prefix=None, reverse=false, lock=None,
                        wait="timeout"))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn items<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
        reverse: bool,
        lock: Option<&str>,
        wait: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (tree, keys) = (tree.get().get_open()?.clone(), Keys::new(start, stop, prefix));
        Range::view(py, Part::Items, tree, self.place(lock, wait)?, keys, reverse)
    }

    /// Returns a view of the keys of a range; otherwise as `items`.
    #[pyo3(signature = (tree, start=None, stop=None, *, prefix=None, reverse=false, lock=None,
                        wait="timeout"))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn keys<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
        reverse: bool,
        lock: Option<&str>,
        wait: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (tree, keys) = (tree.get().get_open()?.clone(), Keys::new(start, stop, prefix));
        Range::view(py, Part::Keys, tree, self.place(lock, wait)?, keys, reverse)
    }

    /// Returns a view of the values of a range; otherwise as `items`.
    #[pyo3(signature = (tree, start=None, stop=None, *, prefix=None, reverse=false, lock=None,
                        wait="timeout"))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn values<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
        reverse: bool,
        lock: Option<&str>,
        wait: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (tree, keys) = (tree.get().get_open()?.clone(), Keys::new(start, stop, prefix));
        Range::view(py, Part::Values, tree, self.place(lock, wait)?, keys, reverse)
    }

    // --- Writes ---

    /// Locks a key and sets its value.
    fn put(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        key: Bytes<'_, '_>,
        value: Bytes<'_, '_>,
    ) -> PyResult<()> {
        let (key, value) = (&*key, &*value);
        self.on(py, tree, |transaction, tree| transaction.put(tree, key, value))
    }

    /// Sets the value of a key that must not have one.
    fn insert(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        key: Bytes<'_, '_>,
        value: Bytes<'_, '_>,
    ) -> PyResult<()> {
        let (key, value) = (&*key, &*value);
        self.on(py, tree, |transaction, tree| transaction.insert(tree, key, value))
    }

    /// Locks and removes a key, which need not exist.
    fn delete(&self, py: Python<'_>, tree: &Bound<'_, Tree>, key: Bytes<'_, '_>) -> PyResult<()> {
        let key = &*key;
        self.on(py, tree, |transaction, tree| transaction.delete(tree, key))
    }

    /// Locks and removes a range; its arguments are those of `Tree.delete_range`.
    #[pyo3(signature = (tree, start=None, stop=None, *, prefix=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
    ) -> PyResult<()> {
        let keys = Keys::new(start, stop, prefix);
        keys.check_given()?;
        let (lower, upper) = keys.bounds();
        self.on(py, tree, |transaction, tree| transaction.delete_range(tree, lower, upper))
    }

    /// Adds a number to a counter; see `Tree.add`.
    #[pyo3(signature = (tree, key, number=1))]
    fn add(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, Tree>,
        key: Bytes<'_, '_>,
        number: i64,
    ) -> PyResult<()> {
        let (key, operand) = (&*key, counter::value(number));
        self.on(py, tree, |transaction, tree| transaction.update(tree, key, operand))
    }

    /// Sets the value of a key and returns its former value; `None` if it had none.
    fn replace<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        key: Bytes<'_, 'py>,
        new: Bytes<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (key, new) = (&*key, &*new);
        let call = |transaction: &frondb::Transaction, tree: &frondb::Tree| {
            transaction.replace(tree, key, new)
        };
        Ok(value(py, self.on(py, tree, call)?))
    }

    /// Removes a key and returns its value; `None` if it had none.
    fn take<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        key: Bytes<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = &*key;
        Ok(value(py, self.on(py, tree, |transaction, tree| transaction.take(tree, key))?))
    }

    /// Removes the row with the smallest key and returns it; `None` if there is none.
    #[pyo3(signature = (tree, *, wait="timeout"))]
    fn pop_first<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        wait: &str,
    ) -> PyResult<Option<Entry<'py>>> {
        let wait = arguments::wait(wait)?;
        let popped = self.on(py, tree, |transaction, tree| transaction.pop_first(tree, wait))?;
        Ok(entry(py, popped))
    }

    /// Removes the row with the largest key and returns it; otherwise as `pop_first`.
    #[pyo3(signature = (tree, *, wait="timeout"))]
    fn pop_last<'py>(
        &self,
        py: Python<'py>,
        tree: &Bound<'py, Tree>,
        wait: &str,
    ) -> PyResult<Option<Entry<'py>>> {
        let wait = arguments::wait(wait)?;
        let popped = self.on(py, tree, |transaction, tree| transaction.pop_last(tree, wait))?;
        Ok(entry(py, popped))
    }

    // --- Savepoints and the end ---

    /// Sets a savepoint, to which the transaction can roll back. Savepoints nest.
    fn savepoint(this: &Bound<'_, Self>) -> PyResult<Savepoint> {
        let open = Arc::clone(this.get().open.get()?);
        let savepoint = detached(this.py(), || open.transaction.set_savepoint())?;
        Ok(Savepoint::new(open, savepoint))
    }

    /// Commits: all writes take effect together.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |transaction| transaction.commit())
    }

    /// Undoes all writes and releases all locks.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |transaction| transaction.rollback())
    }

    /// Prepares the transaction under a name of 1 to 256 bytes, the first phase of two-phase
    /// commit.
    fn prepare(&self, py: Python<'_>, xid: Bytes<'_, '_>) -> PyResult<()> {
        let xid = &*xid;
        self.end(py, |transaction| transaction.prepare(xid))
    }

    /// Makes the wait of another thread in this transaction, or the next one, fail with
    /// `Cancelled`.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.get()?;
        py.detach(|| open.transaction.canceller().cancel());
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().open.get()?.life.check()?;
        Ok(this)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.open.get()?.life.is_closed() {
            return Ok(());
        }
        let committed = if raised.is_none() { self.commit(py) } else { Ok(()) };
        if committed.is_err() || !raised.is_none() {
            // The exception of the body, or of the commit, says what happened; a rollback after a
            // close or a failed commit has nothing to add.
            let _ = self.rollback(py);
        }
        committed
    }

    fn __repr__(&self) -> String {
        match self.open.get() {
            Ok(open) if !open.life.is_closed() => {
                format!("<frondb.Transaction {}>", open.transaction.id())
            }
            _ => "<frondb.Transaction, ended>".to_owned(),
        }
    }
}
