//! Open databases, as `lib/database.js` uses them.

use std::path::PathBuf;
use std::sync::Arc;

use frondb::{BulkOptions, Duplicates, Durability, Error};
use napi::Env;
use napi::bindgen_prelude::{Array, JavaScriptClassExt, Object};
use napi_derive::napi;

use crate::answer::{Answer, Instance, numbers};
use crate::arguments;
use crate::bulk::OpenBulk;
use crate::failure::{Result, or_throw};
use crate::options;
use crate::pool::CALLS;
use crate::runtime::Runtime;
use crate::shared::Handle;
use crate::snapshot::NativeSnapshot;
use crate::transaction::NativeTransaction;

/// Opens the database in a directory.
#[napi]
pub fn open(runtime: &Runtime, ticket: u32, path: String, settings: Vec<String>, sync: bool) {
    let durability = if sync { Durability::Sync } else { Durability::NoSync };
    runtime.inbox().spawn(&CALLS, ticket, move || {
        let handle = Handle::open(&PathBuf::from(path), settings, durability)?;
        Ok(Answer::instance(Arc::new(handle)))
    });
}

impl Instance for Arc<Handle> {
    fn put(self: Box<Self>, env: &Env, array: &mut Array<'_>, index: u32) -> napi::Result<()> {
        array.set(index, NativeDb::new(*self).into_instance(env)?)
    }
}

/// A handle to an open database.
#[napi]
pub struct NativeDb {
    handle: Arc<Handle>,
}

impl NativeDb {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// Runs a call that may wait.
    pub(crate) fn spawn(
        &self,
        runtime: &Runtime,
        ticket: u32,
        call: impl FnOnce(&Arc<Handle>) -> frondb::Result<Answer> + Send + 'static,
    ) {
        let handle = Arc::clone(&self.handle);
        runtime.inbox().spawn(&CALLS, ticket, move || {
            handle.check()?;
            call(&handle)
        });
    }

    fn spawn_done(
        &self,
        runtime: &Runtime,
        ticket: u32,
        call: impl FnOnce(&frondb::Db) -> frondb::Result<()> + Send + 'static,
    ) {
        self.spawn(runtime, ticket, move |handle| call(&handle.db).map(|()| Answer::Done));
    }
}

#[napi]
impl NativeDb {
    /// Whether the handle was closed.
    #[napi(getter)]
    pub fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Creates (`create`), opens (`open`) or does either with a tree.
    #[napi]
    pub fn tree(
        &self,
        runtime: &Runtime,
        ticket: u32,
        how: String,
        name: String,
        preset: Option<String>,
        counters: bool,
        settings: Vec<String>,
    ) {
        self.spawn(runtime, ticket, move |handle| {
            let options = options::of_new_tree(preset.as_deref(), counters, &settings)?;
            let tree = match &*how {
                "create" => handle.db.create_tree(&name, options)?,
                "open" => handle.db.open_tree(&name)?,
                _ => handle.db.open_or_create_tree(&name, options)?,
            };
            Ok(Answer::instance((tree, Arc::clone(handle))))
        });
    }

    /// Returns the names of all trees, sorted.
    #[napi]
    pub fn list_trees(&self) -> Result<Vec<String>> {
        or_throw(self.handle.check())?;
        Ok(self.handle.db.list_trees())
    }

    #[napi]
    pub fn rename_tree(&self, runtime: &Runtime, ticket: u32, old: String, new: String) {
        self.spawn_done(runtime, ticket, move |db| db.rename_tree(&old, &new));
    }

    #[napi]
    pub fn drop_tree(&self, runtime: &Runtime, ticket: u32, name: String) {
        self.spawn_done(runtime, ticket, move |db| db.drop_tree(&name));
    }

    /// Begins a transaction.
    #[napi]
    pub fn begin(
        &self,
        isolation: String,
        snapshot_isolation: bool,
        lock_timeout: f64,
        sync: Option<bool>,
    ) -> Result<NativeTransaction> {
        or_throw(self.handle.check().and_then(|()| {
            let isolation = arguments::isolation(&isolation)?;
            let timeout = arguments::millis("lockTimeout", lock_timeout)?;
            let options = frondb::TransactionOptions::new()
                .isolation(isolation)
                .snapshot_isolation(snapshot_isolation)
                .lock_timeout(timeout)
                .durability(arguments::durability(sync, self.handle.db.commit_sync()));
            NativeTransaction::begin(&self.handle, options, isolation)
        }))
    }

    /// Takes a snapshot.
    #[napi]
    pub fn snapshot(&self) -> Result<NativeSnapshot> {
        let snapshot = self.handle.check().and_then(|()| self.handle.db.snapshot());
        or_throw(snapshot).map(|snapshot| NativeSnapshot::new(snapshot, &self.handle))
    }

    /// Begins a bulk load.
    #[napi]
    pub fn bulk_load(
        &self,
        runtime: &Runtime,
        ticket: u32,
        duplicates: String,
        memory: f64,
        sync: Option<bool>,
        lock_timeout: f64,
    ) {
        self.spawn(runtime, ticket, move |handle| {
            let duplicates = match &*duplicates {
                "replace" => Duplicates::Replace,
                "fail" => Duplicates::Fail,
                other => {
                    return Err(Error::invalid(format!(
                        "duplicates is {other:?}; it must be replace or fail"
                    )));
                }
            };
            let options = BulkOptions {
                duplicates,
                memory_bytes: memory as u64,
                durability: arguments::durability(sync, handle.db.commit_sync()),
                lock_timeout: arguments::millis("lockTimeout", lock_timeout)?,
            };
            OpenBulk::begin(handle, options).map(Answer::instance)
        });
    }

    /// Runs a call that has no arguments and no result.
    #[napi]
    pub fn maintain(&self, runtime: &Runtime, ticket: u32, what: String) {
        self.spawn_done(runtime, ticket, move |db| match &*what {
            "sync" => db.sync(),
            "flush" => db.flush(),
            "checkpoint" => db.checkpoint(),
            "waitSettled" => db.wait_settled(),
            other => Err(Error::invalid(format!("there is no call {other}"))),
        });
    }

    #[napi]
    pub fn set_memory(&self, runtime: &Runtime, ticket: u32, bytes: f64) {
        self.spawn_done(runtime, ticket, move |db| db.set_memory_bytes(bytes as u64));
    }

    /// The memory budget, bytes.
    #[napi(getter)]
    pub fn memory(&self) -> f64 {
        self.handle.db.memory_bytes() as f64
    }

    /// The most memory of a batch, bytes.
    #[napi(getter)]
    pub fn batch_bytes_max(&self) -> f64 {
        self.handle.db.batch_bytes_max() as f64
    }

    /// Returns the statistics by name.
    #[napi]
    pub fn stats<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        or_throw(self.handle.check())?;
        numbers(env, self.handle.db.stats().named_values())
    }

    /// Returns statistics and latencies in the text format of Prometheus.
    #[napi]
    pub fn prometheus(&self) -> Result<String> {
        or_throw(self.handle.check())?;
        Ok(self.handle.db.prometheus())
    }

    /// Ends the waits of transactions with `Cancelled`.
    #[napi]
    pub fn cancel_transactions(&self) {
        self.handle.cancel_transactions();
    }

    /// Ends the handle: later calls fail. Returns whether it was open.
    #[napi]
    pub fn end(&self) -> bool {
        self.handle.end()
    }

    /// Closes the database if this was its last handle, after [`end`](Self::end) returned true.
    #[napi]
    pub fn close(&self, runtime: &Runtime, ticket: u32) {
        let handle = Arc::clone(&self.handle);
        runtime.inbox().spawn(&CALLS, ticket, move || handle.close().map(|()| Answer::Done));
    }
}
