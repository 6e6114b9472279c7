//! [`Cursor`]: ordered reading of a tree.

use std::ops::{Bound, RangeBounds};

use frondb_core::Result;
use frondb_core::chunk::Entries;
use frondb_core::tuple::prefix_end;
use frondb_engine::Snapshot;

/// A range of keys as cursors have it: the first key, and the first key beyond.
pub(crate) fn bounds_of<'a>(
    range: &impl RangeBounds<&'a [u8]>,
) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let above = |key: &[u8]| [key, &[0]].concat();
    let lower = match range.start_bound() {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(key.to_vec()),
        Bound::Excluded(key) => Some(above(key)),
    };
    let upper = match range.end_bound() {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(above(key)),
        Bound::Excluded(key) => Some(key.to_vec()),
    };
    (lower, upper)
}

/// What a cursor shows. All of the tree as of now by default.
#[derive(Clone, Debug, Default)]
pub struct CursorOptions {
    pub(crate) inner: frondb_engine::CursorOptions,
}

impl CursorOptions {
    /// All of the tree as of now.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only keys in `range`, for example `b"a".as_slice()..b"b".as_slice()`.
    #[must_use]
    pub fn range<'a>(mut self, range: impl RangeBounds<&'a [u8]>) -> Self {
        (self.inner.lower, self.inner.upper) = bounds_of(&range);
        self
    }

    /// Only keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(mut self, prefix: &[u8]) -> Self {
        self.inner.lower = Some(prefix.to_vec());
        self.inner.upper = prefix_end(prefix);
        self
    }

    /// The state at a snapshot.
    #[must_use]
    pub fn at(mut self, snapshot: &Snapshot) -> Self {
        self.inner.snapshot = Some(snapshot.clone());
        self
    }
}

/// A position in a tree at a fixed state. Not positioned at first: `next` then goes to the first
/// entry and `prev` to the last. Moves both ways. Once it has passed either end, or a seek found
/// nothing, it is at no entry, and both stay `false` until it seeks again. Never blocks a writer.
///
/// One that is kept and not moved keeps its snapshot and no more memory than the entries around it:
/// what the tree has done with is taken away, and its next move finds its place again.
///
/// A move that fails leaves it at no entry, and `next` and `prev` fail with the same error until a
/// seek (`seek`, `seek_for_prev`, `first`, `last`): nothing is ever skipped. To go on behind
/// damage, seek beyond it. After [`Db::close`](crate::Db::close), and when the database is gone,
/// every move fails with `Closed`.
///
/// ```
/// # use frondb::{Cursor, CursorOptions, Db, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let tree = db.create_tree("t", TreeOptions::default())?;
/// for key in ["a1", "a2", "b1"] {
///     tree.put(key.as_bytes(), b"x")?;
/// }
/// let mut cursor = tree.cursor_with(CursorOptions::new().prefix(b"a"))?;
/// let mut keys = Vec::new();
/// while cursor.next()? {
///     keys.push(cursor.key().to_vec());
/// }
/// assert_eq!(keys, [b"a1", b"a2"]);
/// # drop(cursor);
/// # db.close()
/// # }
/// ```
#[derive(Debug)]
pub struct Cursor {
    pub(crate) inner: frondb_engine::Cursor,
}

impl Cursor {
    /// Goes to the first entry with a key not below `key`. Returns whether there is one.
    ///
    /// # Errors
    /// `Corruption` for a damaged block on the way; `Io`; `Closed`.
    #[inline]
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.inner.seek(key)
    }

    /// Goes to the last entry with a key not above `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        self.inner.seek_for_prev(key)
    }

    /// Goes to the first entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn first(&mut self) -> Result<bool> {
        self.inner.first()
    }

    /// Goes to the last entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn last(&mut self) -> Result<bool> {
        self.inner.last()
    }

    /// Goes to the next entry. Returns whether there is one; once past the end it stays there.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        self.inner.next()
    }

    /// Goes on over entries that lie one after the other and is at the last of them: at most `max`, with
    /// at most `bytes` of keys and as many of values. Saves the cost of that many calls of
    /// [`next`](Self::next), and promises nothing: none where the next entry needs more than a copy, at an
    /// end, before the first entry, or after a move backward; then call `next`.
    #[inline]
    #[must_use]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        self.inner.next_entries(max, bytes)
    }

    /// Goes to the entry before. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        self.inner.prev()
    }

    /// Whether it is at an entry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// Key of the entry it is at; empty if it is at none.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// Value of the entry it is at; empty if it is at none. A large value is read from disk now.
    ///
    /// # Errors
    /// `Corruption` or `Io` for a large value that cannot be read; `Closed`.
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        self.inner.value()
    }

    /// The state it shows.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.inner.snapshot()
    }
}
