//! Threads on a real database that append to lists and read them, and record their transactions.
//!
//! A list is a value: numbers of eight bytes. An append is a read for update and a put, or an
//! operand of the update function; a read is a get or a cursor, plain or locking. Threads flush
//! from time to time. A transaction that the database refuses is in the history too, and its work
//! is retried as another transaction. A transaction that its thread rolls back by choice is in the
//! history and not retried.

use frondb::{
    Db, Durability, Error, ErrorKind, Isolation, Result, Savepoint, Transaction, TransactionCursor,
    TransactionCursorOptions, TransactionOptions, Tree, Wait,
};
use frondb_core::prng::Prng;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

use super::history::{Event, History, KeyNumber, Outcome, Recorded};
use crate::functions::Function;
use crate::setup::Setup;

/// Number of lists in each of the two trees.
pub const KEYS_OF_A_TREE: u32 = 4;

/// The isolation level of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Read committed.
    ReadCommitted,
    /// Repeatable read with `snapshot_isolation`.
    Snapshot,
    /// Serializable.
    Serializable,
}

/// A run of several threads.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The isolation level of all transactions.
    pub level: Level,
    /// Number of threads.
    pub threads: u64,
    /// Number of transactions that each thread commits, or rolls back by its own choice.
    pub transactions: u64,
    /// Seed for the actions of the threads. It does not determine how they interleave.
    pub seed: u64,
}

/// An action on lists in a transaction.
#[derive(Clone, Copy, Debug)]
enum Step {
    Get(KeyNumber),
    GetLocked(KeyNumber, bool),
    Scan { tree: usize, backward: bool, locking: bool },
    ReadAndPut(KeyNumber),
    Update(KeyNumber),
    SetSavepoint,
    RollBackTo,
}

struct Lists {
    db: Db,
    trees: [Tree; 2],
    ticks: AtomicU64,
    values: AtomicU64,
    recorded: Mutex<Vec<Recorded>>,
}

impl Run {
    /// Runs on an empty database, in which it creates two trees.
    ///
    /// # Errors
    /// Errors of the database, except the errors that each transaction must expect.
    pub fn on(&self, db: &Db, setup: &Setup) -> Result<History> {
        let make = |name| db.create_tree(name, setup.tree_options(Function::Append));
        let lists = Lists {
            db: db.clone(),
            trees: [make("lists")?, make("more lists")?],
            ticks: AtomicU64::new(0),
            values: AtomicU64::new(0),
            recorded: Mutex::new(Vec::new()),
        };
        let (run, shared) = (*self, &lists);
        std::thread::scope(|scope| {
            let thread = |number| scope.spawn(move || run.thread(shared, number));
            let threads: Vec<_> = (0..self.threads).map(thread).collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        let mut history =
            History { transactions: lists.recorded.into_inner(), ..History::default() };
        for (at, tree) in lists.trees.iter().enumerate() {
            for (key, value) in crate::crash::read_tree(tree)? {
                history.last.insert(number_of(at, &key), decode(&value));
            }
        }
        Ok(history)
    }

    fn thread(&self, lists: &Lists, number: u64) -> Result<()> {
        let mut prng = Prng::new(self.seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..self.transactions {
            if prng.chance(1, 100) {
                lists.db.flush()?;
            }
            let steps = self.steps(&mut prng);
            let gives_up = prng.chance(1, 15);
            while !lists.attempt(&self.options(), &steps, gives_up)? {}
        }
        Ok(())
    }

    fn options(&self) -> TransactionOptions {
        let isolation = match self.level {
            Level::ReadCommitted => Isolation::ReadCommitted,
            Level::Snapshot => Isolation::RepeatableRead,
            Level::Serializable => Isolation::Serializable,
        };
        TransactionOptions::new()
            .isolation(isolation)
            .snapshot_isolation(self.level == Level::Snapshot)
            .durability(Durability::NoSync)
    }

    fn steps(&self, prng: &mut Prng) -> Vec<Step> {
        (0..=prng.below(8))
            .map(|_| {
                let key = prng.below(2 * u64::from(KEYS_OF_A_TREE)) as KeyNumber;
                let tree = prng.index(2);
                match prng.below(20) {
                    0..=5 => Step::Get(key),
                    6 => Step::GetLocked(key, prng.chance(1, 2)),
                    7 | 8 => Step::Scan { tree, backward: prng.chance(1, 2), locking: false },
                    9 => Step::Scan { tree, backward: prng.chance(1, 2), locking: true },
                    10..=13 => Step::ReadAndPut(key),
                    14..=17 => Step::Update(key),
                    18 => Step::SetSavepoint,
                    _ => Step::RollBackTo,
                }
            })
            .collect()
    }
}

fn key_of(number: KeyNumber) -> [u8; 4] {
    number.to_be_bytes()
}

fn number_of(tree: usize, key: &[u8]) -> KeyNumber {
    let number = key.try_into().map_or(KeyNumber::MAX, KeyNumber::from_be_bytes);
    debug_assert_eq!(tree, (number / KEYS_OF_A_TREE) as usize);
    number
}

fn decode(value: &[u8]) -> Vec<u64> {
    let numbers = value.chunks(8);
    numbers.map(|bytes| bytes.try_into().map_or(u64::MAX, u64::from_be_bytes)).collect()
}

/// Returns whether the error is one that a transaction must expect and retry.
fn is_expected(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Deadlock | ErrorKind::Conflict | ErrorKind::LockTimeout)
}

impl Lists {
    fn tree(&self, key: KeyNumber) -> &Tree {
        &self.trees[(key / KEYS_OF_A_TREE) as usize % 2]
    }

    /// Runs a transaction and records it. Returns whether it ended as intended.
    fn attempt(
        &self,
        options: &TransactionOptions,
        steps: &[Step],
        gives_up: bool,
    ) -> Result<bool> {
        let begin = self.ticks.fetch_add(1, Ordering::SeqCst);
        let transaction = self.db.begin(options.clone())?;
        let mut attempt =
            Attempt { lists: self, transaction, events: Vec::new(), savepoints: Vec::new() };
        let mut done = steps.iter().try_for_each(|step| attempt.step(*step));
        let ends = if gives_up || done.is_err() { Outcome::RolledBack } else { Outcome::Committed };
        done = done.and_then(|()| match ends {
            Outcome::Committed => attempt.transaction.commit(),
            Outcome::RolledBack => attempt.transaction.rollback(),
        });
        let Attempt { transaction, events, .. } = attempt;
        drop(transaction);
        let end = self.ticks.fetch_add(1, Ordering::SeqCst);
        self.recorded.lock().push(Recorded { begin, end, outcome: ends, events });
        match done {
            Ok(()) => Ok(true),
            Err(error) if is_expected(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

struct Attempt<'a> {
    lists: &'a Lists,
    transaction: Transaction,
    events: Vec<Event>,
    savepoints: Vec<Savepoint>,
}

impl Attempt<'_> {
    fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Get(key) => {
                let found = self.transaction.get(self.lists.tree(key), &key_of(key))?;
                self.saw(key, found.as_deref());
            }
            Step::GetLocked(key, exclusive) => {
                let (tree, name) = (self.lists.tree(key), key_of(key));
                let found = if exclusive {
                    self.transaction.get_for_update(tree, &name, Wait::Timeout)?
                } else {
                    self.transaction.get_for_share(tree, &name, Wait::Timeout)?
                };
                self.saw(key, found.as_deref());
            }
            Step::Scan { tree, backward, locking } => self.scan(tree, backward, locking)?,
            Step::ReadAndPut(key) => {
                let (tree, name) = (self.lists.tree(key), key_of(key));
                let found = self.transaction.get_for_update(tree, &name, Wait::Timeout)?;
                self.saw(key, found.as_deref());
                let value = self.value();
                let list = [found.as_deref().unwrap_or_default(), &value.to_be_bytes()].concat();
                self.transaction.put(tree, &name, &list)?;
                self.events.push(Event::Append(key, value));
            }
            Step::Update(key) => {
                let value = self.value();
                let operand = value.to_be_bytes();
                self.transaction.update(self.lists.tree(key), &key_of(key), &operand)?;
                self.events.push(Event::Append(key, value));
            }
            Step::SetSavepoint => {
                self.savepoints.push(self.transaction.set_savepoint()?);
                self.events.push(Event::SetSavepoint);
            }
            Step::RollBackTo => {
                let Some(at) =
                    self.savepoints.len().checked_sub(2).or(self.savepoints.len().checked_sub(1))
                else {
                    return Ok(());
                };
                self.transaction.roll_back_to(self.savepoints[at])?;
                self.savepoints.truncate(at + 1);
                self.events.push(Event::RollBackTo(at));
            }
        }
        Ok(())
    }

    /// Reads all lists of a tree; missing ones are empty.
    fn scan(&mut self, tree: usize, backward: bool, locking: bool) -> Result<()> {
        let options = TransactionCursorOptions::new();
        let options = if locking { options.for_share(Wait::Timeout) } else { options };
        let mut cursor = self.transaction.cursor_with(&self.lists.trees[tree], options)?;
        let step = |cursor: &mut TransactionCursor| {
            if backward { cursor.prev() } else { cursor.next() }
        };
        let mut found = std::collections::BTreeMap::new();
        while step(&mut cursor)? {
            found.insert(number_of(tree, cursor.key()), cursor.value()?.to_vec());
        }
        let first = tree as KeyNumber * KEYS_OF_A_TREE;
        for key in first..first + KEYS_OF_A_TREE {
            self.saw(key, found.get(&key).map(|value| &value[..]));
        }
        Ok(())
    }

    fn saw(&mut self, key: KeyNumber, value: Option<&[u8]>) {
        self.events.push(Event::Read(key, decode(value.unwrap_or_default())));
    }

    fn value(&self) -> u64 {
        self.lists.values.fetch_add(1, Ordering::Relaxed)
    }
}
