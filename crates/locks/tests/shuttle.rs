//! Explores the schedules of commits, snapshots and jobs:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p frondb-locks --test shuttle`.
#![cfg(shuttle)]

use frondb_core::SeqNo;
use frondb_core::sync::Arc;
use frondb_locks::{SeqOracle, Snapshots};
use frondb_testkit::StillClock;
use shuttle::thread;

const SCHEDULES: usize = 2000;

fn commits(oracle: &SeqOracle) {
    for n in [2, 1] {
        let first = oracle.reserve(n);
        let last = SeqNo(first.get() + n - 1);
        oracle.publish(first, last);
        while oracle.visible() < last {
            thread::yield_now();
        }
    }
}

/// Rule 12: a snapshot is in a job's list, or it is at or above the `visible` of that list.
#[test]
fn a_job_knows_every_snapshot_below_visible_under_shuttle() {
    let schedule = || {
        let oracle = Arc::new(SeqOracle::new(SeqNo(1)));
        let snapshots = Snapshots::new(Arc::clone(&oracle), Arc::new(StillClock));
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let oracle = Arc::clone(&oracle);
                thread::spawn(move || commits(&oracle))
            })
            .collect();
        let reader = {
            let snapshots = Arc::clone(&snapshots);
            thread::spawn(move || (snapshots.take(), snapshots.take()))
        };
        let live = snapshots.live();
        let (a, b) = reader.join().expect("the reader ends");
        assert!(a.seq() <= b.seq());
        for snapshot in [&a, &b] {
            assert!(live.seqs.contains(&snapshot.seq()) || snapshot.seq() >= live.visible);
        }
        for writer in writers {
            writer.join().expect("the writer ends");
        }
        assert_eq!(oracle.visible(), SeqNo(7));
    };
    shuttle::check_random(schedule, SCHEDULES);
}
