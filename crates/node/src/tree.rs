//! Trees: reads of keys, and writes that the thread of JavaScript waits for.

use std::sync::Arc;

use frondb::{Batch, CursorOptions, Snapshot, Tree};
use napi::Env;
use napi::bindgen_prelude::{Array, Buffer, BufferSlice, JavaScriptClassExt, Object};
use napi_derive::napi;

use crate::answer::{Answer, Instance, numbers};
use crate::arguments::{self, Keys};
use crate::columns::Column;
use crate::counter;
use crate::failure::{Result, or_throw};
use crate::options;
use crate::pool::{CALLS, READS};
use crate::rows::{NativeRows, OpenRows};
use crate::runtime::Runtime;
use crate::scan::{Part, Source};
use crate::shared::Handle;
use crate::snapshot::NativeSnapshot;

impl Instance for (Tree, Arc<Handle>) {
    fn put(self: Box<Self>, env: &Env, array: &mut Array<'_>, index: u32) -> napi::Result<()> {
        array.set(index, NativeTree::new(self.0, self.1).into_instance(env)?)
    }
}

/// A handle to a tree.
#[napi]
pub struct NativeTree {
    tree: Tree,
    /// Dropped after the tree, which refers to the database.
    handle: Arc<Handle>,
}

impl NativeTree {
    pub(crate) fn new(tree: Tree, handle: Arc<Handle>) -> Self {
        Self { tree, handle }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    fn spawn(
        &self,
        runtime: &Runtime,
        ticket: u32,
        call: impl FnOnce(&Tree) -> frondb::Result<Answer> + Send + 'static,
    ) {
        let (tree, handle) = (self.tree.clone(), Arc::clone(&self.handle));
        runtime.inbox().spawn(&CALLS, ticket, move || {
            handle.check()?;
            call(&tree)
        });
    }

    /// Writes a batch on this thread.
    fn write(&self, sync: Option<bool>, fill: impl FnOnce(&mut Batch, &Tree)) -> Result<()> {
        or_throw(self.handle.check().and_then(|()| {
            let mut batch = Batch::new();
            fill(&mut batch, &self.tree);
            let db = &self.handle.db;
            db.write(&batch, arguments::durability(sync, db.commit_sync()))
        }))
    }
}

/// Returns a snapshot of an argument.
fn taken(snapshot: Option<&NativeSnapshot>) -> frondb::Result<Option<Snapshot>> {
    snapshot.map(NativeSnapshot::get).transpose().map(Option::<&Snapshot>::cloned)
}

#[napi]
impl NativeTree {
    #[napi(getter)]
    pub fn name(&self) -> String {
        self.tree.name()
    }

    /// Copies the value of a key into `into`. Returns its length, or -1 if the key has no value.
    /// Copies nothing if the value is longer than `into`, which [`get`](Self::get) then reads.
    #[napi]
    pub fn get_into(
        &self,
        key: &[u8],
        mut into: BufferSlice<'_>,
        snapshot: Option<&NativeSnapshot>,
    ) -> Result<i64> {
        or_throw(self.read(key, snapshot).map(|value| match value {
            None => -1,
            Some(value) => {
                if let Some(into) = into.get_mut(..value.len()) {
                    into.copy_from_slice(&value);
                }
                value.len() as i64
            }
        }))
    }

    /// Returns whether a key has a value.
    #[napi]
    pub fn exists(&self, key: &[u8], snapshot: Option<&NativeSnapshot>) -> Result<bool> {
        or_throw(self.handle.check().and_then(|()| match taken(snapshot)? {
            None => self.tree.exists(key),
            Some(at) => self.tree.exists_at(key, &at),
        }))
    }

    /// Answers with whether a key has a value.
    #[napi]
    pub fn exists_later(
        &self,
        runtime: &Runtime,
        ticket: u32,
        key: &[u8],
        snapshot: Option<&NativeSnapshot>,
    ) -> Result<()> {
        let (snapshot, key) = (or_throw(taken(snapshot))?, key.to_vec());
        let (tree, handle) = (self.tree.clone(), Arc::clone(&self.handle));
        runtime.inbox().spawn(&READS, ticket, move || {
            handle.check()?;
            match snapshot {
                None => tree.exists(key),
                Some(at) => tree.exists_at(key, &at),
            }
            .map(Answer::Bool)
        });
        Ok(())
    }

    /// Returns the first key of a range, and the first key after it.
    #[napi]
    pub fn bounds(
        &self,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
        prefix: Option<&[u8]>,
    ) -> Vec<Option<Buffer>> {
        let Keys { lower, upper } = Keys::new(lower, upper, prefix);
        vec![lower.map(Into::into), upper.map(Into::into)]
    }

    /// Reads the values of keys on threads of the pool, `group` keys on each; the tickets are those
    /// of the groups. Answers with a column, and for the only key of a group with its value.
    #[napi]
    pub fn get_many(
        &self,
        runtime: &Runtime,
        tickets: Vec<u32>,
        group: u32,
        bytes: &[u8],
        ends: &[u32],
        snapshot: Option<&NativeSnapshot>,
    ) -> Result<()> {
        or_throw(self.handle.check().and_then(|()| {
            let snapshot = taken(snapshot)?;
            let keys = Arc::new(Column::copy_of(bytes, ends)?);
            for (number, &ticket) in tickets.iter().enumerate() {
                let first = (number * group as usize).min(keys.len());
                let last = keys.len().min(first + group as usize);
                let (keys, snapshot) = (Arc::clone(&keys), snapshot.clone());
                let (tree, handle) = (self.tree.clone(), Arc::clone(&self.handle));
                runtime.inbox().spawn(&READS, ticket, move || {
                    handle.check()?;
                    values(&tree, &keys, first..last, snapshot.as_ref())
                });
            }
            Ok(())
        }))
    }

    /// Makes an iterator over a range.
    #[napi]
    pub fn rows(
        &self,
        part: u32,
        reverse: bool,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
        prefix: Option<&[u8]>,
        limit: f64,
        snapshot: Option<&NativeSnapshot>,
    ) -> Result<NativeRows> {
        or_throw(self.handle.check().and_then(|()| {
            let keys = Keys::new(lower, upper, prefix);
            let options = CursorOptions::new().range(keys.ends());
            let options = taken(snapshot)?.iter().fold(options, CursorOptions::at);
            let source = Source::Tree(self.tree.cursor_with(options)?);
            let rows = OpenRows::new(source, Part::of(part), reverse, limit, false, &self.handle);
            Ok(NativeRows::new(rows))
        }))
    }

    /// Sets the value of a key.
    #[napi]
    pub fn put(&self, key: &[u8], value: &[u8], sync: Option<bool>) -> Result<()> {
        self.write(sync, |batch, tree| batch.put(tree, key, value))
    }

    /// Removes a key.
    #[napi]
    pub fn delete(&self, key: &[u8], sync: Option<bool>) -> Result<()> {
        self.write(sync, |batch, tree| batch.delete(tree, key))
    }

    /// Sets (`value`) or removes a key and answers with its former value.
    #[napi]
    pub fn replace(&self, runtime: &Runtime, ticket: u32, key: &[u8], value: Option<&[u8]>) {
        let (key, value) = (key.to_vec(), value.map(<[u8]>::to_vec));
        self.spawn(runtime, ticket, move |tree| {
            let former = match value {
                Some(value) => tree.replace(key, value),
                None => tree.take(key),
            };
            former.map(Answer::Value)
        });
    }

    /// Answers with the first or the last row.
    #[napi]
    pub fn end_row(&self, runtime: &Runtime, ticket: u32, is_last: bool) {
        let (tree, handle) = (self.tree.clone(), Arc::clone(&self.handle));
        runtime.inbox().spawn(&READS, ticket, move || {
            handle.check()?;
            let row = if is_last { tree.last() } else { tree.first() };
            row.map(Answer::Entry)
        });
    }

    /// Estimates the rows and the bytes on disk of a range.
    #[napi]
    pub fn estimate(
        &self,
        runtime: &Runtime,
        ticket: u32,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
        prefix: Option<&[u8]>,
    ) {
        let keys = Keys::new(lower, upper, prefix);
        self.spawn(runtime, ticket, move |tree| {
            let (lower, upper) = keys.bounds();
            let estimate = tree.estimate(lower, upper)?;
            let numbers = vec![("entries", estimate.entries), ("diskBytes", estimate.disk_bytes)];
            Ok(Answer::Report(numbers, Vec::new()))
        });
    }

    /// Answers with the number of a counter.
    #[napi]
    pub fn counter(&self, runtime: &Runtime, ticket: u32, key: &[u8]) {
        let key = key.to_vec();
        self.spawn(runtime, ticket, move |tree| match tree.get(&key)? {
            None => Ok(Answer::Counter(0)),
            Some(value) => counter::number(&value).map(Answer::Counter).ok_or_else(|| {
                frondb::Error::invalid(format!(
                    "a counter has 8 bytes, and this value has {}: read it with get",
                    value.len()
                ))
            }),
        });
    }

    /// Changes options that are not fixed, durably.
    #[napi]
    pub fn set_options(&self, runtime: &Runtime, ticket: u32, settings: Vec<String>) {
        self.spawn(runtime, ticket, move |tree| {
            tree.set_options(options::of_tree(tree.options(), &settings)?)?;
            Ok(Answer::Done)
        });
    }

    /// Returns the statistics of the tree by name.
    #[napi]
    pub fn stats<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let stats = or_throw(self.handle.check().and_then(|()| self.tree.stats()))?;
        numbers(env, stats.named_values())
    }

    fn read(
        &self,
        key: &[u8],
        snapshot: Option<&NativeSnapshot>,
    ) -> frondb::Result<Option<Vec<u8>>> {
        self.handle.check()?;
        match snapshot.map(NativeSnapshot::get).transpose()? {
            None => self.tree.get(key),
            Some(at) => self.tree.get_at(key, at),
        }
    }
}

/// Reads the values of some of the keys.
fn values(
    tree: &Tree,
    keys: &Column,
    numbers: std::ops::Range<usize>,
    at: Option<&Snapshot>,
) -> frondb::Result<Answer> {
    let keys: Vec<&[u8]> = numbers.map(|number| keys.get(number)).collect();
    if let ([key], None) = (&*keys, at) {
        return tree.get(key).map(Answer::Value);
    }
    let values = match at {
        None => tree.multi_get(&keys)?,
        Some(at) => tree.multi_get_at(&keys, at)?,
    };
    column(values).map(Answer::Column)
}

/// Makes a column of values.
pub(crate) fn column(values: Vec<Option<Vec<u8>>>) -> frondb::Result<Column> {
    let mut column = Column::default();
    for value in values {
        match value {
            None => column.push_absent(),
            Some(value) => column.push(&value)?,
        }
    }
    Ok(column)
}
