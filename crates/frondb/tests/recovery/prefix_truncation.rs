//! Power is lost at every call while rows are deleted from the left and the prefixes of leaves are
//! truncated, which removes rows without writing data. All rows whose deletes were acknowledged as
//! durable are deleted, and no row whose delete was not requested.

use frondb::testing::TestDb;
use frondb::{Batch, Codec, Cursor, Db, Durability, Options, Tree, TreeOptions};
use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_device::Device;
use frondb_testkit::MemoryDevice;
use frondb_testkit::{Crash, CrashTest, crash_while_running};

const ROWS: u64 = 40_000;
const DELETED: u64 = 36_000;
const BATCH_ROWS: u64 = 3_000;

/// The state of the history at the moment of the crash.
#[derive(Default)]
struct Known {
    /// Whether the rows are loaded.
    loaded: AtomicBool,
    /// Number of rows deleted by commits that may have happened.
    asked: AtomicU64,
    /// Number of rows deleted by commits acknowledged as durable.
    durable: AtomicU64,
    /// Prefix truncations so far.
    truncations: AtomicU64,
}

fn open(device: &MemoryDevice) -> Result<Db> {
    let options = Options::small().memory_bytes(16 << 20);
    let device: Arc<dyn Device> = Arc::new(device.clone());
    TestDb::on(device).options(options).open()
}

/// Returns options for a tree of several leaves below inner nodes, so that tombstone runs span
/// leaves and end inside a leaf.
fn tree_options() -> TreeOptions {
    TreeOptions::new().codec(Codec::None).fanout(4).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (128 << 10, 128 << 10);
        shape.slice_bytes_min = 128 << 10;
    })
}

fn load(db: &Db) -> Result<Tree> {
    let tree = db.create_tree("t", tree_options())?;
    let mut batch = Batch::new();
    (0..ROWS).for_each(|row| batch.put(&tree, &row.to_be_bytes(), &[7; 30]));
    db.write(&batch, Durability::Sync)?;
    db.flush()?;
    db.wait_settled()?;
    Ok(tree)
}

fn history(device: &MemoryDevice, known: &Known) -> Result<()> {
    let db = open(device)?;
    let tree = load(&db)?;
    known.loaded.store(true, Ordering::SeqCst);
    for from in (0..DELETED).step_by(BATCH_ROWS as usize) {
        let to = from + BATCH_ROWS;
        let mut batch = Batch::new();
        (from..to).for_each(|row| batch.delete(&tree, &row.to_be_bytes()));
        known.asked.store(to, Ordering::SeqCst);
        // Every third commit is durable. It makes all earlier commits durable too.
        let is_durable = from / BATCH_ROWS % 3 == 2;
        db.write(&batch, if is_durable { Durability::Sync } else { Durability::NoSync })?;
        if is_durable {
            known.durable.store(to, Ordering::SeqCst);
        }
        known.truncations.store(db.stats().prefix_truncations, Ordering::SeqCst);
    }
    while db.run_one(true) {}
    db.close()
}

/// Returns the number of the first row. The tree must have this row and all later rows.
fn first_row(tree: &Tree) -> u64 {
    let mut cursor: Cursor = tree.cursor().unwrap();
    let mut there = cursor.first().unwrap();
    let first = u64::from_be_bytes(cursor.key().try_into().unwrap());
    let mut row = first;
    while there {
        assert_eq!(cursor.key(), row.to_be_bytes());
        row += 1;
        there = cursor.next().unwrap();
    }
    assert_eq!(row, ROWS);
    first
}

#[test]
fn truncated_rows_are_those_whose_deletes_are_durable() {
    let truncations = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&truncations);
    let check = move |crash: Crash, known: &Known| {
        if !known.loaded.load(Ordering::SeqCst) {
            return;
        }
        let db = open(&crash.device).unwrap();
        let first = first_row(&db.open_tree("t").unwrap());
        let (asked, durable) =
            (known.asked.load(Ordering::SeqCst), known.durable.load(Ordering::SeqCst));
        assert!((durable..=asked).contains(&first), "{first} of {durable}..={asked}");
        assert_eq!(first % BATCH_ROWS, 0, "a batch was torn");
        seen.fetch_max(known.truncations.load(Ordering::SeqCst), Ordering::SeqCst);
    };
    let run = |device: Arc<MemoryDevice>, known: &Known| history(&device, known).unwrap();
    let report = crash_while_running(CrashTest::new(200, 1), Known::default, run, check);
    println!("{report}, {} truncations", truncations.load(Ordering::SeqCst));
    assert!(report.tried > 50, "{report}");
    assert!(truncations.load(Ordering::SeqCst) > 2, "the test tests nothing");
}
