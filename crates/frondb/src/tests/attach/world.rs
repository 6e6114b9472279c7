//! [`World`]: a database and its model.

use frondb_block::Codec;
use frondb_core::prng::Prng;
use frondb_core::{MessageKind, Result};
use frondb_device::SharedDevice;
use frondb_testkit::functions::Append;

use super::model::{Change, Expected, State, Txn, apply, key};
use super::private_runs::{PrivateMessage, PrivatePart};
use crate::db::Db;
use crate::options::{Options, TreeOptions};
use crate::testing::TestDb;
use crate::tree::Tree;
use frondb_commit::Batch;
use frondb_commit::Durability;
use frondb_tree::Cursor;
use frondb_tree::CursorOptions;
use frondb_tree::Snapshot;

const NAMES: [&str; 2] = ["plain", "sums"];

/// A database, its trees, and their expected contents.
pub(super) struct World {
    pub(super) db: Db,
    pub(super) trees: Vec<Tree>,
    pub(super) expected: Expected,
    pub(super) snapshots: Vec<(Snapshot, State)>,
    blocked: [bool; 2],
}

pub(super) fn open(device: SharedDevice) -> Result<Db> {
    TestDb::on(device).options(Options::small().update_fn(Append)).open()
}

fn tree_options(tree: usize) -> TreeOptions {
    let mut options = TreeOptions::default();
    let trunk = &mut options.trunk;
    (trunk.base_codec, trunk.run_codec) = (Codec::None, Codec::None);
    (trunk.leaf_bytes_min, trunk.leaf_bytes_max) = (4096, 4096);
    (trunk.base_block_bytes, trunk.run_block_bytes) = (512, 512);
    (trunk.fanout, trunk.slice_bytes_min) = (3, [512, 32 << 10][tree]);
    options.update_fn = (tree == 1).then(|| ("append".to_owned(), 1));
    options
}

impl World {
    /// Opens or creates the database. `expected` are the contents that the database must have;
    /// later checks use them.
    pub(super) fn open(device: SharedDevice, expected: Expected) -> Result<Self> {
        let db = open(device)?;
        db.forget_prepared_locks();
        let mut trees = Vec::new();
        for (i, name) in NAMES.iter().enumerate() {
            let found = db.list_trees().iter().any(|found| found == name);
            trees.push(if found {
                db.open_tree(name)?
            } else {
                db.create_tree(name, tree_options(i))?
            });
        }
        Ok(Self { db, trees, expected, snapshots: Vec::new(), blocked: [false; 2] })
    }

    fn batch(&self, changes: &[Change]) -> Batch {
        let mut batch = Batch::new();
        for Change { tree, message } in changes {
            let tree = &self.trees[*tree];
            match message {
                PrivateMessage::Point(MessageKind::Delete, key, _) => batch.delete(tree, key),
                PrivateMessage::Point(MessageKind::Update, key, value) => {
                    batch.update(tree, key, value);
                }
                PrivateMessage::Point(_, key, value) => batch.put(tree, key, value),
                PrivateMessage::DeleteRange(lo, hi) => {
                    batch.delete_range(tree, lo, hi.as_deref());
                }
            }
        }
        batch
    }

    fn parts(&self, txn: &Txn) -> Vec<PrivatePart> {
        let parts = txn.parts.iter().map(|(tree, changes, runs, base)| PrivatePart {
            tree: self.trees[*tree].clone(),
            messages: changes.iter().map(|change| change.message.clone()).collect(),
            runs: *runs,
            base: *base,
        });
        parts.collect()
    }

    // --- Writes. A call that fails does not change the model. ---

    pub(super) fn write(&mut self, changes: &[Change], durability: Durability) -> Result<()> {
        self.db.write(&self.batch(changes), durability)?;
        apply(&mut self.expected.state, changes);
        Ok(())
    }

    pub(super) fn commit(&mut self, txn: &Txn, durability: Durability) -> Result<()> {
        self.db.commit_private(&self.parts(txn), &self.batch(&txn.record), durability)?;
        apply(&mut self.expected.state, &txn.changes());
        Ok(())
    }

    pub(super) fn prepare(&mut self, xid: &[u8], txn: &Txn) -> Result<()> {
        let (parts, batch) = (self.parts(txn), self.batch(&txn.record));
        self.db.prepare_private(xid, &parts, &batch, Durability::Sync)?;
        self.expected.prepared.insert(xid.to_vec(), txn.changes());
        Ok(())
    }

    pub(super) fn commit_prepared(&mut self, xid: &[u8], durability: Durability) -> Result<()> {
        self.db.commit_prepared(xid, durability)?;
        let changes = self.expected.prepared.remove(xid).unwrap();
        apply(&mut self.expected.state, &changes);
        Ok(())
    }

    pub(super) fn rollback_prepared(&mut self, xid: &[u8]) -> Result<()> {
        self.db.rollback_prepared(xid)?;
        self.expected.prepared.remove(xid).unwrap();
        Ok(())
    }

    pub(super) fn take_snapshot(&mut self) {
        let snapshot = self.db.snapshot().unwrap();
        self.snapshots.push((snapshot, self.expected.state.clone()));
    }

    /// Blocks or allows the flushes of a tree: while they are blocked, its sources stay frozen.
    pub(super) fn block(&mut self, tree: usize, blocked: bool) {
        if self.blocked[tree] != blocked {
            self.db.block_flushes(&self.trees[tree], blocked);
            self.blocked[tree] = blocked;
        }
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.unblock();
        self.db.flush()
    }

    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.unblock();
        self.db.checkpoint()
    }

    fn unblock(&mut self) {
        (0..2).for_each(|tree| self.block(tree, false));
    }

    /// Closes the database. Returns the contents that the next open must find.
    pub(super) fn close(mut self) -> Result<Expected> {
        self.unblock();
        self.snapshots.clear();
        self.db.close()?;
        Ok(self.expected)
    }

    // --- Checks ---

    /// Reads all rows of the trees.
    pub(super) fn contents(&self) -> State {
        let mut state = State::new();
        for (i, tree) in self.trees.iter().enumerate() {
            let mut cursor = tree.cursor_with(CursorOptions::default()).unwrap();
            let there = cursor.first().unwrap();
            let all = collect(&mut cursor, there, false);
            state.extend(all.into_iter().map(|(key, value)| ((i, key), value)));
        }
        state
    }

    /// Checks the current contents and the contents at each snapshot through every kind of read,
    /// and the prepared transactions.
    pub(super) fn check(&self, prng: &mut Prng) {
        self.check_at(&self.expected.state, None, prng);
        for (snapshot, state) in &self.snapshots {
            self.check_at(state, Some(snapshot), prng);
        }
        let prepared: Vec<Vec<u8>> = self.db.prepared();
        let expected: Vec<Vec<u8>> = self.expected.prepared.keys().cloned().collect();
        assert_eq!(prepared, expected, "prepared transactions");
        for tree in &self.trees {
            let report = tree.verify(&mut |_, _| true).unwrap();
            assert!(report.faults.is_empty(), "{:?}", report.faults);
            tree.estimate(b"", None).unwrap();
        }
    }

    fn check_at(&self, state: &State, at: Option<&Snapshot>, prng: &mut Prng) {
        for (i, tree) in self.trees.iter().enumerate() {
            let mut expected: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let all = state.range((i, Vec::new())..(i + 1, Vec::new()));
            expected.extend(all.map(|(key, value)| (key.1.clone(), value.clone())));
            let options = at.map_or_else(CursorOptions::new, |at| CursorOptions::new().at(at));
            let mut cursor = tree.cursor_with(options).unwrap();
            let there = cursor.first().unwrap();
            same(&collect(&mut cursor, there, false), &expected, "forward");
            let there = cursor.last().unwrap();
            let mut backward = collect(&mut cursor, there, true);
            backward.reverse();
            same(&backward, &expected, "backward");
            for _ in 0..10 {
                let key = key(prng.below(2 * expected.len() as u64 + 20));
                let found = get(tree, &key, at);
                assert_eq!(found.as_ref(), state.get(&(i, key.clone())), "{key:?}");
                assert_eq!(exists(tree, &key, at), found.is_some());
                let first = expected.iter().find(|entry| entry.0 >= key);
                assert_eq!(cursor.seek(&key).unwrap(), first.is_some());
                assert_eq!(cursor.key(), first.map_or(&b""[..], |entry| &entry.0));
            }
            for _ in 0..10 {
                let Some((key, value)) = prng.pick(&expected) else { break };
                let found = get(tree, key, at);
                assert_eq!(found.as_ref(), Some(value), "{key:?}");
            }
        }
    }
}

fn collect(cursor: &mut Cursor, mut there: bool, back: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    while there {
        found.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
        there = if back { cursor.prev().unwrap() } else { cursor.next().unwrap() };
    }
    found
}

fn same(found: &[(Vec<u8>, Vec<u8>)], expected: &[(Vec<u8>, Vec<u8>)], how: &str) {
    if found == expected {
        return;
    }
    let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let text = |entry: Option<&(Vec<u8>, Vec<u8>)>| {
        entry.map(|(key, value)| {
            let value = &value[..value.len().min(20)];
            format!("{} = {}", key.escape_ascii(), value.escape_ascii())
        })
    };
    panic!("{how}: entry {at} is {:?}, expected {:?}", text(found.get(at)), text(expected.get(at)));
}

fn get(tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> Option<Vec<u8>> {
    at.map_or_else(|| tree.get(key), |at| tree.get_at(key, at)).unwrap()
}

fn exists(tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> bool {
    at.map_or_else(|| tree.exists(key), |at| tree.exists_at(key, at)).unwrap()
}
