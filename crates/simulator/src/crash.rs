//! The states allowed after power loss, and the check of a recovered database.
//!
//! ```text
//!  commits   1  2  3  4  5  6(in flight)      3 was the last that is known to be durable
//!                     ^--------------^        allowed: the state after 3, 4, 5 or 6, as a whole
//!  catalog   as acknowledged, or with the change in flight
//! ```
//! A state consists of the contents of the trees and the prepared transactions. A prepare, and the
//! commit of a prepared transaction, count as commits here. The rollback of a prepared transaction
//! is durable by itself when it returns.
//!
//! So a synced commit is never lost, an unsynced commit is lost only together with everything after
//! it, and a commit over several trees is in all of them or in none.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use frondb::{Db, Durability, ErrorKind, Result, TransactionOptions, Tree, Wait};
use frondb_core::clock::SharedClock;
use frondb_testkit::MemoryDevice;

use crate::model::{Catalog, Message, Prepared, PreparedMessages, State, apply, xid};
use crate::setup::{Setup, clock, open};

/// The states that a recovery may find if the database crashes now.
#[derive(Debug, Default)]
pub struct AllowedStates(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    /// The last state known to be durable, then one state for each commit since; the last commit
    /// may be in flight.
    commit_points: VecDeque<CommitPoint>,
    /// Prepared transactions whose rollback is in flight.
    rolling_back: BTreeSet<u32>,
    catalog: Catalog,
    /// The catalog after a change in flight.
    catalog_next: Option<Catalog>,
}

/// The state after a commit.
#[derive(Clone, Debug, Default)]
pub struct CommitPoint {
    /// Contents of the trees.
    pub state: State,
    /// Prepared transactions.
    pub prepared: Prepared,
    /// Whether the commit that led to this state wrote nothing to a tree, so that a flush does not
    /// make the commit durable.
    pub in_log_only: bool,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            commit_points: VecDeque::from([CommitPoint::default()]),
            rolling_back: BTreeSet::new(),
            catalog: Catalog::new(),
            catalog_next: None,
        }
    }
}

impl AllowedStates {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a commit or a prepare that leads to `commit_point`.
    pub fn committing(&self, commit_point: CommitPoint) {
        self.inner().commit_points.push_back(commit_point);
    }

    /// Begins the rollback of a prepared transaction.
    pub fn rolling_back(&self, transaction: u32) {
        self.inner().rolling_back.insert(transaction);
    }

    /// Ends the rollback of a prepared transaction. The rollback is durable if `done`; otherwise it
    /// was refused.
    pub fn rolled_back(&self, transaction: u32, done: bool) {
        let mut inner = self.inner();
        inner.rolling_back.remove(&transaction);
        if done {
            inner.commit_points.iter_mut().for_each(|commit_point| {
                commit_point.prepared.remove(&transaction);
            });
        }
    }

    /// Records that the commit or catalog change in flight was refused: recovery must never find
    /// it.
    pub fn refused(&self) {
        let mut inner = self.inner();
        if inner.catalog_next.take().is_none() && inner.commit_points.len() > 1 {
            inner.commit_points.pop_back();
        }
    }

    /// Records that every commit so far is durable.
    pub fn all_durable(&self) {
        let mut inner = self.inner();
        if let Some(last) = inner.commit_points.pop_back() {
            inner.commit_points.clear();
            inner.commit_points.push_back(last);
        }
    }

    /// Records that the commits so far are durable, up to the last one that wrote to a tree. Later
    /// prepares, and commits without writes, need not be durable.
    pub fn commits_durable(&self) {
        let mut inner = self.inner();
        let last = inner.commit_points.iter().rposition(|commit_point| !commit_point.in_log_only);
        inner.commit_points.drain(..last.unwrap_or_default());
    }

    /// Begins a change of the catalog.
    pub fn changing_catalog(&self, next: Catalog) {
        self.inner().catalog_next = Some(next);
    }

    /// Records that the catalog change in flight is durable.
    pub fn catalog_changed(&self) {
        let mut inner = self.inner();
        if let Some(next) = inner.catalog_next.take() {
            inner.catalog = next;
        }
    }

    /// Compares a recovered database with the allowed states, and returns the catalog and the
    /// commit point that it equals. `found`: its contents. `prepared`: the names of its prepared
    /// transactions, of which one whose rollback is in flight may be missing.
    ///
    /// # Panics
    /// If no allowed state is equal; the message shows how `found` differs from the nearest
    /// candidates.
    pub fn check(&self, found: &DatabaseContents, prepared: &[Vec<u8>]) -> (Catalog, CommitPoint) {
        let inner = self.inner();
        let catalogs = std::iter::once(&inner.catalog).chain(&inner.catalog_next);
        let mut differences = Vec::new();
        for catalog in catalogs {
            for (back, commit_point) in inner.commit_points.iter().rev().enumerate() {
                let difference = difference(found, catalog, &commit_point.state)
                    .or_else(|| inner.difference_of_prepared(prepared, &commit_point.prepared));
                let Some(text) = difference else {
                    let mut commit_point = commit_point.clone();
                    commit_point.prepared.retain(|number, _| prepared.contains(&xid(*number)));
                    return (catalog.clone(), commit_point);
                };
                differences.push(format!("{back} commits back: {text}"));
            }
        }
        differences.truncate(6);
        panic!("none of the allowed states was recovered:\n  {}", differences.join("\n  "));
    }
}

impl Inner {
    fn difference_of_prepared(&self, found: &[Vec<u8>], wanted: &Prepared) -> Option<String> {
        let names: BTreeMap<_, _> = wanted.keys().map(|number| (xid(*number), number)).collect();
        if let Some(more) = found.iter().find(|name| !names.contains_key(*name)) {
            return Some(format!("\"{}\" is prepared", more.escape_ascii()));
        }
        let may_go = |number: &u32| self.rolling_back.contains(number);
        let mut missing =
            names.into_iter().filter(|(name, number)| !found.contains(name) && !may_go(number));
        missing.next().map(|(name, _)| format!("\"{}\" is not prepared", name.escape_ascii()))
    }
}

/// Everything in a database: contents by tree name.
pub type DatabaseContents = BTreeMap<String, Vec<(Vec<u8>, Vec<u8>)>>;

fn difference(found: &DatabaseContents, catalog: &Catalog, state: &State) -> Option<String> {
    if !found.keys().eq(catalog.keys()) {
        let (found, wanted): (Vec<_>, Vec<_>) = (found.keys().collect(), catalog.keys().collect());
        return Some(format!("trees {found:?}, not {wanted:?}"));
    }
    for (name, entries) in found {
        let contents = catalog.get(name).and_then(|tree| state.get(tree));
        let wanted = contents.map(|contents| contents.as_ref().clone()).unwrap_or_default();
        let mut wanted = wanted.iter();
        for (key, value) in entries {
            let next = wanted.next();
            if next.is_none_or(|(k, v)| **k != **key || **v != **value) {
                let key = key[..key.len().min(30)].escape_ascii();
                let next = next.map(|(k, _)| k[..k.len().min(30)].escape_ascii().to_string());
                return Some(format!("tree {name:?} has {key}, expected {next:?}"));
            }
        }
        if let Some((key, _)) = wanted.next() {
            let key = key[..key.len().min(30)].escape_ascii();
            return Some(format!("tree {name:?} lacks {key} at its end"));
        }
    }
    None
}

/// Reads all trees.
///
/// # Errors
/// Errors of the database.
pub fn read_all(db: &Db) -> Result<DatabaseContents> {
    db.list_trees()
        .into_iter()
        .map(|name| Ok((name.clone(), read_tree(&db.open_tree(&name)?)?)))
        .collect()
}

/// Reads a tree.
///
/// # Errors
/// Errors of the database.
pub fn read_tree(tree: &Tree) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut cursor = tree.cursor()?;
    let mut entries = Vec::new();
    while cursor.next()? {
        let key = cursor.key().to_vec();
        entries.push((key, cursor.value()?.to_vec()));
    }
    Ok(entries)
}

/// The extent of the checks of [`check_recovered`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// Opens the database, reads everything, verifies, and requests the locks of prepared
    /// transactions.
    Once,
    /// In addition: a second recovery finds the same state, prepared transactions can be decided,
    /// the database accepts writes, and no space has leaked.
    All,
}

/// Opens a database after a crash, and checks that it has one of the allowed states and a valid
/// structure.
///
/// # Panics
/// If a check fails.
pub fn check_recovered(device: &MemoryDevice, setup: &Setup, known: &AllowedStates, check: Check) {
    let clock: SharedClock = clock();
    let reopen = || match open(device, setup, &clock) {
        Ok(db) => db,
        Err(error) => panic!("the database cannot be opened: {error}"),
    };
    let db = reopen();
    let first = read_checked(&db);
    let prepared = db.prepared();
    let (catalog, commit_point) = known.check(&first, &prepared);
    check_locks(&db, &catalog, &commit_point.prepared);
    drop(db);
    if check == Check::Once {
        return;
    }
    let db = reopen();
    assert!(first == read_checked(&db), "a second recovery found another state");
    assert_eq!(prepared, db.prepared(), "a second recovery found other prepared transactions");
    let decided = if commit_point.prepared.is_empty() {
        first
    } else {
        decide(&db, &catalog, commit_point);
        read_checked(&db)
    };
    if let Err(error) = db.checkpoint() {
        panic!("the recovered database cannot be written: {error}");
    }
    let used = db.stats().data_used_bytes;
    drop(db);
    let db = reopen();
    assert!(decided == read_checked(&db), "a checkpoint changed the state");
    assert_eq!(db.prepared(), Vec::<Vec<u8>>::new(), "a decided transaction is prepared again");
    let used_after = db.stats().data_used_bytes;
    assert_eq!(used, used_after, "bytes of extents in use before and after reopening");
}

/// Returns some keys that a prepared transaction has written, each with the name of its tree.
fn some_keys<'a>(
    catalog: &'a Catalog,
    messages: &'a PreparedMessages,
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let name = |tree| catalog.iter().find(|(_, number)| **number == tree).map(|(name, _)| &**name);
    let keys = messages.iter().filter_map(move |(tree, _, message)| match message {
        Message::Put(key, _) | Message::Delete(key) | Message::Update(key, _) => {
            Some((name(*tree)?, &**key))
        }
        Message::DeleteRange(lo, _) => Some((name(*tree)?, &**lo)),
    });
    keys.step_by((messages.len() / 4).max(1))
}

/// Requests locks on the keys that prepared transactions wrote: they must be held (rule 19).
fn check_locks(db: &Db, catalog: &Catalog, prepared: &Prepared) {
    for (number, messages) in prepared {
        for (tree, key) in some_keys(catalog, messages) {
            let asked = db.open_tree(tree).and_then(|tree| {
                let transaction = db.begin(TransactionOptions::new())?;
                transaction.get_for_update(&tree, key, Wait::NoWait)
            });
            let kind = asked.err().map(|error| error.kind());
            let key = key[..key.len().min(30)].escape_ascii();
            assert_eq!(kind, Some(ErrorKind::Busy), "{key} of transaction {number} is not locked");
        }
    }
}

/// Decides all prepared transactions, alternating between commit and rollback, and checks the
/// result.
fn decide(db: &Db, catalog: &Catalog, mut commit_point: CommitPoint) {
    for (number, messages) in std::mem::take(&mut commit_point.prepared) {
        let decided = if number.is_multiple_of(2) {
            for (tree, function, message) in messages.iter() {
                let contents = commit_point.state.entry(*tree).or_default();
                apply(std::sync::Arc::make_mut(contents), *function, message);
            }
            db.commit_prepared(&xid(number), Durability::Sync)
        } else {
            db.rollback_prepared(&xid(number))
        };
        if let Err(error) = decided {
            panic!("transaction {number} cannot be decided: {error}");
        }
    }
    let found = read_checked(db);
    if let Some(text) = difference(&found, catalog, &commit_point.state) {
        panic!("after the prepared transactions were decided: {text}");
    }
    assert_eq!(db.prepared(), Vec::<Vec<u8>>::new(), "a decided transaction is still prepared");
    assert_eq!(db.locks(), [], "locks of decided transactions");
}

fn read_checked(db: &Db) -> DatabaseContents {
    let report = db.verify(&mut |_, _, _| true).and_then(|report| Ok((report, read_all(db)?)));
    match report {
        Ok((report, found)) => {
            assert!(report.faults.is_empty(), "{:?}", report.faults);
            found
        }
        Err(error) => panic!("the recovered database cannot be read: {error}"),
    }
}
