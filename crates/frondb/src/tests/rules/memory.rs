//! Rule 24: charges on the memory budget.

use frondb_background::jobs::flush::FlushJob;
use frondb_commit::Durability;
use frondb_core::budget::Part;
use frondb_testkit::MemoryDevice;

use super::{create, open, put};

/// Rule 24: memory of the process that no part of the engine charges is charged in advance.
#[test]
fn the_allocator_is_charged_in_advance() {
    let db = open(&MemoryDevice::new()).unwrap();
    let budget = &db.shared().budget;
    let other = budget.used_by(Part::Other);
    assert!(other >= budget.total() / 16, "{other} of {} bytes", budget.total());
}

/// Rule 24: memory that the program reports as held for the database is charged, up to a share.
#[test]
fn memory_of_the_program_outside_of_the_engine_is_charged_up_to_a_share() {
    let db = open(&MemoryDevice::new()).unwrap();
    let budget = &db.shared().budget;
    let alone = budget.used_by(Part::Other);
    db.set_outside_memory_bytes(1000).unwrap();
    assert_eq!(budget.used_by(Part::Other), alone + 1000);
    db.set_outside_memory_bytes(u64::MAX).unwrap();
    assert_eq!(budget.used_by(Part::Other), alone + budget.total() / 8);
    // The reported bytes stay charged after a change of the memory limit.
    db.set_memory_bytes(2 * budget.total()).unwrap();
    let most = budget.used_by(Part::Other);
    db.set_outside_memory_bytes(0).unwrap();
    assert_eq!(most - budget.used_by(Part::Other), budget.total() / 8);
}

/// Rule 24: memtables and jobs charge their memory for as long as they hold it.
#[test]
fn a_memtable_and_its_flush_charge_their_memory() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, txns) = (create(&db, "t"), &db.shared().txns);
    let used = |part| txns.reads.budget.used_by(part);
    let (memtable, work) = (used(Part::Memtable), used(Part::Work));
    put(&db, &tree, "key", Durability::Sync);
    assert!(used(Part::Memtable) > memtable);
    assert!(db.shared().background.freeze(&tree.core));
    let mut flush = FlushJob::begin(&txns.background.jobs, &tree.core).unwrap().unwrap();
    assert!(used(Part::Work) > work);
    while !flush.step().unwrap() {}
    let _ = flush.install(&txns.background.jobs).unwrap().settle(&txns.background.jobs).unwrap();
    assert_eq!((used(Part::Memtable), used(Part::Work)), (memtable, work));
    let parts: u64 = Part::ALL.iter().map(|part| used(*part)).sum();
    assert_eq!(parts, txns.reads.budget.used());
}
