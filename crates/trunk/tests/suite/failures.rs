//! Jobs that end early: dropped half way, on a full disk, on a damaged input. Such a job changes
//! nothing, releases every extent, and can be started again.

use crate::support::lab::tiny;
use crate::support::{Entry, Lab};
use frondb_core::budget::Part;
use frondb_core::sync::Arc;
use frondb_core::{Direction, ErrorKind, MessageKind, SeqNo};
use frondb_device::{Device, OpenOptions};
use frondb_trunk::plan::{Plan, Reason};

const REWRITE: Plan = Plan::Rewrite(Reason::Idle, 3);

/// A leaf with a base and a run of `count` messages each.
fn lab(count: u64) -> Lab {
    let mut lab = Lab::new(tiny(), None);
    lab.env.options.leaf_bytes_min = u64::MAX;
    lab.env.options.leaf_bytes_max = u64::MAX;
    for seq in 0..2 {
        let entry = |i: u64| Entry {
            key: format!("{:08}", i * 3 + seq).into_bytes(),
            seq: SeqNo(1 + seq * count + i),
            kind: MessageKind::Put,
            value: vec![b'v'; 200],
        };
        lab.flush((0..count).map(entry).collect(), Vec::new(), &[]);
    }
    lab
}

#[test]
fn a_job_dropped_at_any_step_leaves_nothing_behind() {
    let mut lab = lab(8000);
    let root = lab.trunk.root.id;
    let before = lab.scan(Direction::Forward, b"", None, SeqNo::MAX);
    let mut steps = 0;
    loop {
        let mut job = lab.begin(root, REWRITE, &[]).unwrap();
        let done = (0..steps).any(|_| job.prepared.job.step().unwrap());
        drop(job);
        assert_eq!(lab.leaked_bytes(), 0, "after {steps} steps");
        if done {
            break;
        }
        steps += 1;
    }
    assert!(steps > 5, "{steps} steps of 256 KiB");
    lab.run(root, REWRITE, &[]);
    assert_eq!(lab.scan(Direction::Forward, b"", None, SeqNo::MAX), before);
    assert_eq!(lab.leaked_bytes(), 0);
}

/// Rule 24: a job charges its read-ahead and its output to the budget from its start to its end.
#[test]
fn a_job_charges_its_memory() {
    let mut lab = lab(8000);
    let root = lab.trunk.root.id;
    let budget = Arc::clone(&lab.env.run_env.budget);
    let before = budget.used_by(Part::Work);
    // The first job starts with the lab's small budget, so it gets smaller read-ahead windows.
    let job = lab.begin(root, REWRITE, &[]).unwrap();
    let low_memory = budget.used_by(Part::Work) - before;
    drop(job);
    budget.set_total(64 << 20);
    let mut job = lab.begin(root, REWRITE, &[]).unwrap();
    let charged = budget.used_by(Part::Work) - before;
    let of = |memory| 3 * frondb_run::merge_input_bytes(memory);
    assert_eq!((low_memory, charged), (of(16 << 20), of(64 << 20)));
    assert!(low_memory >= 3 * (40 << 10), "{low_memory} bytes for windows, blocks and chunks");
    assert!(charged >= 1 << 20, "{charged} bytes for two inputs and an output");
    assert!(!job.prepared.job.step().unwrap());
    assert!(budget.used_by(Part::Work) - before >= charged);
    drop(job);
    assert_eq!(budget.used_by(Part::Work), before, "dropped half way");
    lab.run(root, REWRITE, &[]);
    assert_eq!(budget.used_by(Part::Work), before, "done");
}

#[test]
fn a_full_disk_fails_the_job_and_nothing_else() {
    let mut lab = lab(8000);
    let root = lab.trunk.root.id;
    let used = lab.device.used_bytes();
    for spare in [0, 200_000, 1_500_000] {
        lab.device.set_capacity(used + spare);
        let mut job = lab.begin(root, REWRITE, &[]).unwrap().prepared.job;
        let error = loop {
            match job.step() {
                Ok(false) => {}
                Ok(true) => break job.finish().err().unwrap(),
                Err(error) => {
                    drop(job);
                    break error;
                }
            }
        };
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{spare} bytes to spare: {error}");
        assert_eq!(lab.leaked_bytes(), 0);
    }
    lab.device.set_capacity(u64::MAX);
    lab.run(root, REWRITE, &[]);
    assert_eq!(lab.leaves().len(), 3);
}

#[test]
fn a_damaged_input_fails_the_job_and_names_the_place() {
    let mut lab = lab(3000);
    let root = lab.trunk.root.id;
    let run = lab.trunk.root.runs[0].run.clone();
    let at = run.meta().extents[0].offset() + run.meta().blocks_bytes / 2;
    let file = lab.device.open("data-0000.fdb", OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    file.read_exact_at(at, &mut byte).unwrap();
    file.write_at(at, &[byte[0] ^ 1]).unwrap();
    let mut job = lab.begin(root, REWRITE, &[]).unwrap().prepared.job;
    let error = loop {
        if let Err(error) = job.step() {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let place = error.place().unwrap();
    assert!(place.offset <= at && at - place.offset < 1000, "{error}");
    drop(job);
    assert_eq!(lab.leaked_bytes(), 0);
    // After the damage is repaired everything works again.
    file.write_at(at, &byte).unwrap();
    lab.run(root, REWRITE, &[]);
    assert_eq!(lab.scan(Direction::Forward, b"", None, SeqNo::MAX).len(), 6000);
}
