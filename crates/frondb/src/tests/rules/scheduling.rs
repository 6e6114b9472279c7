//! Rules 3, 10, 15 and 25: which background task a worker chooses next, and which work commits
//! leave to workers.

use std::time::Duration;

use crate::testing::TestDb;
use frondb_background::jobs::Running;
use frondb_background::jobs::flush::FlushJob;
use frondb_background::priority::{FLUSH, TOMBSTONES};
use frondb_background::{Queue, Task};
use frondb_commit::Batch;
use frondb_commit::Durability;
use frondb_core::executor::{self, Executor, JoinHandle, Priority};
use frondb_core::sync::Arc;
use frondb_core::{NodeId, Result};
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;
use frondb_tree::CursorOptions;
use frondb_tree::HintSink;
use frondb_tree::tombstones::TombstoneCheck;
use frondb_trunk::plan::{Plan, Planned, Reason, TOMBSTONE_RUN, TRUNCATION_RUN};

use super::{create, open, put, put_rows};
use crate::options::Options;

fn planned(node: NodeId, priority: u8) -> Planned {
    let plan = Plan::Rewrite(if priority == 4 { Reason::ScanDebt } else { Reason::Runs }, 1);
    Planned { node, plan, work_bytes: 1, priority, frees_space: false }
}

/// Rule 3: rewrites that scans requested get a quarter of the steps, however long the queue is.
#[test]
fn rewrites_for_scans_get_a_quarter_of_the_steps() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (Arc::clone(&create(&db, "t").core), Queue::default());
    let (steps, mut of_scans) = (4000, 0);
    for _ in 0..steps {
        for (node, priority) in [(NodeId(1), 2), (NodeId(2), 4)] {
            work.set_plan(&tree, node, Some(planned(node, priority)));
        }
        let Some(Task::Plan(_, planned)) = work.try_next() else { panic!("nothing is due") };
        work.stepped(planned.priority);
        of_scans += u64::from(planned.priority == 4);
        work.end_plan(tree.id, planned.node);
    }
    assert!((steps / 4..steps / 3).contains(&of_scans), "{of_scans} of {steps} steps");
}

/// Rule 3: the scheduler chooses again after each step, so a long job yields to a flush.
#[test]
fn a_long_job_yields_to_a_more_urgent_task() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (Arc::clone(&create(&db, "t").core), Queue::default());
    let rewrite = 3;
    assert!(!work.stepped(rewrite), "nothing waits");
    work.set_plan(&tree, NodeId(1), Some(planned(NodeId(1), rewrite)));
    work.set_plan(&tree, NodeId(2), Some(planned(NodeId(2), 4)));
    assert!(!work.stepped(rewrite), "the other plan is less urgent");
    work.add_flush(&tree);
    assert!(work.stepped(rewrite), "a flush waits");
    assert!(!work.stepped(FLUSH), "a flush goes on");
}

/// Rule 25: on a full disk, work that frees space first runs alone. Otherwise, at each attempt, a
/// merge that frees no space could take the space with which a rewrite would free far more.
#[test]
fn on_a_full_disk_work_that_frees_space_goes_first_alone() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (Arc::clone(&create(&db, "t").core), Queue::default());
    let (frees, takes) = (NodeId(1), NodeId(2));
    let plan = || {
        let of_space = Planned { frees_space: true, ..planned(frees, 3) };
        work.set_plan(&tree, frees, Some(of_space));
        work.set_plan(&tree, takes, Some(planned(takes, 2)));
    };
    let next = || match work.try_next() {
        Some(Task::Plan(_, planned)) => Some(planned.node),
        Some(_) => panic!("only plans are due"),
        None => None,
    };
    let too_early = || panic!("work that frees space is not done");
    plan();
    for _ in 0..2 {
        assert!(work.hold(|| ()).is_empty());
    }
    assert_eq!(next(), None, "all work is held back");
    work.attempt(too_early);
    assert_eq!((next(), next()), (Some(frees), None));
    work.attempt(too_early);
    assert_eq!(next(), None, "the rewrite is under way");

    // The rewrite finds no space either.
    work.hold(|| ());
    work.end_plan(tree.id, frees);
    plan();
    let mut noted = false;
    work.attempt(|| noted = true);
    assert_eq!((noted, next(), next()), (true, Some(takes), Some(frees)));

    // At the next attempt, work that frees space runs alone again.
    for node in [takes, frees] {
        work.hold(|| ());
        work.end_plan(tree.id, node);
    }
    plan();
    work.attempt(too_early);
    assert_eq!((next(), next()), (Some(frees), None));
}

/// Rule 10: when a flush ends, the maintenance that frees its log becomes due at the same moment.
/// If there were a moment without a due task, commits that wait for a shorter log would continue
/// too early.
#[test]
fn maintenance_is_due_when_a_flush_ends() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (Arc::clone(&create(&db, "t").core), Queue::default());
    work.add_flush(&tree);
    let Some(Task::Flush(flushed)) = work.try_next() else { panic!("a flush is due") };
    assert_eq!((work.due().running, work.due().maintenance), (1, false));
    work.end_flush_with_maintenance(&flushed, false);
    assert_eq!((work.due().running, work.due().maintenance), (0, true));
}

/// A parked flush is one job, although the tree of the flush is in another list, too.
#[test]
fn a_parked_flush_counts_once() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, background) = (create(&db, "t"), &db.shared().background);
    put(&db, &tree, "key", Durability::Sync);
    assert!(background.freeze(&tree.core));
    let Some(Task::Flush(core)) = background.queue.try_next() else { panic!("no flush is due") };
    let flush = FlushJob::begin(&background.jobs, &core).unwrap().unwrap();
    assert_eq!(background.queue.due().debt_jobs, 1);
    assert!(background.queue.park(Running::Flush(Box::new(flush))).is_none());
    let due = background.queue.due();
    assert_eq!((due.debt_jobs, due.jobs, due.running), (1, 1, 0));
    db.flush().unwrap();
    assert_eq!(tree.core.version().frozen.len(), 0);
}

/// Rule 15: a reader's hint about a tombstone run is planned before a long job ends.
#[test]
fn a_hint_of_a_reader_is_planned_between_two_steps_of_a_job() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (long, read) = (create(&db, "long"), create(&db, "read"));
    put_rows(&db, &long, 0..400);
    let background = &db.shared().background;
    assert!(background.freeze(&long.core));
    let Some(Task::Flush(flush)) = background.queue.try_next() else { panic!("no flush is due") };
    background.queue.post(&read.core, read.core.version().trunk.root.id);
    background.perform(Task::Flush(flush));
    assert_eq!(background.queue.due().requests, 0, "the hint waits for the next task");
    assert_eq!(long.core.version().frozen.len(), 0);
}

/// A call that waits until the database is settled must not return while a worker plans work for a
/// reader's hint, because the plan may be a new job.
#[test]
fn nothing_is_settled_while_a_hint_is_planned() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, queue) = (create(&db, "read"), &db.shared().queue);
    queue.post(&tree.core, tree.core.version().trunk.root.id);
    assert!(!queue.due().is_settled(), "it is not planned yet");
    let request = queue.next_request().unwrap();
    assert!(!queue.due().is_settled(), "it is being planned");
    db.shared().background.perform(request);
    assert!(queue.due().is_settled());
}

/// Deletes can make one probe after the other due. Even with a single worker, other work must get
/// its turn: a flush that never begins would stall all commits.
#[test]
fn probes_do_not_starve_a_flush() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, queue) = (Arc::clone(&create(&db, "t").core), Queue::default());
    let mut tasks = Vec::new();
    queue.add_flush(&tree);
    for _ in 0..3 {
        queue.add_probe(&tree, (vec![0], vec![9]));
        match queue.try_next() {
            Some(Task::Probe(..)) => {
                queue.end_probe(tree.id);
                tasks.push("probe");
            }
            Some(Task::Flush(_)) => tasks.push("flush"),
            _ => panic!("another task is due"),
        }
    }
    assert_eq!(tasks, ["probe", "flush", "probe"]);
}

/// An executor whose threads do nothing, as if all workers were always busy.
#[derive(Debug)]
struct BusyThreads;

impl Executor for BusyThreads {
    fn spawn(&self, name: &str, _: Priority, _: executor::Task) -> Result<JoinHandle> {
        Ok(JoinHandle::new(name, || Ok(())))
    }
}

/// Rule 15: a worker may find a second tombstone run while the first one of the tree is compacted.
/// It then searches again after the compaction, so that a reader skips at most two tombstone runs.
#[test]
fn a_search_for_tombstone_runs_waits_for_the_compaction_of_the_tree() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, queue) = (Arc::clone(&create(&db, "t").core), Queue::default());
    assert!(!queue.add_search_after_compaction(&tree), "nothing is compacted");
    assert!(queue.try_next().is_none());

    queue.set_plan(&tree, NodeId(1), Some(planned(NodeId(1), TOMBSTONES)));
    assert!(queue.add_search_after_compaction(&tree));
    let Some(Task::Plan(_, plan)) = queue.try_next() else { panic!("the compaction is first") };
    assert!(queue.try_next().is_none(), "the compaction is under way");
    assert!(!queue.due().is_settled());

    queue.end_plan(tree.id, plan.node);
    assert!(matches!(queue.try_next(), Some(Task::Search(_))));
    queue.end_search(tree.id);
    assert!(queue.due().is_settled());

    // A search that a commit requests does not wait for the compaction.
    queue.set_plan(&tree, NodeId(1), Some(planned(NodeId(1), TOMBSTONES)));
    queue.add_search(&tree);
    assert!(matches!(queue.try_next(), Some(Task::Search(_))));
    queue.stop();
    assert!(!queue.wait_searched(tree.id, Duration::MAX), "the search is under way");
    queue.end_search(tree.id);
    assert!(queue.wait_searched(tree.id, Duration::MAX));
}

/// Rule 15: a commit that waits for an overdue probe also waits for the probe in progress and, if
/// one is due, for the next one.
#[test]
fn an_overdue_probe_is_waited_for_to_its_end() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, queue) = (Arc::clone(&create(&db, "t").core), Queue::default());
    assert!(queue.wait_probed(tree.id, Duration::MAX), "no probe is due");
    queue.add_probe(&tree, (b"a".to_vec(), b"b".to_vec()));
    assert!(matches!(queue.try_next(), Some(Task::Probe(..))));
    queue.add_probe(&tree, (b"b".to_vec(), b"c".to_vec()));
    queue.stop();
    assert!(!queue.wait_probed(tree.id, Duration::MAX), "one is under way");
    queue.end_probe(tree.id);
    assert!(!queue.wait_probed(tree.id, Duration::MAX), "one is due");
    queue.forget(tree.id);
    assert!(queue.wait_probed(tree.id, Duration::MAX));
}

/// Rule 15: a worker that finds a tombstone run during a compaction of the tree does not freeze the
/// memtable. The next commit does that, or a search after the compaction.
#[test]
fn a_second_tombstone_run_is_frozen_after_the_first_is_compacted() {
    let device: SharedDevice = Arc::new(MemoryDevice::new());
    let options = Options { memory_bytes: 256 << 20, background_threads: 1, ..Options::small() };
    let db = TestDb::on(device).options(options).executor(Arc::new(BusyThreads)).open().unwrap();
    let (tree, background) = (create(&db, "rows"), &db.shared().background);
    put_rows(&db, &tree, 0..TRUNCATION_RUN + 2000);
    assert!(background.freeze(&tree.core));
    background.run_pending();
    let check = || {
        let version = tree.core.version();
        tree.core.tombstone_search.check(&version.active.memtable)
    };

    // The search finds a run while an earlier one is compacted.
    let mut batch = Batch::new();
    (0..TRUNCATION_RUN + 1000).for_each(|key| batch.delete(&tree, &key.to_be_bytes()));
    db.write(&batch, Durability::NoSync).unwrap();
    let Some(Task::Search(searched)) = background.queue.next_request() else {
        panic!("a search is due")
    };
    let node = NodeId(u64::MAX);
    background.queue.set_plan(&tree.core, node, Some(planned(node, TOMBSTONES)));
    background.perform(Task::Search(searched));
    assert!(tree.core.version().frozen.is_empty());
    assert_eq!(check(), TombstoneCheck::Freeze);

    // The search that follows the compaction freezes the memtable.
    background.queue.set_plan(&tree.core, node, None);
    background.run_pending();
    assert_eq!(tree.core.version().active.memtable.len(), 0);
    assert_eq!(check(), TombstoneCheck::Nothing);
}

/// Rule 15: a commit whose deletes form a tombstone run leaves the probe, and the search of the
/// block indexes, to a worker. So the commit reads nothing from disk, and a slow probe or search
/// stalls no commit.
#[test]
fn a_commit_of_deletes_reads_no_block() {
    for deletes in [3000, TRUNCATION_RUN + 1000, TOMBSTONE_RUN + 1000] {
        check_a_commit_of_deletes(deletes);
    }
}

fn check_a_commit_of_deletes(deletes: u64) {
    let device: SharedDevice = Arc::new(MemoryDevice::new());
    let open = || {
        let options =
            Options { memory_bytes: 256 << 20, background_threads: 1, ..Options::small() };
        TestDb::on(Arc::clone(&device)).options(options).executor(Arc::new(BusyThreads)).open()
    };
    let db = open().unwrap();
    let tree = create(&db, "rows");
    put_rows(&db, &tree, 0..deletes + 1000);
    assert!(db.shared().background.freeze(&tree.core));
    db.shared().background.run_pending();
    db.close().unwrap();

    // Nothing is cached: no block and no block index.
    let db = open().unwrap();
    let (tree, background) = (db.open_tree("rows").unwrap(), &db.shared().background);
    let mut batch = Batch::new();
    (0..deletes).for_each(|key| batch.delete(&tree, &key.to_be_bytes()));
    let before = db.stats();
    db.write(&batch, Durability::NoSync).unwrap();
    let after = db.stats();
    assert_eq!((after.cache_hits, after.cache_misses), (before.cache_hits, before.cache_misses));
    assert!(!db.is_settled(), "the probe is due");

    background.run_pending();
    assert!(db.stats().cache_misses > after.cache_misses, "the probe has read the rows");
    let skipped = db.stats().tombstones_skipped;
    let mut cursor = tree.cursor_with(CursorOptions::default()).unwrap();
    assert!(cursor.first().unwrap());
    assert_eq!(cursor.key(), deletes.to_be_bytes());
    assert_eq!(db.stats().tombstones_skipped, skipped);
}
