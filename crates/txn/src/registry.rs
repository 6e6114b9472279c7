//! [`Registry`]: which transactions there are, to be looked at: for the status and for people.
//!
//! ```text
//!   Registry -- entry -- entry -- entry        one of each transaction, and of each spare
//!              ^ written by its transaction, read by who lists them; no lock between them
//! ```
//!
//! A transaction that begins finds a entry among the spare parts ([`crate::pool`]), so a begin and an end
//! take no lock for this. What a entry says is a few numbers, each right by itself: a transaction that goes
//! on while it is read may show one that is older than another.
//!
//! Any thread may list. LOCK order: a leaf.

use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_locks::Locker;

use crate::options::Isolation;

/// On a entry without a transaction.
const NOBODY: u64 = 0;

/// Entries from which on it is worth looking for those that nobody has any more.
const ENTRIES_MIN: usize = 128;

/// A transaction that has not ended: it is active, or prepared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionInfo {
    /// Its number, as [`Transaction::id`](crate::Transaction::id) and [`LockInfo`](crate::LockInfo)
    /// have it.
    pub transaction: u64,
    /// What it sees of others; `None` for one that was found prepared when the database was opened.
    pub isolation: Option<Isolation>,
    /// How long ago it began; of one that was found prepared: how long ago the database was opened.
    pub age: Duration,
    /// Messages it has written and not undone: puts, deletes, updates, and one for each range delete. Of
    /// one that was found prepared what was left of them, one for each key and range.
    pub messages: u64,
    /// Locks it holds: rows, gaps and ranges.
    pub locks: u64,
    /// For how long it has waited for a lock, if it waits.
    pub waited: Option<Duration>,
    /// Its name if it is prepared.
    pub xid: Option<Vec<u8>>,
}

/// What is told of one transaction. Written by who has the transaction's state, or its locks.
#[derive(Default)]
pub(crate) struct Entry {
    /// Whose it is. The last to be written at the begin, the first at the end.
    transaction: AtomicU64,
    begun: AtomicU64,
    /// Place of its isolation in [`LEVELS`].
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

// Each store releases and each load acquires, so that who sees a number of the next transaction on a entry
// sees the entry change hands, too.
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
        // One thread at a time changes it.
        self.messages.store(self.messages.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    pub(crate) fn set_messages(&self, messages: u64) {
        self.messages.store(messages, Ordering::Release);
    }

    #[inline]
    pub(crate) fn set_locks(&self, locks: u64) {
        self.locks.store(locks, Ordering::Release);
    }

    /// What it says; `None` without a transaction.
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
        // Numbers are not used twice: if it is still the same it was all the time.
        let is_same = self.transaction.load(Ordering::Acquire) == transaction;
        (transaction != NOBODY && is_same).then_some(info)
    }
}

/// The entries of an engine.
#[derive(Default)]
pub(crate) struct Registry {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    all: Vec<Arc<Entry>>,
    /// As many are looked through for those that nobody has.
    look_at: usize,
}

impl Registry {
    /// A new entry, on the list as long as somebody has it.
    pub(crate) fn entry(&self) -> Arc<Entry> {
        let entry = Arc::new(Entry::default());
        let mut entries = self.entries.lock();
        if entries.all.len() >= entries.look_at.max(ENTRIES_MIN) {
            entries.all.retain(|entry| Arc::strong_count(entry) > 1);
            entries.look_at = entries.all.len() * 2;
        }
        entries.all.push(Arc::clone(&entry));
        entry
    }

    /// All entries.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.entries.lock().all.clone()
    }
}

/// What stands for a prepared transaction until it is decided: its locks, and its entry.
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

    /// Spare parts beyond some are dropped, so their entries must not stay.
    #[test]
    fn entries_that_nobody_has_do_not_gather() {
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
    fn a_entry_speaks_of_one_transaction_only() {
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
