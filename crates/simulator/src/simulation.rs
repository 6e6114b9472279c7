//! Executes a history on a database and on the model in step, and compares every answer.
//!
//! An operation fails only if the device fails; then [`Simulation::run`] returns the error, and
//! [`AllowedStates`] lists the states that a recovery may find. A wrong answer panics with the
//! number of the operation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use frondb::{
    Batch, Cursor, Db, Durability, ErrorKind, OptimizeOptions, Result, Snapshot, Tree, TreeOptions,
};
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;

use crate::crash::AllowedStates;
use crate::history::{History, Op};
use crate::model::{Message, Model, ModelCursor, Move, State, TreeNumber};
use crate::setup::{Setup, clock, open_shared};

mod catalog;
mod coverage;
mod open_transaction;
mod prepared;
mod reads;
mod report;
mod transactions;

pub use self::coverage::Coverage;
use self::open_transaction::{OpenTransaction, is_nothing};
use self::report::ReportOp;

struct HeldSnapshot {
    snapshot: Snapshot,
    state: State,
}

struct HeldCursor {
    cursor: Cursor,
    model: ModelCursor,
}

/// A database and its model. See the module documentation.
pub struct Simulation {
    device: SharedDevice,
    setup: Setup,
    clock: Arc<ManualClock>,
    known: Arc<AllowedStates>,
    db: Option<Db>,
    model: Model,
    trees: BTreeMap<TreeNumber, Tree>,
    /// The options of trees whose codec was changed. They survive a crash once the change has
    /// returned.
    changed_options: BTreeMap<TreeNumber, TreeOptions>,
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
            changed_options: BTreeMap::new(),
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

    /// Returns the database. Only for use between operations.
    ///
    /// # Panics
    /// If an operation that reopens failed.
    #[must_use]
    #[allow(clippy::expect_used)]
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    /// Returns the expected state of the database.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns a hash of all answers so far.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the coverage so far.
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
                catalog_changes: [0; 4],
                spills: stats.spills,
                bulk_statements: stats.bulk_statements,
                attaches: stats.attaches,
                stowed: 0,
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
            self.stow();
        }
        Ok(())
    }

    /// Stows unused trees, if the setup says so.
    fn stow(&mut self) {
        if let (true, Some(db)) = (self.setup.stow, &self.db) {
            self.coverage.stowed += db.stow_trees() as u64;
        }
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
            Op::CreateTree { .. }
            | Op::RenameTree { .. }
            | Op::SetCodec { .. }
            | Op::DropTree { .. } => self.catalog(op),
            Op::Sync => self.all_durable(|db| db.sync()),
            Op::Flush => {
                self.db().flush()?;
                self.known.commits_durable();
                Ok(())
            }
            Op::Optimize { tree, leaves } => {
                let Some(tree) = self.trees.get(tree) else { return Ok(()) };
                let done = tree.optimize(OptimizeOptions::new(), &mut |done, _| done < *leaves);
                match done {
                    Err(error) if error.kind() == ErrorKind::Cancelled => Ok(()),
                    done => done.map(|_| ()),
                }
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
            if let Some(options) = self.changed_options.get(&number) {
                assert_eq!(tree.options(), *options, "tree {name}");
            }
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

    /// Calls `call`, which makes every commit durable, and records this if `call` succeeds.
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
                // The write was refused: nothing has changed, and no part of the write may appear
                // later.
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

    /// Returns whether the database is open. After a failed reopen it is closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }
}
