//! Cursors of a transaction. A plain cursor merges the transaction's writes with committed data at
//! the snapshot. A locking cursor reads the newest data, and locks each entry and gap before it
//! shows the entry. Under snapshot isolation, a locking cursor with gap locks reads at the
//! snapshot, and fails with `Conflict` if a later commit has written a key that the cursor passes,
//! so the snapshot and the newest data are equal where the cursor has passed.
//!
//! A cursor sees the writes that the transaction had made before the cursor's last seek. After a
//! rollback to a savepoint, the next step seeks again. A seek may continue from the position at
//! which an earlier cursor was dropped ([`super::kept`]).
//!
//! # A locking step
//! The cursor reads the next entry, and locks the entry and the gap before it. If the tree had a
//! commit since the read, the cursor reads again from the same place. If it finds the same entry,
//! it shows the entry; otherwise it locks the entry that it finds now, and repeats the check. The
//! loop ends because other transactions cannot change locked entries and gaps.

use std::ops::Bound;

use frondb_core::chunk::Entries;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Direction, Error, ErrorKind, Result, SeqNo};
use frondb_locks::{LockMode, LockWait};
use frondb_tree::{AsTree, Cursor, CursorOptions, TreeCore};

use super::kept::{Found, From, Gone};
use super::{Core, Transaction, TransactionState};
use crate::options::{Isolation, ReadLock, TransactionCursorOptions, Wait};

/// A position in a tree within a transaction. A plain cursor shows the committed data that the
/// isolation level allows, with the transaction's own writes. A locking cursor shows the newest
/// data, and locks each entry before it shows the entry; at repeatable read and above, it also
/// locks the gap before the entry. Under snapshot isolation, a locking cursor fails with `Conflict`
/// at a row that was inserted, changed or deleted since the snapshot; one
/// [without gap locks](TransactionCursorOptions::without_gaps) does not notice deleted rows.
///
/// The cursor shows the own writes that were made before its last `seek`, `seek_for_prev`, `first`
/// or `last`. After the transaction has ended, every move fails. Otherwise it works like a
/// [`Cursor`]. One thread at a time may use it.
pub struct TransactionCursor {
    core: Arc<Core>,
    tree: Arc<TreeCore>,
    cursor: Cursor,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    lock: Option<ReadLock>,
    /// The transaction's number of rollbacks to savepoints when the cursor was last positioned.
    rollbacks: u64,
    /// Whether this cursor took the lock of its entry; false if the transaction already held that
    /// lock.
    is_new_lock: bool,
    /// Whether the transaction holds the lock of the entry. Only a cursor with [`Wait::ShowLocked`]
    /// shows entries that another transaction has locked.
    is_locked: bool,
    /// Whether the cursor was positioned at least once.
    is_positioned: bool,
    /// The result of the last search, kept until the next step: see `kept.rs`.
    found: Option<Found>,
    /// If the cursor has continued from a kept cursor: the direction in which it moves. Such a
    /// cursor does not see the newest own writes, and must get them before it turns around.
    went_on: Option<Direction>,
}

impl Transaction {
    /// Returns a cursor over the whole tree. At serializable, the cursor locks the entries and gaps
    /// that it passes, in shared mode.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn cursor(&self, tree: &impl AsTree) -> Result<TransactionCursor> {
        self.core.cursor(tree.core(), TransactionCursorOptions::new())
    }

    /// Returns a cursor with these options: over a part of the tree, plain or locking.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn cursor_with(
        &self,
        tree: &impl AsTree,
        options: TransactionCursorOptions,
    ) -> Result<TransactionCursor> {
        self.core.cursor(tree.core(), options)
    }
}

impl Core {
    fn cursor(
        self: &Arc<Self>,
        tree: &Arc<TreeCore>,
        options: TransactionCursorOptions,
    ) -> Result<TransactionCursor> {
        let mut state = self.active_on(tree)?;
        let TransactionCursorOptions { shown, lock } = options;
        let serializable = self.isolation() == Isolation::Serializable;
        let shared = ReadLock { mode: LockMode::Shared, wait: Wait::Timeout, gaps: true };
        let mut lock = lock.or(serializable.then_some(shared));
        // At levels that lock gaps, the cursor waits for every lock: if it showed an entry without
        // its lock, other transactions could insert into the gap before the entry.
        if let Some(lock) = &mut lock
            && lock.wait == Wait::ShowLocked
            && self.isolation().locks_gaps()
        {
            lock.wait = Wait::Timeout;
        }
        let snapshot = match lock {
            Some(_) => None,
            None => self.read_snapshot(&mut state)?,
        };
        let (lower, upper) = shown.bounds();
        let woken = self.wake_kept(&mut state, tree, (lower, upper), snapshot.as_ref())?;
        let (lower, upper) = (lower.unwrap_or_default().to_vec(), upper.map(<[u8]>::to_vec));
        let (cursor, found) = match woken {
            Some((cursor, found)) => (cursor, Some(found)),
            None => {
                let shown = snapshot.iter().fold(shown, CursorOptions::at);
                (Cursor::over(&self.txns.reads, tree, shown)?, None)
            }
        };
        Ok(TransactionCursor {
            cursor,
            core: Arc::clone(self),
            tree: tree.clone(),
            lower,
            upper,
            lock,
            rollbacks: self.rollbacks.load(Ordering::Acquire),
            is_new_lock: false,
            is_locked: false,
            is_positioned: false,
            found,
            went_on: None,
        })
    }
}

impl TransactionCursor {
    /// Whether the cursor is at an entry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.cursor.is_valid()
    }

    /// Whether no rollback to a savepoint has happened since the cursor was positioned. If `false`,
    /// the current entry may be a write that was undone; the next move shows the entries that exist
    /// now.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.core.rollbacks.load(Ordering::Acquire) == self.rollbacks
    }

    /// Returns the key of the current entry; empty if there is none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    /// Returns the value of the current entry; empty if there is none.
    ///
    /// # Errors
    /// `Corruption` or `Io` for a large value; `Closed`; `Invalid` once the transaction was
    /// prepared.
    pub fn value(&self) -> Result<&[u8]> {
        if self.core.was_prepared.load(Ordering::Acquire) {
            return Err(Error::invalid(
                "the transaction was prepared: its cursors can no longer be used",
            ));
        }
        self.cursor.value()
    }

    /// Moves to the first entry whose key is at least `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`Transaction::get`]; for a locking cursor as [`Transaction::get_for_update`]. After an
    /// error, the cursor is at no entry.
    #[inline]
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        let at = key.max(&self.lower).to_vec();
        self.position(Direction::Forward, Bound::Included(at))
    }

    /// Moves to the last entry whose key is at most `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        let at = match &self.upper {
            Some(upper) if **upper <= *key => Bound::Excluded(upper.clone()),
            _ => Bound::Included(key.to_vec()),
        };
        self.position(Direction::Backward, at)
    }

    /// Moves to the first entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn first(&mut self) -> Result<bool> {
        let at = Bound::Included(self.lower.clone());
        self.position(Direction::Forward, at)
    }

    /// Moves to the last entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn last(&mut self) -> Result<bool> {
        let at = self.upper.clone().map_or(Bound::Unbounded, Bound::Excluded);
        self.position(Direction::Backward, at)
    }

    /// Moves to the next entry, or to the first if the cursor is not positioned. Returns whether
    /// there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[expect(clippy::should_implement_trait, reason = "it can fail, and lends what it is at")]
    pub fn next(&mut self) -> Result<bool> {
        self.step(Direction::Forward)
    }

    /// Returns the next entries, and moves to the last of them: at most `max` entries, with at most
    /// `bytes` of keys and `bytes` of values. Faster than the same number of [`next`](Self::next)
    /// calls. Returns no entries for a locking cursor, at an end, before the first move, after a
    /// backward move, after a rollback to a savepoint or the end of the transaction, and if the
    /// next entry cannot simply be copied; the caller then calls [`next`](Self::next).
    #[inline]
    #[must_use]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        let is_plain = self.lock.is_none()
            && self.is_current()
            && !self.core.ended.load(Ordering::Acquire)
            && !self.core.was_prepared.load(Ordering::Acquire);
        self.found = None;
        if is_plain { self.cursor.next_entries(max, bytes) } else { Entries::default() }
    }

    /// Tells the cursor that the caller is about to read this many entries, so that the cursor
    /// prepares as many at once. Does not change the entries that the cursor shows.
    #[inline]
    pub fn expect(&mut self, entries: usize) {
        self.cursor.expect(entries);
    }

    /// Moves to the previous entry, or to the last if the cursor is not positioned. Returns
    /// whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn prev(&mut self) -> Result<bool> {
        self.step(Direction::Backward)
    }

    /// Whether a locking cursor has locked the current entry. `false` if another transaction holds
    /// the lock, and the cursor shows the entry as last committed
    /// ([`Wait::ShowLocked`](crate::Wait::ShowLocked)), and after [`unlock`](Self::unlock). Always
    /// `false` for a plain cursor.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.is_locked && self.is_valid()
    }

    /// Releases the lock of the current entry, for a caller that does not need the row. Only at
    /// read committed and below, and only if this cursor took the lock; otherwise does nothing.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn unlock(&mut self) -> Result<()> {
        if !self.is_new_lock || self.core.isolation().locks_gaps() {
            return Ok(());
        }
        let mut state = self.core.active()?;
        state.unlock_row(&self.tree, self.cursor.key());
        (self.is_new_lock, self.is_locked) = (false, false);
        Ok(())
    }

    /// Moves to `from`. The cursor then sees all writes that its transaction has made so far.
    fn position(&mut self, direction: Direction, from: From) -> Result<bool> {
        let found = self.try_position(direction, from);
        found.or_else(|error| self.fail(error))
    }

    fn try_position(&mut self, direction: Direction, from: From) -> Result<bool> {
        let core = Arc::clone(&self.core);
        let mut state = core.active_on(&self.tree)?;
        self.is_positioned = true;
        let rollbacks = core.rollbacks.load(Ordering::Acquire);
        let has_rolled_back = std::mem::replace(&mut self.rollbacks, rollbacks) != rollbacks;
        let place = state.writes.place(self.tree.id);
        if let Some(found) = self.found.take().filter(|_| !has_rolled_back)
            && let Some(gone) = self.may_go_on(&state, &found, direction, &from)
            && gone.skip(&mut self.cursor, direction)?
        {
            self.went_on = Some(direction);
            self.found = Some(found.gone_on(place));
            return match self.lock {
                None => Ok(self.is_valid()),
                Some(lock) => self.lock_found(&mut state, lock, direction, from),
            };
        }
        let found = self.show_own(&mut state)?.then(|| Found::new(direction, from.clone(), place));
        match self.lock {
            None => {
                drop(state);
                self.read_from(direction, &from)?;
                self.found = found;
                Ok(self.is_valid())
            }
            Some(lock) => {
                self.refresh(&mut state)?;
                self.read_from(direction, &from)?;
                self.found = found;
                self.lock_found(&mut state, lock, direction, from)
            }
        }
    }

    /// Returns the deleted keys to skip if the cursor can continue from a kept cursor's entry;
    /// `None` if it must search.
    fn may_go_on(
        &self,
        state: &TransactionState,
        found: &Found,
        direction: Direction,
        from: &From,
    ) -> Option<Gone> {
        let key = self.cursor.rested_at()?;
        let is_same = match self.lock {
            None => state.overlay.is_none(),
            Some(_) => !self.is_behind(state),
        };
        if is_same { found.gone(&state.writes, &self.tree, direction, from, key) } else { None }
    }

    /// Lets the next search see all own writes made so far. Returns whether there are any.
    fn show_own(&mut self, state: &mut TransactionState) -> Result<bool> {
        let core = &self.core;
        self.went_on = None;
        let own = match state.writes.find(self.tree.id) {
            None => None,
            Some(writes) => Some(writes.own(&core.txns.spill)?),
        };
        let overlay = match self.lock {
            None => core.overlay_of(state, &self.tree, self.cursor.snapshot().seq())?,
            Some(_) => None,
        };
        let has_own = own.is_some();
        self.cursor.set_own(own, overlay);
        Ok(has_own)
    }

    pub(super) fn step(&mut self, direction: Direction) -> Result<bool> {
        let found = self.try_step(direction);
        found.or_else(|error| self.fail(error))
    }

    fn try_step(&mut self, direction: Direction) -> Result<bool> {
        if !self.is_positioned {
            return match direction {
                Direction::Forward => self.first(),
                Direction::Backward => self.last(),
            };
        }
        if self.core.ended.load(Ordering::Acquire) {
            drop(self.core.active()?);
        }
        let rolled_back = !self.is_current();
        self.found = None;
        if self.went_on.is_some_and(|went| went != direction) && !rolled_back {
            let core = Arc::clone(&self.core);
            self.show_own(&mut *core.active()?)?;
        }
        if !rolled_back && self.lock.is_none() {
            return match direction {
                Direction::Forward => self.cursor.next(),
                Direction::Backward => self.cursor.prev(),
            };
        }
        if !self.is_valid() {
            // The cursor is at an end, or has failed, and stays there.
            return match direction {
                Direction::Forward => self.cursor.next(),
                Direction::Backward => self.cursor.prev(),
            };
        }
        let from = Bound::Excluded(self.cursor.key().to_vec());
        let Some(lock) = self.lock.filter(|_| !rolled_back) else {
            return self.position(direction, from);
        };
        let core = Arc::clone(&self.core);
        let mut state = core.active_on(&self.tree)?;
        if self.is_behind(&state) {
            self.refresh(&mut state)?;
            self.read_from(direction, &from)?;
        } else {
            match direction {
                Direction::Forward => self.cursor.next()?,
                Direction::Backward => self.cursor.prev()?,
            };
        }
        self.lock_found(&mut state, lock, direction, from)
    }

    fn read_from(&mut self, direction: Direction, from: &From) -> Result<bool> {
        match (direction, from) {
            (Direction::Forward, Bound::Included(key)) => self.cursor.seek(key),
            (Direction::Forward, Bound::Excluded(key)) => {
                let above = [&**key, &[0]].concat();
                self.cursor.seek(&above)
            }
            (Direction::Forward, Bound::Unbounded) => self.cursor.first(),
            (Direction::Backward, Bound::Included(key)) => self.cursor.seek_for_prev(key),
            (Direction::Backward, Bound::Excluded(key)) => self.cursor.seek_below(key),
            (Direction::Backward, Bound::Unbounded) => self.cursor.last(),
        }
    }

    /// Returns the transaction's snapshot if a locking cursor reads at it: only under snapshot
    /// isolation, and only if it locks gaps. Without gap locks it reads the newest data, because
    /// other transactions may write between the locked entries.
    fn locks_at(&self, state: &TransactionState) -> Option<SeqNo> {
        let gaps = self.lock.is_none_or(|lock| lock.gaps);
        self.core.conflicts_since(state).filter(|_| gaps)
    }

    /// Gives the cursor the transaction's snapshot if it reads at that snapshot, otherwise a new
    /// one.
    fn refresh(&mut self, state: &mut TransactionState) -> Result<()> {
        let fixed = self.locks_at(state).and_then(|_| state.snapshot.clone());
        if self.went_on.is_some() {
            self.show_own(state)?;
        }
        let reads = &self.core.txns.reads;
        self.cursor.set_snapshot(fixed.unwrap_or_else(|| reads.snapshot()));
        Ok(())
    }

    /// Whether the cursor must search again: it reads the newest data, and the tree had a commit
    /// since; or the transaction has taken its snapshot since.
    fn is_behind(&self, state: &TransactionState) -> bool {
        let at = self.cursor.snapshot().seq();
        match self.locks_at(state) {
            Some(snapshot) => at != snapshot,
            None => self.tree.newest_commit().get() > at.get(),
        }
    }

    /// Locks the cursor's entry, which is the first entry after `from`, and the gap before the
    /// entry. If the cursor is at no entry, locks the gap from `from` to the cursor's bound.
    fn lock_found(
        &mut self,
        state: &mut TransactionState,
        lock: ReadLock,
        direction: Direction,
        mut from: From,
    ) -> Result<bool> {
        loop {
            let found = self.is_valid().then(|| self.cursor.key().to_vec());
            match self.lock_one(state, lock, direction, &from, found.as_deref()) {
                Err(error) if error.kind() == ErrorKind::Busy && lock.wait == Wait::SkipLocked => {
                    let Some(key) = found else { return Ok(false) };
                    from = Bound::Excluded(key);
                    self.found = None;
                    self.refresh(state)?;
                    self.read_from(direction, &from)?;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Busy && lock.wait == Wait::ShowLocked => {
                    (self.is_new_lock, self.is_locked) = (false, false);
                }
                Err(error) => return self.fail(error),
                Ok(is_new) => (self.is_new_lock, self.is_locked) = (is_new, true),
            }
            if let Err(error) = self.check_unchanged(state, direction, &from, found.as_deref()) {
                return self.fail(error);
            }
            if !self.is_behind(state) {
                return Ok(found.is_some());
            }
            self.found = None;
            self.refresh(state)?;
            self.read_from(direction, &from)?;
            let now = self.is_valid().then(|| self.cursor.key());
            if now == found.as_deref() {
                return Ok(found.is_some());
            }
            let gaps = lock.gaps && self.core.isolation().locks_gaps();
            let gone = found.as_deref().filter(|_| !gaps);
            if let Some(gone) = gone.filter(|_| self.is_new_lock) {
                state.unlock_row(&self.tree, gone);
            }
        }
    }

    /// Fails with `Conflict`, under snapshot isolation only, if a commit after the snapshot has
    /// written the entry, or has inserted, changed or deleted a row between `from` and the entry
    /// (or the cursor's bound, if there is no entry). The cursor is at the snapshot, so it would
    /// not show inserted rows.
    ///
    /// Without gap locks, checks the entry only: other transactions may write the rest at any time.
    fn check_unchanged(
        &self,
        state: &mut TransactionState,
        direction: Direction,
        from: &From,
        found: Option<&[u8]>,
    ) -> Result<()> {
        if self.locks_at(state).is_none() {
            let check = |key| self.core.check_unchanged(state, &self.tree, key);
            return found.map_or(Ok(()), check);
        }
        let above = |key: &[u8]| [key, &[0]].concat();
        let (lo, hi) = match direction {
            Direction::Forward => {
                let lo = match from {
                    Bound::Included(key) => key.clone(),
                    Bound::Excluded(key) => above(key),
                    Bound::Unbounded => Vec::new(),
                };
                (lo, found.map_or_else(|| self.upper.clone(), |key| Some(above(key))))
            }
            Direction::Backward => {
                let hi = match from {
                    Bound::Included(key) => Some(above(key)),
                    Bound::Excluded(key) => Some(key.clone()),
                    Bound::Unbounded => None,
                };
                (found.unwrap_or(&self.lower).to_vec(), hi)
            }
        };
        self.core.check_range_unchanged(state, &self.tree, &lo, hi.as_deref())
    }

    /// Locks an entry and the gap between `from` and the entry; without an entry, the gap from
    /// `from` to the cursor's bound. Returns whether the transaction did not hold the lock before.
    fn lock_one(
        &self,
        state: &mut TransactionState,
        lock: ReadLock,
        direction: Direction,
        from: &From,
        found: Option<&[u8]>,
    ) -> Result<bool> {
        let wait = state.wait(lock.wait);
        let gaps = lock.gaps && self.core.isolation().locks_gaps() && lock.wait != Wait::SkipLocked;
        let table = self.tree.locks();
        let locked = match (found, gaps) {
            (None, false) => return Ok(false),
            (Some(row), false) => state.locker.lock_row(table, row, lock.mode, wait),
            (found, true) => {
                let from = from.as_ref().map(Vec::as_slice);
                let end = self.end(direction);
                let to = found.map_or(end, Bound::Excluded);
                let (lo, hi) = match direction {
                    Direction::Forward => (from, to),
                    Direction::Backward => (to, from),
                };
                self.lock_with_gap(state, lock.mode, wait, lo, hi, found)
            }
        };
        self.core.locked(state, &self.tree, locked).map(|acquired| !acquired.was_held)
    }

    fn lock_with_gap(
        &self,
        state: &mut TransactionState,
        mode: LockMode,
        wait: LockWait,
        lo: Bound<&[u8]>,
        hi: Bound<&[u8]>,
        row: Option<&[u8]>,
    ) -> Result<frondb_locks::Acquired> {
        let table = self.tree.locks();
        match row {
            Some(row) => state.locker.lock_next(table, lo, hi, row, mode, wait),
            None => state.locker.lock_gap(table, lo, hi, wait),
        }
    }

    /// Returns the cursor's bound in this direction.
    fn end(&self, direction: Direction) -> Bound<&[u8]> {
        match (direction, &self.upper) {
            (Direction::Forward, Some(upper)) => Bound::Excluded(upper),
            (Direction::Forward, None) => Bound::Unbounded,
            (Direction::Backward, _) => Bound::Included(&self.lower),
        }
    }

    /// Invalidates the cursor after an error, so that it never shows an entry without its lock.
    fn fail(&mut self, error: Error) -> Result<bool> {
        self.cursor.fail_with(error.clone());
        Err(error)
    }
}

impl Drop for TransactionCursor {
    fn drop(&mut self) {
        if let Some(found) = self.found.take() {
            self.core.keep(&mut self.cursor, found, self.rollbacks);
        }
    }
}

impl std::fmt::Debug for TransactionCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TransactionCursor(of {:?} in {})", self.tree.name(), self.core.id)
    }
}
