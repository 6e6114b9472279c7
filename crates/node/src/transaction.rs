//! Transactions. Calls of one transaction run one after the other, in the order in which
//! JavaScript made them, on at most one thread.
//!
//! # Calls that nobody has waited for
//! `tx.put(...)` without `await`, followed by a commit, must not commit if the put fails. Every call
//! has a number, and a commit says how many results its caller has seen. If a write behind these
//! has failed, the commit fails with that error.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use frondb::{Canceller, Error, Isolation, Savepoint, Transaction, TransactionOptions, Tree, Wait};
use napi_derive::napi;
use parking_lot::Mutex;

use crate::answer::Answer;
use crate::failure;
use crate::pool::CALLS;
use crate::runtime::{Inbox, guarded, no_thread};
use crate::shared::{Active, Handle};

/// What a call does.
type Run = dyn FnOnce(&OpenTransaction) -> frondb::Result<Answer> + Send;

/// A call that waits for its turn.
struct Call {
    inbox: Arc<Inbox>,
    ticket: u32,
    run: Box<Run>,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    /// Whether a thread runs the calls.
    is_served: bool,
    /// How many calls have ended.
    ended: u64,
    /// The number of the last write that failed, and its error.
    failed: Option<(u64, Error)>,
}

/// A transaction that has begun.
pub(crate) struct OpenTransaction {
    transaction: Transaction,
    canceller: Canceller,
    queue: Mutex<Queue>,
    pub(crate) savepoints: Mutex<Vec<(u32, Savepoint)>>,
    has_ended: AtomicBool,
    /// Whether its plain reads lock what they read.
    is_serializable: bool,
    /// Dropped after the transaction, which refers to the database.
    handle: Arc<Handle>,
}

impl Active for OpenTransaction {
    fn cancel(&self) {
        self.canceller.cancel();
    }

    fn abandon(&self) {
        if self.has_ended.load(Ordering::Acquire) {
            return;
        }
        // An error leaves nothing to do: after a close the transaction is rolled back already.
        let _ = guarded(|| self.transaction.rollback());
        self.end();
    }
}

impl OpenTransaction {
    pub(crate) fn get(&self) -> &Transaction {
        &self.transaction
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn is_serializable(&self) -> bool {
        self.is_serializable
    }

    /// Notes that the transaction holds no locks any more.
    pub(crate) fn end(&self) {
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            self.handle.database.transactions.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Commits, unless a write failed of which the caller has not seen the result.
    pub(crate) fn commit(&self, seen: u64) -> frondb::Result<()> {
        if let Some((number, error)) = &self.queue.lock().failed
            && *number >= seen
        {
            return Err(error.clone().context("an earlier write of the transaction failed"));
        }
        self.transaction.commit()?;
        self.end();
        Ok(())
    }

    /// Notes the result of a write.
    pub(crate) fn written(&self, written: frondb::Result<()>) -> frondb::Result<Answer> {
        if let Err(error) = &written {
            let mut queue = self.queue.lock();
            queue.failed = Some((queue.ended, error.clone()));
        }
        written.map(|()| Answer::Done)
    }

    /// Runs a call after those before it.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        inbox: &Arc<Inbox>,
        ticket: u32,
        run: impl FnOnce(&Self) -> frondb::Result<Answer> + Send + 'static,
    ) {
        let mut queue = self.queue.lock();
        let call = Call { inbox: Arc::clone(inbox), ticket, run: Box::new(run) };
        queue.calls.push_back(call);
        if std::mem::replace(&mut queue.is_served, true) {
            return;
        }
        drop(queue);
        let this = Arc::clone(self);
        if CALLS.run(Box::new(move || this.serve())).is_err() {
            self.fail_all();
        }
    }

    fn serve(&self) {
        let mut queue = self.queue.lock();
        while let Some(Call { inbox, ticket, run }) = queue.calls.pop_front() {
            drop(queue);
            let result = guarded(|| self.handle.check().and_then(|()| run(self)));
            queue = self.queue.lock();
            queue.ended += 1;
            inbox.answer(ticket, result);
        }
        queue.is_served = false;
    }

    /// Fails all calls, because there is no thread to run them.
    fn fail_all(&self) {
        let mut queue = self.queue.lock();
        queue.is_served = false;
        queue.ended += queue.calls.len() as u64;
        for Call { inbox, ticket, .. } in std::mem::take(&mut queue.calls) {
            inbox.answer(ticket, Err(no_thread()));
        }
    }
}

/// A transaction.
#[napi]
pub struct NativeTransaction {
    open: Arc<OpenTransaction>,
}

impl NativeTransaction {
    pub(crate) fn begin(
        handle: &Arc<Handle>,
        options: TransactionOptions,
        isolation: Isolation,
    ) -> frondb::Result<Self> {
        let transaction = handle.db.begin(options)?;
        handle.database.transactions.fetch_add(1, Ordering::AcqRel);
        let open = OpenTransaction {
            canceller: transaction.canceller(),
            transaction,
            queue: Mutex::default(),
            savepoints: Mutex::default(),
            has_ended: AtomicBool::new(false),
            is_serializable: isolation == Isolation::Serializable,
            handle: Arc::clone(handle),
        };
        let open = Arc::new(open);
        let weak = Arc::downgrade(&open);
        handle.add(weak);
        Ok(Self { open })
    }

    pub(crate) fn open(&self) -> &Arc<OpenTransaction> {
        &self.open
    }
}

impl Drop for NativeTransaction {
    /// Rolls back a transaction that JavaScript has forgotten, so that its locks do not stay.
    fn drop(&mut self) {
        if !self.open.has_ended.load(Ordering::Acquire) {
            let open = Arc::clone(&self.open);
            let _ = CALLS.run(Box::new(move || open.abandon()));
        }
    }
}

/// Returns the answer to a read of one key.
pub(crate) fn read(
    transaction: &Transaction,
    how: &str,
    tree: &Tree,
    key: &[u8],
    wait: Wait,
) -> frondb::Result<Answer> {
    match how {
        "get" => transaction.get(tree, key).map(Answer::Value),
        "getForUpdate" => transaction.get_for_update(tree, key, wait).map(Answer::Value),
        "getForShare" => transaction.get_for_share(tree, key, wait).map(Answer::Value),
        "exists" => transaction.exists(tree, key).map(Answer::Bool),
        "take" => transaction.take(tree, key).map(Answer::Value),
        "popFirst" => transaction.pop_first(tree, wait).map(Answer::Entry),
        "popLast" => transaction.pop_last(tree, wait).map(Answer::Entry),
        other => Err(Error::invalid(format!("there is no read {other}"))),
    }
}

/// The error of a call that names a savepoint that is not set any more.
pub(crate) fn no_savepoint() -> Error {
    failure::closed("savepoint")
}
