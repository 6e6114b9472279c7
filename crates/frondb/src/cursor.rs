//! [`Cursor`]: ordered reading of a tree.

use frondb_core::Result;
use frondb_core::chunk::Entries;
use frondb_core::tuple::prefix_end;
use frondb_tree::Snapshot;

use crate::key_range::{KeyRange, bounds_of};

/// The range and the state that a cursor shows. Default: the whole tree as of now.
#[derive(Clone, Debug, Default)]
pub struct CursorOptions {
    pub(crate) inner: frondb_tree::CursorOptions,
}

impl CursorOptions {
    /// The whole tree as of now.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows only keys in `range`, for example `"a".."b"`.
    #[must_use]
    pub fn range(mut self, range: impl KeyRange) -> Self {
        (self.inner.lower, self.inner.upper) = bounds_of(&range);
        self
    }

    /// Shows only keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        self.inner.lower = Some(prefix.to_vec());
        self.inner.upper = prefix_end(prefix);
        self
    }

    /// Shows the state of a snapshot.
    #[must_use]
    pub fn at(mut self, snapshot: &Snapshot) -> Self {
        self.inner.snapshot = Some(snapshot.clone());
        self
    }
}

/// A position in a tree at a fixed state, moving in both directions. A new cursor is not
/// positioned: `next` moves it to the first entry, `prev` to the last. After it has passed either
/// end, or after a seek that found nothing, it is at no entry, and `next` and `prev` return
/// `false` until the next seek. Cursors never block writers.
///
/// A cursor that is not moved for a while keeps its snapshot and only the memory of the entries
/// around it. It gives up resources that the tree no longer needs; its next move finds its position
/// again.
///
/// A move that fails leaves the cursor at no entry, and `next` and `prev` return the same error
/// until a seek (`seek`, `seek_for_prev`, `first`, `last`), so that no entry is skipped silently.
/// To continue after damage, seek beyond it. After [`Db::close`](crate::Db::close) every move
/// fails with `Closed`.
///
/// ```
/// # use frondb::{Cursor, CursorOptions, Db, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let tree = db.create_tree("t", TreeOptions::default())?;
/// for key in ["a1", "a2", "b1"] {
///     tree.put(key, "x")?;
/// }
/// let mut cursor = tree.cursor_with(CursorOptions::new().prefix("a"))?;
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
    pub(crate) inner: frondb_tree::Cursor,
}

impl Cursor {
    /// Moves to the first entry whose key is at least `key`. Returns whether there is one.
    ///
    /// # Errors
    /// `Corruption` for a damaged block on the way; `Io`; `Closed`.
    #[inline]
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.inner.seek(key.as_ref())
    }

    /// Moves to the last entry whose key is at most `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.inner.seek_for_prev(key.as_ref())
    }

    /// Moves to the first entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn first(&mut self) -> Result<bool> {
        self.inner.first()
    }

    /// Moves to the last entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn last(&mut self) -> Result<bool> {
        self.inner.last()
    }

    /// Moves to the next entry. Returns whether there is one. Beyond the end the cursor does not
    /// move.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        self.inner.next()
    }

    /// The caller is about to read this many entries: the cursor prepares as many at once. Has no
    /// effect on the entries that the cursor shows.
    #[inline]
    pub fn expect(&mut self, entries: usize) {
        self.inner.expect(entries);
    }

    /// Moves over several adjacent entries in one call, returns them, and stays at the last: at
    /// most `max` entries, with at most `bytes` of keys and `bytes` of values. Cheaper than that
    /// many calls of [`next`](Self::next). May return no entries where the next one needs more than
    /// a copy, at an end, before the first entry, or after a backward move; call
    /// [`next`](Self::next) then.
    #[inline]
    #[must_use]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        self.inner.next_entries(max, bytes)
    }

    /// Moves to the previous entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        self.inner.prev()
    }

    /// Whether the cursor is at an entry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// Key of the current entry; empty without one.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// Value of the current entry; empty without one. A large value is read from disk by this
    /// call.
    ///
    /// # Errors
    /// `Corruption` or `Io` for a large value that cannot be read; `Closed`.
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        self.inner.value()
    }

    /// The state that the cursor shows.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.inner.snapshot()
    }
}
