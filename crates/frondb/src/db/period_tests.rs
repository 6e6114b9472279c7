//! Checkpoints by time, on a clock that the test advances.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::options::TreeOptions;
use crate::testing::TestDb;
use crate::transaction::TransactionOptions;
use frondb_background::{FEW_TREES, RELOG_BYTES_MAX};
use frondb_commit::Durability;
use frondb_core::Lsn;
use frondb_core::clock::{ManualClock, Nanos};
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;

use super::*;
use crate::options::Options;
use crate::tree::Tree;
use frondb_commit::Batch;

const PERIOD: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

struct Setup {
    db: Db,
    clock: Arc<ManualClock>,
    device: MemoryDevice,
}

impl Setup {
    fn new(period: Duration) -> Self {
        Self::open(&MemoryDevice::new(), period)
    }

    fn open(device: &MemoryDevice, checkpoint_period: Duration) -> Self {
        let options = Options { memory_bytes: 16 << 20, checkpoint_period, ..Options::small() };
        let clock = Arc::new(ManualClock::stepping());
        let opening = TestDb::on(Arc::new(device.clone())).options(options);
        let db = opening.clock(clock.clone()).open().unwrap();
        Self { db, clock, device: device.clone() }
    }

    /// Reopens the database as after a crash: without a flush.
    fn reopen(self) -> Self {
        let Self { db, device, .. } = self;
        drop(db);
        Self::open(&device, Duration::ZERO)
    }

    fn tree(&self, name: &str) -> Tree {
        self.db.create_tree(name, TreeOptions::default()).unwrap()
    }

    fn put(&self, tree: &Tree, key: u64, value_bytes: usize) {
        let mut batch = Batch::new();
        batch.put(tree, &key.to_be_bytes(), &vec![7; value_bytes]);
        self.db.write(&batch, Durability::NoSync).unwrap();
    }

    /// Advances the clock by `length` and runs the tasks that are due.
    fn pass(&self, length: Duration) {
        self.clock.advance(length);
        while self.db.run_one(false) {}
    }

    fn log_bytes(&self) -> u64 {
        self.db.shared().background.jobs.log.replay_bytes()
    }

    /// Returns whether a checkpoint will become due even if nothing is written any more.
    fn is_waiting(&self) -> bool {
        self.db.shared().background.checkpoint_due_in().is_some()
    }

    fn checkpoints(&self) -> u64 {
        self.db.stats().checkpoints
    }
}

#[test]
fn an_old_record_is_flushed_and_then_nothing_is_due() {
    let setup = Setup::new(PERIOD);
    assert!(!setup.is_waiting());
    let tree = setup.tree("t");
    setup.put(&tree, 1, 10);
    assert!(setup.is_waiting());
    setup.pass(PERIOD - SECOND);
    assert!(setup.log_bytes() > 0 && setup.checkpoints() == 0, "it is not old yet");
    setup.pass(SECOND);
    assert_eq!((setup.log_bytes(), setup.checkpoints()), (0, 1));
    assert!(!setup.is_waiting(), "an idle database does not wake");
    setup.pass(PERIOD * 10);
    assert_eq!(setup.checkpoints(), 1);
    setup.put(&tree, 2, 10);
    setup.pass(PERIOD);
    assert_eq!((setup.log_bytes(), setup.checkpoints()), (0, 2));
    drop(tree);
    let setup = setup.reopen();
    assert_eq!(setup.db.recovery().records, 0);
    let tree = setup.db.open_tree("t").unwrap();
    for key in [1_u64, 2] {
        assert!(tree.get(&key.to_be_bytes()).unwrap().is_some());
    }
}

#[test]
fn many_small_trees_are_logged_again() {
    let setup = Setup::new(PERIOD);
    let trees: Vec<Tree> = (0..=FEW_TREES).map(|i| setup.tree(&format!("t{i}"))).collect();
    for tree in &trees {
        setup.put(tree, 1, 10);
    }
    setup.put(&trees[0], 2, RELOG_BYTES_MAX as usize);
    let old = setup.db.shared().wal.end_lsn();
    setup.pass(PERIOD);
    let stats = setup.db.stats();
    assert_eq!((stats.flushes, stats.relogs), (1, FEW_TREES as u64), "the large one alone");
    assert!(setup.db.shared().background.jobs.log.from() >= old);
    assert!(!setup.is_waiting());
    drop(trees);
    let setup = setup.reopen();
    for i in 0..=FEW_TREES {
        let tree = setup.db.open_tree(&format!("t{i}")).unwrap();
        assert!(tree.get(&1_u64.to_be_bytes()).unwrap().is_some());
    }
}

/// Whatever the pattern of writes, recovery needs no log record for much longer than the period,
/// and there is about one checkpoint per period.
#[test]
fn the_log_stays_as_young_as_the_period() {
    let setup = Setup::new(PERIOD);
    let trees = [setup.tree("a"), setup.tree("b"), setup.tree("c")];
    let mut written: Vec<(Nanos, Lsn)> = Vec::new();
    let rounds = 1200;
    for second in 0..rounds {
        // Tree `b` is written seldom, tree `c` once.
        let tree = if second == 7 { 2 } else { usize::from(second % 100 == 50) };
        setup.put(&trees[tree], second, 2000);
        let txns = &setup.db.shared().txns;
        written.push((txns.reads.now(), setup.db.shared().wal.end_lsn()));
        setup.pass(SECOND);
        let (now, start) = (txns.reads.now(), setup.db.shared().background.log_start());
        let oldest = written.iter().find(|(_, end)| *end > start).map_or(now, |(at, _)| *at);
        let allowed = PERIOD + SECOND;
        assert!(now.since(oldest) <= allowed, "{:?} at second {second}", now.since(oldest));
    }
    let periods = rounds / PERIOD.as_secs();
    let checkpoints = setup.checkpoints();
    assert!((periods - 2..=periods).contains(&checkpoints), "{checkpoints} in {periods} periods");
}

#[test]
fn prepared_transactions_do_not_keep_the_log() {
    let setup = Setup::new(PERIOD);
    let tree = setup.tree("t");
    let txn = setup.db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"key", b"value").unwrap();
    txn.prepare(b"xid").unwrap();
    setup.put(&tree, 1, 10);
    setup.pass(PERIOD);
    assert_eq!(setup.checkpoints(), 1);
    assert!(!setup.is_waiting());
    drop(txn);
    drop(tree);
    let setup = setup.reopen();
    assert_eq!(setup.db.prepared().len(), 1);
}

#[test]
fn the_period_can_be_changed_and_turned_off() {
    let setup = Setup::new(Duration::ZERO);
    let tree = setup.tree("t");
    setup.put(&tree, 1, 10);
    setup.pass(PERIOD * 100);
    assert!(!setup.is_waiting() && setup.log_bytes() > 0, "none was asked for");
    setup.db.set_checkpoint_period(PERIOD).unwrap();
    setup.pass(PERIOD);
    assert_eq!((setup.log_bytes(), setup.checkpoints()), (0, 1), "what was there counts from then");
    setup.put(&tree, 2, 10);
    setup.db.set_checkpoint_period(SECOND).unwrap();
    setup.pass(SECOND);
    assert_eq!((setup.log_bytes(), setup.checkpoints()), (0, 2));
    setup.put(&tree, 3, 10);
    setup.db.set_checkpoint_period(Duration::ZERO).unwrap();
    setup.pass(PERIOD * 100);
    assert!(!setup.is_waiting() && setup.checkpoints() == 2);
    let error =
        setup.db.set_checkpoint_period(Duration::from_secs(365 * 24 * 3600) + SECOND).unwrap_err();
    assert_eq!(error.kind(), frondb_core::ErrorKind::Invalid);
}

#[test]
fn recovered_messages_are_flushed_at_the_checkpoint_period_too() {
    let setup = Setup::new(Duration::ZERO);
    let tree = setup.tree("t");
    setup.put(&tree, 1, 10);
    let Setup { db, device, .. } = setup;
    drop((db, tree));
    let setup = Setup::open(&device, PERIOD);
    assert!(setup.log_bytes() > 0 && setup.is_waiting());
    setup.pass(PERIOD);
    assert_eq!((setup.log_bytes(), setup.checkpoints()), (0, 1));
}
