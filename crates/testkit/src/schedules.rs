//! Shuttle's checkers with stacks as large as the stacks of real threads.
//!
//! Shuttle gives a thread 60 KiB. Recovery in a debug build needs more, and a stack overflow ends
//! the process with a bare SIGSEGV: no schedule to replay, no name of a test. Stacks are mapped, so
//! unused parts take no memory.

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

const STACK_BYTES: usize = 1 << 20;

/// Runs a test under `schedules` random schedules, like shuttle's checker of that name.
pub fn check_random(test: impl Fn() + Send + Sync + 'static, schedules: usize) {
    run(RandomScheduler::new(schedules), test);
}

/// Runs a test under `schedules` random schedules with few switches between threads, like shuttle's
/// checker of that name (PCT: Burckhardt et al., ASPLOS 2010). `depth` bounds the number of
/// switches in a schedule.
pub fn check_pct(test: impl Fn() + Send + Sync + 'static, schedules: usize, depth: usize) {
    run(PctScheduler::new(depth, schedules), test);
}

fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(scheduler, config).run(test);
}
