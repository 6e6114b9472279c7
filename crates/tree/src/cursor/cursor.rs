//! [`Cursor`]: ordered reading of a tree at a snapshot, in both directions.
//!
//! A cursor reads leaf after leaf; a [`Walk`] merges all sources over the range of one leaf.
//!
//! A cursor pins a version ([`crate::pins`]). At each leaf it takes the newest version if its own
//! is older than a second, so that a long scan does not keep dropped runs on disk. A flush unpins
//! the old version of a cursor that is between two moves (rule 12); the cursor then seeks on from
//! the key that it was at. Its snapshot stays the same, and so does what it shows.
//!
//! A cursor makes two promises to a caller that goes on after an error:
//! - A move that fails leaves the cursor at no entry, and every further `next` or `prev` fails with
//!   the same error until a seek. Otherwise the caller would take the end of the readable part for
//!   the end of the tree, or miss that entries before the damage are left out.
//! - A cursor shows nothing that it read after the engine was closed: another process may own the
//!   files by then. A close sets its flag before it releases the lock of the directory, so the
//!   cursor checks the flag *after* a move and before it shows what the move has read.

use frondb_core::chunk::Entries;
use frondb_core::sync::{Arc, OnceLock};
use frondb_core::{Direction, Error, ErrorKind, MessageKind, Result};
use frondb_writeset::OwnWrites;

use super::walk::{Scope, Walk};
use crate::context::ReadContext;
use crate::pins::Pins;
use crate::snapshot::Snapshot;
use crate::tree::{Tree, TreeCore};
use crate::value::read_value;

/// Which part of a tree a cursor shows, at which snapshot.
#[derive(Clone, Debug, Default)]
pub struct CursorOptions {
    /// First key that the cursor shows; `None` for no bound.
    pub lower: Option<Vec<u8>>,
    /// First key behind those that the cursor shows; `None` for no bound.
    pub upper: Option<Vec<u8>>,
    /// The snapshot to read at; `None` for a new one.
    pub snapshot: Option<Snapshot>,
}

/// A cursor over one tree. A new cursor is not positioned. One thread at a time may use it; it may
/// move to another thread.
///
/// All moves fail with `Closed` after a close, with `NotFound` if the tree was dropped before the
/// first move, with the error of an update function, or with `Corruption` or a device error of a
/// run.
pub struct Cursor {
    scope: Scope,
    /// The version that the cursor reads and the sources of its walk, unless they were unpinned.
    pins: Arc<Pins>,
    walk: Option<Walk>,
    /// Copy of the entry that the cursor is at without a walk, under high memory pressure.
    copied: Option<Box<Entry>>,
    /// Whether the snapshot or the own writes have changed, so that the next seek must open a new
    /// walk.
    is_walk_old: bool,
    /// The large value of the entry that the cursor is at, once it was read.
    value: OnceLock<Vec<u8>>,
    /// Whether the cursor is at an entry.
    valid: bool,
    deletes_passed: u64,
    /// The error of the last move; every `next` and `prev` returns it until a seek.
    failed: Option<Error>,
    /// The key of the entry that the last move failed at, if only this entry cannot be shown.
    failed_key: Option<Vec<u8>>,
}

/// A copy of an entry.
struct Entry {
    key: Vec<u8>,
    kind: MessageKind,
    value: Vec<u8>,
}

impl Cursor {
    /// A cursor over `tree` that is not positioned, if the tree can be read.
    ///
    /// # Errors
    /// As [`ReadContext::check_read`].
    pub fn over(context: &Arc<ReadContext>, tree: &Tree, options: CursorOptions) -> Result<Self> {
        context.check_read(tree, options.snapshot.as_ref())?;
        Ok(Self::new(Arc::clone(context), Arc::clone(tree.core()), options))
    }

    /// A cursor over `tree` that is not positioned.
    #[must_use]
    pub fn new(context: Arc<ReadContext>, tree: Arc<TreeCore>, options: CursorOptions) -> Self {
        let snapshot = options.snapshot.unwrap_or_else(|| context.snapshot());
        // The snapshot is registered before the first move takes a version, so the snapshot does
        // not see messages that merges have folded away in the version.
        let pins = context.cursors.add(Arc::clone(&tree), &context.budget);
        let scope = Scope {
            context,
            tree,
            snapshot,
            lower: options.lower.unwrap_or_default(),
            upper: options.upper,
            own: None,
            overlay: None,
            is_probe: false,
        };
        Self {
            scope,
            pins,
            walk: None,
            copied: None,
            is_walk_old: false,
            value: OnceLock::new(),
            valid: false,
            deletes_passed: 0,
            failed: None,
            failed_key: None,
        }
    }

    /// Makes this a cursor that probes for known-empty ranges: its moves are in no statistics and
    /// in no scan debt.
    pub fn set_probes(&mut self) {
        self.scope.is_probe = true;
    }

    /// Ends the walk and returns how many deletes the cursor has stepped over.
    pub fn deletes_passed(&mut self) -> u64 {
        self.end_walk();
        self.pins.end_walk();
        self.deletes_passed
    }

    /// From the next seek on, shows the writes `own`, below them those of `overlay`, and below
    /// these what is committed.
    pub fn set_own(&mut self, own: Option<OwnWrites>, overlay: Option<OwnWrites>) {
        let scope = &mut self.scope;
        let were_any = scope.own.is_some() || scope.overlay.is_some();
        self.is_walk_old |= were_any || own.is_some() || overlay.is_some();
        (scope.own, scope.overlay) = (own, overlay);
    }

    /// From the next seek on, reads at this snapshot.
    pub fn set_snapshot(&mut self, snapshot: Snapshot) {
        self.is_walk_old = true;
        self.scope.snapshot = snapshot;
        // The snapshot is registered before the version is taken, as in `new`.
        self.pins.renew();
    }

    // --- The entry that the cursor is at ---

    /// Whether the cursor is at an entry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// The snapshot that the cursor reads at.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.scope.snapshot
    }

    /// Key of the entry that the cursor is at; empty if it is at no entry.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.walk {
            Some(walk) if self.valid => walk.merge.key(),
            _ => self.copied_entry().0,
        }
    }

    /// Value of the entry that the cursor is at; empty if it is at no entry. The first call reads a
    /// large value from disk. If that fails, the cursor stays at the entry.
    ///
    /// # Errors
    /// `Corruption` or a device error of a large value; `Closed`.
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        let (kind, value) = match &self.walk {
            Some(walk) if self.valid => (walk.merge.kind(), walk.merge.value()),
            _ => {
                let (_, kind, value) = self.copied_entry();
                (kind, value)
            }
        };
        if kind == MessageKind::PutRef { self.large_value(value) } else { Ok(value) }
    }

    /// The value that `reference` names. Only the first call for an entry reads it.
    #[inline(never)]
    fn large_value(&self, reference: &[u8]) -> Result<&[u8]> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let context = &self.scope.context;
        let value = read_value(&context.runs.space, reference);
        context.health.check_open()?;
        let value = value?;
        Ok(self.value.get_or_init(|| value))
    }

    /// The entry that a cursor without a walk is at; an empty one if it is at no entry.
    #[cold]
    fn copied_entry(&self) -> (&[u8], MessageKind, &[u8]) {
        let copied = self.copied.as_deref().filter(|_| self.valid);
        copied.map_or((b"", MessageKind::Put, b""), |entry| (&entry.key, entry.kind, &entry.value))
    }

    /// The key that the last move failed at, if the entry of only this key cannot be shown, because
    /// its update function is missing or fails.
    #[must_use]
    pub fn failed_key(&self) -> Option<&[u8]> {
        self.failed_key.as_deref()
    }

    // --- Moves: seeks ---

    /// Goes to the first entry with a key at or above `key`. Returns whether there is one.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if self.can_skip_to(Direction::Forward, key) {
            return self.skip_to(Direction::Forward, key);
        }
        let lower = &self.scope.lower;
        let at = if *key > **lower { key.to_vec() } else { lower.clone() };
        let moved = self.begin_seek().and_then(|()| self.forward_from(at));
        self.end_move(moved)
    }

    /// Goes to the last entry with a key at or below `key`. Returns whether there is one.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        // The keys at or below `key` are those below the smallest key above it.
        let mut above = key.to_vec();
        above.push(0);
        self.seek_below(&above)
    }

    /// Goes to the last entry with a key below `key`. Returns whether there is one.
    pub fn seek_below(&mut self, key: &[u8]) -> Result<bool> {
        if self.can_skip_to(Direction::Backward, key) {
            return self.skip_to(Direction::Backward, key);
        }
        let moved = self.begin_seek().and_then(|()| self.backward_from(Some(key.to_vec())));
        self.end_move(moved)
    }

    /// Goes to the first entry. Returns whether there is one.
    pub fn first(&mut self) -> Result<bool> {
        let at = self.scope.lower.clone();
        let moved = self.begin_seek().and_then(|()| self.forward_from(at));
        self.end_move(moved)
    }

    /// Goes to the last entry. Returns whether there is one.
    pub fn last(&mut self) -> Result<bool> {
        let moved = self.begin_seek().and_then(|()| self.backward_from(None));
        self.end_move(moved)
    }

    /// Whether a seek to `key` can use the open walk: the key lies ahead in its leaf, in its
    /// direction, and the walk shows the right state.
    fn can_skip_to(&self, direction: Direction, key: &[u8]) -> bool {
        let walk = self.walk.as_ref().filter(|_| self.valid && !self.is_walk_old);
        walk.is_some_and(|walk| walk.is_ahead(direction, key))
    }

    /// A seek for which [`can_skip_to`](Self::can_skip_to) holds. The sources stay open and search
    /// from where they are. It costs as much as what lies between, and at most as much as any other
    /// seek.
    fn skip_to(&mut self, direction: Direction, key: &[u8]) -> Result<bool> {
        self.value = OnceLock::new();
        self.count_seek();
        let Some(walk) = &mut self.walk else { return Ok(false) };
        match walk.merge.skip(key).and_then(|()| walk.merge.next()) {
            Ok(true) if !self.scope.context.health.is_closed() => Ok(true),
            Err(_) if self.pins.is_unpinned() => {
                let moved = match direction {
                    Direction::Forward => self.forward_from(key.to_vec()),
                    Direction::Backward => self.backward_from(Some(key.to_vec())),
                };
                self.end_move(moved)
            }
            moved => self.end_step(direction, moved),
        }
    }

    // --- Moves: steps ---

    /// Goes to the next entry; to the first entry if the cursor is not positioned. Returns whether
    /// there is one.
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "it can fail, and lends what it is at")]
    pub fn next(&mut self) -> Result<bool> {
        self.value = OnceLock::new();
        match &mut self.walk {
            Some(walk) if self.valid && walk.direction == Direction::Forward => {
                let moved = walk.merge.next();
                if matches!(moved, Ok(true)) && !self.scope.context.health.is_closed() {
                    return Ok(true);
                }
                self.end_step(Direction::Forward, moved)
            }
            _ => self.restart(Direction::Forward),
        }
    }

    /// Goes to the previous entry; to the last entry if the cursor is not positioned. Returns
    /// whether there is one.
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        self.value = OnceLock::new();
        match &mut self.walk {
            Some(walk) if self.valid && walk.direction == Direction::Backward => {
                let moved = walk.merge.next();
                if matches!(moved, Ok(true)) && !self.scope.context.health.is_closed() {
                    return Ok(true);
                }
                self.end_step(Direction::Backward, moved)
            }
            _ => self.restart(Direction::Backward),
        }
    }

    /// Goes forward over entries that lie one after the other in memory, and returns them; the
    /// cursor is at the last of them. Returns at most `max` entries, with at most `bytes` of keys
    /// and as many of values. Returns none where the caller must use [`next`](Self::next): the
    /// cursor is at no entry or runs backward, or the next entry needs more than a copy.
    #[inline]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        let is_open = self.valid && !self.scope.context.health.is_closed();
        match &mut self.walk {
            Some(walk) if is_open && walk.direction == Direction::Forward => {
                self.value = OnceLock::new();
                walk.merge.next_entries(max, bytes)
            }
            _ => Entries::default(),
        }
    }

    /// Ends a step that did not reach another entry of the leaf.
    #[inline(never)]
    fn end_step(&mut self, direction: Direction, moved: Result<bool>) -> Result<bool> {
        let moved = match (moved, direction) {
            (Ok(false), Direction::Forward) => self.next_leaf(),
            (Ok(false), Direction::Backward) => self.previous_leaf(),
            (Err(_), _) if self.pins.is_unpinned() => self.resume(direction),
            (moved, _) => moved,
        };
        self.end_move(moved)
    }

    /// Goes on from the last key that the walk read, after the version of the cursor was unpinned.
    #[cold]
    fn resume(&mut self, direction: Direction) -> Result<bool> {
        let Some(walk) = &self.walk else { return Ok(false) };
        let last = walk.merge.last_read().map(|last| (last.key.to_vec(), last.is_complete));
        match (direction, last) {
            (Direction::Forward, Some((mut at, is_complete))) => {
                if is_complete {
                    at.push(0);
                }
                self.forward_from(at)
            }
            (Direction::Backward, Some((mut at, is_complete))) => {
                if !is_complete {
                    at.push(0);
                }
                self.backward_from(Some(at))
            }
            // The walk has read nothing of the leaf.
            (Direction::Forward, None) => self.forward_from(walk.lo.to_vec()),
            (Direction::Backward, None) => {
                self.backward_from(walk.hi.as_ref().map(|hi| hi.to_vec()))
            }
        }
    }

    /// A step of a cursor that does not run in this direction: it has failed, is at an end, was
    /// never positioned, or runs the other way.
    #[cold]
    fn restart(&mut self, direction: Direction) -> Result<bool> {
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
            return self.end_move(moved);
        }
        match direction {
            _ if self.walk.is_some() => {
                self.scope.context.health.check_open()?;
                Ok(false)
            }
            Direction::Forward => self.first(),
            Direction::Backward => self.last(),
        }
    }

    // --- What moves begin and end with ---

    /// Begins a seek: forgets the entry and the error of the last move.
    fn begin_seek(&mut self) -> Result<()> {
        self.value = OnceLock::new();
        self.valid = false;
        self.failed = None;
        self.failed_key = None;
        self.end_walk();
        self.scope.context.health.check_open()?;
        self.count_seek();
        Ok(())
    }

    fn count_seek(&self) {
        if !self.scope.is_probe {
            self.scope.context.counters.add_seek();
        }
    }

    /// Ends a move and keeps the two promises at the head of this file.
    fn end_move(&mut self, moved: Result<bool>) -> Result<bool> {
        self.pins.end_move();
        if self.pins.is_pressure_high() {
            self.copy_entry();
        }
        if moved.is_ok() && !self.scope.context.health.is_closed() {
            return moved;
        }
        self.fail(moved)
    }

    /// Copies the entry and ends the walk: the memory has no room for a chunk of each source of
    /// each cursor. The next move seeks on from the entry.
    #[cold]
    fn copy_entry(&mut self) {
        let Some(walk) = self.walk.as_ref().filter(|_| self.valid) else { return };
        let merge = &walk.merge;
        let (key, value) = (merge.key().to_vec(), merge.value().to_vec());
        self.copied = Some(Box::new(Entry { key, kind: merge.kind(), value }));
        self.end_walk();
        self.pins.end_walk();
    }

    #[cold]
    fn fail(&mut self, moved: Result<bool>) -> Result<bool> {
        // `Closed` comes before any error of a read: the files may belong to another process by
        // now.
        let error = match self.scope.context.health.check_open().and(moved) {
            Ok(at_entry) => return Ok(at_entry),
            Err(error) => error,
        };
        // An update that cannot be applied concerns only its key.
        if error.kind() == ErrorKind::Invalid {
            let walk = self.walk.as_ref();
            self.failed_key = walk.and_then(|walk| walk.merge.unresolved_key()).map(<[u8]>::to_vec);
        }
        self.fail_with(error.clone());
        Err(error)
    }

    /// Leaves the entry that the cursor is at: every further `next` and `prev` fails with `error`
    /// until a seek.
    pub fn fail_with(&mut self, error: Error) {
        self.valid = false;
        self.value = OnceLock::new();
        self.end_walk();
        self.pins.end_walk();
        self.failed = Some(error);
    }

    // --- From leaf to leaf ---

    /// Goes to the first entry at or above `at`.
    fn forward_from(&mut self, at: Vec<u8>) -> Result<bool> {
        self.valid = false;
        self.end_walk();
        self.open(Direction::Forward, Some(&at))?;
        if self.step()? { Ok(true) } else { self.next_leaf() }
    }

    /// Goes to the last entry below `at`; to the last entry of all without `at`.
    fn backward_from(&mut self, at: Option<Vec<u8>>) -> Result<bool> {
        self.valid = false;
        self.end_walk();
        let at = match (at, &self.scope.upper) {
            (Some(at), Some(upper)) => Some(at.min(upper.clone())),
            (at, upper) => at.or_else(|| upper.clone()),
        };
        self.open(Direction::Backward, at.as_deref())?;
        if self.step()? { Ok(true) } else { self.previous_leaf() }
    }

    /// Goes to the first entry behind the walk.
    fn next_leaf(&mut self) -> Result<bool> {
        self.valid = false;
        loop {
            let Some(hi) = self.walk.as_ref().and_then(|walk| walk.hi.clone()) else {
                self.report();
                return Ok(false);
            };
            if self.scope.upper.as_ref().is_some_and(|upper| **upper <= *hi) {
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

    /// Goes to the last entry before the walk.
    fn previous_leaf(&mut self) -> Result<bool> {
        self.valid = false;
        loop {
            let Some(lo) = self.walk.as_ref().map(|walk| Arc::clone(&walk.lo)) else {
                return Ok(false);
            };
            if lo.is_empty() || *lo <= *self.scope.lower {
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

    /// Goes to the next entry of the walk.
    fn step(&mut self) -> Result<bool> {
        if let Some(walk) = &mut self.walk {
            self.valid = walk.merge.next()?;
        }
        Ok(self.valid)
    }

    /// Opens the walk over the leaf at `at`.
    fn open(&mut self, direction: Direction, at: Option<&[u8]>) -> Result<()> {
        self.is_walk_old = false;
        let walk = Walk::open(&self.scope, &self.pins, direction, at)?;
        self.copied = None;
        self.walk = Some(walk);
        Ok(())
    }

    fn end_walk(&mut self) {
        self.report();
        self.walk = None;
    }

    /// Notes the deletes that the walk has stepped over.
    fn report(&mut self) {
        if let Some(walk) = &mut self.walk {
            self.deletes_passed += walk.report(&self.scope);
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.report();
        self.scope.context.cursors.remove(&self.pins);
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cursor({} at {})", self.scope.tree.id, self.scope.snapshot.seq())
    }
}
