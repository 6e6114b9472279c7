//! [`Tree`]: one ordered index of a database.

use frondb_background::replan_all;
use frondb_commit::{Batch, Durability};
use frondb_core::sync::Arc;
use frondb_core::{Result, SeqNo, TreeId};
use frondb_tree::estimate::{
    FirstEntries, Precision, RangeEstimate, RangeMessages, count_first, estimate, range_messages,
    split_keys,
};
use frondb_tree::{
    AsTree, Cursor, CursorOptions, KeyRange, Range, ReadContext, Snapshot, TreeCore, Version, get,
    multi_get,
};
use frondb_txn::{Isolation, KeepOpen, Transaction, TransactionOptions};

use crate::open::Open;
use crate::open::parts::Parts;
use crate::options::TreeOptions;
use crate::stats::{TreeStats, collect};

/// A handle to a tree, which has keys in byte order, each with a value. Clones are cheap; any
/// thread may use a handle. A handle stays valid when the tree is renamed. Once the tree is
/// dropped, every call that returns a `Result` fails with `NotFound`.
#[derive(Clone, Debug)]
pub struct Tree {
    open: Arc<Open>,
    pub(crate) core: Arc<TreeCore>,
    /// Durability of single writes with this handle.
    commit_sync: Durability,
}

impl Tree {
    pub(crate) fn new(open: Arc<Open>, core: Arc<TreeCore>, commit_sync: Durability) -> Self {
        Self { open, core, commit_sync }
    }

    /// Returns the tree's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.core.name()
    }

    /// Returns the tree's number, which is never used for another tree.
    /// [`Db::locks`](crate::Db::locks) names trees by this number.
    #[must_use]
    pub fn id(&self) -> TreeId {
        self.core.id
    }

    /// Returns the tree's options, as set at its creation or by [`set_options`](Self::set_options).
    #[must_use]
    pub fn options(&self) -> TreeOptions {
        self.core.options().as_ref().clone()
    }

    /// Durably changes the options that are not fixed, such as the codec and the sizes of blocks
    /// and leaves, while others read and write. Data that is written from now on uses the new
    /// options. Existing data is packed again in the background, leaf by leaf, when there is
    /// nothing more urgent to do, or by [`optimize`](Self::optimize), which waits for it. Until
    /// then the tree has data of both forms, also after the database is opened again.
    ///
    /// The call replaces all options. If two threads each read the options, change one option and
    /// set all, the later call undoes the change of the earlier one.
    ///
    /// ```
    /// # use frondb::{Codec, Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let tree = db.create_tree("events", TreeOptions::new())?;
    /// tree.put(b"key", b"value")?;
    /// tree.set_options(tree.options().codec_with_blocks(Codec::AGGRESSIVE))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if `options` differ from [`options`](Self::options) in an option that is fixed
    /// (the error names those that are not), or are out of their range, or if the database was
    /// opened read-only; `NotFound` if the tree was dropped; `NoSpace`, `Poisoned`, `Closed`.
    pub fn set_options(&self, options: TreeOptions) -> Result<()> {
        let _call = self.open.begin_call()?;
        self.open.reads.check_read(&self.core, None)?;
        let Parts { background, catalog, jobs, .. } = &self.open.parts;
        catalog.set_options(&self.core, options)?;
        jobs.forget(self.core.id);
        replan_all(jobs, &background.queue, &self.core);
        Ok(())
    }

    /// Returns the value of `key`, or `None` if the key has no value.
    ///
    /// # Errors
    /// `Corruption` for a damaged block on the way; `Invalid` if the key has updates and the tree's
    /// update function is not registered or fails; `Io`; `Closed`; `NotFound` if the tree was
    /// dropped.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.read(None, |reads, tree, seq| get::get(reads, tree, key.as_ref(), seq))
    }

    /// Returns the value of `key` at a snapshot.
    ///
    /// # Errors
    /// As [`get`](Self::get); `Invalid` for a snapshot of another database.
    #[inline]
    pub fn get_at(&self, key: impl AsRef<[u8]>, at: &Snapshot) -> Result<Option<Vec<u8>>> {
        self.read(Some(at), |reads, tree, seq| get::get(reads, tree, key.as_ref(), seq))
    }

    /// As [`get`](Self::get), but writes the value into `value`, which can be reused for many
    /// reads. Empties `value` if the key has no value. Returns whether the key has a value.
    ///
    /// ```
    /// # use frondb::{Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let tree = db.open_or_create_tree("t", TreeOptions::default())?;
    /// tree.put("a", "one")?;
    /// let mut value = Vec::with_capacity(100);
    /// for key in ["a", "b"] {
    ///     if tree.get_into(key, &mut value)? {
    ///         println!("{key} {}", value.escape_ascii());
    ///     }
    /// }
    /// assert!(value.is_empty() && value.capacity() >= 100);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get). After an error `value` is empty.
    #[inline]
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        self.read(None, |reads, tree, seq| get::get_into(reads, tree, key.as_ref(), seq, value))
    }

    /// As [`get_into`](Self::get_into), at a snapshot.
    ///
    /// # Errors
    /// As [`get_at`](Self::get_at).
    #[inline]
    pub fn get_into_at(
        &self,
        key: impl AsRef<[u8]>,
        value: &mut Vec<u8>,
        at: &Snapshot,
    ) -> Result<bool> {
        self.read(Some(at), |reads, tree, seq| get::get_into(reads, tree, key.as_ref(), seq, value))
    }

    /// Returns the values of several keys as of one moment, in the order of `keys`. Blocks that are
    /// not in memory are read at the same time, so this takes less time than a [`get`](Self::get)
    /// for each key.
    ///
    /// If the reads of several keys fail, returns the error of the smallest of these keys.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.read(None, |reads, tree, seq| multi_get(reads, tree, keys, seq))
    }

    /// Returns the values of several keys at a snapshot, in the order of `keys`; otherwise as
    /// [`multi_get`](Self::multi_get).
    ///
    /// # Errors
    /// As [`get_at`](Self::get_at).
    pub fn multi_get_at(&self, keys: &[&[u8]], at: &Snapshot) -> Result<Vec<Option<Vec<u8>>>> {
        self.read(Some(at), |reads, tree, seq| multi_get(reads, tree, keys, seq))
    }

    /// Returns whether `key` has a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn exists(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.read(None, |reads, tree, seq| get::exists(reads, tree, key.as_ref(), seq))
    }

    /// Returns whether `key` has a value at a snapshot.
    ///
    /// # Errors
    /// As [`get_at`](Self::get_at).
    #[inline]
    pub fn exists_at(&self, key: impl AsRef<[u8]>, at: &Snapshot) -> Result<bool> {
        self.read(Some(at), |reads, tree, seq| get::exists(reads, tree, key.as_ref(), seq))
    }

    /// Sets the value of one key with the durability of the handle
    /// ([`Db::with_commit_sync`](crate::Db::with_commit_sync)). Many writes are cheaper in a
    /// [`Batch`](crate::Batch).
    ///
    /// # Errors
    /// As [`Db::write`](crate::Db::write).
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(self, key, value);
        self.open.write(&batch, self.commit_sync)
    }

    /// Sets the value of one key and returns its former value, with the durability of the handle.
    /// No other write of the key can come between the read and the write.
    ///
    /// ```
    /// # use frondb::{Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let tree = db.open_or_create_tree("t", TreeOptions::default())?;
    /// assert_eq!(tree.replace("a", "one")?, None);
    /// assert_eq!(tree.replace("a", "two")?, Some(b"one".to_vec()));
    /// assert_eq!(tree.take("a")?, Some(b"two".to_vec()));
    /// assert_eq!(tree.take("a")?, None);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::write`](crate::Db::write) and [`get`](Self::get).
    pub fn replace(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        self.in_transaction(|txn| txn.replace(self, key, value))
    }

    /// Removes one key and returns its former value, with the durability of the handle; otherwise
    /// as [`replace`](Self::replace).
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.in_transaction(|txn| txn.take(self, key))
    }

    fn in_transaction<T>(&self, call: impl FnOnce(&Transaction) -> Result<T>) -> Result<T> {
        // Read committed takes no snapshot, and locks only the key.
        let options = TransactionOptions::new().isolation(Isolation::ReadCommitted);
        let keep_open = Arc::clone(&self.open) as KeepOpen;
        let txn = self.open.txns.begin(options, self.commit_sync, keep_open)?;
        let result = call(&txn)?;
        txn.commit()?;
        Ok(result)
    }

    /// Removes one key, which need not exist, with the durability of the handle.
    ///
    /// # Errors
    /// As [`Db::write`](crate::Db::write).
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(self, key);
        self.open.write(&batch, self.commit_sync)
    }

    /// Writes an update of one key with `operand`, with the durability of the handle, and reads
    /// nothing. Readers and merges apply the tree's update function later.
    ///
    /// # Errors
    /// `Invalid` if the tree has no update function, or if the function is not registered;
    /// otherwise as [`Db::write`](crate::Db::write).
    ///
    /// ```
    /// use frondb::{Db, Options, TreeOptions, UpdateFn};
    ///
    /// /// Counts: a value and an operand are numbers of 8 bytes.
    /// struct Count;
    ///
    /// fn number(bytes: &[u8]) -> Option<u64> {
    ///     bytes.try_into().ok().map(u64::from_be_bytes)
    /// }
    ///
    /// impl UpdateFn for Count {
    ///     fn name(&self) -> &str {
    ///         "count"
    ///     }
    ///     fn apply(
    ///         &self,
    ///         _key: &[u8],
    ///         existing: Option<&[u8]>,
    ///         operand: &[u8],
    ///     ) -> Result<Vec<u8>, String> {
    ///         let sum = self.combine(b"", existing.unwrap_or(&[0; 8]), operand);
    ///         sum.ok_or_else(|| "not a number of 8 bytes".to_owned())
    ///     }
    ///     fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
    ///         Some(number(older)?.wrapping_add(number(newer)?).to_be_bytes().to_vec())
    ///     }
    /// }
    ///
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// // Registered at every open; the tree keeps its name and version.
    /// let db = Db::open(dir.path(), Options::default().update_fn(Count))?;
    /// let clicks = db.create_tree("clicks", TreeOptions::new().update_fn("count", 1))?;
    /// clicks.update(b"home", &2u64.to_be_bytes())?;
    /// clicks.update(b"home", &3u64.to_be_bytes())?;
    /// assert_eq!(clicks.get(b"home")?, Some(5u64.to_be_bytes().to_vec()));
    /// # db.close()
    /// # }
    /// ```
    #[inline]
    pub fn update(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.update(self, key, operand);
        self.open.write(&batch, self.commit_sync)
    }

    /// Removes all keys with `lo <= key < hi` (without `hi`, all from `lo` on), with the
    /// durability of the handle.
    ///
    /// # Errors
    /// As [`Db::write`](crate::Db::write).
    pub fn delete_range(&self, lo: impl AsRef<[u8]>, hi: Option<&[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_range(self, lo, hi);
        self.open.write(&batch, self.commit_sync)
    }

    /// Returns an iterator over the entries whose keys are in `range`, as of now, in key order. It
    /// can also run backward, from the end of the range.
    ///
    /// ```
    /// # use frondb::{Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let tree = db.open_or_create_tree("words", TreeOptions::default())?;
    /// for word in ["fern", "frond", "leaf", "root"] {
    ///     tree.put(word, "1")?;
    /// }
    /// for entry in tree.range("f".."g")? {
    ///     let (key, value) = entry?;
    ///     println!("{} {}", key.escape_ascii(), value.escape_ascii());
    /// }
    /// let last = tree.range(..)?.rev().next().transpose()?;
    /// assert_eq!(last, Some((b"root".to_vec(), b"1".to_vec())));
    /// assert_eq!(tree.prefix("f")?.count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor). Items have the errors of [`Cursor::seek`] and
    /// [`Cursor::value`].
    pub fn range(&self, range: impl KeyRange) -> Result<Range> {
        self.cursor_with(CursorOptions::new().range(range)).map(Range::over)
    }

    /// Returns the entries of a range at a snapshot; otherwise as [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range); `Invalid` for a snapshot of another database.
    pub fn range_at(&self, range: impl KeyRange, at: &Snapshot) -> Result<Range> {
        self.cursor_with(CursorOptions::new().range(range).at(at)).map(Range::over)
    }

    /// Returns the entries whose keys begin with `prefix`; otherwise as [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Range> {
        self.cursor_with(CursorOptions::new().prefix(prefix)).map(Range::over)
    }

    /// Returns the entries of a prefix at a snapshot; otherwise as [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range_at`](Self::range_at).
    pub fn prefix_at(&self, prefix: impl AsRef<[u8]>, at: &Snapshot) -> Result<Range> {
        self.cursor_with(CursorOptions::new().prefix(prefix).at(at)).map(Range::over)
    }

    /// Returns the entry with the smallest key; `None` if the tree is empty.
    /// [`Transaction::pop_first`](crate::Transaction::pop_first) also removes it.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.range(..)?.next().transpose()
    }

    /// Returns the entry with the largest key; `None` if the tree is empty.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.range(..)?.next_back().transpose()
    }

    /// Returns a cursor over the whole tree as of now. The call reads no data.
    ///
    /// # Errors
    /// `NotFound` if the tree was dropped; `Closed`.
    pub fn cursor(&self) -> Result<Cursor> {
        self.cursor_with(CursorOptions::default())
    }

    /// Returns a cursor over part of the tree, or at a snapshot.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor); `Invalid` for a snapshot of another database.
    pub fn cursor_with(&self, options: CursorOptions) -> Result<Cursor> {
        Cursor::over(&self.open.reads, &self.core, options)
    }

    /// Estimates how many entries `[lo, hi)` (without `hi`, all from `lo` on) holds and their size
    /// on disk. In a tree that is fully merged the call costs a few searches and reads no data.
    /// Otherwise it counts the keys of a short range one by one, and reads a few blocks at each of
    /// up to 42 places of a longer one, to find out how much is overwritten or deleted. The result
    /// is usually within a factor of two, and can be further off where a small part of the range
    /// differs much from the rest.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn estimate(&self, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeEstimate> {
        self.of_version(|version, seq| estimate(version, seq, lo, hi))
    }

    /// Counts the entries among the first `max_keys` keys of `[lo, hi)` (without `hi`, all from
    /// `lo` on), and finds out whether the range has more keys. Deleted keys whose tombstones are
    /// still in the tree count as keys.
    ///
    /// This is for a query optimizer that must know whether a range is short. The call costs at
    /// most as much as a scan of these keys without values. If the range has many messages in
    /// memory, the call may count only the first of these keys, an eighth of `max_keys` and at
    /// least eight, and estimate the entries of the whole range ([`FirstEntries::is_estimate`]). If
    /// the range is known to have several times `max_keys` keys, nothing is counted, and at most
    /// the blocks at the ends of the range are read.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use frondb::{Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let tree = db.create_tree("t", TreeOptions::default())?;
    /// for n in 0..10u8 {
    ///     tree.put(&[n], b"")?;
    /// }
    /// let first = tree.count_first(&[2], Some(&[6]), 100)?;
    /// assert!(first.count == 4 && first.is_all);
    /// assert!(!tree.count_first(&[2], None, 5)?.is_all);
    /// # Ok(())
    /// # }
    /// ```
    pub fn count_first(&self, lo: &[u8], hi: Option<&[u8]>, max_keys: u64) -> Result<FirstEntries> {
        self.count(lo, hi, max_keys, Precision::Counted)
    }

    /// As [`count_first`](Self::count_first), but cheaper and less exact, for a query optimizer
    /// that asks before each short query. If at least half of the messages of the range are
    /// consolidated and few are deletes, the number of consolidated entries is the estimate: at
    /// least half and at most 4/3 of the truth. This costs a fraction of counting.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn estimate_first(
        &self,
        lo: &[u8],
        hi: Option<&[u8]>,
        max_keys: u64,
    ) -> Result<FirstEntries> {
        self.count(lo, hi, max_keys, Precision::FactorOfTwo)
    }

    /// Estimates how many messages `[lo, hi)` (without `hi`, all from `lo` on) holds: puts, deletes
    /// and updates, including obsolete ones. The call reads no data, so it is cheaper than
    /// [`estimate`](Self::estimate): it adds up counts, and assumes that keys are evenly spread
    /// within a block.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn messages(&self, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeMessages> {
        if hi.is_some_and(|hi| hi <= lo) {
            return self.of_version(|_, _| Ok(RangeMessages::default()));
        }
        self.of_version(|version, _| range_messages(version, lo, hi))
    }

    /// Returns up to `parts - 1` ascending keys that split the tree into parts with about equally
    /// many messages, for representative samples or parallel work. Costs a few searches for each
    /// part and reads no data. Returns fewer keys if `parts` is above 1,024, or if the tree has few
    /// keys.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn split_keys(&self, parts: usize) -> Result<Vec<Vec<u8>>> {
        self.of_version(|version, _| split_keys(version, parts))
    }

    /// Returns the statistics of the tree.
    ///
    /// # Errors
    /// `NotFound` if the tree was dropped; `Closed`.
    pub fn stats(&self) -> Result<TreeStats> {
        self.open.reads.check_read(&self.core, None)?;
        Ok(collect::tree_stats(&self.core))
    }

    fn count(
        &self,
        lo: &[u8],
        hi: Option<&[u8]>,
        max_keys: u64,
        precision: Precision,
    ) -> Result<FirstEntries> {
        if hi.is_some_and(|hi| hi <= lo) {
            return self.of_version(|_, _| Ok(FirstEntries::none()));
        }
        self.of_version(|version, seq| count_first(version, seq, lo, hi, max_keys, precision))
    }

    /// Calls `read` with the newest version of the tree and the newest visible SeqNo.
    fn of_version<T>(&self, read: impl FnOnce(&Version, SeqNo) -> Result<T>) -> Result<T> {
        self.read(None, |reads, tree, _| {
            // Take the version before the visible SeqNo: merges may have folded away messages that
            // only an older SeqNo would see.
            let version = tree.version();
            read(&version, reads.oracle.visible())
        })
    }

    /// Calls `read` with the SeqNo of the snapshot, and returns `Closed` in place of its result if
    /// the database is closed by then.
    #[inline]
    pub(crate) fn read<T>(
        &self,
        at: Option<&Snapshot>,
        read: impl FnOnce(&ReadContext, &Arc<TreeCore>, Option<SeqNo>) -> Result<T>,
    ) -> Result<T> {
        let reads = &self.open.reads;
        let seq = reads.check_read(&self.core, at)?;
        reads.health.while_open(|| read(reads, &self.core, seq))
    }

    pub(crate) fn open(&self) -> &Arc<Open> {
        &self.open
    }
}

impl AsTree for Tree {
    #[inline]
    fn core(&self) -> &Arc<TreeCore> {
        &self.core
    }
}
