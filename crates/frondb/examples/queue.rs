//! A queue: producers add jobs, and workers take different jobs at the same time. A job is removed
//! in the transaction that stores its result, so each job is done once, whatever fails.
//!
//! `cargo run --release -p frondb --example queue`
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program")]

use std::sync::atomic::{AtomicU64, Ordering};

use frondb::tuple::{Tuple, decode_as};
use frondb::{Db, Durability, Options, Result, TransactionOptions, Tree, TreeOptions, Wait};

const JOBS: u64 = 400;

struct Queue {
    db: Db,
    /// (priority, number) -> what to do
    jobs: Tree,
    /// number -> result
    results: Tree,
    /// Number of the next job. A program that is started again would begin after the last key.
    next: AtomicU64,
}

impl Queue {
    /// Adds a job; jobs with a smaller priority come first.
    fn add(&self, priority: u32, job: &str) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.jobs.put(Tuple::new().with(priority).with(number), job)
    }

    /// Does the first job that no other worker has taken; returns `false` if there is none. If
    /// `work` fails, the job is in the queue again.
    fn do_one(&self, work: impl FnOnce(&str) -> Option<String>) -> Result<bool> {
        let txn = self.db.begin(TransactionOptions::new())?;
        let Some((key, job)) = txn.pop_first(&self.jobs, Wait::SkipLocked)? else {
            return Ok(false);
        };
        let (_priority, number): (u32, u64) = decode_as(&key)?;
        match work(&String::from_utf8_lossy(&job)) {
            Some(result) => {
                txn.put(&self.results, Tuple::new().with(number), result)?;
                txn.commit()?;
            }
            None => txn.rollback()?,
        }
        Ok(true)
    }
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("frondb-queue-{}", std::process::id()));
    // A power failure may bring back the last jobs, with their results undone.
    let db = Db::open(&path, Options::default().create_new(true))?;
    let db = db.with_commit_sync(Durability::NoSync);
    let (jobs, results) = (
        db.create_tree("jobs", TreeOptions::new())?,
        db.create_tree("results", TreeOptions::new())?,
    );
    let queue = Queue { db, jobs, results, next: AtomicU64::new(0) };

    for n in 0..JOBS {
        queue.add(1, &format!("square {n}"))?;
    }
    queue.add(0, "urgent")?;
    assert!(queue.do_one(|job| (job == "urgent").then(|| "done".to_owned()))?);

    let failures = AtomicU64::new(0);
    let square = |job: &str| {
        // Every tenth attempt fails.
        if failures.fetch_add(1, Ordering::Relaxed).is_multiple_of(10) {
            return None;
        }
        let n: u64 = job.strip_prefix("square ")?.parse().ok()?;
        Some((n * n).to_string())
    };
    std::thread::scope(|scope| {
        let work = || {
            while queue.do_one(square)? {}
            Ok(())
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|it| it.join().expect("a worker panicked"))
    })?;
    // A worker ends when all jobs are taken; one of these may have failed after that.
    while queue.do_one(square)? {}

    assert_eq!(queue.jobs.first()?, None);
    for n in 0..JOBS {
        let result = queue.results.get(Tuple::new().with(n))?;
        assert_eq!(result, Some((n * n).to_string().into_bytes()));
    }
    println!("{} jobs done", queue.results.range(..)?.count());
    queue.db.close()?;
    std::fs::remove_dir_all(&path).expect("the folder can be removed");
    Ok(())
}

/// `make test` runs the program.
#[test]
fn runs() -> Result<()> {
    main()
}
