//! Rule 25: which work continues while the disk is full, and which work uses the reserve.

use crate::options::TreeOptions;
use crate::tree::Tree;
use frondb_background::jobs::Running;
use frondb_background::jobs::flush::FlushJob;
use frondb_background::jobs::merge::{Begun, MergeJob};
use frondb_background::{OptimizeOptions, Queue, Task, replan};
use frondb_commit::Batch;
use frondb_commit::Durability;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_space::Class;
use frondb_testkit::faults::Script;
use frondb_testkit::{Faults, MemoryDevice};
use frondb_trunk::plan::Planned;

use super::{create, delete_row, has, open, open_reserving, put, put_rows};
use crate::db::Db;
use crate::options::Options;
use crate::testing::TestDb;

/// Makes a tree with incompressible rows, on a disk whose only free space is the reserve.
fn full_disk(device: &MemoryDevice, rows: u64) -> (Db, Tree) {
    let db = open_reserving(device, 4 << 20).unwrap();
    let tree = create(&db, "t");
    put_rows(&db, &tree, 0..rows);
    db.flush().unwrap();
    db.wait_settled().unwrap();
    fill_disk(&db, device);
    (db, tree)
}

/// Takes all space except the reserve. Returns the error of the first request that gets none.
fn fill_disk(db: &Db, device: &MemoryDevice) -> Error {
    device.set_capacity(device.used_bytes());
    let space = &db.shared().runs.space;
    let error = loop {
        if let Err(error) = space.acquire(1, Class::Base) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    error
}

/// Rule 25: on a full disk only flushes and merges that free space use the reserve.
#[test]
fn only_jobs_that_free_space_use_the_reserve() {
    let device = MemoryDevice::new();
    let rows = 2000;
    let (db, tree) = full_disk(&device, rows);
    (0..rows).for_each(|row| delete_row(&db, &tree, row));
    db.flush().unwrap();
    db.wait_settled().unwrap();
    put(&db, &tree, "there is space", Durability::Sync);
    db.flush().unwrap();

    let (db, tree) = full_disk(&MemoryDevice::new(), rows);
    put(&db, &tree, "there is none", Durability::Sync);
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::NoSpace);
}

/// Rule 25: rows that cannot be flushed may fill the memory to its limit. Deletes free space, so
/// the db admits them above the limit.
#[test]
fn rows_are_deleted_from_a_full_disk_with_full_memory() {
    let (device, rows) = (MemoryDevice::new(), 1600);
    let db = open_reserving(&device, 4 << 20).unwrap();
    let tree = create(&db, "t");
    put(&db, &tree, "takes the reserve", Durability::Sync);
    db.flush().unwrap();
    db.set_memory_bytes(16 << 20).unwrap();
    // Descending: ascending keys would be flushed early.
    put_rows(&db, &tree, (0..rows).rev());
    fill_disk(&db, &device);
    db.set_memory_bytes(Options::MEMORY_BYTES_MIN_WITHOUT_THREADS).unwrap();
    assert_eq!(db.stats().disk_full, 1);
    (0..rows).for_each(|row| delete_row(&db, &tree, row));
    db.flush().unwrap();
    db.wait_settled().unwrap();
    put(&db, &tree, "there is space", Durability::Sync);
}

/// Rule 25: on a full disk deletes are flushed early, but one flush takes many deletes: the
/// metadata of one run per delete would take more space than the deletes free.
#[test]
fn deletes_are_flushed_early_one_memtable_at_a_time() {
    let db = open(&MemoryDevice::new()).unwrap();
    let [one, two] = ["one", "two"].map(|name| create(&db, name));
    delete_row(&db, &one, 1);
    (0..9).for_each(|row| delete_row(&db, &two, row));
    let frozen = |tree: &Tree| tree.core.version().frozen.len();
    db.shared().background.freeze_deletes();
    db.shared().background.freeze_deletes();
    assert_eq!((frozen(&one), frozen(&two)), (0, 1), "the larger, once");
}

/// A snapshot of the manifest that finds no space leaves the old file in use, whether the space is
/// missing for the new file, for its header or for its contents.
#[test]
fn a_manifest_without_space_for_a_snapshot_stays_in_use() {
    for fault in ["open MANIFEST", "write MANIFEST", "write MANIFEST nth=2"] {
        let memory = MemoryDevice::new();
        let device = Arc::new(Faults::over(Arc::new(memory.clone()), &Script::default()));
        let db = TestDb::on(Arc::clone(&device) as _).options(Options::small()).open().unwrap();
        put(&db, &create(&db, "t"), "row", Durability::Sync);
        device.set_script(&format!("fail {fault} count=all error=ENOSPC").parse().unwrap());
        assert!(!db.shared().background.rotate_manifest(true).unwrap(), "{fault}");
        assert_eq!(device.injected(), 1, "{fault}");
        device.set_script(&Script::default());
        put(&db, &db.open_tree("t").unwrap(), "another", Durability::Sync);
        drop(db);
        let db = open(&memory).unwrap();
        assert!(has(&db, "t", "row") && has(&db, "t", "another"), "{fault}");
    }
}

/// Rule 25: a parked job is cancelled when the disk is full, and is planned again. Otherwise the
/// job would hold its node, which a job that frees space may need, and the space that it has
/// written.
#[test]
fn a_full_disk_cancels_parked_jobs() {
    let db = open(&MemoryDevice::new()).unwrap();
    let tree = create(&db, "t");
    let (txns, background) = (&db.shared().txns, &db.shared().background);
    let work = &background.queue;
    put_rows(&db, &tree, 0..300);
    db.flush().unwrap();
    (0..250).for_each(|row| delete_row(&db, &tree, row));
    assert!(db.shared().background.freeze(&tree.core));
    let mut flush = FlushJob::begin(&txns.background.jobs, &tree.core).unwrap().unwrap();
    while !flush.step().unwrap() {}
    let touched =
        flush.install(&txns.background.jobs).unwrap().settle(&txns.background.jobs).unwrap();
    replan(&txns.background.jobs, work, &tree.core, &touched);
    let merge = next_plan(work).expect("a merge is due");
    let Begun::Job(merge) =
        MergeJob::begin(&txns.background.jobs, &tree.core, merge).unwrap().unwrap()
    else {
        panic!("a merge has something to do");
    };
    work.park(Running::Merge(merge));
    let claimed = || tree.core.install.lock().claimed.len();
    assert_eq!(claimed(), 1);

    db.shared().background.fail(&Error::new(ErrorKind::NoSpace, "no space"));
    assert_eq!(claimed(), 0);
    assert!(next_plan(work).is_some_and(|planned| planned.frees_space));
}

/// Takes tasks until one is a plan, and returns that plan.
fn next_plan(work: &Queue) -> Option<Planned> {
    loop {
        if let Task::Plan(_, planned) = work.try_next()? {
            return Some(planned);
        }
    }
}

/// Repeats `call` until it finds the disk full, lets the db lend space from the reserve, and then
/// repeats `call` once more, which must succeed.
fn until_space_is_lent(db: &Db, call: &mut dyn FnMut() -> Result<()>) {
    let error = loop {
        if let Err(error) = call() {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    let has_reserve = || (db.shared().wal.has_reserve(), db.shared().edits.manifest.has_reserve());
    assert!(has_reserve() == (true, false) || has_reserve() == (false, true));
    db.shared().health.set_full(Some(error));
    db.shared().background.try_space();
    call().unwrap();
    assert_eq!(has_reserve(), (true, true));
}

/// Rule 25: the log and the manifest get a part of the reserve when their own reserves are used up.
#[test]
fn the_log_and_the_manifest_borrow_from_the_reserve() {
    let (db, tree) = full_disk(&MemoryDevice::new(), 100);
    let mut batch = Batch::new();
    batch.put(&tree, b"key", &[7; 1000]);
    until_space_is_lent(&db, &mut || db.write(&batch, Durability::NoSync));

    let (db, _) = full_disk(&MemoryDevice::new(), 100);
    let mut trees = 0;
    until_space_is_lent(&db, &mut || {
        trees += 1;
        db.create_tree(&format!("{trees:0>200}"), TreeOptions::default()).map(drop)
    });
}

/// Rule 25: a job that a worker sets aside after the disk became full is not parked. A parked job
/// would hold the space that it has written.
#[test]
fn no_job_is_parked_while_the_disk_is_full() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (create(&db, "t"), &db.shared().queue);
    put(&db, &tree, "key", Durability::Sync);
    assert!(db.shared().background.freeze(&tree.core));
    let Some(Task::Flush(core)) = work.try_next() else { panic!("no flush is due") };
    let job = FlushJob::begin(&db.shared().background.jobs, &core).unwrap().unwrap();
    assert!(work.hold(|| {}).is_empty());
    let job = work.park(Running::Flush(Box::new(job)));
    let job = job.expect("it takes space, and nothing may");
    work.release(|| {});
    assert!(work.park(job).is_none());
    db.flush().unwrap();
    assert_eq!(tree.core.version().frozen.len(), 0);
}

/// Rule 25: in the first attempt on a full disk only work that frees space runs. Like a commit, an
/// optimize makes a second attempt before it fails. Otherwise it would fail right after a drop.
#[test]
fn an_optimize_makes_two_attempts_on_a_full_disk() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, background) = (create(&db, "t"), &db.shared().background);
    put_rows(&db, &tree, 0..300);
    db.flush().unwrap();
    (0..250).for_each(|row| delete_row(&db, &tree, row));
    assert!(background.freeze(&tree.core));
    let Some(Task::Flush(core)) = background.queue.try_next() else { panic!("no flush is due") };
    background.perform(Task::Flush(core));
    assert_eq!(background.queue.due().debt_jobs, 1, "a rewrite that frees space is due");
    // The disk was full even for the rewrite, until now.
    for _ in 0..2 {
        background.fail(&Error::new(ErrorKind::NoSpace, "no space"));
    }
    let report = tree.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    assert_eq!(report.failed, 0);
    assert!(tree.get(&299_u64.to_be_bytes()).unwrap().is_some());
}
