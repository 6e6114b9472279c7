//! How a [`Cursor`] moves from leaf to leaf.

use frondb_core::sync::Arc;
use frondb_core::{Direction, Result};

use super::cursor::Cursor;
use super::walk::Walk;

impl Cursor {
    /// Goes to the first entry at or above `at`.
    pub(super) fn forward_from(&mut self, at: Vec<u8>) -> Result<bool> {
        self.valid = false;
        self.end_walk();
        self.open(Direction::Forward, Some(&at))?;
        if self.first_step()? { Ok(true) } else { self.next_leaf() }
    }

    /// Goes to the last entry below `at`; without `at`, to the last entry of the cursor's range.
    pub(super) fn backward_from(&mut self, at: Option<Vec<u8>>) -> Result<bool> {
        self.valid = false;
        self.end_walk();
        let at = match (at, &self.scope.upper) {
            (Some(at), Some(upper)) => Some(at.min(upper.clone())),
            (at, upper) => at.or_else(|| upper.clone()),
        };
        self.open(Direction::Backward, at.as_deref())?;
        if self.first_step()? { Ok(true) } else { self.previous_leaf() }
    }

    /// Goes to the first entry after the range of the walk.
    pub(super) fn next_leaf(&mut self) -> Result<bool> {
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
            if self.first_step()? {
                return Ok(true);
            }
        }
    }

    /// Goes to the last entry before the range of the walk.
    pub(super) fn previous_leaf(&mut self) -> Result<bool> {
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
            if self.first_step()? {
                return Ok(true);
            }
        }
    }

    /// Goes to the first entry of a walk that was just opened, and reports the range that this step
    /// has found empty: the range before that entry, or without an entry the whole walk.
    fn first_step(&mut self) -> Result<bool> {
        let found = self.step()?;
        if let Some(walk) = &self.walk {
            walk.note_empty(&self.scope, found);
        }
        Ok(found)
    }

    /// Goes to the next entry of the walk.
    pub(super) fn step(&mut self) -> Result<bool> {
        if let Some(walk) = &mut self.walk {
            self.valid = walk.merge.next()?;
        }
        Ok(self.valid)
    }

    /// Opens a walk over the leaf that holds `at`, beginning at `at`.
    pub(super) fn open(&mut self, direction: Direction, at: Option<&[u8]>) -> Result<()> {
        self.is_walk_old = false;
        let walk = Walk::open(&self.scope, &self.pins, direction, at)?;
        self.copied = None;
        self.walk = Some(walk);
        Ok(())
    }

    pub(super) fn end_walk(&mut self) {
        self.report();
        self.walk = None;
    }

    /// Adds the deletes that the walk has stepped over since the last report to the cursor's count
    /// and to the statistics.
    pub(super) fn report(&mut self) {
        if let Some(walk) = &mut self.walk {
            self.deletes_passed += walk.report(&self.scope);
        }
    }
}
