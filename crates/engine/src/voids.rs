//! Voids: ranges of keys in which a tree is known to have no entry.
//!
//! Who deletes rows in key order leaves deletes behind that every seek has to step over, each with the
//! put it hides, until flushes and trims have caught up (rule 15). So what such a seek finds is kept: "in
//! `[lo, hi)` nothing is visible, from SeqNo `since` on". Cursors go around it.
//!
//! ```text
//!   puts         |x|x|x|x|x|x|x|x|x|x|x|x|x|x|x|
//!   deletes      |d|d|d|d|d|d|d|d|d|d|
//!   void         [------------------)                 first(): one seek, to hi
//! ```
//!
//! It is memory only: nothing is written, and a database that was opened has none.
//!
//! # Why it is true
//! - A *look* ([`Shared::look_for_voids`]) is begun under the commit lock, where everything inserted is
//!   visible: its snapshot sees all that was committed before. From then on each commit reports what gives a
//!   key a value ([`Voids::note_puts`]), before it becomes visible; that ends the look's range there. So
//!   what the look walked over and found empty at its snapshot is empty until the next report, and a void
//!   is cut where one lies in it.
//! - A reader has its snapshot before it asks, so every put that it sees was reported by then.
//! - Flushes, merges and trims change nothing that is visible. Data that comes otherwise (runs of a large
//!   commit) ends all voids of its tree.
//! - A reader that sees less than `since` does not use the void, nor one whose own writes lie in it.

use frondb_core::Direction;
use frondb_core::SeqNo;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};

use crate::cursor::{Cursor, CursorOptions};
use crate::engine::Shared;
use crate::tree::TreeCore;

/// Deletes that come into a memtable between two looks, at least. Readers step over as many.
const LOOK_EVERY: u64 = 1024;
/// Deletes that must lie in a void for it to be kept: going around one costs as much as stepping over a
/// few dozen.
const DELETES_MIN: u64 = 256;
/// Voids that a tree has at most: those with the fewest deletes go.
const VOIDS_MAX: usize = 16;

/// Two keys: a range, or the first and the last of something.
type KeyRange = (Vec<u8>, Vec<u8>);

/// A range of keys without an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Void {
    /// `[lo, hi)`, not empty.
    lo: Vec<u8>,
    hi: Vec<u8>,
    /// For readers of this SeqNo and later.
    since: SeqNo,
    /// About how many deletes lie in it, or did.
    deletes: u64,
}

/// A look under way: a range of keys that a walk goes over from one end, and that ends, on its way, at
/// what was put since it began.
#[derive(Debug)]
struct Look {
    /// Told from one that was ended meanwhile.
    number: u64,
    direction: Direction,
    lo: Vec<u8>,
    hi: Option<Vec<u8>>,
}

#[derive(Default, Debug)]
struct List {
    /// Ascending, apart from each other.
    voids: Vec<Void>,
    look: Option<Look>,
    /// Looks begun.
    looks: u64,
}

/// Where a walk over a tree goes, so that it meets no void: from `at`, and not beyond `lo` or `hi`, where
/// one begins.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Around {
    /// Where to begin instead, if that is in a void.
    pub(crate) at: Option<Vec<u8>>,
    pub(crate) lo: Option<Vec<u8>>,
    pub(crate) hi: Option<Vec<u8>>,
}

/// A tree's voids.
#[derive(Default, Debug)]
pub(crate) struct Voids {
    /// Whether there are any, or a look is under way. Set under the commit lock, so commits see it.
    watched: AtomicBool,
    list: Mutex<List>,
    /// Deletes that the active memtable had at the last look.
    looked: AtomicU64,
}

impl Voids {
    /// Whether puts must be reported. REQUIRES: the commit lock, or an answer that may be old.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// These keys get values by a commit that is not visible yet. REQUIRES: the commit lock.
    pub(crate) fn note_puts<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        let mut list = self.list.lock();
        for key in keys {
            list.put(key);
        }
        self.update_watched(&list);
    }

    /// Anything may have come into the tree. REQUIRES: the commit lock.
    pub(crate) fn end_all(&self) {
        if !self.is_watched() {
            return;
        }
        let mut list = self.list.lock();
        list.voids.clear();
        list.look = None;
        self.update_watched(&list);
    }

    /// How a reader at `seq` goes from `at` (`None`: from the end of the tree, backward); `may_use` is
    /// asked whether it may leave out `[lo, hi)`.
    pub(crate) fn around(
        &self,
        direction: Direction,
        at: Option<&[u8]>,
        seq: SeqNo,
        may_use: &dyn Fn(&[u8], &[u8]) -> bool,
    ) -> Around {
        if !self.is_watched() {
            return Around::default();
        }
        let list = self.list.lock();
        let used = |void: &&Void| void.since <= seq && may_use(&void.lo, &void.hi);
        match direction {
            Direction::Forward => list.around_forward(at.unwrap_or_default(), &used),
            Direction::Backward => list.around_backward(at, &used),
        }
    }

    /// Begins a look that walks over `[lo, hi)` and returns its number; `None` if another is under way.
    /// REQUIRES: the commit lock.
    fn begin(&self, direction: Direction, lo: &[u8], hi: Option<&[u8]>) -> Option<u64> {
        let mut list = self.list.lock();
        if list.look.is_some() {
            return None;
        }
        list.looks += 1;
        let (number, lo, hi) = (list.looks, lo.to_vec(), hi.map(<[u8]>::to_vec));
        list.look = Some(Look { number, direction, lo, hi });
        self.update_watched(&list);
        Some(number)
    }

    /// Ends a look: at its snapshot, `since`, nothing is visible in `range`, which is a part of the look's.
    fn end(&self, look: u64, range: Option<KeyRange>, since: SeqNo, deletes: u64) {
        let mut list = self.list.lock();
        // It is gone if data came in another way meanwhile.
        let look = list.look.take_if(|found| found.number == look);
        if let Some(look) = look
            && let Some((lo, hi)) = range
        {
            let lo = lo.max(look.lo);
            let hi = look.hi.map_or(hi.clone(), |end| end.min(hi));
            if lo < hi && deletes >= DELETES_MIN {
                list.add(Void { lo, hi, since, deletes });
            }
        }
        self.update_watched(&list);
    }

    /// The end of the last void that begins at `key` or before it.
    fn end_before(&self, key: &[u8]) -> Option<Vec<u8>> {
        let list = self.list.lock();
        let before = list.voids.partition_point(|void| *void.lo <= *key);
        Some(list.voids[..before].last()?.hi.clone())
    }

    /// The beginning of the first void that ends behind `key`.
    fn begin_after(&self, key: &[u8]) -> Option<Vec<u8>> {
        let list = self.list.lock();
        let upto = list.voids.partition_point(|void| *void.hi <= *key);
        Some(list.voids.get(upto)?.lo.clone())
    }

    fn update_watched(&self, list: &List) {
        let watched = !list.voids.is_empty() || list.look.is_some();
        self.watched.store(watched, Ordering::Release);
    }
}

impl List {
    fn put(&mut self, key: &[u8]) {
        if let Some(look) = &mut self.look
            && *look.lo <= *key
            && look.hi.as_ref().is_none_or(|hi| *key < **hi)
        {
            match look.direction {
                Direction::Forward => look.hi = Some(key.to_vec()),
                Direction::Backward => look.lo = after(key),
            }
        }
        let at = self.voids.partition_point(|void| *void.hi <= *key);
        let Some(void) = self.voids.get(at).filter(|void| *void.lo <= *key) else { return };
        let halves =
            [Void { hi: key.to_vec(), ..void.clone() }, Void { lo: after(key), ..void.clone() }];
        let mut halves: Vec<Void> = halves.into_iter().filter(|half| half.lo < half.hi).collect();
        if let [left, right] = &mut halves[..] {
            // Nobody knows which side they are on.
            left.deletes /= 2;
            right.deletes /= 2;
        }
        halves.retain(|half| half.deletes >= DELETES_MIN);
        self.voids.splice(at..=at, halves);
        self.forget_smallest();
    }

    /// Adds a void, in one with those that it meets.
    fn add(&mut self, mut new: Void) {
        let from = self.voids.partition_point(|void| void.hi < new.lo);
        let to = self.voids.partition_point(|void| void.lo <= new.hi);
        for met in self.voids.drain(from..to) {
            new.lo = new.lo.min(met.lo);
            new.hi = new.hi.max(met.hi);
            new.since = new.since.max(met.since);
            new.deletes = new.deletes.saturating_add(met.deletes);
        }
        self.voids.insert(from, new);
        self.forget_smallest();
    }

    fn forget_smallest(&mut self) {
        while self.voids.len() > VOIDS_MAX {
            let smallest = self.voids.iter().enumerate().min_by_key(|(_, void)| void.deletes);
            let Some((i, _)) = smallest else { return };
            self.voids.remove(i);
        }
    }

    fn around_forward(&self, at: &[u8], used: &dyn Fn(&&Void) -> bool) -> Around {
        let first = self.voids.partition_point(|void| *void.hi <= *at);
        let mut around = Around::default();
        for void in self.voids[first..].iter().filter(used) {
            // They are apart, so only the first can hold `at`.
            if *void.lo > *at {
                around.hi = Some(void.lo.clone());
                break;
            }
            around.at = Some(void.hi.clone());
        }
        around
    }

    /// What is read ends *before* `at`.
    fn around_backward(&self, at: Option<&[u8]>, used: &dyn Fn(&&Void) -> bool) -> Around {
        let end = at.map_or(self.voids.len(), |at| self.voids.partition_point(|v| *v.lo < *at));
        let mut around = Around::default();
        for void in self.voids[..end].iter().rev().filter(used) {
            if at.is_none_or(|at| *void.hi < *at) {
                around.lo = Some(void.hi.clone());
                break;
            }
            around.at = Some(void.lo.clone());
        }
        around
    }
}

/// The smallest key above `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl Shared {
    /// After a commit: if the deletes of the tree's memtable have made a stretch, walks over it and keeps
    /// where it ends. One step of a cursor a delete, by who deletes; who has not read the rows reads their
    /// blocks here, in sequence.
    pub(crate) fn look_for_voids(self: &Arc<Self>, tree: &Arc<TreeCore>) {
        let Some((first, last)) = stretch_to_look_at(tree) else { return };
        // What lies between it and the void before, or behind, belongs to it if that is empty.
        let from = tree.voids.end_before(&first).unwrap_or_else(|| first.clone());
        let mut ends_inside = false;
        self.look(tree, Direction::Forward, &from, None, |cursor| {
            let (lo, hi) = walk_forward(cursor, &from, &first)?;
            ends_inside = hi.as_ref().is_some_and(|hi| *hi <= last);
            Some((lo, hi.unwrap_or_else(|| after(&last))))
        });
        if !ends_inside {
            return;
        }
        // Deletes at both ends, or from one end to the other with a row left between.
        let upto = tree.voids.begin_after(&last).unwrap_or_else(|| after(&last));
        self.look(tree, Direction::Backward, &[], Some(&upto), |cursor| {
            let (lo, hi) = walk_backward(cursor, &upto, &last)?;
            Some((lo.unwrap_or(first), hi))
        });
    }

    /// One look over `[lo, hi)`: `walk` finds the void at that end of it where `direction` begins.
    fn look(
        self: &Arc<Self>,
        tree: &Arc<TreeCore>,
        direction: Direction,
        lo: &[u8],
        hi: Option<&[u8]>,
        walk: impl FnOnce(&mut Cursor) -> Option<KeyRange>,
    ) {
        let begun = self.committer.exclusive(|| {
            // All that was inserted is visible here.
            tree.voids.begin(direction, lo, hi).map(|look| (look, self.snapshot()))
        });
        let Some((look, snapshot)) = begun else { return };
        let since = snapshot.seq();
        let options = CursorOptions { snapshot: Some(snapshot), ..CursorOptions::default() };
        let mut cursor = Cursor::new(Arc::clone(self), Arc::clone(tree), options);
        cursor.set_looks();
        let found = walk(&mut cursor);
        tree.voids.end(look, found, since, cursor.deletes_passed());
    }
}

/// Where nothing is visible from `from` on, or from `first` on if there is an entry between them; to the
/// end of the tree if there is no `hi`. What cannot be read is no void: who reads there will say why.
fn walk_forward(
    cursor: &mut Cursor,
    from: &[u8],
    first: &[u8],
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let (mut lo, mut found) = (from, cursor.seek(from).ok()?);
    if found && *cursor.key() < *first {
        (lo, found) = (first, cursor.seek(first).ok()?);
    }
    Some((lo.to_vec(), found.then(|| cursor.key().to_vec())))
}

/// The same down from `upto`, or from behind `last`.
fn walk_backward(
    cursor: &mut Cursor,
    upto: &[u8],
    last: &[u8],
) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
    let (mut hi, mut found) = (upto.to_vec(), cursor.seek_below(upto).ok()?);
    if found && *cursor.key() > *last {
        hi = after(last);
        found = cursor.seek_below(&hi).ok()?;
    }
    Some((found.then(|| after(cursor.key())), hi))
}

/// The first and the last key of the stretch of deletes in the active memtable, if it has grown enough
/// since the last look. Cheap to ask after every commit.
fn stretch_to_look_at(tree: &TreeCore) -> Option<KeyRange> {
    let memtable = &tree.version().active.memtable;
    if memtable.tombstone_run() < DELETES_MIN {
        // Of a new memtable, if there was a long one before.
        tree.voids.looked.store(0, Ordering::Relaxed);
        return None;
    }
    let (deletes, looked) = (memtable.deletes(), tree.voids.looked.load(Ordering::Relaxed));
    if deletes >= looked && deletes - looked < LOOK_EVERY {
        return None;
    }
    tree.voids.looked.store(deletes, Ordering::Relaxed);
    memtable.tombstone_run_bounds()
}

#[cfg(all(test, not(shuttle)))]
#[path = "voids_tests.rs"]
mod tests;
