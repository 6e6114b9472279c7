//! [`Registry`]: the transaction registry, which lists the live transactions for status pages.
//!
//! ```text
//!   Registry -- entry -- entry -- entry        one per transaction and per pooled object
//!              ^ written by its transaction, read by the listing thread; no lock between them
//! ```
//!
//! A transaction gets its entry from the object pool ([`crate::pool`]), so usually neither its
//! begin nor its end takes the registry's lock. The numbers of an entry are separate atomics: each
//! number is correct, but a listing may combine numbers of slightly different times.
//!
//! Any thread may list. Lock order: the lock of the registry is a leaf.

use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_locks::Locker;

use crate::options::Isolation;

/// The id of an entry without a transaction.
const NOBODY: u64 = 0;

/// Fewest entries at which the registry searches for unreferenced entries.
const ENTRIES_MIN: usize = 128;

/// The state of an active or prepared transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionInfo {
    /// The transaction id, as in `Transaction::id` and
    /// [`LockInfo`](frondb_locks::LockInfo).
    pub transaction: u64,
    /// The isolation level; `None` for a prepared transaction that recovery found.
    pub isolation: Option<Isolation>,
    /// Time since the transaction began. For a prepared transaction that recovery found, time since
    /// the open of the database.
    pub age: Duration,
    /// Messages that were written and not undone: puts, deletes, updates and range deletes. For a
    /// prepared transaction that recovery found, the number of its keys and ranges in the log and
    /// in private runs.
    pub messages: u64,
    /// Number of locks that the transaction holds: on rows, gaps and ranges.
    pub locks: u64,
    /// Length of the current wait for a lock; `None` if the transaction is not waiting.
    pub waited: Option<Duration>,
    /// The name of a prepared transaction; `None` for an active one.
    pub xid: Option<Vec<u8>>,
}

/// The registry's record of one transaction. Only the thread that holds the lock of the
/// transaction's state, or that owns its [`PreparedHold`], writes the entry. Any thread may read
/// the entry.
#[derive(Default)]
pub(crate) struct Entry {
    /// The id of the transaction. It is set after all other fields at the begin, and cleared at the
    /// end.
    transaction: AtomicU64,
    begun: AtomicU64,
    /// Index of the isolation level in [`LEVELS`].
    isolation: AtomicU64,
    messages: AtomicU64,
    locks: AtomicU64,
}

const LEVELS: [Option<Isolation>; 5] = [
    None,
    Some(Isolation::ReadUncommitted),
    Some(Isolation::ReadCommitted),
    Some(Isolation::RepeatableRead),
    Some(Isolation::Serializable),
];

// Each store releases and each load acquires: a reader that sees a value of the entry's next
// transaction also sees that the id has changed.
impl Entry {
    pub(crate) fn begin(&self, transaction: u64, now: Nanos, isolation: Option<Isolation>) {
        let level = LEVELS.iter().position(|level| *level == isolation).unwrap_or(0);
        self.begun.store(now.0, Ordering::Release);
        self.isolation.store(level as u64, Ordering::Release);
        self.messages.store(0, Ordering::Release);
        self.locks.store(0, Ordering::Release);
        self.transaction.store(transaction, Ordering::Release);
    }

    pub(crate) fn end(&self) {
        self.transaction.store(NOBODY, Ordering::Release);
    }

    #[inline]
    pub(crate) fn add_message(&self) {
        // Not an atomic addition: only one thread at a time changes the count.
        self.messages.store(self.messages.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    pub(crate) fn set_messages(&self, messages: u64) {
        self.messages.store(messages, Ordering::Release);
    }

    #[inline]
    pub(crate) fn set_locks(&self, locks: u64) {
        self.locks.store(locks, Ordering::Release);
    }

    /// Returns the state of the entry's transaction; `None` if the entry has no transaction, or if
    /// the transaction ended during the read.
    pub(crate) fn read(&self, now: Nanos) -> Option<TransactionInfo> {
        let transaction = self.transaction.load(Ordering::Acquire);
        let begun = Nanos(self.begun.load(Ordering::Acquire));
        let level = self.isolation.load(Ordering::Acquire) as usize;
        let info = TransactionInfo {
            transaction,
            isolation: LEVELS.get(level).copied().flatten(),
            age: now.since(begun),
            messages: self.messages.load(Ordering::Acquire),
            locks: self.locks.load(Ordering::Acquire),
            waited: None,
            xid: None,
        };
        // Ids are never reused, so an unchanged id means that all loads read the same transaction.
        let is_same = self.transaction.load(Ordering::Acquire) == transaction;
        (transaction != NOBODY && is_same).then_some(info)
    }
}

/// All entries of a database.
#[derive(Default)]
pub(crate) struct Registry {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    all: Vec<Arc<Entry>>,
    /// Number of entries at which to search for unreferenced entries again.
    sweep_at: usize,
}

impl Registry {
    /// Adds and returns an entry. The registry removes the entry some time after all users have
    /// dropped it.
    pub(crate) fn entry(&self) -> Arc<Entry> {
        let entry = Arc::new(Entry::default());
        let mut entries = self.entries.lock();
        if entries.all.len() >= entries.sweep_at.max(ENTRIES_MIN) {
            entries.all.retain(|entry| Arc::strong_count(entry) > 1);
            entries.sweep_at = entries.all.len() * 2;
        }
        entries.all.push(Arc::clone(&entry));
        entry
    }

    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.entries.lock().all.clone()
    }
}

/// The locks and the registry entry of a prepared transaction, until it is decided.
pub struct PreparedHold {
    pub(crate) _locker: Locker,
    pub(crate) entry: Arc<Entry>,
}

impl Drop for PreparedHold {
    fn drop(&mut self) {
        self.entry.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pool drops objects above its limit, so the registry must drop their entries.
    #[test]
    fn unreferenced_entries_do_not_accumulate() {
        let registry = Registry::default();
        let kept: Vec<Arc<Entry>> = (0..300).map(|_| registry.entry()).collect();
        for _ in 0..10_000 {
            drop(registry.entry());
        }
        let all = registry.all();
        assert!(all.len() <= 2 * kept.len(), "{} entries", all.len());
        assert!(kept.iter().all(|entry| all.iter().any(|other| Arc::ptr_eq(entry, other))));
    }

    #[test]
    fn an_entry_describes_one_transaction_only() {
        let entry = Entry::default();
        assert_eq!(entry.read(Nanos(9)), None);
        entry.begin(7, Nanos(2), Some(Isolation::Serializable));
        entry.add_message();
        entry.set_locks(5);
        let info = entry.read(Nanos(9)).unwrap();
        assert_eq!((info.transaction, info.messages, info.locks), (7, 1, 5));
        assert_eq!(
            (info.age, info.isolation),
            (Duration::from_nanos(7), Some(Isolation::Serializable))
        );
        entry.end();
        assert_eq!(entry.read(Nanos(9)), None);
        entry.begin(8, Nanos(9), None);
        let info = entry.read(Nanos(9)).unwrap();
        assert_eq!((info.transaction, info.messages, info.locks), (8, 0, 0));
        assert_eq!((info.age, info.isolation), (Duration::ZERO, None));
    }
}
