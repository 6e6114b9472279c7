//! What may be found after power loss, and the check of what is found.
//!
//! ```text
//!  commits   1  2  3  4  5  6(in flight)      3 was the last that is known to be durable
//!                     ^--------------^        allowed: the state after 3, 4, 5 or 6, as a whole
//!  catalog   as acknowledged, or with the change in flight
//! ```
//! So a synced commit is never lost, an unsynced one only with all that came after it, and a
//! commit over several trees is there in all of them or in none.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use frondb::{Db, Result, Tree};
use frondb_core::clock::SharedClock;
use frondb_device::MemoryDevice;

use crate::model::{Catalog, State};
use crate::setup::Setup;
use crate::simulation::{clock, open};

/// What a history knows about its database: which states may be found if it ends now.
#[derive(Debug, Default)]
pub struct Known(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    /// The state known to be durable, then one a commit since, the last perhaps in flight.
    states: VecDeque<State>,
    catalog: Catalog,
    /// A change of the catalog in flight.
    catalog_next: Option<Catalog>,
}

impl Default for Inner {
    fn default() -> Self {
        Self { states: VecDeque::from([State::new()]), catalog: Catalog::new(), catalog_next: None }
    }
}

impl Known {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit that leads to `state` begins.
    pub fn committing(&self, state: State) {
        self.inner().states.push_back(state);
    }

    /// The commit or the change of the catalog that began was refused: it must never be found.
    pub fn refused(&self) {
        let mut inner = self.inner();
        if inner.catalog_next.take().is_none() && inner.states.len() > 1 {
            inner.states.pop_back();
        }
    }

    /// Every commit so far is durable.
    pub fn all_durable(&self) {
        let mut inner = self.inner();
        if let Some(last) = inner.states.pop_back() {
            inner.states.clear();
            inner.states.push_back(last);
        }
    }

    /// A change of the catalog begins.
    pub fn changing_catalog(&self, next: Catalog) {
        self.inner().catalog_next = Some(next);
    }

    /// The change that began is durable.
    pub fn catalog_changed(&self) {
        let mut inner = self.inner();
        if let Some(next) = inner.catalog_next.take() {
            inner.catalog = next;
        }
    }

    /// Panics unless `found` is one of the states that may be found.
    ///
    /// # Panics
    /// If it is not; the message says how it differs from the nearest candidates.
    pub fn check(&self, found: &Found) {
        let inner = self.inner();
        let catalogs = std::iter::once(&inner.catalog).chain(&inner.catalog_next);
        let mut differences = Vec::new();
        for catalog in catalogs {
            for (back, state) in inner.states.iter().rev().enumerate() {
                match difference(found, catalog, state) {
                    None => return,
                    Some(text) => differences.push(format!("{back} commits back: {text}")),
                }
            }
        }
        differences.truncate(6);
        panic!("none of the allowed states was recovered:\n  {}", differences.join("\n  "));
    }
}

/// Everything a database holds: contents by name.
pub type Found = BTreeMap<String, Vec<(Vec<u8>, Vec<u8>)>>;

fn difference(found: &Found, catalog: &Catalog, state: &State) -> Option<String> {
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
/// Those of the database.
pub fn read_all(db: &Db) -> Result<Found> {
    db.list_trees()
        .into_iter()
        .map(|name| Ok((name.clone(), read_tree(&db.open_tree(&name)?)?)))
        .collect()
}

/// Reads a tree.
///
/// # Errors
/// Those of the database.
pub fn read_tree(tree: &Tree) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut cursor = tree.cursor()?;
    let mut entries = Vec::new();
    while cursor.next()? {
        let key = cursor.key().to_vec();
        entries.push((key, cursor.value()?.to_vec()));
    }
    Ok(entries)
}

/// How much [`check_recovered`] does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// Open, read everything, verify.
    Once,
    /// Also: a second recovery finds the same, the database can be written, no space has leaked.
    All,
}

/// Opens what a crash left and checks that one of the allowed states is there and the structure
/// verifies.
///
/// # Panics
/// If anything is wrong.
pub fn check_recovered(device: &MemoryDevice, setup: &Setup, known: &Known, check: Check) {
    let clock: SharedClock = clock();
    let reopen = || match open(device, setup, &clock) {
        Ok(db) => db,
        Err(error) => panic!("the database cannot be opened: {error}"),
    };
    let first = read_checked(&reopen());
    known.check(&first);
    if check == Check::Once {
        return;
    }
    let db = reopen();
    assert!(first == read_checked(&db), "a second recovery found another state");
    if let Err(error) = db.checkpoint() {
        panic!("the recovered database cannot be written: {error}");
    }
    let used = db.stats().data_used_bytes;
    drop(db);
    let db = reopen();
    assert!(first == read_checked(&db), "a checkpoint changed the state");
    let used_after = db.stats().data_used_bytes;
    assert_eq!(used, used_after, "bytes of extents in use before and after opening again");
}

fn read_checked(db: &Db) -> Found {
    let report = db.verify(&mut |_, _, _| true).and_then(|report| Ok((report, read_all(db)?)));
    match report {
        Ok((report, found)) => {
            assert!(report.faults.is_empty(), "{:?}", report.faults);
            found
        }
        Err(error) => panic!("the recovered database cannot be read: {error}"),
    }
}
