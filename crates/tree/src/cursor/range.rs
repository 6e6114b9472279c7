//! [`Range`]: an iterator over the entries that a cursor shows, from both ends.
//!
//! ```text
//!    next -> |a b c|                |x y z| <- next_back    one cursor serves both ends, so both
//!            front ^                ^ back                  see one state; the cursor seeks when
//!                                                           the direction changes
//! ```

use frondb_core::{Direction, Result};

use super::cursor::Cursor;

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// The entries of a range of a tree in key order, as `Result<(key, value)>`, from either end.
/// `Tree::range` and `Tree::prefix` return one with a [`Cursor`], `Transaction::range` and
/// `Transaction::prefix` one with a `TransactionCursor`. The iterator shows the state at the time
/// of that call. It may or may not show writes that the transaction makes to the range during the
/// iteration.
///
/// The iterator ends after its first error. Changing the direction costs a search; `rev()` costs
/// none. A program that needs no copies of keys and values uses the cursor itself.
#[derive(Debug)]
pub struct Range<C = Cursor> {
    cursor: C,
    /// The direction of the cursor's last move; `None` before the first.
    direction: Option<Direction>,
    /// The last key taken at the end opposite to `direction`; `None` if no key was taken there.
    other: Option<Vec<u8>>,
    is_done: bool,
}

/// The moves of a cursor that a [`Range`] makes.
#[doc(hidden)]
pub trait Moves {
    /// Moves to the first entry in this direction.
    fn begin(&mut self, direction: Direction) -> Result<bool>;
    fn step(&mut self, direction: Direction) -> Result<bool>;
    /// Moves to the entry of `key`; if there is none, to the next entry in this direction.
    fn seek_from(&mut self, direction: Direction, key: &[u8]) -> Result<bool>;
    fn key(&self) -> &[u8];
    fn value(&self) -> Result<&[u8]>;
}

impl<C: Moves> Range<C> {
    #[doc(hidden)]
    pub fn over(cursor: C) -> Self {
        Self { cursor, direction: None, other: None, is_done: false }
    }

    fn take(&mut self, direction: Direction) -> Option<Result<Entry>> {
        if self.is_done {
            return None;
        }
        let entry = self.advance(direction).transpose();
        self.is_done = !matches!(entry, Some(Ok(_)));
        entry
    }

    fn advance(&mut self, direction: Direction) -> Result<Option<Entry>> {
        let found = match self.direction {
            Some(last) if last == direction => self.cursor.step(direction)?,
            None => self.cursor.begin(direction)?,
            Some(_) => {
                let left = self.cursor.key().to_vec();
                match self.other.replace(left) {
                    Some(key) => self.beyond(direction, &key)?,
                    None => self.cursor.begin(direction)?,
                }
            }
        };
        self.direction = Some(direction);
        let is_met = |other: &Vec<u8>| match direction {
            Direction::Forward => self.cursor.key() >= other.as_slice(),
            Direction::Backward => self.cursor.key() <= other.as_slice(),
        };
        if !found || self.other.as_ref().is_some_and(is_met) {
            return Ok(None);
        }
        let value = self.cursor.value()?.to_vec();
        Ok(Some((self.cursor.key().to_vec(), value)))
    }

    /// Moves to the first entry after `key` in this direction.
    fn beyond(&mut self, direction: Direction, key: &[u8]) -> Result<bool> {
        let found = self.cursor.seek_from(direction, key)?;
        if found && self.cursor.key() == key { self.cursor.step(direction) } else { Ok(found) }
    }
}

impl<C: Moves> Iterator for Range<C> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(Direction::Forward)
    }
}

impl<C: Moves> DoubleEndedIterator for Range<C> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(Direction::Backward)
    }
}

impl<C: Moves> std::iter::FusedIterator for Range<C> {}

impl Moves for Cursor {
    fn begin(&mut self, direction: Direction) -> Result<bool> {
        match direction {
            Direction::Forward => self.first(),
            Direction::Backward => self.last(),
        }
    }

    fn step(&mut self, direction: Direction) -> Result<bool> {
        match direction {
            Direction::Forward => self.next(),
            Direction::Backward => self.prev(),
        }
    }

    fn seek_from(&mut self, direction: Direction, key: &[u8]) -> Result<bool> {
        match direction {
            Direction::Forward => self.seek(key),
            Direction::Backward => self.seek_for_prev(key),
        }
    }

    fn key(&self) -> &[u8] {
        self.key()
    }

    fn value(&self) -> Result<&[u8]> {
        self.value()
    }
}
