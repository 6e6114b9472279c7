//! Power is lost at every call that writes or syncs, while commits with private runs in two trees and
//! prepared transactions come and go. Whatever the disk has then: each commit is there in all of its trees
//! or in none, none is missing that was durable or older than one that is there, and a transaction is
//! prepared with all it wrote or not at all. `FRONDB_CRASH_POINT` and the seed replay one.

use frondb_core::Result;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{MemoryDevice, SharedDevice};
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};

use super::model::{Author, Expected};
use super::step::Step;
use super::world::World;
use crate::Durability;

/// What may be found: the states since the last one that is durable, oldest first.
struct Known {
    states: Vec<Expected>,
    /// The trees are there.
    made: bool,
}

impl Known {
    /// The last step was acknowledged; if it was durable, so is all before it.
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
    known.made = true;
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
    let mut known = Known { states: vec![Expected::default()], made: false };
    // It ends at its first error: the device has stopped.
    let _ = steps(device, seed, &mut known);
    known
}

/// The database is one of those that it may be, and goes on as one.
fn check(crash: &Crash, known: &Known, seed: u64) {
    let device = Arc::clone(&crash.device) as SharedDevice;
    let world = match World::open(device, Expected::default()) {
        Ok(world) => world,
        Err(error) => panic!("{error}"),
    };
    if !known.made {
        return;
    }
    let found = world.contents();
    let names: Vec<Vec<u8>> = world.engine.prepared().into_iter().map(<[u8]>::into_vec).collect();
    let may_be =
        |expected: &&Expected| expected.state == found && expected.prepared.keys().eq(names.iter());
    let Some(expected) = known.states.iter().rev().find(may_be) else {
        let all = known.states.iter().map(|e| (e.state.len(), e.prepared.keys().len()));
        panic!("{} keys, prepared {names:?}: none of {:?}", found.len(), all.collect::<Vec<_>>());
    };
    goes_on(world, expected.clone(), seed ^ crash.point, &crash.device);
}

/// Everything reads well, what is prepared can be decided, and nothing has leaked.
fn goes_on(mut world: World, expected: Expected, seed: u64, device: &Arc<MemoryDevice>) {
    let mut prng = Prng::new(seed);
    world.expected = expected;
    world.check(&mut prng);
    let xids: Vec<Vec<u8>> = world.expected.prepared.keys().cloned().collect();
    for xid in xids {
        if prng.chance(2, 3) {
            world.commit_prepared(&xid, Durability::Sync).unwrap();
        } else {
            world.roll_back_prepared(&xid).unwrap();
        }
    }
    world.check(&mut prng);
    if prng.chance(1, 2) {
        world.checkpoint().unwrap();
        while world.engine.run_one(true) {}
        assert_eq!(world.engine.leaked_bytes(), 0);
    }
    let expected = world.expected.clone();
    drop(world);
    let world = World::open(Arc::clone(device) as SharedDevice, expected).unwrap();
    world.check(&mut prng);
}

#[test]
fn all_or_nothing_wherever_power_is_lost() {
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
