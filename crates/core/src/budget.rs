//! One memory budget for the whole engine (rule 24).
//!
//! Every part of the engine charges its memory to the budget: the memtables their arenas, the cache
//! its blocks, a merge its windows. The limit applies to the sum and is the user's `memory` option.
//! So no part has a size option of its own, which a user could set wrongly in relation to another
//! part.
//!
//! ```text
//!   memtable -+ reserve / grow                  over total
//!   merge    -+--------------> used (an atomic) ----------> pressure callbacks, in the order
//!   cache    -+ shrink / drop                               they were registered; the cache first
//! ```
//!
//! A reservation never fails and never waits, because a commit must get its memory; the cache
//! shrinks instead. A thread whose reservation raises the sum above the total runs the callbacks
//! before it continues, unless another thread is running them. So, as long as the callbacks can
//! free enough, the sum exceeds the total at most by the reservations that all threads make while
//! one thread evicts.
//!
//! Invariants
//! - `used` is the sum of the live reservations and of the bytes charged with [`Budget::count`].
//!   The drop of a reservation releases its bytes.
//! - Callbacks run outside all locks of this module, in one thread at a time. A request that
//!   arrives while callbacks run is not lost: the running thread runs them again.
//!
//! Threads: any thread may call any function. A callback must not reserve from its budget, because
//! that would request another run of the callbacks; it may shrink and drop reservations.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, RwLock};

/// The parts of the engine that use memory. Statistics show each part separately; the limit applies
/// to the sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Part {
    /// Arenas of active and frozen memtables.
    Memtable = 0,
    /// Cached blocks, most often decompressed. The cache shrinks if any other part needs memory.
    Cache = 1,
    /// Filters while they are being read; afterwards they are in the cache.
    Filter = 2,
    /// Top indexes that runs keep outside of the cache; block indexes while they are being read.
    Index = 3,
    /// Work in progress: merge windows, read-ahead, blocks that are being read, sort buffers,
    /// encoders with a dictionary.
    Work = 4,
    /// Not in use: `Other` includes the buffers of the write-ahead log.
    Wal = 5,
    /// Open and stowed trees: their nodes, the metadata of their runs, their tables of locks.
    Trunk = 6,
    /// Locks of transactions on rows and ranges.
    Locks = 7,
    /// Write sets, dictionaries of runs, and an estimate of memory that is not measured: the
    /// program, the allocator's overhead, codec contexts, buffers of the log.
    Other = 8,
    /// Cached single rows.
    Rows = 9,
}

impl Part {
    /// Every part, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Memtable,
        Self::Cache,
        Self::Filter,
        Self::Index,
        Self::Work,
        Self::Wal,
        Self::Trunk,
        Self::Locks,
        Self::Other,
        Self::Rows,
    ];

    /// Returns the part's name, for statistics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memtable => "memtable",
            Self::Cache => "cache",
            Self::Filter => "filter",
            Self::Index => "index",
            Self::Work => "work",
            Self::Wal => "wal",
            Self::Trunk => "trunk",
            Self::Locks => "locks",
            Self::Other => "other",
            Self::Rows => "rows",
        }
    }
}

/// A function that the budget calls when the sum of all charges exceeds the total. The argument is
/// the number of bytes above the total; the function frees about that many bytes if it can.
pub type PressureFn = Box<dyn Fn(u64) + Send + Sync>;

/// The memory budget: a total, and the bytes that each part uses. See the head of the module.
pub struct Budget {
    total: AtomicU64,
    used: AtomicU64,
    peak: AtomicU64,
    by_part: [AtomicU64; Part::ALL.len()],
    /// The largest number of bytes charged to each part so far.
    peak_by_part: [AtomicU64; Part::ALL.len()],
    /// Set while a thread runs the callbacks.
    relieving: AtomicBool,
    /// Number of requests to run the callbacks so far. The thread that runs the callbacks compares
    /// it before and after, to notice requests that arrived meanwhile.
    requests: AtomicU64,
    callbacks: RwLock<Vec<Arc<PressureFn>>>,
}

impl Budget {
    /// Creates a budget of `total_bytes`.
    #[must_use]
    pub fn new(total_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            total: AtomicU64::new(total_bytes),
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            by_part: [const { AtomicU64::new(0) }; Part::ALL.len()],
            peak_by_part: [const { AtomicU64::new(0) }; Part::ALL.len()],
            relieving: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            callbacks: RwLock::new(Vec::new()),
        })
    }

    /// Returns the limit, in bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Changes the limit. If more than `total_bytes` is in use, runs the pressure callbacks before
    /// it returns; if another thread is running them, that thread runs them once more instead.
    pub fn set_total(&self, total_bytes: u64) {
        self.total.store(total_bytes, Ordering::Relaxed);
        if self.used() > total_bytes {
            self.relieve();
        }
    }

    /// Returns the bytes that are charged to all parts together.
    #[inline]
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the bytes that are charged to one part.
    #[inline]
    #[must_use]
    pub fn used_by(&self, part: Part) -> u64 {
        self.by_part[part as usize].load(Ordering::Relaxed)
    }

    /// Returns the bytes of the total that the other parts leave to `part`; 0 if they use the whole
    /// total.
    ///
    /// Adds up the other parts. To subtract `part` from the sum of all parts would need two loads
    /// instead of nine, but would give a wrong result while another thread is between the two
    /// additions of [`count`](Self::count).
    #[inline]
    #[must_use]
    pub fn left_for(&self, part: Part) -> u64 {
        let others = Part::ALL.iter().filter(|&&other| other != part);
        let others: u64 = others.map(|&other| self.used_by(other)).sum();
        self.total().saturating_sub(others)
    }

    /// Returns the largest sum since the budget was created.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Returns the largest number of bytes charged to one part since the budget was created.
    #[must_use]
    pub fn peak_of(&self, part: Part) -> u64 {
        self.peak_by_part[part as usize].load(Ordering::Relaxed)
    }

    /// Charges `bytes` to `part` until the reservation is dropped. Never fails. If the sum exceeds
    /// the total, runs the pressure callbacks before it returns; if another thread is running them,
    /// that thread runs them once more instead.
    #[must_use = "the bytes are given back when the reservation is dropped"]
    pub fn reserve(self: &Arc<Self>, part: Part, bytes: u64) -> Reservation {
        self.charge(part, bytes);
        Reservation { budget: Arc::clone(self), part, bytes }
    }

    /// Charges `bytes` to a part that limits itself, without a reservation and without running the
    /// callbacks. Returns the sum of all parts. For the cache, which makes room before it inserts a
    /// block (a reservation per block would cost more than the block's lookup), and for trees. The
    /// caller must release the same bytes with [`uncount`](Self::uncount).
    #[inline]
    pub fn count(&self, part: Part, bytes: u64) -> u64 {
        let of_part = self.by_part[part as usize].fetch_add(bytes, Ordering::Relaxed) + bytes;
        let peak = &self.peak_by_part[part as usize];
        if of_part > peak.load(Ordering::Relaxed) {
            peak.fetch_max(of_part, Ordering::Relaxed);
        }
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Load first: most charges do not set a new peak, and a load is cheaper than a contended
        // `fetch_max`.
        if used > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
        used
    }

    /// Releases bytes that were charged by [`count`](Self::count).
    #[inline]
    pub fn uncount(&self, part: Part, bytes: u64) {
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed);
        let of_part = self.by_part[part as usize].fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(used >= bytes && of_part >= bytes, "more bytes were released than charged");
    }

    /// Registers a callback for the lifetime of the budget. Under pressure, callbacks run in the
    /// order of registration until the sum no longer exceeds the total.
    pub fn on_pressure(&self, callback: PressureFn) {
        self.callbacks.write().push(Arc::new(callback));
    }

    #[inline]
    fn charge(&self, part: Part, bytes: u64) {
        if self.count(part, bytes) > self.total() && bytes > 0 {
            self.relieve();
        }
    }

    /// Runs the callbacks. If another thread is running them, that thread runs them once more
    /// instead. `SeqCst` orders the accesses to `requests` and `relieving`; otherwise each of two
    /// threads could leave the work to the other.
    #[cold]
    fn relieve(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        while !self.relieving.swap(true, Ordering::SeqCst) {
            let seen = self.requests.load(Ordering::SeqCst);
            self.run_callbacks();
            self.relieving.store(false, Ordering::SeqCst);
            if self.requests.load(Ordering::SeqCst) == seen {
                break;
            }
        }
    }

    fn run_callbacks(&self) {
        // Copy the list, so that no lock is held while a callback runs.
        let callbacks = self.callbacks.read().clone();
        for callback in callbacks {
            let over = self.used().saturating_sub(self.total());
            if over == 0 {
                break;
            }
            callback(over);
        }
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Budget({} of {} bytes", self.used(), self.total())?;
        for part in Part::ALL {
            write!(f, ", {} {}", part.name(), self.used_by(part))?;
        }
        f.write_str(")")
    }
}

/// Bytes that are charged to one part until the drop.
#[must_use = "the bytes are given back when the reservation is dropped"]
pub struct Reservation {
    budget: Arc<Budget>,
    part: Part,
    bytes: u64,
}

impl Reservation {
    /// Returns the number of bytes charged.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the part to which the bytes are charged.
    #[must_use]
    pub fn part(&self) -> Part {
        self.part
    }

    /// Charges `more` bytes; may run the pressure callbacks, as [`Budget::reserve`] does.
    #[inline]
    pub fn grow(&mut self, more: u64) {
        // Add first, so that the drop releases the charged bytes even if a callback panics.
        self.bytes += more;
        self.budget.charge(self.part, more);
    }

    /// Releases `less` bytes.
    ///
    /// # Panics
    /// If the reservation holds fewer bytes.
    #[inline]
    pub fn shrink(&mut self, less: u64) {
        assert!(less <= self.bytes, "cannot release {less} bytes of {} reserved", self.bytes);
        self.bytes -= less;
        self.budget.uncount(self.part, less);
    }

    /// Changes the reservation to exactly `bytes`.
    #[inline]
    pub fn resize(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.grow(bytes - self.bytes);
        } else {
            self.shrink(self.bytes - bytes);
        }
    }

    /// Splits `bytes` off into a new reservation, for memory that is handed to another owner.
    ///
    /// # Panics
    /// If the reservation holds fewer bytes.
    pub fn split(&mut self, bytes: u64) -> Self {
        assert!(bytes <= self.bytes, "cannot split {bytes} bytes off {} reserved", self.bytes);
        self.bytes -= bytes;
        Self { budget: Arc::clone(&self.budget), part: self.part, bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.uncount(self.part, self.bytes);
    }
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reservation({}, {} bytes)", self.part.name(), self.bytes)
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use crate::sync::Mutex;

    #[test]
    fn a_reservation_charges_its_part_until_it_is_dropped() {
        let budget = Budget::new(1000);
        let mut memtable = budget.reserve(Part::Memtable, 300);
        let work = budget.reserve(Part::Work, 200);
        memtable.grow(50);
        assert_eq!(budget.used(), 550);
        assert_eq!(budget.used_by(Part::Memtable), 350);
        assert_eq!(budget.left_for(Part::Cache), 450);
        assert_eq!(budget.left_for(Part::Work), 650);
        memtable.resize(100);
        let part = memtable.split(40);
        drop(memtable);
        assert_eq!(budget.used_by(Part::Memtable), 40);
        drop((part, work));
        assert_eq!(budget.used(), 0);
        assert_eq!(budget.peak(), 550);
    }

    #[test]
    fn pressure_names_the_excess_and_stops_at_the_first_callback_that_clears_it() {
        let budget = Budget::new(100);
        let cache = Arc::new(Mutex::new(budget.reserve(Part::Cache, 90)));
        let calls = Arc::new(Mutex::new(Vec::new()));
        // A weak pointer, as in the real cache: the budget keeps the callback alive, and a
        // reservation keeps the budget alive.
        let (yielding, log) = (Arc::downgrade(&cache), Arc::clone(&calls));
        budget.on_pressure(Box::new(move |over| {
            log.lock().push(("cache", over));
            let held = yielding.upgrade().expect("the cache is alive");
            let mut held = held.lock();
            let give = over.min(held.bytes());
            held.shrink(give);
        }));
        let log = Arc::clone(&calls);
        budget.on_pressure(Box::new(move |over| log.lock().push(("second", over))));

        let within = budget.reserve(Part::Work, 10);
        assert!(calls.lock().is_empty(), "a sum equal to the total causes no pressure");
        let over = budget.reserve(Part::Memtable, 30);
        assert_eq!(*calls.lock(), [("cache", 30)]);
        assert_eq!(budget.used(), 100);
        let far_over = budget.reserve(Part::Memtable, 80);
        assert_eq!(calls.lock()[1..], [("cache", 80), ("second", 20)]);
        drop((within, over, far_over));
        budget.set_total(0);
        assert_eq!(budget.used(), 0);
    }

    /// A callback that reserves memory requests another run of the callbacks: it is called again
    /// afterwards, not recursively.
    #[test]
    fn a_callback_never_runs_inside_itself() {
        let budget = Budget::new(10);
        let depth = Arc::new(AtomicU64::new(0));
        let once = Arc::new(AtomicBool::new(false));
        let (weak, inner, first) = (Arc::downgrade(&budget), Arc::clone(&depth), Arc::clone(&once));
        budget.on_pressure(Box::new(move |_| {
            assert_eq!(inner.fetch_add(1, Ordering::SeqCst), 0);
            if !first.swap(true, Ordering::SeqCst) {
                let budget = weak.upgrade().expect("the budget is alive");
                drop(budget.reserve(Part::Other, 1));
            }
            inner.fetch_sub(1, Ordering::SeqCst);
        }));
        let held = budget.reserve(Part::Work, 20);
        assert!(once.load(Ordering::SeqCst));
        drop(held);
    }

    #[test]
    fn concurrent_reservations_leave_no_charge() {
        let budget = Budget::new(1 << 20);
        std::thread::scope(|scope| {
            for part in Part::ALL {
                let budget = &budget;
                scope.spawn(move || {
                    let mut held = budget.reserve(part, 0);
                    for step in 0..10_000u64 {
                        held.resize(step * 7919 % 4096);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
        assert!(Part::ALL.iter().all(|&part| budget.used_by(part) == 0));
        assert!(budget.peak() <= Part::ALL.len() as u64 * 4096);
    }
}
