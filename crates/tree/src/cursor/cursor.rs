//! Cursors: ordered reading of a tree at a snapshot, in both directions.
//!
//! A cursor walks leaf by leaf. For each leaf it merges the memtables, what inner nodes buffer,
//! the leaf's runs and its base ([`frondb_trunk::segment`]). It pins a version ([`super::pins`]); one
//! that is older than a second takes the newest at its next leaf, so that a long scan keeps no dropped
//! run on disk for long, and a flush takes it away from a cursor that stands still (rule 12): the
//! cursor seeks on from the key it was at. Its snapshot stays the same, and so does what it shows.
//!
//! It also notes on the leaf what it paid, for merging (scan debt) and for stepping over deletes
//! (rule 15), and posts a hint when that makes the leaf worth planning anew. It plans nothing.
//!
//! Two promises to whoever goes on after an error:
//! - A move that fails leaves the cursor at no entry, and every further `next` or `prev` fails in
//!   the same way until a seek: an end of the tree or an entry beyond the damage would be taken for
//!   the whole truth.
//! - Nothing is shown that was read after the engine was closed. Another process may own the
//!   files by then. The flag is set before the directory's lock goes, so it is enough to look at it
//!   *after* a move, before what the move has read is shown.

use std::ops::Bound;

use frondb_core::chunk::Entries;
use frondb_core::sync::atomic::Ordering;
use frondb_core::sync::{Arc, OnceLock};
use frondb_core::{Direction, Error, ErrorKind, MessageKind, Result, Source};
use frondb_merge::{Own, VisibleMerge, VisibleOptions};
use frondb_trunk::plan::{SCAN_DEBT_FACTOR, TOMBSTONE_RUN};
use frondb_trunk::{Key, Node, segment};
use frondb_writeset::{OVERLAY_SEQS, OWN_SEQS, OwnWrites};

use super::pins::{PinnedSource, Pins};
use crate::context::ReadContext;
use crate::snapshot::Snapshot;
use crate::tree::TreeCore;
use crate::value::{Values, read_value};

/// What part of a tree a cursor shows.
#[derive(Clone, Debug, Default)]
pub struct CursorOptions {
    /// First key shown; `None` for no bound.
    pub lower: Option<Vec<u8>>,
    /// First key no longer shown; `None` for no bound.
    pub upper: Option<Vec<u8>>,
    /// The state to read; `None` for that of now.
    pub snapshot: Option<Snapshot>,
}

/// A cursor over one tree. Not positioned at first. For one thread at a time; may be sent to
/// another.
pub struct Cursor {
    context: Arc<ReadContext>,
    tree: Arc<TreeCore>,
    snapshot: Snapshot,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    /// The version it reads and the sources of its walk, if they were not taken away.
    pins: Arc<Pins>,
    walk: Option<Walk>,
    /// The entry it is at without a walk, one of a dense crowd.
    parked: Option<Box<Entry>>,
    /// The walk shows another state than the next seek has to.
    is_walk_old: bool,
    /// What the transaction that reads has written itself.
    own: Option<OwnWrites>,
    /// What it sees in place of what the snapshot has, below its own writes.
    overlay: Option<OwnWrites>,
    /// The large value of the entry it is at, once that was asked for.
    value: OnceLock<Vec<u8>>,
    valid: bool,
    /// The cursor probes for known-empty ranges: what it steps over is no reader's cost.
    probes: bool,
    deletes_passed: u64,
    /// Why the last move failed; every `next` and `prev` fails so until a seek.
    failed: Option<Error>,
    /// The entry that it failed at, if only that entry cannot be shown.
    failed_key: Option<Vec<u8>>,
}

/// An entry of its own.
struct Entry {
    key: Vec<u8>,
    kind: MessageKind,
    value: Vec<u8>,
}

/// The merge over one leaf's range.
struct Walk {
    merge: VisibleMerge<PinnedSource>,
    direction: Direction,
    leaf: Arc<Node>,
    lo: Key,
    hi: Option<Key>,
    /// Deletes passed that were reported already.
    reported: u64,
}

impl Cursor {
    /// A cursor over `tree`, not positioned.
    #[must_use]
    pub fn new(context: Arc<ReadContext>, tree: Arc<TreeCore>, options: CursorOptions) -> Self {
        let snapshot = options.snapshot.unwrap_or_else(|| context.snapshot());
        // The snapshot is registered before a version is taken, at the first move: so whatever the
        // version has folded away is invisible at it.
        Self {
            pins: context.cursors.add(Arc::clone(&tree), &context.budget),
            context,
            tree,
            snapshot,
            lower: options.lower.unwrap_or_default(),
            upper: options.upper,
            walk: None,
            parked: None,
            is_walk_old: false,
            own: None,
            overlay: None,
            value: OnceLock::new(),
            valid: false,
            probes: false,
            deletes_passed: 0,
            failed: None,
            failed_key: None,
        }
    }

    /// The cursor probes for known-empty ranges: it counts in no statistics.
    pub fn set_probes(&mut self) {
        self.probes = true;
    }

    /// Deletes that a probing cursor has stepped over; ends its walk.
    pub fn deletes_passed(&mut self) -> u64 {
        self.end_walk();
        self.pins.end_walk();
        self.deletes_passed
    }

    /// From the next seek on, shows these writes, and below them this overlay, above what is committed.
    pub fn set_own(&mut self, own: Option<OwnWrites>, overlay: Option<OwnWrites>) {
        let were_any = self.own.is_some() || self.overlay.is_some();
        self.is_walk_old |= were_any || own.is_some() || overlay.is_some();
        (self.own, self.overlay) = (own, overlay);
    }

    /// From the next seek on, reads at this snapshot.
    pub fn set_snapshot(&mut self, snapshot: Snapshot) {
        self.is_walk_old = true;
        self.snapshot = snapshot;
        // Registered before the version is taken, as in `new`.
        self.pins.renew();
    }

    /// Whether the cursor is at an entry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// The snapshot it reads at.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Key of the entry it is at; empty if it is at none.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.walk {
            Some(walk) if self.valid => walk.merge.key(),
            _ => self.parked_entry().0,
        }
    }

    /// Value of the entry it is at; empty if it is at none. A large value is read now; one that
    /// cannot be read leaves the cursor where it is.
    ///
    /// # Errors
    /// `Corruption` or a device error of a large value; `Closed`.
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        let (kind, value) = match &self.walk {
            Some(walk) if self.valid => (walk.merge.kind(), walk.merge.value()),
            _ => {
                let (_, kind, value) = self.parked_entry();
                (kind, value)
            }
        };
        if kind == MessageKind::PutRef { self.large_value(value) } else { Ok(value) }
    }

    /// The value that `reference` stands for; read when it is asked for first.
    #[inline(never)]
    fn large_value(&self, reference: &[u8]) -> Result<&[u8]> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let context = &self.context;
        let value = read_value(&context.runs.space, reference);
        context.health.check_open()?;
        let value = value?;
        Ok(self.value.get_or_init(|| value))
    }

    /// The entry that a cursor without a walk is at; an empty one if it is at none.
    #[cold]
    fn parked_entry(&self) -> (&[u8], MessageKind, &[u8]) {
        let parked = self.parked.as_deref().filter(|_| self.valid);
        parked.map_or((b"", MessageKind::Put, b""), |entry| (&entry.key, entry.kind, &entry.value))
    }

    /// Goes to the first entry with a key not below `key`. Returns whether there is one.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if self.is_ahead(Direction::Forward, key) {
            return self.leap(Direction::Forward, key);
        }
        let at = if *key > *self.lower { key.to_vec() } else { self.lower.clone() };
        let moved = self.begin().and_then(|()| self.forward_from(at));
        self.settle(moved)
    }

    /// Goes to the last entry with a key not above `key`. Returns whether there is one.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        // Everything below the smallest key above `key`.
        let mut above = key.to_vec();
        above.push(0);
        self.seek_below(&above)
    }

    /// Goes to the last entry with a key below `key`. Returns whether there is one.
    pub fn seek_below(&mut self, key: &[u8]) -> Result<bool> {
        if self.is_ahead(Direction::Backward, key) {
            return self.leap(Direction::Backward, key);
        }
        let moved = self.begin().and_then(|()| self.backward_from(Some(key.to_vec())));
        self.settle(moved)
    }

    /// Whether a seek goes on in the leaf and the direction in which the cursor runs, at the state that
    /// it shows.
    fn is_ahead(&self, direction: Direction, key: &[u8]) -> bool {
        let Some(walk) = self.walk.as_ref().filter(|_| self.valid && !self.is_walk_old) else {
            return false;
        };
        let is_ahead = match direction {
            Direction::Forward => {
                *key > *walk.merge.key() && walk.hi.as_ref().is_none_or(|hi| *key < **hi)
            }
            Direction::Backward => *key <= *walk.merge.key() && *key > *walk.lo,
        };
        is_ahead && walk.direction == direction
    }

    /// A seek that [`is_ahead`](Self::is_ahead): the sources stay open and are looked through from where
    /// they are, so that it costs what lies between, and no more than a seek.
    fn leap(&mut self, direction: Direction, key: &[u8]) -> Result<bool> {
        self.value = OnceLock::new();
        if !self.probes {
            self.context.counters.add_seek();
        }
        let Some(walk) = &mut self.walk else { return Ok(false) };
        match walk.merge.skip(key).and_then(|()| walk.merge.next()) {
            Ok(true) if !self.context.health.is_closed() => Ok(true),
            Err(_) if self.pins.is_lost() => {
                let moved = match direction {
                    Direction::Forward => self.forward_from(key.to_vec()),
                    Direction::Backward => self.backward_from(Some(key.to_vec())),
                };
                self.settle(moved)
            }
            moved => self.leave(direction, moved),
        }
    }

    /// Leaves the entry it is at: every further `next` and `prev` fails so until a seek.
    pub fn fail_with(&mut self, error: Error) {
        self.valid = false;
        self.value = OnceLock::new();
        self.end_walk();
        self.pins.end_walk();
        self.failed = Some(error);
    }

    /// Goes to the first entry. Returns whether there is one.
    pub fn first(&mut self) -> Result<bool> {
        let at = self.lower.clone();
        let moved = self.begin().and_then(|()| self.forward_from(at));
        self.settle(moved)
    }

    /// Goes to the last entry. Returns whether there is one.
    pub fn last(&mut self) -> Result<bool> {
        let moved = self.begin().and_then(|()| self.backward_from(None));
        self.settle(moved)
    }

    /// Goes to the next entry; to the first if it is not positioned. Returns whether there is one.
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "it can fail, and lends what it is at")]
    pub fn next(&mut self) -> Result<bool> {
        self.value = OnceLock::new();
        match &mut self.walk {
            Some(walk) if self.valid && walk.direction == Direction::Forward => {
                let moved = walk.merge.next();
                if matches!(moved, Ok(true)) && !self.context.health.is_closed() {
                    return Ok(true);
                }
                self.leave(Direction::Forward, moved)
            }
            _ => self.turn(Direction::Forward),
        }
    }

    /// Key of the entry that the last move failed at, if only that entry cannot be shown, since its update
    /// function is missing or fails.
    #[must_use]
    pub fn failed_key(&self) -> Option<&[u8]> {
        self.failed_key.as_deref()
    }

    /// Goes on over entries that lie one after the other and is at the last of them: at most `max`, with
    /// at most `bytes` of keys and as many of values. None
    /// where [`next`](Self::next) has to be called: it is at no entry, runs backward, or the next one needs
    /// more than a copy.
    #[inline]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        let is_open = self.valid && !self.context.health.is_closed();
        match &mut self.walk {
            Some(walk) if is_open && walk.direction == Direction::Forward => {
                self.value = OnceLock::new();
                walk.merge.next_entries(max, bytes)
            }
            _ => Entries::default(),
        }
    }

    /// Goes to the entry before; to the last if it is not positioned. Returns whether there is
    /// one.
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        self.value = OnceLock::new();
        match &mut self.walk {
            Some(walk) if self.valid && walk.direction == Direction::Backward => {
                let moved = walk.merge.next();
                if matches!(moved, Ok(true)) && !self.context.health.is_closed() {
                    return Ok(true);
                }
                self.leave(Direction::Backward, moved)
            }
            _ => self.turn(Direction::Backward),
        }
    }

    /// What follows a step that did not end at another entry of the leaf.
    #[inline(never)]
    fn leave(&mut self, direction: Direction, moved: Result<bool>) -> Result<bool> {
        let moved = match (moved, direction) {
            (Ok(false), Direction::Forward) => self.next_leaf(),
            (Ok(false), Direction::Backward) => self.previous_leaf(),
            (Err(_), _) if self.pins.is_lost() => self.go_on(direction),
            (moved, _) => moved,
        };
        self.settle(moved)
    }

    /// What it read was taken away: goes on from the last key that it read.
    #[cold]
    fn go_on(&mut self, direction: Direction) -> Result<bool> {
        let Some(walk) = &self.walk else { return Ok(false) };
        let at = walk.merge.resume().map(|(key, is_passed)| (key.to_vec(), is_passed));
        match (direction, at) {
            (Direction::Forward, Some((mut at, is_passed))) => {
                if is_passed {
                    at.push(0);
                }
                self.forward_from(at)
            }
            (Direction::Backward, Some((mut at, is_passed))) => {
                if !is_passed {
                    at.push(0);
                }
                self.backward_from(Some(at))
            }
            // Nothing was read of the leaf yet.
            (Direction::Forward, None) => self.forward_from(walk.lo.to_vec()),
            (Direction::Backward, None) => {
                self.backward_from(walk.hi.as_ref().map(|hi| hi.to_vec()))
            }
        }
    }

    /// A step of a cursor that does not run in this direction: it failed, is at an end, was never
    /// positioned, or ran the other way.
    #[cold]
    fn turn(&mut self, direction: Direction) -> Result<bool> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.valid {
            let mut at = self.key().to_vec();
            let moved = match direction {
                Direction::Forward => {
                    at.push(0);
                    self.forward_from(at)
                }
                Direction::Backward => self.backward_from(Some(at)),
            };
            return self.settle(moved);
        }
        match direction {
            _ if self.walk.is_some() => {
                self.context.health.check_open()?;
                Ok(false)
            }
            Direction::Forward => self.first(),
            Direction::Backward => self.last(),
        }
    }

    /// What every move ends with: see the head of this file for the two promises.
    fn settle(&mut self, moved: Result<bool>) -> Result<bool> {
        self.pins.rest();
        if self.pins.is_dense() {
            self.park();
        }
        if moved.is_ok() && !self.context.health.is_closed() {
            return moved;
        }
        self.fail(moved)
    }

    /// There are so many cursors that not even a chunk for each of its sources has room: keeps the entry it
    /// is at, and seeks on from it at its next move.
    #[cold]
    fn park(&mut self) {
        let Some(walk) = self.walk.as_ref().filter(|_| self.valid) else { return };
        let merge = &walk.merge;
        let (key, value) = (merge.key().to_vec(), merge.value().to_vec());
        self.parked = Some(Box::new(Entry { key, kind: merge.kind(), value }));
        self.end_walk();
        self.pins.end_walk();
    }

    #[cold]
    fn fail(&mut self, moved: Result<bool>) -> Result<bool> {
        // Whatever a closed database's files hold by now, it is closed.
        let error = match self.context.health.check_open().and(moved) {
            Ok(at_entry) => return Ok(at_entry),
            Err(error) => error,
        };
        // An update that cannot be applied concerns its key alone.
        if error.kind() == ErrorKind::Invalid {
            let walk = self.walk.as_ref();
            self.failed_key = walk.and_then(|walk| walk.merge.unresolved_key()).map(<[u8]>::to_vec);
        }
        self.valid = false;
        self.value = OnceLock::new();
        self.end_walk();
        self.pins.end_walk();
        self.failed = Some(error.clone());
        Err(error)
    }

    fn begin(&mut self) -> Result<()> {
        self.value = OnceLock::new();
        self.valid = false;
        self.failed = None;
        self.failed_key = None;
        self.end_walk();
        self.context.health.check_open()?;
        if !self.probes {
            self.context.counters.add_seek();
        }
        Ok(())
    }

    fn forward_from(&mut self, at: Vec<u8>) -> Result<bool> {
        self.valid = false;
        self.end_walk();
        self.open(Direction::Forward, Some(&at))?;
        if self.step()? { Ok(true) } else { self.next_leaf() }
    }

    fn backward_from(&mut self, at: Option<Vec<u8>>) -> Result<bool> {
        self.valid = false;
        self.end_walk();
        let at = match (at, &self.upper) {
            (Some(at), Some(upper)) => Some(at.min(upper.clone())),
            (at, upper) => at.or_else(|| upper.clone()),
        };
        self.open(Direction::Backward, at.as_deref())?;
        if self.step()? { Ok(true) } else { self.previous_leaf() }
    }

    fn next_leaf(&mut self) -> Result<bool> {
        self.valid = false;
        loop {
            let Some(hi) = self.walk.as_ref().and_then(|walk| walk.hi.clone()) else {
                self.report();
                return Ok(false);
            };
            if self.upper.as_ref().is_some_and(|upper| **upper <= *hi) {
                self.report();
                return Ok(false);
            }
            self.end_walk();
            self.open(Direction::Forward, Some(&hi))?;
            if self.step()? {
                return Ok(true);
            }
        }
    }

    fn previous_leaf(&mut self) -> Result<bool> {
        self.valid = false;
        loop {
            let Some(lo) = self.walk.as_ref().map(|walk| Arc::clone(&walk.lo)) else {
                return Ok(false);
            };
            if lo.is_empty() || *lo <= *self.lower {
                self.report();
                return Ok(false);
            }
            self.end_walk();
            self.open(Direction::Backward, Some(&lo))?;
            if self.step()? {
                return Ok(true);
            }
        }
    }

    /// The next entry of the leaf it is in.
    fn step(&mut self) -> Result<bool> {
        if let Some(walk) = &mut self.walk {
            self.valid = walk.merge.next()?;
        }
        Ok(self.valid)
    }

    /// Opens the merge over the leaf at `at`.
    fn open(&mut self, direction: Direction, at: Option<&[u8]>) -> Result<()> {
        self.is_walk_old = false;
        let version = self.pins.begin(self.context.now())?;
        let seq = self.snapshot.seq();
        let (own, overlay) = (self.own.as_ref(), self.overlay.as_ref());
        let above = || own.into_iter().chain(overlay);
        let may_use = |lo: &[u8], hi: &[u8]| above().all(|own| own.is_empty_in(lo, hi));
        // The version is at least as new as the snapshot, and known-empty ranges hold for all that is newer.
        let around = self.tree.empty_ranges.around(direction, at, seq, &may_use);
        let at = around.at.as_deref().or(at);
        let lower = around.lo.as_deref().map_or(&*self.lower, |lo| lo.max(&self.lower));
        let upper = match (around.hi.as_deref(), self.upper.as_deref()) {
            (Some(empty), Some(upper)) => Some(empty.min(upper)),
            (empty, upper) => empty.or(upper),
        };
        // Known before the runs are opened, so that what they hide of runs is stepped over at once.
        let mut deletes = Vec::new();
        for memtable in version.memtables() {
            deletes.extend(memtable.range_delete_sets().iter().cloned());
        }
        let mut part = segment(&version.trunk, direction, at, lower, upper, seq, &deletes)?;
        if !self.probes {
            self.pay_for_merging(&part.leaf, part.sources.len());
        }
        let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(part.sources.len() + 2);
        let from = Bound::Included(&*part.lo);
        let to = part.hi.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        for slot in version.sources() {
            if !slot.memtable.is_empty() {
                let memtable = slot.memtable.visible_cursor(direction, from, to, seq);
                sources.push(Box::new(memtable));
            }
            for run in slot.runs() {
                sources.extend(part.source_of(run, direction, seq)?);
            }
        }
        sources.append(&mut part.sources);
        let mut newest = Vec::new();
        for writes in above() {
            newest.extend(writes.sources(direction, &part.lo, part.hi.as_deref())?);
        }
        if !newest.is_empty() {
            newest.append(&mut sources);
            sources = newest;
        }
        let seen_from = if overlay.is_some() { OVERLAY_SEQS } else { OWN_SEQS };
        let own = above().next().map(|_| Own {
            from: OWN_SEQS,
            seen_from,
            upto: own.map_or(0, OwnWrites::upto),
            range_deletes: own.map(|own| Arc::clone(own.range_deletes())).unwrap_or_default(),
        });
        let values = Arc::new(Values(Arc::clone(&self.context.runs)));
        let options = VisibleOptions {
            snapshot: seq,
            direction,
            range_deletes: part.range_deletes,
            update: self.tree.update.clone(),
            values: Some(values),
            own,
        };
        self.parked = None;
        let merge = VisibleMerge::new(self.pins.hold(&self.context.cursors, sources), options);
        let (leaf, lo, hi) = (part.leaf, part.lo, part.hi);
        self.walk = Some(Walk { merge, direction, leaf, lo, hi, reported: 0 });
        Ok(())
    }

    /// A leaf that is one base costs nothing beyond reading it; every further run costs a block.
    fn pay_for_merging(&self, leaf: &Node, sources: usize) {
        let extra = (sources as u64).saturating_sub(1);
        if extra == 0 {
            return;
        }
        let block = self.tree.options.trunk.run_block_bytes as u64;
        leaf.hints.add_scan_debt(extra * block);
        let debt = leaf.hints.scan_debt.load(Ordering::Relaxed);
        let due = leaf.totals.raw_bytes * SCAN_DEBT_FACTOR;
        // Once, when it passes the mark.
        if debt > due && debt - extra * block <= due {
            self.context.hints.post(&self.tree, leaf.id);
        }
    }

    fn end_walk(&mut self) {
        self.report();
        self.walk = None;
    }

    /// Notes deletes stepped over, and posts a hint if the leaf has many.
    fn report(&mut self) {
        let Some(walk) = &mut self.walk else { return };
        let passed = walk.merge.stats().deletes_passed;
        let new = passed - walk.reported;
        walk.reported = passed;
        if new == 0 {
            return;
        }
        self.deletes_passed += new;
        if !self.probes {
            self.context.counters.add_tombstones(new);
            self.tree.tombstones_skipped.fetch_add(new, Ordering::Relaxed);
        }
        if passed > TOMBSTONE_RUN {
            walk.leaf.hints.request_tombstone_compaction();
            self.context.hints.post(&self.tree, walk.leaf.id);
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.report();
        self.context.cursors.remove(&self.pins);
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cursor({} at {})", self.tree.id, self.snapshot.seq())
    }
}
