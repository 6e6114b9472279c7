//! Limits how many blocks readers read and decode at the same time: a part of the memory.
//!
//! A block in flight takes its bytes on disk and its decoded bytes, the latter twice while they are
//! laid out. The cache counts the block only when it is inserted. A hundred threads that all wait
//! for the device would use ten megabytes that no budget counts.
//!
//! ```text
//!   miss -- others wait, or no room beside what is on its way? -- yes -- wait
//!                  | no, or nothing is on its way
//!                  +-- charged, so that the cache yields first -- read, decode, keep -- give back
//! ```
//!
//! Invariant: a thread with a block in flight waits for the device only, so each flight ends, and
//! then the thread that has waited longest continues. Threads: any. No other lock is taken under
//! this one.

use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::sync::{Arc, Condvar, Mutex};

/// The blocks in flight take at most the memory divided by this, unless there is only one.
const MEMORY_DIVISOR: u64 = 16;

/// See the module's head. One object for all runs of an engine.
#[derive(Default)]
pub(crate) struct Flights {
    state: Mutex<FlightState>,
    changed: Condvar,
}

#[derive(Default)]
struct FlightState {
    /// Bytes of all blocks in flight.
    bytes: u64,
    waiting: usize,
}

/// A block in flight; it ends on drop.
pub(crate) struct Flight<'a> {
    flights: &'a Flights,
    bytes: u64,
    has_waited: bool,
    charged: Option<Reservation>,
}

impl Flights {
    /// Begins to read a block that takes `bytes` until it is decoded.
    pub(crate) fn begin(&self, budget: &Arc<Budget>, bytes: u64) -> Flight<'_> {
        let most = budget.total() / MEMORY_DIVISOR;
        let mut state = self.state.lock();
        let is_room = |state: &FlightState| state.bytes == 0 || state.bytes + bytes <= most;
        // Not before the threads that wait: otherwise a large block might never get its turn.
        let has_waited = !is_room(&state) || state.waiting > 0 && state.bytes > 0;
        if has_waited {
            state.waiting += 1;
            loop {
                self.changed.wait(&mut state);
                if is_room(&state) {
                    break;
                }
            }
            state.waiting -= 1;
        }
        state.bytes += bytes;
        // There may be room for the next thread, too.
        let wakes = has_waited && state.waiting > 0 && state.bytes < most;
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
        let charged = Some(budget.reserve(Part::Work, bytes));
        Flight { flights: self, bytes, has_waited, charged }
    }
}

impl Flight<'_> {
    /// Whether the caller had to wait: another thread may have put the same block into the cache by
    /// now.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        // Released before the next thread charges its own block.
        self.charged = None;
        let mut state = self.flights.state.lock();
        state.bytes -= self.bytes;
        let wakes = state.waiting > 0;
        drop(state);
        if wakes {
            self.flights.changed.notify_one();
        }
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use frondb_core::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn no_more_is_on_its_way_than_there_is_room_for_and_all_arrive() {
        let budget = Budget::new(16_000);
        let flights = Flights::default();
        let (arrived, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..16u64 {
                let (budget, flights, arrived, most) = (&budget, &flights, &arrived, &most);
                scope.spawn(move || {
                    for i in 0..500 {
                        let bytes = 1 + (thread * 7 + i) % 400;
                        let flight = flights.begin(budget, bytes);
                        let now = budget.used_by(Part::Work);
                        assert!(now >= bytes);
                        most.fetch_max(now, Ordering::Relaxed);
                        std::thread::yield_now();
                        drop(flight);
                        arrived.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(arrived.into_inner(), 16 * 500);
        let most = most.into_inner();
        assert!(most <= 1000, "{most} bytes");
        assert_eq!((flights.state.lock().bytes, budget.used()), (0, 0));
    }

    #[test]
    fn a_block_of_more_than_the_part_goes_alone() {
        let budget = Budget::new(16_000);
        let flights = Flights::default();
        let large = flights.begin(&budget, 5000);
        assert!(!large.has_waited() && budget.used_by(Part::Work) == 5000);
        std::thread::scope(|scope| {
            let behind = scope.spawn(|| flights.begin(&budget, 3000).has_waited());
            while flights.state.lock().waiting == 0 {
                std::thread::yield_now();
            }
            drop(large);
            assert!(behind.join().unwrap_or_default());
        });
        assert_eq!(budget.used(), 0);
    }
}

#[cfg(test)]
#[cfg(shuttle)]
mod schedules {
    use super::*;
    use shuttle::thread;

    /// Small blocks, and one that is only admitted alone: in every schedule all are read, and
    /// together they never take more than the limit. A lost wake-up would leave threads waiting for
    /// ever, which shuttle reports.
    fn readers() {
        let (budget, flights) = (Budget::new(1600), Arc::new(Flights::default()));
        let threads: Vec<_> = [60, 50, 150, 40]
            .into_iter()
            .map(|bytes| {
                let (budget, flights) = (Arc::clone(&budget), Arc::clone(&flights));
                thread::spawn(move || {
                    for _ in 0..2 {
                        let flight = flights.begin(&budget, bytes);
                        let all = flights.state.lock().bytes;
                        assert!(all <= 100 || all == bytes, "{all} bytes");
                        thread::yield_now();
                        drop(flight);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let state = flights.state.lock();
        assert_eq!((state.bytes, state.waiting, budget.used()), (0, 0, 0));
    }

    #[test]
    fn every_schedule_lets_all_arrive() {
        shuttle::check_random(readers, 5_000);
        shuttle::check_pct(readers, 5_000, 3);
    }
}
