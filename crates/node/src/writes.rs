//! Groups of writes: what a program has written without waiting for each write.
//!
//! `lib/writes.js` collects the calls that write while the commit before them runs, and passes them
//! as one group. A group is committed as one batch with one sync. The calls of a group stay
//! independent: if the batch fails, each call is committed alone and has its own result.
//!
//! While a transaction is active, a write may wait for a lock. A group would then wait as a whole,
//! and a transaction that awaits one of its writes would wait for its own lock. So each call of a
//! group then runs on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use frondb::{Batch, Durability, Error, Tree};
use napi_derive::napi;

use crate::answer::Answer;
use crate::arguments;
use crate::database::NativeDb;
use crate::failure::{self, Result, or_throw};
use crate::pool::WRITES;
use crate::runtime::{Inbox, Runtime, guarded, no_thread};
use crate::shared::Handle;
use crate::tree::NativeTree;

/// Numbers of one write in the array of writes: kind, tree, end of the key, end of the value.
const NUMBERS: usize = 4;

/// What a write does; `lib/writes.js` has the same numbers.
const PUT: u32 = 0;
const DELETE: u32 = 1;
/// The value is the end of the range.
const DELETE_RANGE: u32 = 2;
const DELETE_FROM: u32 = 3;
const ADD: u32 = 4;

/// Writes of several calls.
struct Group {
    handle: Arc<Handle>,
    trees: Vec<Tree>,
    writes: Vec<u32>,
    /// The number of writes up to the end of each call.
    calls: Vec<u32>,
    bytes: Vec<u8>,
    durability: Durability,
}

impl Group {
    fn copy_of(
        db: &NativeDb,
        trees: &[&NativeTree],
        writes: &[u32],
        calls: &[u32],
        bytes: &[u8],
        sync: Option<bool>,
    ) -> frondb::Result<Self> {
        let handle = db.handle();
        handle.check()?;
        let is_of_database =
            |tree: &&NativeTree| Arc::ptr_eq(&tree.handle().database, &handle.database);
        if !trees.iter().all(is_of_database) {
            return Err(Error::invalid("a write names a tree of another database"));
        }
        let group = Self {
            handle: Arc::clone(handle),
            trees: trees.iter().map(|tree| tree.tree().clone()).collect(),
            writes: writes.to_vec(),
            calls: calls.to_vec(),
            bytes: bytes.to_vec(),
            durability: arguments::durability(sync, handle.db.commit_sync()),
        };
        let count = (group.writes.len() / NUMBERS) as u32;
        let is_whole = group.calls.is_sorted() && group.calls.last() == Some(&count);
        if is_whole { Ok(group) } else { Err(Error::invalid("a group of writes is not whole")) }
    }

    /// Commits some of the calls as one batch.
    fn commit(&self, calls: std::ops::Range<usize>) -> frondb::Result<()> {
        self.handle.check()?;
        let first = calls.start.checked_sub(1).map_or(0, |before| self.calls[before]);
        let last = calls.end.checked_sub(1).map_or(0, |before| self.calls[before]);
        let mut batch = Batch::new();
        for number in first as usize..last as usize {
            self.add(&mut batch, number)?;
        }
        self.handle.db.write(&batch, self.durability)
    }

    fn add(&self, batch: &mut Batch, number: usize) -> frondb::Result<()> {
        let broken = || Error::invalid("a write of a group has ends that do not fit its bytes");
        let start = match number.checked_sub(1) {
            None => 0,
            Some(before) => self.writes[before * NUMBERS + 3],
        };
        let [kind, tree, key_end, end] =
            *self.writes[number * NUMBERS..].first_chunk::<NUMBERS>().ok_or_else(broken)?;
        let tree = self.trees.get(tree as usize).ok_or_else(broken)?;
        let key = self.bytes.get(start as usize..key_end as usize).ok_or_else(broken)?;
        let value = self.bytes.get(key_end as usize..end as usize).ok_or_else(broken)?;
        match kind {
            PUT => batch.put(tree, key, value),
            DELETE => batch.delete(tree, key),
            DELETE_RANGE => batch.delete_range(tree, key, Some(value)),
            DELETE_FROM => batch.delete_range(tree, key, None),
            ADD => batch.update(tree, key, value),
            _ => return Err(broken()),
        }
        Ok(())
    }

    /// Commits all calls as one batch; if that fails, each alone.
    fn commit_all(&self) -> frondb::Result<Answer> {
        let count = self.calls.len();
        match self.commit(0..count) {
            Ok(()) => Ok(Answer::Failures(Vec::new())),
            Err(error) if count == 1 => Err(error),
            Err(_) => {
                let each = (0..count).map(|call| (call, self.commit(call..call + 1)));
                let failures = each.filter_map(|(call, committed)| {
                    committed.err().map(|error| (call as u32, failure::text(&error)))
                });
                Ok(Answer::Failures(failures.collect()))
            }
        }
    }

    /// Commits each call on a thread of its own, and answers with a part for each: its number, and
    /// its error if it failed.
    fn commit_apart(self, inbox: &Arc<Inbox>, ticket: u32) {
        let (group, left) = (Arc::new(self), Arc::new(AtomicUsize::new(0)));
        let count = group.calls.len();
        left.store(count, Ordering::Release);
        for call in 0..count {
            let (group, left, inbox) = (Arc::clone(&group), Arc::clone(&left), Arc::clone(inbox));
            let end = move |committed: frondb::Result<()>| {
                let error = committed.err().map(|error| failure::text(&error));
                let failure = (call as u32, error.unwrap_or_default());
                inbox.part(ticket, Answer::Failures(vec![failure]));
                if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    inbox.answer(ticket, Ok(Answer::Failures(Vec::new())));
                }
            };
            let failed = end.clone();
            let job = move || end(guarded(|| group.commit(call..call + 1)));
            if WRITES.run(Box::new(job)).is_err() {
                failed(Err(no_thread()));
            }
        }
    }
}

#[napi]
impl NativeDb {
    /// Whether a write may have to wait for a lock of a transaction.
    #[napi(getter)]
    pub fn has_locks(&self) -> bool {
        let Handle { database, db, .. } = &**self.handle();
        database.transactions.load(Ordering::Acquire) > 0 || !db.prepared().is_empty()
    }

    /// Commits a group of writes on threads of the pool. Answers with the failures. Returns whether
    /// the calls of the group run apart, so that another group need not wait for it.
    #[napi]
    pub fn commit(
        &self,
        runtime: &Runtime,
        ticket: u32,
        trees: Vec<&NativeTree>,
        writes: &[u32],
        calls: &[u32],
        bytes: &[u8],
        sync: Option<bool>,
    ) -> Result<bool> {
        let group = or_throw(Group::copy_of(self, &trees, writes, calls, bytes, sync))?;
        let is_apart = self.has_locks();
        if is_apart {
            group.commit_apart(runtime.inbox(), ticket);
        } else {
            runtime.inbox().spawn(&WRITES, ticket, move || group.commit_all());
        }
        Ok(is_apart)
    }

    /// Commits the writes of one call on this thread.
    #[napi]
    pub fn commit_here(
        &self,
        trees: Vec<&NativeTree>,
        writes: &[u32],
        bytes: &[u8],
        sync: Option<bool>,
    ) -> Result<()> {
        let calls = [(writes.len() / NUMBERS) as u32];
        let group = or_throw(Group::copy_of(self, &trees, writes, &calls, bytes, sync))?;
        or_throw(group.commit(0..1))
    }
}
