//! Executes a history on a database and on the model at once, and compares every answer.
//!
//! An operation fails only if the device does; then [`Simulation::run`] returns the error, and
//! [`AllowedStates`] lists what a recovery may find. A wrong answer panics with the number of the
//! operation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use frondb::{Batch, Cursor, CursorOptions, Db, Durability, ErrorKind, Result, Snapshot, Tree};
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_device::{MemoryDevice, SharedDevice};

use crate::crash::{AllowedStates, DatabaseContents, read_tree};
use crate::history::{History, Op};
use crate::model::{
    Bytes, Catalog, Contents, Message, Model, ModelCursor, Move, State, TreeNumber,
};
use crate::setup::{Setup, clock, open_shared};

mod coverage;
mod held;
mod transactions;

pub use self::coverage::Coverage;
use self::held::{OpenTransaction, is_nothing};

struct HeldSnapshot {
    snapshot: Snapshot,
    state: State,
}

struct HeldCursor {
    cursor: Cursor,
    model: ModelCursor,
}

/// A database and its model. See the module head.
pub struct Simulation {
    device: SharedDevice,
    setup: Setup,
    clock: Arc<ManualClock>,
    known: Arc<AllowedStates>,
    db: Option<Db>,
    model: Model,
    trees: BTreeMap<TreeNumber, Tree>,
    snapshots: BTreeMap<u32, HeldSnapshot>,
    cursors: BTreeMap<u32, HeldCursor>,
    transactions: BTreeMap<u32, OpenTransaction>,
    /// Trees to which each prepared transaction has ever written.
    touched: BTreeMap<u32, BTreeSet<TreeNumber>>,
    /// A hash of every answer, to compare runs with different setups.
    digest: u64,
    coverage: Coverage,
}

impl Simulation {
    /// Opens a new database on `device`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: MemoryDevice, setup: Setup, known: Arc<AllowedStates>) -> Result<Self> {
        Self::on(Arc::new(device), setup, known)
    }

    /// Opens a new database on any device, for example one that fails according to a script.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn on(device: SharedDevice, setup: Setup, known: Arc<AllowedStates>) -> Result<Self> {
        let mut simulation = Self {
            device,
            setup,
            clock: clock(),
            known,
            db: None,
            model: Model::default(),
            trees: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            cursors: BTreeMap::new(),
            transactions: BTreeMap::new(),
            touched: BTreeMap::new(),
            digest: 0,
            coverage: Coverage::default(),
        };
        simulation.open()?;
        Ok(simulation)
    }

    /// The database. Only for use between operations.
    ///
    /// # Panics
    /// If an operation that reopens failed.
    #[must_use]
    #[allow(clippy::expect_used)]
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    /// The expected state of the database.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// A hash of all answers so far.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The coverage so far.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let mut sum = self.coverage;
        if let Some(db) = &self.db {
            let stats = db.stats();
            sum.add(&Coverage {
                leaves_max: stats.leaves,
                flushes: stats.flushes,
                merges: stats.merges,
                rewrites: stats.rewrites,
                scan_rewrites: stats.scan_rewrites,
                node_flushes: stats.node_flushes,
                relogs: stats.relogs,
                manifest_rotations: stats.manifest_rotations,
                replayed: db.recovery().records,
                height_max: 0,
                catalog_changes: [0; 3],
                spills: stats.spills,
                attaches: stats.attaches,
            });
        }
        sum
    }

    /// Executes a history to its end, or to the first error.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Panics
    /// On a wrong answer.
    pub fn run(&mut self, history: &History) -> Result<()> {
        for (i, op) in history.ops.iter().enumerate() {
            let _at = ReportOp(i, op);
            self.apply(op)?;
        }
        Ok(())
    }

    /// Executes one operation.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn apply(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Write { messages, sync } => self.write(messages, *sync),
            Op::Get { tree, keys, at } => self.get(*tree, keys, *at),
            Op::Scan { tree, lower, upper, at, backward, limit } => {
                let Some((contents, mut cursor)) = self.cursor(*tree, lower, upper, *at)? else {
                    return Ok(());
                };
                let mut model = ModelCursor::new(contents, lower.clone(), upper.clone());
                let step = if *backward { Move::Prev } else { Move::Next };
                for _ in 0..*limit {
                    if !self.step(&mut cursor, &mut model, &step)? {
                        break;
                    }
                }
                Ok(())
            }
            Op::TakeSnapshot { snapshot: number } => {
                let snapshot = self.db().snapshot()?;
                let held = HeldSnapshot { snapshot, state: self.model.state.clone() };
                self.snapshots.insert(*number, held);
                Ok(())
            }
            Op::DropSnapshot { snapshot } => {
                self.snapshots.remove(snapshot);
                Ok(())
            }
            Op::OpenCursor { cursor: number, tree, lower, upper, at } => {
                let Some((contents, cursor)) = self.cursor(*tree, lower, upper, *at)? else {
                    return Ok(());
                };
                let model = ModelCursor::new(contents, lower.clone(), upper.clone());
                self.cursors.insert(*number, HeldCursor { cursor, model });
                Ok(())
            }
            Op::MoveCursor { cursor, moves } => {
                let Some(mut held) = self.cursors.remove(cursor) else { return Ok(()) };
                for step in moves {
                    self.step(&mut held.cursor, &mut held.model, step)?;
                }
                self.cursors.insert(*cursor, held);
                Ok(())
            }
            Op::CloseCursor { cursor } => {
                self.cursors.remove(cursor);
                Ok(())
            }
            Op::CreateTree { .. } | Op::RenameTree { .. } | Op::DropTree { .. } => self.catalog(op),
            Op::Sync => self.all_durable(|db| db.sync()),
            Op::Flush => {
                self.db().flush()?;
                self.known.commits_durable();
                Ok(())
            }
            Op::Checkpoint => self.all_durable(|db| db.checkpoint()),
            Op::Work { pieces, idle } => {
                for _ in 0..*pieces {
                    self.db().run_one(*idle);
                }
                Ok(())
            }
            Op::Sleep { millis } => {
                self.clock.advance(Duration::from_millis(*millis));
                Ok(())
            }
            Op::Reopen { close } => self.reopen(*close),
            Op::CheckAll => self.check_all(),
            Op::Begin { .. }
            | Op::Steps { .. }
            | Op::End { .. }
            | Op::CommitTogether { .. }
            | Op::Decide { .. } => self.transact(op),
        }
    }

    fn open(&mut self) -> Result<()> {
        let clock: SharedClock = Arc::clone(&self.clock) as SharedClock;
        self.db = Some(open_shared(Arc::clone(&self.device), &self.setup, &clock)?);
        let names = self.model.catalog.clone();
        assert_eq!(self.db().list_trees(), names.keys().cloned().collect::<Vec<_>>());
        for (name, number) in names {
            let tree = self.db().open_tree(&name)?;
            self.trees.insert(number, tree);
        }
        Ok(())
    }

    fn reopen(&mut self, close: bool) -> Result<()> {
        self.cursors.clear();
        self.snapshots.clear();
        if close && self.db.is_some() {
            let closed = self.all_durable(|db| db.close());
            if closed.is_err() {
                // The database is closed nevertheless and can be opened again.
                self.transactions.clear();
                self.trees.clear();
                self.db = None;
                return closed;
            }
            for tree in self.trees.values() {
                let Err(error) = tree.get(b"x") else { panic!("a closed tree was read") };
                assert_eq!(error.kind(), ErrorKind::Closed);
            }
            self.check_closed();
        }
        self.transactions.clear();
        let failed = self.db.is_none();
        self.coverage = self.coverage();
        self.trees.clear();
        self.db = None;
        self.open()?;
        if close && !failed {
            let recovery = self.db().recovery();
            assert_eq!(recovery.log_tail, None, "a torn tail after a close");
            assert_eq!(recovery.manifest_tail, None, "a torn tail after a close");
        }
        self.check_all()
    }

    /// Makes a call that makes every commit durable if it succeeds.
    fn all_durable(&mut self, call: impl FnOnce(&Db) -> Result<()>) -> Result<()> {
        call(self.db())?;
        self.known.all_durable();
        Ok(())
    }

    fn write(&mut self, messages: &[(TreeNumber, Message)], sync: bool) -> Result<()> {
        let locked = self.locked_keys(None);
        let waits = |message: &Message| Self::would_wait(&locked, message);
        let messages: Vec<_> = messages.iter().filter(|(_, message)| !waits(message)).collect();
        let mut batch = Batch::new();
        for (number, message) in &messages {
            // A shrunk history may use a tree that it does not create.
            let Some(tree) = self.trees.get(number) else { continue };
            match message {
                Message::Put(key, value) => batch.put(tree, key, value),
                Message::Delete(key) => batch.delete(tree, key),
                Message::Update(key, operand) => batch.update(tree, key, operand),
                Message::DeleteRange(lo, hi) => batch.delete_range(tree, lo, hi.as_deref()),
            }
        }
        let messages = messages.into_iter().filter(|m| self.trees.contains_key(&m.0));
        let messages: Vec<_> = messages.collect();
        let before = self.model.state.clone();
        let writes = !messages.iter().all(|(_, message)| is_nothing(message));
        self.model.write(messages);
        self.known.committing(self.commit_point(writes));
        let durability = if sync { Durability::Sync } else { Durability::NoSync };
        if let Err(error) = self.db().write(&batch, durability) {
            if error.kind() == ErrorKind::NoSpace {
                // The write was refused: nothing has changed, and nothing of it may appear later.
                self.model.state = before;
                self.known.refused();
            }
            return Err(error);
        }
        if sync && self.setup.sync == frondb::SyncMode::Always {
            self.known.all_durable();
        }
        Ok(())
    }

    fn catalog(&mut self, op: &Op) -> Result<()> {
        let (wanted, touched) = match op {
            Op::DropTree { tree, .. } => {
                (self.has_prepared_writes(*tree), self.was_touched_by_prepared(*tree))
            }
            _ => (false, false),
        };
        let result = self.change_catalog(op);
        assert!(
            !wanted || result.is_err(),
            "a tree to which a prepared transaction wrote was dropped"
        );
        if touched && result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy) {
            // The tree stays; no later operation of the history uses it.
            self.known.refused();
            return Ok(());
        }
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
            self.known.refused();
        }
        result
    }

    fn change_catalog(&mut self, op: &Op) -> Result<()> {
        let mut next: Catalog = self.model.catalog.clone();
        match op {
            Op::CreateTree { tree, name, .. } => {
                next.insert(name.clone(), *tree);
            }
            Op::RenameTree { tree, from, to } => {
                next.remove(from);
                next.insert(to.clone(), *tree);
            }
            Op::DropTree { name, .. } => {
                next.remove(name);
            }
            _ => {}
        }
        self.known.changing_catalog(next.clone());
        match op {
            Op::CreateTree { tree, name, function } => {
                let options = self.setup.tree_options(*function);
                let made = self.db().create_tree(name, options.clone())?;
                let again = self.db().create_tree(name, options);
                assert!(again.is_err_and(|error| error.kind() == ErrorKind::Exists));
                self.trees.insert(*tree, made);
                self.model.functions.insert(*tree, *function);
                self.model.state.insert(*tree, Contents::default());
            }
            Op::RenameTree { from, to, tree } => {
                self.db().rename_tree(from, to)?;
                assert_eq!(self.trees.get(tree).map(Tree::name), Some(to.clone()));
            }
            Op::DropTree { tree, name } => {
                self.db().drop_tree(name)?;
                if let Some(handle) = self.trees.remove(tree) {
                    let read = handle.get(b"x");
                    assert!(read.is_err_and(|error| error.kind() == ErrorKind::NotFound));
                }
                self.model.state.remove(tree);
            }
            _ => {}
        }
        self.model.catalog = next;
        self.known.catalog_changed();
        let [created, renamed, dropped] = &mut self.coverage.catalog_changes;
        match op {
            Op::CreateTree { .. } => *created += 1,
            Op::RenameTree { .. } => *renamed += 1,
            _ => *dropped += 1,
        }
        assert_eq!(self.db().list_trees(), self.model.catalog.keys().cloned().collect::<Vec<_>>());
        Ok(())
    }

    /// The content of a tree now or at a snapshot; empty if the tree was created later.
    fn contents(&self, tree: TreeNumber, at: Option<u32>) -> Contents {
        match at.and_then(|at| self.snapshots.get(&at)) {
            Some(held) => held.state.get(&tree).cloned().unwrap_or_default(),
            None => self.model.contents(tree),
        }
    }

    fn get(&mut self, tree: TreeNumber, keys: &[Bytes], at: Option<u32>) -> Result<()> {
        let contents = self.contents(tree, at);
        let Some(handle) = self.trees.get(&tree) else { return Ok(()) };
        let snapshot = at.and_then(|at| self.snapshots.get(&at)).map(|held| &held.snapshot);
        let wanted: Vec<Option<&[u8]>> =
            keys.iter().map(|key| contents.get(key).map(|value| &**value)).collect();
        let slices: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        let many = match snapshot {
            None => handle.multi_get(&slices)?,
            Some(snapshot) => handle.multi_get_at(&slices, snapshot)?,
        };
        for ((key, wanted), many) in slices.iter().zip(&wanted).zip(&many) {
            let (one, exists) = match snapshot {
                None => (handle.get(key)?, handle.exists(key)?),
                Some(snapshot) => (handle.get_at(key, snapshot)?, handle.exists_at(key, snapshot)?),
            };
            assert_eq!(short(one.as_deref()), short(*wanted), "get {:?}", short(Some(key)));
            assert!(one.as_deref() == *wanted, "get: same beginning, different bytes");
            assert_eq!(exists, wanted.is_some(), "exists {:?}", short(Some(key)));
            assert!(many.as_deref() == *wanted, "multi_get {:?}", short(Some(key)));
            self.digest = add_to_digest(self.digest, one.as_deref());
        }
        Ok(())
    }

    fn cursor(
        &self,
        tree: TreeNumber,
        lower: &Option<Bytes>,
        upper: &Option<Bytes>,
        at: Option<u32>,
    ) -> Result<Option<(Contents, Cursor)>> {
        let Some(handle) = self.trees.get(&tree) else { return Ok(None) };
        let contents = self.contents(tree, at);
        let mut options = CursorOptions::new();
        options = match (lower.as_deref(), upper.as_deref()) {
            (None, None) => options,
            (Some(lower), None) => options.range(lower..),
            (None, Some(upper)) => options.range(..upper),
            (Some(lower), Some(upper)) => options.range(lower..upper),
        };
        if let Some(held) = at.and_then(|at| self.snapshots.get(&at)) {
            options = options.at(&held.snapshot);
        }
        Ok(Some((contents, handle.cursor_with(options)?)))
    }

    fn step(&mut self, cursor: &mut Cursor, model: &mut ModelCursor, to: &Move) -> Result<bool> {
        let wanted = model.go(to);
        let found = match to {
            Move::First => cursor.first()?,
            Move::Last => cursor.last()?,
            Move::Next => cursor.next()?,
            Move::Prev => cursor.prev()?,
            Move::Seek(key) => cursor.seek(key)?,
            Move::SeekForPrev(key) => cursor.seek_for_prev(key)?,
        };
        assert_eq!(found, cursor.is_valid());
        let found = if found { Some((cursor.key().to_vec(), cursor.value()?)) } else { None };
        let at = found.as_ref().map(|(key, _)| &key[..]);
        let wanted_at = wanted.as_ref().map(|(key, _)| &**key);
        assert_eq!(short(at), short(wanted_at), "{to:?}");
        assert!(at == wanted_at, "{to:?}: keys with the same beginning differ");
        let value = found.as_ref().map(|(_, value)| *value);
        let wanted_value = wanted.as_ref().map(|(_, value)| &**value);
        assert_eq!(short(value), short(wanted_value), "{to:?}: value of {:?}", short(at));
        assert!(value == wanted_value, "{to:?}: values with the same beginning differ");
        self.digest = add_to_digest(add_to_digest(self.digest, at), value);
        Ok(wanted.is_some())
    }

    /// Whether the database is open; it is not after a failed reopen.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// Compares everything in both directions, and verifies.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn check_all(&mut self) -> Result<()> {
        for tree in self.model.catalog.values().copied().collect::<Vec<_>>() {
            for step in [Move::Next, Move::Prev] {
                let Some((contents, mut cursor)) = self.cursor(tree, &None, &None, None)? else {
                    continue;
                };
                let mut model = ModelCursor::new(contents, None, None);
                while self.step(&mut cursor, &mut model, &step)? {}
            }
            if let Some(handle) = self.trees.get(&tree) {
                let stats = handle.stats()?;
                self.coverage.height_max = self.coverage.height_max.max(stats.height);
                handle.estimate(b"k", Some(b"k00300"))?;
            }
        }
        self.check_prepared();
        let report = self.db().verify(&mut |_, _, _| true)?;
        if let Some(error) = report.faults.iter().find(|error| error.kind() == ErrorKind::Io) {
            return Err(error.clone());
        }
        assert!(report.faults.is_empty(), "{:?}", report.faults);
        Ok(())
    }

    /// Reads all trees through the open handles, which even a poisoned database allows.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn read_held(&self) -> Result<DatabaseContents> {
        let mut found = DatabaseContents::new();
        for tree in self.trees.values() {
            match read_tree(tree) {
                Ok(entries) => drop(found.insert(tree.name(), entries)),
                // The tree was dropped, but the drop could not be made durable.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// Prints the operation during which a panic occurred.
struct ReportOp<'a>(usize, &'a Op);

impl Drop for ReportOp<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("FRONDB_SHRINK").is_none() {
            let text = format!("{:?}", self.1);
            let end = text.char_indices().nth(300).map_or(text.len(), |(end, _)| end);
            eprintln!("at operation {}: {}", self.0, &text[..end]);
        }
    }
}

/// Bytes for messages; long ones are truncated and shown with their length.
fn short(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| match bytes.len() {
        0..=40 => bytes.escape_ascii().to_string(),
        n => format!("{}... of {n} bytes", bytes[..40].escape_ascii()),
    })
}

fn add_to_digest(digest: u64, bytes: Option<&[u8]>) -> u64 {
    let hash = bytes.map_or(1, |bytes| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    });
    (digest.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
