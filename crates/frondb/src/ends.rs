//! [`Ends`]: both ends of a range over one cursor, for the iterators.
//!
//! ```text
//!    next -> |a b c|                |x y z| <- next_back    one cursor serves both ends; when the
//!            front ^                ^ back                  direction changes, it seeks, so both
//!                                                           ends see one state
//! ```

use frondb_core::Result;

/// A key and its value, as the iterators return them.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Implements an iterator for a struct with a field `ends`.
macro_rules! iterator {
    ($range:ident over $cursor:ident) => {
        impl $range {
            pub(crate) fn over(cursor: $cursor) -> Self {
                Self { ends: Ends::over(cursor) }
            }
        }

        impl Iterator for $range {
            type Item = frondb_core::Result<(Vec<u8>, Vec<u8>)>;

            fn next(&mut self) -> Option<Self::Item> {
                self.ends.next(End::Front)
            }
        }

        impl DoubleEndedIterator for $range {
            fn next_back(&mut self) -> Option<Self::Item> {
                self.ends.next(End::Back)
            }
        }

        impl std::iter::FusedIterator for $range {}

        impl Walk for $cursor {
            fn edge(&mut self, end: End) -> frondb_core::Result<bool> {
                match end {
                    End::Front => self.first(),
                    End::Back => self.last(),
                }
            }

            fn step(&mut self, end: End) -> frondb_core::Result<bool> {
                match end {
                    End::Front => self.next(),
                    End::Back => self.prev(),
                }
            }

            fn beyond(&mut self, end: End, key: &[u8]) -> frondb_core::Result<bool> {
                let found = match end {
                    End::Front => self.seek(key)?,
                    End::Back => self.seek_for_prev(key)?,
                };
                if found && self.key() == key { self.step(end) } else { Ok(found) }
            }

            fn entry(&self) -> frondb_core::Result<Entry> {
                let value = self.value()?.to_vec();
                Ok((self.key().to_vec(), value))
            }

            fn at(&self) -> &[u8] {
                self.key()
            }
        }
    };
}
pub(crate) use iterator;

/// The end from which the next entry is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Front,
    Back,
}

/// A cursor that is moved inwards from either end.
pub(crate) trait Walk {
    /// Moves to the outermost entry at `end`.
    fn edge(&mut self, end: End) -> Result<bool>;
    /// Moves one entry further from `end`.
    fn step(&mut self, end: End) -> Result<bool>;
    /// Moves to the first entry beyond `key`, as seen from `end`.
    fn beyond(&mut self, end: End, key: &[u8]) -> Result<bool>;
    fn entry(&self) -> Result<Entry>;
    fn at(&self) -> &[u8];
}

/// Both ends of a range over one cursor.
#[derive(Debug)]
pub(crate) struct Ends<C> {
    cursor: C,
    /// The end at which the cursor took its last entry; `None` before the first call.
    side: Option<End>,
    /// The last key taken at the other end; `None` if none was.
    other: Option<Vec<u8>>,
    is_done: bool,
}

impl<C: Walk> Ends<C> {
    pub(crate) fn over(cursor: C) -> Self {
        Self { cursor, side: None, other: None, is_done: false }
    }

    pub(crate) fn next(&mut self, end: End) -> Option<Result<Entry>> {
        if self.is_done {
            return None;
        }
        let entry = self.advance(end).transpose();
        self.is_done = !matches!(entry, Some(Ok(_)));
        entry
    }

    fn advance(&mut self, end: End) -> Result<Option<Entry>> {
        let found = match self.side {
            Some(side) if side == end => self.cursor.step(end)?,
            None => self.cursor.edge(end)?,
            Some(_) => {
                let left = self.cursor.at().to_vec();
                match self.other.replace(left) {
                    Some(key) => self.cursor.beyond(end, &key)?,
                    None => self.cursor.edge(end)?,
                }
            }
        };
        self.side = Some(end);
        let is_met = |other: &Vec<u8>| match end {
            End::Front => self.cursor.at() >= other.as_slice(),
            End::Back => self.cursor.at() <= other.as_slice(),
        };
        if !found || self.other.as_ref().is_some_and(is_met) {
            return Ok(None);
        }
        self.cursor.entry().map(Some)
    }
}
