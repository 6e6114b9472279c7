//! The calls of a transaction, as `lib/transaction.js` makes them.

use frondb::{Durability, Error, Savepoint, TransactionCursorOptions};
use napi_derive::napi;

use crate::answer::Answer;
use crate::arguments::{self, Keys};
use crate::columns::Column;
use crate::counter;
use crate::database::NativeDb;
use crate::failure::{Result, or_throw};
use crate::rows::OpenRows;
use crate::runtime::Runtime;
use crate::scan::{Part, Source};
use crate::shared::Active;
use crate::transaction::{NativeTransaction, no_savepoint, read};
use crate::tree::{NativeTree, column};

#[napi]
impl NativeTransaction {
    /// The number of the transaction.
    #[napi(getter)]
    pub fn id(&self) -> f64 {
        self.open().get().id() as f64
    }

    /// Answers with what is at a key; `how` names the call.
    #[napi]
    pub fn read(
        &self,
        runtime: &Runtime,
        ticket: u32,
        how: String,
        tree: &NativeTree,
        key: &[u8],
        wait: String,
    ) -> Result<()> {
        let wait = or_throw(arguments::wait(&wait))?;
        let (tree, key) = (tree.tree().clone(), key.to_vec());
        self.open()
            .spawn(runtime.inbox(), ticket, move |open| read(open.get(), &how, &tree, &key, wait));
        Ok(())
    }

    /// Answers with the values of keys, all as of one moment.
    #[napi]
    pub fn multi_get(
        &self,
        runtime: &Runtime,
        ticket: u32,
        tree: &NativeTree,
        bytes: &[u8],
        ends: &[u32],
    ) -> Result<()> {
        let keys = or_throw(Column::copy_of(bytes, ends))?;
        let tree = tree.tree().clone();
        self.open().spawn(runtime.inbox(), ticket, move |open| {
            let keys: Vec<&[u8]> = keys.strings().collect();
            column(open.get().multi_get(&tree, &keys)?).map(Answer::Column)
        });
        Ok(())
    }

    /// Writes a key; `how` names the call.
    #[napi]
    pub fn write(
        &self,
        runtime: &Runtime,
        ticket: u32,
        how: String,
        tree: &NativeTree,
        key: &[u8],
        value: &[u8],
    ) {
        let (tree, key, value) = (tree.tree().clone(), key.to_vec(), value.to_vec());
        self.open().spawn(runtime.inbox(), ticket, move |open| {
            let transaction = open.get();
            open.written(match &*how {
                "put" => transaction.put(&tree, key, value),
                "insert" => transaction.insert(&tree, key, value),
                "delete" => transaction.delete(&tree, key),
                "add" => transaction.update(&tree, key, value),
                other => Err(Error::invalid(format!("there is no write {other}"))),
            })
        });
    }

    /// Sets the value of a key, and answers with its former value.
    #[napi]
    pub fn replace(
        &self,
        runtime: &Runtime,
        ticket: u32,
        tree: &NativeTree,
        key: &[u8],
        value: &[u8],
    ) {
        let (tree, key, value) = (tree.tree().clone(), key.to_vec(), value.to_vec());
        self.open().spawn(runtime.inbox(), ticket, move |open| {
            let former = open.get().replace(&tree, key, value);
            if let Err(error) = &former {
                return open.written(Err(error.clone()));
            }
            former.map(Answer::Value)
        });
    }

    /// Removes a range of keys.
    #[napi]
    pub fn delete_range(
        &self,
        runtime: &Runtime,
        ticket: u32,
        tree: &NativeTree,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
        prefix: Option<&[u8]>,
    ) {
        let (tree, keys) = (tree.tree().clone(), Keys::new(lower, upper, prefix));
        self.open().spawn(runtime.inbox(), ticket, move |open| {
            let (lower, upper) = keys.bounds();
            open.written(open.get().delete_range(&tree, lower, upper))
        });
    }

    /// Answers with an iterator over a range. `lock` is empty, `update` or `share`.
    #[napi]
    pub fn rows(
        &self,
        runtime: &Runtime,
        ticket: u32,
        tree: &NativeTree,
        part: u32,
        reverse: bool,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
        prefix: Option<&[u8]>,
        limit: f64,
        lock: String,
        wait: String,
    ) -> Result<()> {
        let keys = Keys::new(lower, upper, prefix);
        let options = TransactionCursorOptions::new().range(keys.ends());
        let wait = or_throw(arguments::wait(&wait))?;
        let options = match &*lock {
            "" => options,
            "update" => options.for_update(wait),
            "share" => options.for_share(wait),
            other => {
                let message = format!("lock is {other:?}; it must be update or share");
                return or_throw(Err(Error::invalid(message)));
            }
        };
        let (tree, open) = (tree.tree().clone(), std::sync::Arc::clone(self.open()));
        let takes_locks = !lock.is_empty() || open.is_serializable();
        self.open().spawn(runtime.inbox(), ticket, move |_| {
            let source = Source::Transaction(open.get().cursor_with(&tree, options)?);
            let part = Part::of(part);
            let rows = OpenRows::new(source, part, reverse, limit, takes_locks, open.handle());
            Ok(Answer::instance(rows.of_transaction(open)))
        });
        Ok(())
    }

    /// Adds a number to a counter.
    #[napi]
    pub fn add(&self, runtime: &Runtime, ticket: u32, tree: &NativeTree, key: &[u8], number: i64) {
        let value = counter::value(number);
        self.write(runtime, ticket, "add".to_owned(), tree, key, &value);
    }

    /// Sets a savepoint with a number of the caller.
    #[napi]
    pub fn set_savepoint(&self, runtime: &Runtime, ticket: u32, number: u32) {
        self.open().spawn(runtime.inbox(), ticket, move |open| {
            let savepoint = open.get().set_savepoint()?;
            open.savepoints.lock().push((number, savepoint));
            Ok(Answer::Done)
        });
    }

    /// Rolls back to a savepoint (`back`), or releases it.
    #[napi]
    pub fn end_savepoint(&self, runtime: &Runtime, ticket: u32, number: u32, back: bool) {
        self.open().spawn(runtime.inbox(), ticket, move |open| {
            let find = |&(of, savepoint): &(u32, Savepoint)| (of == number).then_some(savepoint);
            let found = open.savepoints.lock().iter().find_map(find);
            let savepoint = found.ok_or_else(no_savepoint)?;
            if back {
                open.get().roll_back_to(savepoint)?;
            } else {
                open.get().release(savepoint)?;
                open.savepoints.lock().retain(|&(of, _)| of < number);
            }
            Ok(Answer::Done)
        });
    }

    /// Commits. `seen` is the number of calls whose result the caller has seen.
    #[napi]
    pub fn commit(&self, runtime: &Runtime, ticket: u32, seen: f64) {
        self.open().spawn(runtime.inbox(), ticket, move |open| {
            open.commit(seen as u64).map(|()| Answer::Done)
        });
    }

    /// Undoes all writes and releases all locks.
    #[napi]
    pub fn rollback(&self, runtime: &Runtime, ticket: u32) {
        self.open().spawn(runtime.inbox(), ticket, |open| {
            open.get().rollback()?;
            open.end();
            Ok(Answer::Done)
        });
    }

    /// Prepares the transaction, the first phase of two-phase commit.
    #[napi]
    pub fn prepare(&self, runtime: &Runtime, ticket: u32, xid: &[u8]) {
        let xid = xid.to_vec();
        self.open().spawn(runtime.inbox(), ticket, move |open| {
            open.get().prepare(&xid)?;
            open.end();
            Ok(Answer::Done)
        });
    }

    /// Makes a wait of the transaction, or its next one, fail with `Cancelled`.
    #[napi]
    pub fn cancel(&self) {
        self.open().cancel();
    }
}

#[napi]
impl NativeDb {
    /// Returns the names of all prepared transactions as buffers.
    #[napi]
    pub fn prepared(&self) -> Result<Vec<napi::bindgen_prelude::Buffer>> {
        or_throw(self.handle().check())?;
        Ok(self.handle().db.prepared().into_iter().map(Into::into).collect())
    }

    /// Commits a prepared transaction by its name.
    #[napi]
    pub fn commit_prepared(&self, runtime: &Runtime, ticket: u32, xid: &[u8], sync: Option<bool>) {
        let xid = xid.to_vec();
        self.spawn(runtime, ticket, move |handle| {
            let durability: Durability = arguments::durability(sync, handle.db.commit_sync());
            handle.db.commit_prepared(&xid, durability).map(|()| Answer::Done)
        });
    }

    /// Rolls back a prepared transaction by its name.
    #[napi]
    pub fn rollback_prepared(&self, runtime: &Runtime, ticket: u32, xid: &[u8]) {
        let xid = xid.to_vec();
        self.spawn(runtime, ticket, move |handle| {
            handle.db.rollback_prepared(&xid).map(|()| Answer::Done)
        });
    }
}
