//! The moves of a [`Cursor`]: seeks and steps, how each begins and ends, and the state after a
//! failed move.

use frondb_core::chunk::Entries;
use frondb_core::sync::OnceLock;
use frondb_core::{Direction, Error, ErrorKind, Result};

use super::cursor::{Cursor, Entry};

impl Cursor {
    // --- Seeks ---

    /// Moves to the first entry whose key is at least `key`. Returns whether there is one.
    ///
    /// # Errors
    /// `Corruption` for a damaged block on the way; `Io`; `Closed`; `Invalid` for an entry whose
    /// update function is missing or fails; `NotFound` if the tree was dropped while the cursor was
    /// being created.
    #[inline]
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.seek_to(key.as_ref())
    }

    fn seek_to(&mut self, key: &[u8]) -> Result<bool> {
        if self.can_skip_to(Direction::Forward, key) {
            return self.skip_to(Direction::Forward, key);
        }
        let lower = &self.scope.lower;
        let at = if *key > **lower { key.to_vec() } else { lower.clone() };
        let moved = self.begin_seek().and_then(|()| self.forward_from(at));
        self.end_move(moved)
    }

    /// Moves to the last entry whose key is at most `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        // `key` with a zero byte is the smallest key above `key`.
        self.seek_below(&[key.as_ref(), &[0]].concat())
    }

    /// Moves to the last entry whose key is below `key`. Returns whether there is one.
    #[doc(hidden)]
    pub fn seek_below(&mut self, key: &[u8]) -> Result<bool> {
        if self.can_skip_to(Direction::Backward, key) {
            return self.skip_to(Direction::Backward, key);
        }
        let moved = self.begin_seek().and_then(|()| self.backward_from(Some(key.to_vec())));
        self.end_move(moved)
    }

    /// Moves to the first entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn first(&mut self) -> Result<bool> {
        let at = self.scope.lower.clone();
        let moved = self.begin_seek().and_then(|()| self.forward_from(at));
        self.end_move(moved)
    }

    /// Moves to the last entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn last(&mut self) -> Result<bool> {
        let moved = self.begin_seek().and_then(|()| self.backward_from(None));
        self.end_move(moved)
    }

    /// Returns whether a seek to `key` can use the open walk: the key lies ahead in the walk's leaf
    /// and direction, and the snapshot and own writes have not changed since the walk was opened.
    fn can_skip_to(&self, direction: Direction, key: &[u8]) -> bool {
        let walk = self.walk.as_ref().filter(|_| self.valid && !self.is_walk_old);
        walk.is_some_and(|walk| walk.is_ahead(direction, key))
    }

    /// Seeks to `key` in the open walk. REQUIRES: [`can_skip_to`](Self::can_skip_to) is true. The
    /// sources stay open and search from their current position, so the cost grows with the
    /// distance, up to the cost of an ordinary seek.
    fn skip_to(&mut self, direction: Direction, key: &[u8]) -> Result<bool> {
        self.value = OnceLock::new();
        self.count_seek();
        let Some(walk) = &mut self.walk else { return Ok(false) };
        let moved = walk.merge.skip(key).and_then(|()| walk.merge.next());
        match moved {
            Ok(true) if !self.scope.is_closed() => {
                self.end_seek();
                Ok(true)
            }
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

    // --- Steps ---

    /// Moves to the next entry; to the first if the cursor is not positioned. Returns whether there
    /// is one. A cursor that has passed an end stays there.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "it can fail, and lends what it is at")]
    pub fn next(&mut self) -> Result<bool> {
        self.value = OnceLock::new();
        match &mut self.walk {
            Some(walk) if self.valid && walk.direction == Direction::Forward => {
                let moved = walk.merge.next();
                if matches!(moved, Ok(true)) && !self.scope.is_closed() {
                    return Ok(true);
                }
                self.end_step(Direction::Forward, moved)
            }
            _ => self.restart(Direction::Forward),
        }
    }

    /// Moves to the previous entry; to the last if the cursor is not positioned. Returns whether
    /// there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        self.value = OnceLock::new();
        match &mut self.walk {
            Some(walk) if self.valid && walk.direction == Direction::Backward => {
                let moved = walk.merge.next();
                if matches!(moved, Ok(true)) && !self.scope.is_closed() {
                    return Ok(true);
                }
                self.end_step(Direction::Backward, moved)
            }
            _ => self.restart(Direction::Backward),
        }
    }

    /// Moves over several adjacent entries in one call and returns them: at most `max` entries,
    /// with at most `bytes` of keys and `bytes` of values. The cursor is then at the last of them.
    /// Cheaper than as many calls of [`next`](Self::next). May return no entries: at an end, before
    /// the first entry, after a backward move, and where the next entry is not a simple put that
    /// only one source has. In these cases call [`next`](Self::next).
    #[inline]
    #[must_use]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        let is_open = self.valid && !self.scope.is_closed();
        match &mut self.walk {
            Some(walk) if is_open && walk.direction == Direction::Forward => {
                self.value = OnceLock::new();
                walk.merge.next_entries(max, bytes)
            }
            _ => Entries::default(),
        }
    }

    /// Ends a step that did not reach another entry of the leaf, or found the database closed.
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

    /// Opens a new walk after the last key that the old walk read, because the version of the
    /// cursor was unpinned.
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

    /// Makes a step without an open walk in `direction`. A cursor that has failed returns its error
    /// again, or `Closed` after a close. A cursor at an entry begins a walk from that entry, a
    /// cursor at an end stays there, and a cursor that was never positioned goes to the first or
    /// last entry.
    #[cold]
    fn restart(&mut self, direction: Direction) -> Result<bool> {
        if let Some(error) = &self.failed {
            self.scope.check_open()?;
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
                self.scope.check_open()?;
                Ok(false)
            }
            Direction::Forward => self.first(),
            Direction::Backward => self.last(),
        }
    }

    // --- The beginning and the end of a move ---

    /// Begins a seek: clears the entry and the error of the last move.
    fn begin_seek(&mut self) -> Result<()> {
        self.value = OnceLock::new();
        self.valid = false;
        self.has_rested = false;
        self.failed = None;
        self.failed_key = None;
        self.end_walk();
        self.scope.check_open()?;
        self.count_seek();
        Ok(())
    }

    pub(super) fn count_seek(&mut self) {
        let context = &self.scope.context;
        if !self.scope.is_probe && context.counters.add_seek() {
            self.seek_begun = Some(context.now());
        }
    }

    /// Ends a seek and records its latency if that is sampled.
    #[inline]
    pub(super) fn end_seek(&mut self) {
        if let Some(begun) = self.seek_begun.take() {
            let context = &self.scope.context;
            let nanos = context.nanos_since(begun);
            context.counters.seek_latency.add_sampled(nanos);
        }
    }

    /// Ends a move and keeps the two guarantees of a cursor (`cursor.rs`).
    fn end_move(&mut self, moved: Result<bool>) -> Result<bool> {
        self.end_seek();
        self.pins.end_move();
        if self.pins.is_pressure_high() {
            self.copy_entry();
        }
        if moved.is_ok() && !self.scope.is_closed() {
            return moved;
        }
        self.fail(moved)
    }

    /// Copies the entry and ends the walk, because the memory has no room for a chunk of each
    /// source of each cursor. The next move seeks from the entry's key.
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
        // Return `Closed` rather than any error of a read: another process may own the files by
        // now.
        let error = match self.scope.check_open().and(moved) {
            Ok(at_entry) => return Ok(at_entry),
            Err(error) => error,
        };
        // `Invalid` is the failure of an update, which concerns only its own key.
        if error.kind() == ErrorKind::Invalid {
            let walk = self.walk.as_ref();
            self.failed_key = walk.and_then(|walk| walk.merge.unresolved_key()).map(<[u8]>::to_vec);
        }
        self.fail_with(error.clone());
        Err(error)
    }

    /// Puts the cursor at no entry, and makes every `next` and `prev` fail with `error` until a
    /// seek.
    #[doc(hidden)]
    pub fn fail_with(&mut self, error: Error) {
        self.valid = false;
        self.value = OnceLock::new();
        self.end_walk();
        self.pins.end_walk();
        self.failed = Some(error);
    }
}
