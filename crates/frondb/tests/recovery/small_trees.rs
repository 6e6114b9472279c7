//! Memtables of many small trees are flushed together, with one sync of each kind. Power is lost at
//! every call of that flush. Every tree has the rows that were acknowledged as durable, and a batch
//! in all trees is in all of them or in none (rule 6).

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, Options, Tree, TreeOptions};
use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_device::Device;
use frondb_testkit::trace::Detail;
use frondb_testkit::{Crash, CrashTest, crash_while_running};
use frondb_testkit::{MemoryDevice, Trace};

const TREES: u64 = 12;
const ROUNDS: u64 = 4;

/// Number of rounds that the history has begun, and of rounds known to be durable.
#[derive(Default)]
struct Known {
    asked: AtomicU64,
    durable: AtomicU64,
}

fn open(device: Arc<dyn Device>) -> Result<Db> {
    TestDb::on(device).options(Options::small().memory_bytes(8 << 20)).open()
}

fn name(tree: u64) -> String {
    format!("t{tree}")
}

/// Writes one batch: in every tree, the row of this round replaces the row of the previous round,
/// and one tree gets a large value.
fn write(db: &Db, trees: &[Tree], round: u64, durability: Durability) -> Result<()> {
    let mut batch = Batch::new();
    for tree in trees {
        batch.put(tree, &round.to_be_bytes(), &[round as u8; 20]);
        if round > 0 {
            batch.delete(tree, &(round - 1).to_be_bytes());
        }
    }
    // This tree is not small: it is flushed before the others, with its own edit and sync.
    batch.put(&trees[0], b"middling", &[round as u8; 30_000]);
    let large = &trees[round as usize % trees.len()];
    batch.put(large, b"large", &vec![round as u8; 70_000]);
    db.write(&batch, durability)
}

fn history(device: &Arc<dyn Device>, known: &Known) -> Result<()> {
    let db = open(Arc::clone(device))?;
    let trees: Vec<Tree> =
        (0..TREES).map(|i| db.create_tree(&name(i), TreeOptions::new())).collect::<Result<_>>()?;
    for round in 0..ROUNDS {
        known.asked.store(round + 1, Ordering::SeqCst);
        let is_durable = round == 1;
        write(&db, &trees, round, if is_durable { Durability::Sync } else { Durability::NoSync })?;
        if is_durable {
            known.durable.store(round + 1, Ordering::SeqCst);
        }
        // Some flushes find one batch in the memtables of many trees, others find two.
        if round != 1 {
            db.flush()?;
            known.durable.store(round + 1, Ordering::SeqCst);
        }
    }
    db.close()
}

/// Returns the number of rounds that a tree has; its only row must be the row of the last of these
/// rounds.
fn rounds(db: &Db, tree: u64) -> u64 {
    let tree = db.open_tree(&name(tree)).unwrap();
    let there: Vec<u64> = (0..ROUNDS)
        .filter(|round| {
            let value = tree.get(&round.to_be_bytes()).unwrap();
            value.inspect(|value| assert_eq!(**value, [*round as u8; 20])).is_some()
        })
        .collect();
    assert!(there.len() <= 1, "{there:?}");
    there.first().map_or(0, |round| round + 1)
}

#[test]
fn a_crash_in_a_flush_of_many_trees_loses_nothing_and_tears_no_batch() {
    let check = |crash: Crash, known: &Known| {
        let (asked, durable) =
            (known.asked.load(Ordering::SeqCst), known.durable.load(Ordering::SeqCst));
        if asked == 0 {
            return;
        }
        let device: Arc<dyn Device> = Arc::clone(&crash.device) as Arc<dyn Device>;
        for again in [false, true] {
            if again && !crash.point.is_multiple_of(8) {
                return;
            }
            let db = open(Arc::clone(&device)).unwrap();
            let all: Vec<u64> = (0..TREES).map(|tree| rounds(&db, tree)).collect();
            assert!(all.iter().all(|rounds| *rounds == all[0]), "a batch was torn: {all:?}");
            assert!((durable..=asked).contains(&all[0]), "{} of {durable}..={asked}", all[0]);
            for round in 0..all[0] {
                let tree = db.open_tree(&name(round)).unwrap();
                let large = tree.get(b"large").unwrap().unwrap();
                assert_eq!(large, vec![round as u8; 70_000]);
            }
            let some = (0..TREES).step_by(7);
            for tree in some.map(|i| db.open_tree(&name(i)).unwrap()) {
                let report = tree.verify(&mut |_, _| true).unwrap();
                assert!(report.faults.is_empty(), "{:?}", report.faults);
            }
            if !again {
                // Also flush the rows that recovery has replayed.
                db.flush().unwrap();
                db.close().unwrap();
            }
        }
    };
    let run = |device: Arc<MemoryDevice>, known: &Known| {
        let device: Arc<dyn Device> = device;
        history(&device, known).unwrap();
    };
    let report = crash_while_running(CrashTest::new(400, 1), Known::default, run, check);
    println!("{report}");
    assert!(report.tried > 100, "{report}");
}

/// A flush of many small trees needs few syncs.
#[test]
fn a_flush_of_many_trees_costs_a_few_syncs() {
    const MANY: u64 = 500;
    let device = Arc::new(Trace::over(Arc::new(MemoryDevice::new()), Detail::Mutations));
    let db = open(Arc::clone(&device) as Arc<dyn Device>).unwrap();
    let trees: Vec<Tree> =
        (0..MANY).map(|i| db.create_tree(&name(i), TreeOptions::new()).unwrap()).collect();
    let mut batch = Batch::new();
    trees.iter().for_each(|tree| batch.put(tree, b"k", b"v"));
    db.write(&batch, Durability::NoSync).unwrap();
    drop(device.take());
    db.flush().unwrap();
    let syncs = device.take().lines().filter(|line| line.contains("sync")).count();
    println!("{syncs} syncs");
    assert!(syncs > 0 && syncs < 20, "{syncs} syncs for {MANY} trees");
    for tree in &trees {
        assert_eq!(tree.stats().unwrap().views, 1);
    }
    db.close().unwrap();
}
