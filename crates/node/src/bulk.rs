//! Bulk loads. JavaScript collects rows, and hands many at once to a thread of the pool, because
//! the engine may write them to disk.

use std::sync::Arc;

use frondb::{BulkLoad, BulkOptions, BulkWriter, Tree};
use napi::Env;
use napi::bindgen_prelude::{Array, JavaScriptClassExt};
use napi_derive::napi;
use parking_lot::Mutex;

use crate::answer::{Answer, Instance};
use crate::columns::Column;
use crate::failure::{self, Result, or_throw};
use crate::options;
use crate::pool::CALLS;
use crate::progress::Progress;
use crate::runtime::Runtime;
use crate::shared::Handle;
use crate::tree::NativeTree;

/// A bulk load that has begun.
pub(crate) struct OpenBulk {
    load: BulkLoad,
    /// `None` once the load has ended. Only threads of the pool wait for this latch.
    writer: Mutex<Option<BulkWriter>>,
    handle: Arc<Handle>,
}

impl OpenBulk {
    pub(crate) fn begin(handle: &Arc<Handle>, options: BulkOptions) -> frondb::Result<Self> {
        let load = handle.db.bulk_load(options)?;
        let writer = Mutex::new(Some(load.writer()));
        Ok(Self { load, writer, handle: Arc::clone(handle) })
    }

    fn put(&self, tree: &Tree, keys: &Column, values: &Column) -> frondb::Result<()> {
        let mut writer = self.writer.lock();
        let writer = writer.as_mut().ok_or_else(|| failure::closed("bulk load"))?;
        let mut rows = keys.strings().zip(values.strings());
        rows.try_for_each(|(key, value)| writer.put(tree, key, value))
    }

    fn finish(&self, progress: &Progress) -> frondb::Result<Answer> {
        let writer = self.writer.lock().take().ok_or_else(|| failure::closed("bulk load"))?;
        writer.finish()?;
        let report = self.load.finish(&mut |done| progress.tell(done.done, done.total))?;
        let numbers = vec![
            ("entries", report.entries),
            ("duplicates", report.duplicates),
            ("rawBytes", report.raw_bytes),
            ("sortedRuns", report.sorted_runs),
        ];
        Ok(Answer::Report(numbers, Vec::new()))
    }
}

impl Instance for OpenBulk {
    fn put(self: Box<Self>, env: &Env, array: &mut Array<'_>, index: u32) -> napi::Result<()> {
        array.set(index, NativeBulk::new(*self).into_instance(env)?)
    }
}

/// A bulk load.
#[napi]
pub struct NativeBulk {
    bulk: Arc<OpenBulk>,
}

impl NativeBulk {
    pub(crate) fn new(bulk: OpenBulk) -> Self {
        Self { bulk: Arc::new(bulk) }
    }

    fn spawn(
        &self,
        runtime: &Runtime,
        ticket: u32,
        call: impl FnOnce(&Arc<OpenBulk>) -> frondb::Result<Answer> + Send + 'static,
    ) {
        let bulk = Arc::clone(&self.bulk);
        runtime.inbox().spawn(&CALLS, ticket, move || {
            bulk.handle.check()?;
            call(&bulk)
        });
    }
}

#[napi]
impl NativeBulk {
    /// Answers with a tree that exists from the end of the load on.
    #[napi]
    pub fn new_tree(
        &self,
        runtime: &Runtime,
        ticket: u32,
        name: String,
        preset: Option<String>,
        counters: bool,
        settings: Vec<String>,
    ) {
        self.spawn(runtime, ticket, move |bulk| {
            let options = options::of_new_tree(preset.as_deref(), counters, &settings)?;
            let tree = bulk.load.new_tree(&name, options)?;
            Ok(Answer::instance((tree, Arc::clone(&bulk.handle))))
        });
    }

    /// Adds rows of one tree.
    #[napi]
    pub fn put(
        &self,
        runtime: &Runtime,
        ticket: u32,
        tree: &NativeTree,
        keys: &[u8],
        key_ends: &[u32],
        values: &[u8],
        value_ends: &[u32],
    ) -> Result<()> {
        let columns = Column::copy_of(keys, key_ends)
            .and_then(|keys| Ok((keys, Column::copy_of(values, value_ends)?)));
        let ((keys, values), tree) = (or_throw(columns)?, tree.tree().clone());
        self.spawn(runtime, ticket, move |bulk| {
            bulk.put(&tree, &keys, &values).map(|()| Answer::Done)
        });
        Ok(())
    }

    /// Commits the load, and answers with a report.
    #[napi]
    pub fn finish(&self, runtime: &Runtime, ticket: u32, progress: &Progress) {
        let progress = progress.of(runtime, ticket);
        self.spawn(runtime, ticket, move |bulk| bulk.finish(&progress));
    }

    /// Makes calls of the load fail with `Cancelled`, also one in progress.
    #[napi]
    pub fn cancel(&self) {
        self.bulk.load.cancel();
    }

    /// Returns a key that was given twice, if there is one.
    #[napi]
    pub fn duplicate(&self) -> Option<napi::bindgen_prelude::Buffer> {
        self.bulk.load.duplicate().map(|duplicate| duplicate.key.into_vec().into())
    }
}
