//! [`BlockReads`]: limits the memory of the blocks that readers are reading and decoding.
//!
//! A block that is being read takes memory for its bytes on disk and, during decoding, for twice
//! its decoded bytes. The cache counts the block only when it is inserted. Without a limit, a
//! hundred threads that wait for the device would use ten megabytes that no budget counts.
//!
//! ```text
//!   miss -- do threads wait, or is the limit reached? -- yes -- wait
//!                  | no, or no block is being read
//!                  +-- charge the budget, so that the cache yields first
//!                      -- read, decode, insert into the cache -- release the charge
//! ```
//!
//! A thread that reads several blocks at once waits only until the first is admitted. It also reads
//! as many of the others as fit into half of the remaining room. The other half is left for threads
//! that read a single block, so that they seldom wait for a read of many blocks.
//!
//! Invariant: a thread that reads blocks waits only for the device, never for the admission of
//! another block. So each read ends, and its end wakes a waiting thread. Any thread may read
//! blocks. No other lock is taken under the mutex.

use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::sync::{Arc, Condvar, Mutex};

/// The blocks that are being read take at most 1/16 of the memory budget, except that a block of
/// any size is admitted while no other block is being read.
const MEMORY_DIVISOR: u64 = 16;

/// The blocks that readers are reading; see the module documentation. One object for all runs of an
/// engine.
#[derive(Default)]
pub(crate) struct BlockReads {
    state: Mutex<ReadState>,
    changed: Condvar,
}

#[derive(Default)]
struct ReadState {
    /// Bytes of all blocks that are being read.
    bytes: u64,
    /// Threads that wait until the limit admits their block.
    waiting: usize,
}

/// One or several blocks that are being read. The read ends on drop.
pub(crate) struct BlockRead<'a> {
    block_reads: &'a BlockReads,
    bytes: u64,
    has_waited: bool,
    charged: Option<Reservation>,
}

impl BlockReads {
    /// Begins to read a block that takes `bytes` until it is decoded.
    pub(crate) fn begin(&self, budget: &Arc<Budget>, bytes: u64) -> BlockRead<'_> {
        self.begin_many(budget, bytes, std::iter::empty()).0
    }

    /// Begins to read a block that takes `first` bytes until it is decoded, and as many of the
    /// blocks with sizes `others` as there is room for now. Also returns how many of `others` these
    /// are.
    pub(crate) fn begin_many(
        &self,
        budget: &Arc<Budget>,
        first: u64,
        others: impl Iterator<Item = u64>,
    ) -> (BlockRead<'_>, usize) {
        let most = budget.total() / MEMORY_DIVISOR;
        let mut state = self.state.lock();
        let is_room = |state: &ReadState| state.bytes == 0 || state.bytes + first <= most;
        // Queue behind waiting threads: otherwise a large block could wait forever.
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
        let room = most.saturating_sub(state.bytes + first) / 2;
        let (mut bytes, mut more) = (first, 0);
        for other in others {
            if bytes - first + other > room {
                break;
            }
            bytes += other;
            more += 1;
        }
        state.bytes += bytes;
        // There may be room for another waiting thread.
        let wakes = has_waited && state.waiting > 0 && state.bytes < most;
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
        let charged = Some(budget.reserve(Part::Work, bytes));
        (BlockRead { block_reads: self, bytes, has_waited, charged }, more)
    }
}

impl BlockRead<'_> {
    /// Returns whether the caller had to wait: if so, another thread may have cached the same block
    /// meanwhile.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Ends the read of blocks that take `bytes` bytes.
    pub(crate) fn end_part(&mut self, bytes: u64) {
        // The charge ends before the next thread charges its own block.
        match &mut self.charged {
            Some(charged) if bytes < self.bytes => charged.shrink(bytes),
            charged => *charged = None,
        }
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let mut state = self.block_reads.state.lock();
        state.bytes -= bytes;
        let wakes = state.waiting > 0;
        drop(state);
        if wakes {
            self.block_reads.changed.notify_one();
        }
    }
}

impl Drop for BlockRead<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.end_part(self.bytes);
        }
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use frondb_core::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_reads_stay_within_the_limit_and_all_end() {
        let budget = Budget::new(16_000);
        let block_reads = BlockReads::default();
        let (arrived, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..16u64 {
                let (budget, block_reads, arrived, most) = (&budget, &block_reads, &arrived, &most);
                scope.spawn(move || {
                    for i in 0..500 {
                        let bytes = 1 + (thread * 7 + i) % 400;
                        let read = block_reads.begin(budget, bytes);
                        let now = budget.used_by(Part::Work);
                        assert!(now >= bytes);
                        most.fetch_max(now, Ordering::Relaxed);
                        std::thread::yield_now();
                        drop(read);
                        arrived.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(arrived.into_inner(), 16 * 500);
        let most = most.into_inner();
        assert!(most <= 1000, "{most} bytes");
        assert_eq!((block_reads.state.lock().bytes, budget.used()), (0, 0));
    }

    #[test]
    fn several_blocks_take_half_of_the_room_that_is_left() {
        let budget = Budget::new(16_000);
        let block_reads = BlockReads::default();
        let begin = |count| block_reads.begin_many(&budget, 100, std::iter::repeat_n(100, count));
        let (few, more) = begin(2);
        assert_eq!((more, budget.used_by(Part::Work)), (2, 300));
        let (mut many, more) = begin(99);
        assert_eq!((more, budget.used_by(Part::Work)), (3, 700));
        let (one, more) = begin(99);
        assert_eq!((more, budget.used_by(Part::Work)), (1, 900));
        assert!(!few.has_waited() && !many.has_waited() && !one.has_waited());
        many.end_part(300);
        assert_eq!((block_reads.state.lock().bytes, budget.used_by(Part::Work)), (600, 600));
        many.end_part(100);
        drop((few, many, one));
        assert_eq!((block_reads.state.lock().bytes, budget.used()), (0, 0));
        // A block above the limit is read alone, also as the first of several.
        let (large, more) = block_reads.begin_many(&budget, 5000, std::iter::repeat_n(1, 9));
        assert_eq!((more, budget.used()), (0, 5000));
        drop(large);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_block_above_the_limit_is_read_alone() {
        let budget = Budget::new(16_000);
        let block_reads = BlockReads::default();
        let large = block_reads.begin(&budget, 5000);
        assert!(!large.has_waited() && budget.used_by(Part::Work) == 5000);
        std::thread::scope(|scope| {
            let behind = scope.spawn(|| block_reads.begin(&budget, 3000).has_waited());
            while block_reads.state.lock().waiting == 0 {
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

    /// Small blocks, and one that is only admitted alone: in every schedule all blocks are read,
    /// and together they never exceed the limit. A lost wake-up would leave threads waiting
    /// forever, which shuttle reports.
    fn readers() {
        let (budget, block_reads) = (Budget::new(1600), Arc::new(BlockReads::default()));
        let threads: Vec<_> = [60, 50, 150, 40]
            .into_iter()
            .map(|bytes| {
                let (budget, block_reads) = (Arc::clone(&budget), Arc::clone(&block_reads));
                thread::spawn(move || {
                    for _ in 0..2 {
                        let read = block_reads.begin(&budget, bytes);
                        let all = block_reads.state.lock().bytes;
                        assert!(all <= 100 || all == bytes, "{all} bytes");
                        thread::yield_now();
                        drop(read);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let state = block_reads.state.lock();
        assert_eq!((state.bytes, state.waiting, budget.used()), (0, 0, 0));
    }

    /// Threads that read several blocks at once and end the reads one by one, while other threads
    /// read a single block.
    fn readers_of_many() {
        let (budget, block_reads) = (Budget::new(1600), Arc::new(BlockReads::default()));
        let threads: Vec<_> = [(30, 5), (50, 1), (150, 2), (20, 7)]
            .into_iter()
            .map(|(bytes, count)| {
                let (budget, block_reads) = (Arc::clone(&budget), Arc::clone(&block_reads));
                thread::spawn(move || {
                    let mut rest = count;
                    while rest > 0 {
                        let others = std::iter::repeat_n(bytes, rest - 1);
                        let (mut read, more) = block_reads.begin_many(&budget, bytes, others);
                        let all = block_reads.state.lock().bytes;
                        assert!(all <= 100 || all == bytes, "{all} bytes");
                        (0..more).for_each(|_| read.end_part(bytes));
                        rest -= 1 + more;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let state = block_reads.state.lock();
        assert_eq!((state.bytes, state.waiting, budget.used()), (0, 0, 0));
    }

    #[test]
    fn every_schedule_ends_all_reads() {
        for readers in [readers, readers_of_many] {
            shuttle::check_random(readers, 5_000);
            shuttle::check_pct(readers, 5_000, 3);
        }
    }
}
