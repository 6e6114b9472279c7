//! [`Roster`]: which transactions there are, to be looked at: for the status and for people.
//!
//! ```text
//!   Roster -- card -- card -- card        one of each transaction, and of each spare
//!              ^ written by its transaction, read by who lists them; no lock between them
//! ```
//!
//! A transaction that begins finds a card among the spare parts ([`super::spare`]), so a begin and an end
//! take no lock for this. What a card says is a few numbers, each right by itself: a transaction that goes
//! on while it is read may show one that is older than another.
//!
//! Any thread may list. LOCK order: a leaf.

use std::collections::BTreeMap;
use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_locks::Locker;

use super::Isolation;
use crate::engine::Engine;
use crate::env::Env;
use crate::prepared;

/// On a card without a transaction.
const NOBODY: u64 = 0;

/// Cards from which on it is worth looking for those that nobody has any more.
const CARDS_MIN: usize = 128;

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
pub(crate) struct Card {
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

// Each store releases and each load acquires, so that who sees a number of the next transaction on a card
// sees the card change hands, too.
impl Card {
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
    fn read(&self, now: Nanos) -> Option<TransactionInfo> {
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

/// The cards of an engine.
#[derive(Default)]
pub(crate) struct Roster {
    cards: Mutex<Cards>,
}

#[derive(Default)]
struct Cards {
    all: Vec<Arc<Card>>,
    /// As many are looked through for those that nobody has.
    look_at: usize,
}

impl Roster {
    /// A new card, on the list as long as somebody has it.
    pub(crate) fn card(&self) -> Arc<Card> {
        let card = Arc::new(Card::default());
        let mut cards = self.cards.lock();
        if cards.all.len() >= cards.look_at.max(CARDS_MIN) {
            cards.all.retain(|card| Arc::strong_count(card) > 1);
            cards.look_at = cards.all.len() * 2;
        }
        cards.all.push(Arc::clone(&card));
        card
    }

    fn all(&self) -> Vec<Arc<Card>> {
        self.cards.lock().all.clone()
    }
}

/// What stands for a prepared transaction until it is decided: its locks, and its card.
pub(crate) struct PreparedHold {
    pub(crate) _locker: Locker,
    pub(crate) card: Arc<Card>,
}

impl Drop for PreparedHold {
    fn drop(&mut self) {
        self.card.end();
    }
}

impl Engine {
    /// All transactions that have not ended, active ones and prepared ones, by number. Not one moment:
    /// they go on while it is made. It takes time with their number, and keeps none of them waiting.
    #[must_use]
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        list(&self.shared().env)
    }
}

fn list(env: &Env) -> Vec<TransactionInfo> {
    let now = env.now();
    let mut waits: BTreeMap<u64, Duration> = env.locks.waiting().into_iter().collect();
    let mut names = prepared::names(env);
    let cards = env.roster.all();
    let mut infos: Vec<TransactionInfo> = cards.iter().filter_map(|card| card.read(now)).collect();
    infos.sort_unstable_by_key(|info| info.transaction);
    for info in &mut infos {
        info.waited = waits.remove(&info.transaction);
        info.xid = names.remove(&info.transaction).map(Vec::from);
    }
    infos
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spare parts beyond some are dropped, so their cards must not stay.
    #[test]
    fn cards_that_nobody_has_do_not_gather() {
        let roster = Roster::default();
        let kept: Vec<Arc<Card>> = (0..300).map(|_| roster.card()).collect();
        for _ in 0..10_000 {
            drop(roster.card());
        }
        let all = roster.all();
        assert!(all.len() <= 2 * kept.len(), "{} cards", all.len());
        assert!(kept.iter().all(|card| all.iter().any(|other| Arc::ptr_eq(card, other))));
    }

    #[test]
    fn a_card_speaks_of_one_transaction_only() {
        let card = Card::default();
        assert_eq!(card.read(Nanos(9)), None);
        card.begin(7, Nanos(2), Some(Isolation::Serializable));
        card.add_message();
        card.set_locks(5);
        let info = card.read(Nanos(9)).unwrap();
        assert_eq!((info.transaction, info.messages, info.locks), (7, 1, 5));
        assert_eq!(
            (info.age, info.isolation),
            (Duration::from_nanos(7), Some(Isolation::Serializable))
        );
        card.end();
        assert_eq!(card.read(Nanos(9)), None);
        card.begin(8, Nanos(9), None);
        let info = card.read(Nanos(9)).unwrap();
        assert_eq!((info.transaction, info.messages, info.locks), (8, 0, 0));
        assert_eq!((info.age, info.isolation), (Duration::ZERO, None));
    }
}
