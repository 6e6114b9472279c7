//! Power loss at every call that writes or syncs, in a history of prepared transactions and of
//! commits with private runs in two trees. After each recovery, every commit is in all of its trees
//! or in none. Every durable commit exists, and so does every commit that is older than a recovered
//! commit. A prepared transaction has all of its writes or does not exist. `FRONDB_CRASH_POINT` and
//! the seed replay one crash.

use frondb_core::Result;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};

use super::model::{Author, Expected};
use super::step::Step;
use super::world::World;
use frondb_commit::Durability;

/// The states that recovery may find, oldest first: the last durable state and all later ones.
struct Known {
    states: Vec<Expected>,
    /// Whether the trees were created.
    has_trees: bool,
}

impl Known {
    /// Notes that the last step was acknowledged. A durable step makes all steps before it durable.
    fn done(&mut self, durable: bool) {
        if durable {
            self.states.drain(..self.states.len() - 1);
        }
    }

    fn next(&mut self, next: Expected) {
        self.states.push(next);
    }
}

fn steps(device: SharedDevice, seed: u64, known: &mut Known) -> Result<()> {
    let mut author = Author::new(seed, 60, 25, 20);
    let mut world = World::open(device, Expected::default())?;
    known.has_trees = true;
    for number in 0..28 {
        let step = Step::choose(&mut author, &world.expected, number);
        known.next(step.apply(&world.expected));
        step.run(&mut world)?;
        known.done(step.is_durable());
    }
    known.next(world.expected.clone());
    world.close()?;
    known.done(true);
    Ok(())
}

fn history(device: Arc<MemoryDevice>, seed: u64) -> Known {
    let mut known = Known { states: vec![Expected::default()], has_trees: false };
    // The history ends at its first error, because the device has stopped.
    let _ = steps(device, seed, &mut known);
    known
}

/// Checks that the recovered database has one of the known states and can be used.
fn check(crash: &Crash, known: &Known, seed: u64) {
    let device = Arc::clone(&crash.device) as SharedDevice;
    let world = match World::open(device, Expected::default()) {
        Ok(world) => world,
        Err(error) => panic!("{error}"),
    };
    if !known.has_trees {
        return;
    }
    let found = world.contents();
    let names: Vec<Vec<u8>> = world.db.prepared();
    let matches =
        |expected: &&Expected| expected.state == found && expected.prepared.keys().eq(names.iter());
    let Some(expected) = known.states.iter().rev().find(matches) else {
        let all = known.states.iter().map(|e| (e.state.len(), e.prepared.keys().len()));
        panic!("{} keys, prepared {names:?}: none of {:?}", found.len(), all.collect::<Vec<_>>());
    };
    check_usable(world, expected.clone(), seed ^ crash.point, &crash.device);
}

/// Checks all reads, commits or rolls back each prepared transaction, checks in half of the cases
/// that no extent has leaked, and checks the reads again after a restart.
fn check_usable(mut world: World, expected: Expected, seed: u64, device: &Arc<MemoryDevice>) {
    let mut prng = Prng::new(seed);
    world.expected = expected;
    world.check(&mut prng);
    let xids: Vec<Vec<u8>> = world.expected.prepared.keys().cloned().collect();
    for xid in xids {
        if prng.chance(2, 3) {
            world.commit_prepared(&xid, Durability::Sync).unwrap();
        } else {
            world.rollback_prepared(&xid).unwrap();
        }
    }
    world.check(&mut prng);
    if prng.chance(1, 2) {
        world.checkpoint().unwrap();
        while world.db.run_one(true) {}
        assert_eq!(world.db.leaked_bytes(), 0);
    }
    let expected = world.expected.clone();
    drop(world);
    let world = World::open(Arc::clone(device) as SharedDevice, expected).unwrap();
    world.check(&mut prng);
}

#[test]
fn commits_are_atomic_wherever_power_is_lost() {
    let first = frondb_testkit::seed::from_env("FRONDB_SEED", 1);
    for seed in first..first + frondb_testkit::seed::from_env("FRONDB_ROUNDS", 4) {
        println!("FRONDB_SEED={seed} FRONDB_ROUNDS=1");
        let report = for_each_crash_point(
            CrashTest::new(100, seed),
            |device| history(device, seed),
            |crash, known| check(&crash, known, seed),
        );
        println!("{report}");
        assert!(report.points > 100, "{report}");
    }
}
