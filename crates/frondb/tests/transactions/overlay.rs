//! Rows and an index on them, in transactions whose rows are changed by others after the snapshot.
//! A plain read by the index finds exactly the rows that a plain read of the rows finds, whatever
//! was written, undone or spilled. The committed index matches the newest rows (rules 20 to 22).

use std::collections::BTreeMap;
use std::sync::Arc;

use frondb::testing::TestDb;
use frondb::{
    Batch, Db, Durability, ErrorKind, Isolation, Savepoint, Transaction, TransactionOptions, Tree,
    TreeOptions, Wait,
};
use frondb_core::prng::Prng;
use frondb_testkit::MemoryDevice;

/// A table. A row's key is one byte. An index entry's key is the first byte of the row's value and
/// the row's key; the entry contains the whole row.
struct Table {
    db: Db,
    rows: Tree,
    index: Tree,
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    [&value[..1], key].concat()
}

impl Table {
    fn new() -> Self {
        let device = Arc::new(MemoryDevice::new());
        let db = TestDb::on(device).still().open().unwrap();
        let tree = |name| db.create_tree(name, TreeOptions::new()).unwrap();
        Self { rows: tree("rows"), index: tree("index"), db }
    }

    /// Commits a change in another transaction: replaces the newest row, or deletes it.
    fn commit(&self, key: &[u8], value: Option<&[u8]>) {
        let mut batch = Batch::new();
        if let Some(old) = self.rows.get(key).unwrap() {
            batch.delete(&self.index, &entry(key, &old));
        }
        match value {
            None => batch.delete(&self.rows, key),
            Some(value) => {
                batch.put(&self.rows, key, value);
                batch.put(&self.index, &entry(key, value), value);
            }
        }
        self.db.write(&batch, Durability::NoSync).unwrap();
    }

    fn begin(&self, isolation: Isolation) -> Transaction {
        self.db.begin(TransactionOptions::new().isolation(isolation)).unwrap()
    }

    /// Writes a row like a table handler, with its index entries in the index and in the overlay.
    fn write(&self, txn: &Transaction, key: &[u8], value: Option<&[u8]>) {
        let newest = txn.get_for_update(&self.rows, key, Wait::NoWait).unwrap();
        if let Some(seen) = txn.outdated(&self.rows, key).unwrap() {
            if let Some(seen) = &seen {
                txn.overlay_delete(&self.index, &entry(key, seen)).unwrap();
            }
            if let Some(newest) = &newest {
                txn.overlay_put(&self.index, &entry(key, newest), newest).unwrap();
            }
            txn.overlay_delete(&self.rows, key).unwrap();
            assert_eq!(txn.outdated(&self.rows, key).unwrap(), None, "the overlay has it");
        }
        match value {
            None => txn.delete(&self.rows, key).unwrap(),
            Some(value) => txn.put(&self.rows, key, value).unwrap(),
        }
        // An index entry that does not change is not written, so only the overlay can supply it.
        if newest.as_deref() == value {
            return;
        }
        if let Some(newest) = newest {
            txn.delete(&self.index, &entry(key, &newest)).unwrap();
        }
        if let Some(value) = value {
            txn.insert(&self.index, &entry(key, value), value).unwrap();
        }
    }

    fn check(&self, txn: &Transaction, when: &str) {
        let rows = all(txn, &self.rows, false);
        let wanted: Rows = rows.iter().map(|(k, v)| (entry(k, v), v.clone())).collect();
        assert_eq!(all(txn, &self.index, false), wanted, "{when}: forward");
        assert_eq!(all(txn, &self.index, true), wanted, "{when}: backward");
        for (key, value) in &wanted {
            assert_eq!(txn.get(&self.index, key).unwrap().as_ref(), Some(value), "{when}");
            assert!(txn.exists(&self.index, key).unwrap(), "{when}");
        }
    }

    fn check_committed(&self, when: &str) {
        self.check(&self.begin(Isolation::RepeatableRead), when);
    }
}

fn all(txn: &Transaction, tree: &Tree, backward: bool) -> Rows {
    let mut cursor = txn.cursor(tree).unwrap();
    let mut found = Rows::new();
    while if backward { cursor.prev() } else { cursor.next() }.unwrap() {
        let twice = found.insert(cursor.key().to_vec(), cursor.value().unwrap().to_vec());
        assert_eq!(twice, None);
    }
    found
}

#[test]
fn an_overlay_is_seen_by_plain_reads_alone() {
    let table = Table::new();
    table.commit(b"a", Some(b"1"));
    let txn = table.begin(Isolation::RepeatableRead);
    let tree = &table.index;
    assert_eq!(txn.overlay_put(tree, b"k", b"v").unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(txn.outdated(&table.rows, b"a").unwrap(), None, "there is no snapshot");
    assert_eq!(txn.get(&table.rows, b"a").unwrap().unwrap(), b"1");
    table.commit(b"a", Some(b"2"));
    table.commit(b"n", Some(b"3"));
    assert_eq!(txn.outdated(&table.rows, b"a").unwrap(), Some(Some(b"1".to_vec())));
    assert_eq!(txn.outdated(&table.rows, b"n").unwrap(), Some(None));
    assert_eq!(txn.outdated(&table.rows, b"m").unwrap(), None);
    let large = vec![7; 100 << 10];
    txn.overlay_put(tree, b"k", b"v").unwrap();
    txn.overlay_put(tree, b"l", &large).unwrap();
    txn.overlay_delete(tree, b"1a").unwrap();
    let seen: Vec<Vec<u8>> = all(&txn, tree, false).into_keys().collect();
    assert_eq!(seen, [b"k", b"l"]);
    assert_eq!(txn.multi_get(tree, &[b"1a", b"l"]).unwrap(), [None, Some(large)]);
    assert_eq!(txn.get_for_update(tree, b"k", Wait::NoWait).unwrap(), None, "locking reads");
    let mut cursor =
        txn.cursor_with(tree, frondb::TransactionCursorOptions::new().for_update(Wait::NoWait));
    assert!(cursor.as_mut().unwrap().next().unwrap());
    assert_eq!(cursor.unwrap().key(), b"2a");
    txn.insert(tree, b"k", b"own").unwrap();
    assert_eq!(txn.get(tree, b"k").unwrap().unwrap(), b"own");
    txn.delete(tree, b"l").unwrap();
    assert_eq!(txn.get(tree, b"l").unwrap(), None);
    txn.delete(tree, b"k").unwrap();
    txn.commit().unwrap();
    table.check_committed("nothing of it was committed");
}

/// At read committed the overlay ends with the statement. At serializable there is no overlay, and
/// under snapshot isolation a write of a row that was changed since the snapshot is a conflict.
#[test]
fn an_overlay_ends_with_its_snapshot() {
    let table = Table::new();
    table.commit(b"a", Some(b"1"));
    let txn = table.begin(Isolation::ReadCommitted);
    txn.begin_statement().unwrap();
    table.commit(b"a", Some(b"2"));
    table.write(&txn, b"a", Some(b"3"));
    table.check(&txn, "in the statement");
    txn.end_statement().unwrap();
    assert_eq!(txn.overlay_delete(&table.index, b"k").unwrap_err().kind(), ErrorKind::Invalid);
    table.check(&txn, "between statements");
    txn.begin_statement().unwrap();
    assert_eq!(txn.outdated(&table.rows, b"a").unwrap(), None);
    table.check(&txn, "in the next one");
    txn.commit().unwrap();
    table.check_committed("read committed");

    let serializable = table.begin(Isolation::Serializable);
    serializable.get(&table.rows, b"b").unwrap();
    let refused = serializable.overlay_put(&table.index, b"k", b"v").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let isolated = table.db.begin(TransactionOptions::new().snapshot_isolation(true)).unwrap();
    isolated.get(&table.rows, b"a").unwrap();
    table.commit(b"a", Some(b"4"));
    assert_eq!(isolated.outdated(&table.rows, b"a").unwrap(), None);
    assert_eq!(isolated.put(&table.rows, b"a", b"5").unwrap_err().kind(), ErrorKind::Conflict);
}

/// Runs a random history from a seed. `filler` makes write sets and overlays so large that they
/// spill. Returns the number of spills.
fn history(seed: u64, filler: usize, steps: u64) -> u64 {
    let table = Table::new();
    let mut random = Prng::new(seed);
    let value = |random: &mut Prng| {
        let mut value = vec![b'a' + random.below(6) as u8];
        value.resize(1 + random.index(filler.max(1)), b'.');
        value
    };
    for round in 0..6 {
        let isolation =
            if random.chance(1, 4) { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
        let txn = table.begin(isolation);
        txn.begin_statement().unwrap();
        let mut savepoints: Vec<Savepoint> = Vec::new();
        // Other transactions skip the rows that the transaction has locked; they would wait for its
        // end.
        let mut locked = Vec::new();
        for step in 0..steps {
            let key = [b'A' + random.below(24) as u8];
            match random.below(12) {
                0..4 if !locked.contains(&key) => {
                    let new = random.chance(3, 4).then(|| value(&mut random));
                    table.commit(&key, new.as_deref());
                }
                0..8 => {
                    let new = random.chance(3, 4).then(|| value(&mut random));
                    // Sometimes the row keeps the value that another transaction gave it.
                    let newest = table.rows.get(&key).unwrap();
                    let new = if random.chance(1, 4) { newest } else { new };
                    table.write(&txn, &key, new.as_deref());
                    locked.push(key);
                }
                8 => savepoints.push(txn.set_savepoint().unwrap()),
                9 if !savepoints.is_empty() => {
                    let at = random.index(savepoints.len());
                    savepoints.truncate(at + 1);
                    txn.roll_back_to(savepoints[at]).unwrap();
                }
                10 if !savepoints.is_empty() => {
                    let at = random.index(savepoints.len());
                    if random.chance(1, 2) {
                        savepoints.truncate(at + 1);
                        txn.release(savepoints[at]).unwrap();
                        savepoints.pop();
                    } else {
                        txn.forget_savepoint(savepoints.remove(at)).unwrap();
                    }
                }
                _ if random.chance(1, 20) => table.db.flush().unwrap(),
                _ if random.chance(1, 3) => txn.begin_statement().unwrap(),
                _ => {}
            }
            if step % 8 == 0 || filler == 0 {
                table.check(&txn, &format!("seed {seed}, round {round}, step {step}"));
            }
        }
        if random.chance(3, 4) { txn.commit() } else { txn.rollback() }.unwrap();
        table.check_committed(&format!("seed {seed}, after round {round}"));
    }
    table.db.stats().spills
}

#[test]
fn an_index_agrees_with_the_rows() {
    for seed in 0..24 {
        history(seed, 0, 120);
    }
}

#[test]
fn large_overlays_spill() {
    let spills: Vec<u64> = (100..102).map(|seed| history(seed, 40 << 10, 250)).collect();
    assert!(spills.iter().all(|&spills| spills > 0), "{spills:?}");
}
