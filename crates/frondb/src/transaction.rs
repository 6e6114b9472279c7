//! [`Transaction`]: reads and writes that take effect atomically.

use std::ops::RangeBounds;
use std::time::Duration;

use frondb_core::Result;
use frondb_core::chunk::Entries;
use frondb_core::tuple::prefix_end;
use frondb_engine::{
    Canceller, Committing, Durability, Isolation, LockMode, ReadLock, Savepoint, Wait,
};

use crate::cursor::bounds_of;
use crate::tree::Tree;

/// How a transaction is begun. The defaults: repeatable read, lock waits of up to 10 s, and a
/// commit that waits for the disk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TransactionOptions {
    pub(crate) inner: frondb_engine::TransactionOptions,
    /// `None` for the default of the handle.
    durability: Option<Durability>,
}

impl TransactionOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the transaction sees of others. Default [`Isolation::RepeatableRead`].
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.inner.isolation = isolation;
        self
    }

    /// Whether a write to a row that was changed since the transaction's snapshot fails with
    /// `Conflict`. Default false: the write overwrites the change, although the transaction's reads
    /// did not see it. Only for repeatable read; at other levels [`Db::begin`](crate::Db::begin)
    /// fails with `Invalid`.
    #[must_use]
    pub fn snapshot_isolation(mut self, on: bool) -> Self {
        self.inner.snapshot_isolation = on;
        self
    }

    /// How long to wait for each lock before the call fails with `LockTimeout`. Default 10 s.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.inner.lock_timeout = timeout;
        self
    }

    /// What the commit waits for. Default: the durability of the handle that begins the
    /// transaction ([`Db::with_commit_sync`](crate::Db::with_commit_sync)), which is
    /// [`Durability::Sync`] unless set otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// The engine's options, for a handle of this default durability.
    pub(crate) fn with_default(self, durability: Durability) -> frondb_engine::TransactionOptions {
        let durability = self.durability.unwrap_or(durability);
        frondb_engine::TransactionOptions { durability, ..self.inner }
    }
}

/// Reads and writes over any number of trees that take effect atomically.
///
/// Until [`commit`](Self::commit) only the transaction itself sees its writes. It locks each key
/// it writes until it ends. Its [`Isolation`] determines what it sees of other transactions and
/// what its reads lock. Transactions of any size work: beyond a part of the memory the writes
/// spill to disk, and the commit stays short.
///
/// Any thread may use it; calls take turns. A dropped transaction is rolled back. A deadlock victim
/// is rolled back immediately, and every later call but [`rollback`](Self::rollback) fails.
///
/// ```
/// use frondb::{Db, Options, TransactionOptions, TreeOptions, Wait};
///
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let accounts = db.create_tree("accounts", TreeOptions::default())?;
/// accounts.put(b"ada", &100_u64.to_be_bytes())?;
/// accounts.put(b"bob", &20_u64.to_be_bytes())?;
///
/// let transfer = db.begin(TransactionOptions::new())?;
/// let mut take = |name: &[u8], plus: i64| -> frondb::Result<()> {
///     // The lock keeps other transactions from changing the row before the write.
///     let old = transfer.get_for_update(&accounts, name, Wait::Timeout)?;
///     let old = old.and_then(|v| v.try_into().ok()).map_or(0, u64::from_be_bytes);
///     let new = old.saturating_add_signed(plus);
///     transfer.put(&accounts, name, &new.to_be_bytes())
/// };
/// take(b"ada", -30)?;
/// take(b"bob", 30)?;
/// transfer.commit()?;
///
/// assert_eq!(accounts.get(b"bob")?.as_deref(), Some(&50_u64.to_be_bytes()[..]));
/// # db.close()
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    inner: frondb_engine::Transaction,
}

impl Transaction {
    pub(crate) fn new(inner: frondb_engine::Transaction) -> Self {
        Self { inner }
    }

    /// The transaction's number, ascending in the order in which transactions begin.
    /// [`Db::locks`](crate::Db::locks) names transactions by it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.inner.id()
    }

    /// Begins a statement. At read committed, all plain reads until the next `begin_statement` see
    /// one state; without it each call and each cursor is a statement of its own. A pending cancel
    /// ([`canceller`](Self::canceller)) is dropped, because it was meant for the previous
    /// statement.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn begin_statement(&self) -> Result<()> {
        self.inner.begin_statement()
    }

    /// Drops a pending cancel ([`canceller`](Self::canceller)), as
    /// [`begin_statement`](Self::begin_statement) does, for a commit that is a statement of its
    /// own.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn forget_cancel(&self) -> Result<()> {
        self.inner.forget_cancel()
    }

    /// Ends a statement. At read committed the state that its reads saw is released; reads before
    /// the next statement see the newest state.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn end_statement(&self) -> Result<()> {
        self.inner.end_statement()
    }

    /// Changes how long later calls wait for each lock ([`TransactionOptions::lock_timeout`] is
    /// the initial value). Waits its turn like any call.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or is prepared; `Closed`.
    pub fn set_lock_timeout(&self, timeout: Duration) -> Result<()> {
        self.inner.set_lock_timeout(timeout)
    }

    /// Changes what the prepare and the commit wait for ([`TransactionOptions::durability`] is the
    /// initial value). Also allowed on a prepared transaction, for a commit through this handle.
    /// Waits its turn like any call.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn set_durability(&self, durability: Durability) -> Result<()> {
        self.inner.set_durability(durability)
    }

    /// Takes the snapshot of a repeatable read now; otherwise the first read does.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn take_snapshot(&self) -> Result<()> {
        self.inner.take_snapshot()
    }

    /// A handle with which any thread can cancel this transaction's wait: a wait for a lock fails
    /// with `Cancelled`, and so does a commit that waits for background work to make room, which
    /// has then changed nothing. If the transaction is not waiting, its next wait fails, unless a
    /// statement begins first ([`begin_statement`](Self::begin_statement)): a cancel that comes too
    /// late does not hit the next statement.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.inner.canceller()
    }

    // --- Reading ---

    /// The value of `key`, including the transaction's own writes. At serializable it locks the
    /// key in shared mode, even if the key has no value.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if
    /// the tree was dropped; `Corruption`, `Io`, `Closed`. At serializable also those of
    /// [`get_for_share`](Self::get_for_share).
    pub fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.inner.get(&tree.inner, key)
    }

    /// The values of several keys as of one moment, in the order of `keys`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, tree: &Tree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.inner.multi_get(&tree.inner, keys)
    }

    /// Whether `key` has a value. Reads and locks as [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn exists(&self, tree: &Tree, key: &[u8]) -> Result<bool> {
        self.inner.exists(&tree.inner, key)
    }

    /// The newest value of `key`, independent of the snapshot. Locks the key in exclusive mode,
    /// even if it has no value: no other transaction can lock or write it until this one ends.
    ///
    /// # Errors
    /// As [`get`](Self::get); `LockTimeout`; `Deadlock`: the transaction was rolled back, try it
    /// again; `Busy` if the key is locked and `wait` is not [`Wait::Timeout`]; `Cancelled`.
    pub fn get_for_update(&self, tree: &Tree, key: &[u8], wait: Wait) -> Result<Option<Vec<u8>>> {
        self.inner.get_for_update(&tree.inner, key, wait)
    }

    /// The newest value of `key`, independent of the snapshot. Locks the key in shared mode: no
    /// other transaction can write it until this one ends.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_share(&self, tree: &Tree, key: &[u8], wait: Wait) -> Result<Option<Vec<u8>>> {
        self.inner.get_for_share(&tree.inner, key, wait)
    }

    /// Releases the lock that the last [`get_for_update`](Self::get_for_update) or
    /// [`get_for_share`](Self::get_for_share) took on `key`, for a caller that rejects the row it
    /// has read. Does nothing unless the level is read committed or below, the transaction had no
    /// lock on the key before, and it has not locked or written anything since.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Closed`.
    pub fn unlock(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.inner.unlock(&tree.inner, key)
    }

    /// Whether `key` was committed after the snapshot of this transaction's plain reads. Returns
    /// its value at the snapshot if so, and `None` if plain reads see the newest commit. The
    /// answer is also `None` without a snapshot, where the overlay has the key, and under snapshot
    /// isolation. The transaction's own writes do not count.
    ///
    /// For callers that keep other trees derived from the value, such as indexes, and are about to
    /// write a key they have locked. Such a caller writes the difference between the newest value
    /// and the new one to the derived trees. Plain reads of this transaction also need the
    /// difference between the value at the snapshot and the newest value, which
    /// [`overlay_put`](Self::overlay_put) and [`overlay_delete`](Self::overlay_delete) provide.
    /// Costs next to nothing while no transaction has committed to the tree since the snapshot.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`, `Io`, `Closed`.
    pub fn outdated(&self, tree: &Tree, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        self.inner.outdated(&tree.inner, key)
    }

    /// Makes later plain reads see this value of `key` instead of that at their snapshot, unless
    /// the transaction writes the key itself. The value is neither locked nor committed, and
    /// locking reads do not see it. It lasts as long as the snapshot; rolling back to a savepoint
    /// undoes it.
    ///
    /// # Errors
    /// `Invalid` if plain reads have no snapshot yet, and at serializable; otherwise as
    /// [`put`](Self::put) without the errors of locking.
    pub fn overlay_put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.overlay_put(&tree.inner, key, value)
    }

    /// Makes later plain reads see no value of `key`; see [`overlay_put`](Self::overlay_put).
    ///
    /// # Errors
    /// As [`overlay_put`](Self::overlay_put).
    pub fn overlay_delete(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.inner.overlay_delete(&tree.inner, key)
    }

    /// Locks all keys with `lo <= key < hi`, existing or not, until the transaction ends; without
    /// `hi`, all from `lo` on. An empty `lo` without `hi` locks the whole tree.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn lock_range(
        &self,
        tree: &Tree,
        lo: &[u8],
        hi: Option<&[u8]>,
        mode: LockMode,
        wait: Wait,
    ) -> Result<()> {
        self.inner.lock_range(&tree.inner, lo, hi, mode, wait)
    }

    /// A cursor over the whole tree. At serializable it locks what it passes in shared mode.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn cursor(&self, tree: &Tree) -> Result<TransactionCursor> {
        self.cursor_with(tree, TransactionCursorOptions::new())
    }

    /// A cursor over part of the tree, plain or locking.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn cursor_with(
        &self,
        tree: &Tree,
        options: TransactionCursorOptions,
    ) -> Result<TransactionCursor> {
        let inner = self.inner.cursor(&tree.inner, options.inner)?;
        Ok(TransactionCursor { inner })
    }

    // --- Writing ---

    /// Sets the value of `key`. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, for a key or value that is too long, or for a tree
    /// of another database; `NotFound` if the tree was dropped; `LockTimeout`; `Deadlock`: the
    /// transaction was rolled back, try it again; `Conflict` under snapshot isolation: roll back
    /// and try again; `Cancelled`; `NoSpace` if a large transaction cannot spill to disk; `Io`,
    /// `Closed`. Except for `Deadlock` the transaction's writes are as before the call.
    pub fn put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(&tree.inner, key, value)
    }

    /// Sets the value of a `key` that has none.
    ///
    /// # Errors
    /// `Exists` if the key has a value; the key stays locked. Otherwise as [`put`](Self::put).
    pub fn insert(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.insert(&tree.inner, key, value)
    }

    /// Removes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.inner.delete(&tree.inner, key)
    }

    /// Removes all keys with `lo <= key < hi`; without `hi`, all from `lo` on. Locks the whole
    /// range.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<()> {
        self.inner.delete_range(&tree.inner, lo, hi)
    }

    /// Applies the tree's update function with this operand to `key`, without reading it.
    ///
    /// # Errors
    /// As [`put`](Self::put); `Invalid` if the tree has no update function or it is not
    /// registered.
    pub fn update(&self, tree: &Tree, key: &[u8], operand: &[u8]) -> Result<()> {
        self.inner.update(&tree.inner, key, operand)
    }

    // --- Savepoints ---

    /// Sets a savepoint. Savepoints nest.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn set_savepoint(&self) -> Result<Savepoint> {
        self.inner.set_savepoint()
    }

    /// Undoes all writes since the savepoint was set. The savepoint stays set, later ones are
    /// removed. Locks are kept.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is no longer set; `Invalid` for one of another transaction;
    /// `NoSpace` or `Io` if spilled writes of a large transaction cannot be rewritten: the call
    /// may be repeated.
    pub fn roll_back_to(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.roll_back_to(savepoint)
    }

    /// Removes the savepoint and later ones, and keeps the writes.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is no longer set; `Invalid` for one of another transaction.
    pub fn release(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.release(savepoint)
    }

    /// Removes only this savepoint: later ones stay set, and the writes are kept.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn forget_savepoint(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.forget_savepoint(savepoint)
    }

    // --- Commit, prepare, rollback ---

    /// Commits: all writes take effect atomically. Returns when the commit is as durable as the
    /// transaction's options require. Before the wait for the disk, other transactions see the
    /// writes and can take the locks.
    ///
    /// # Errors
    /// `NoSpace`, or `NotFound` if a tree was dropped: nothing has changed, and the transaction
    /// stays active, for another try or a rollback. `Poisoned`, `Io`, `Closed`; `Invalid` if it
    /// has ended.
    pub fn commit(&self) -> Result<()> {
        self.inner.commit()
    }

    /// The first half of a [`commit`](Self::commit): everything except the wait for the disk,
    /// which [`Committing::wait`] does. A caller that makes the first halves of several
    /// transactions one after the other decides their order, and one sync serves all of them.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_in_order(&self) -> Result<Committing> {
        self.inner.commit_in_order()
    }

    /// Prepares the transaction under a name of 1 to 256 bytes, the first phase of two-phase
    /// commit. From then on it can be committed or rolled back by this handle or by name
    /// ([`Db::commit_prepared`](crate::Db::commit_prepared)), even after a restart. It keeps its
    /// write locks and accepts no more reads or writes. Dropping the handle leaves it prepared. On
    /// return the prepare is as durable as the transaction's options require.
    ///
    /// # Errors
    /// `Exists` if another prepared transaction has this name; `Invalid` for the name, or if the
    /// transaction has ended. Otherwise as [`commit`](Self::commit).
    pub fn prepare(&self, xid: &[u8]) -> Result<()> {
        self.inner.prepare(xid)
    }

    /// The first half of a [`prepare`](Self::prepare): everything except the wait for the disk.
    /// Only after that wait may the caller report to its coordinator that the transaction is
    /// prepared.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_in_order(&self, xid: &[u8]) -> Result<Committing> {
        self.inner.prepare_in_order(xid)
    }

    /// Undoes all writes and releases all locks.
    ///
    /// # Errors
    /// `Invalid` if the transaction was committed or rolled back before.
    pub fn rollback(&self) -> Result<()> {
        self.inner.rollback()
    }

    /// Rolls the transaction back unless another thread is in a call on it or on one of its
    /// cursors. In that case it returns false and nothing has changed. It does not wait for that
    /// call, as dropping the transaction would. A transaction that has ended or is prepared stays
    /// as it is.
    #[must_use = "it may be in use"]
    pub fn try_abandon(&self) -> bool {
        self.inner.try_abandon()
    }
}

/// The range that a transaction's cursor shows and the locks it takes. Default: the whole tree,
/// with no locks beyond those of the isolation level.
#[derive(Clone, Debug, Default)]
pub struct TransactionCursorOptions {
    inner: frondb_engine::TransactionCursorOptions,
}

impl TransactionCursorOptions {
    /// The whole tree; locks only at serializable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows only keys in `range`.
    #[must_use]
    pub fn range<'a>(mut self, range: impl RangeBounds<&'a [u8]>) -> Self {
        (self.inner.lower, self.inner.upper) = bounds_of(&range);
        self
    }

    /// Shows only keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(mut self, prefix: &[u8]) -> Self {
        self.inner.lower = Some(prefix.to_vec());
        self.inner.upper = prefix_end(prefix);
        self
    }

    /// Shows the newest data and locks it in exclusive mode.
    #[must_use]
    pub fn for_update(mut self, wait: Wait) -> Self {
        self.inner.lock = Some(ReadLock { mode: LockMode::Exclusive, wait });
        self
    }

    /// Shows the newest data and locks it in shared mode.
    #[must_use]
    pub fn for_share(mut self, wait: Wait) -> Self {
        self.inner.lock = Some(ReadLock { mode: LockMode::Shared, wait });
        self
    }
}

/// A position in a tree within a transaction: committed data as the isolation level shows it, with
/// the transaction's own writes on top. A locking cursor shows the newest data. It locks each
/// entry before it shows it, and from repeatable read on also the gap before the entry.
///
/// The cursor shows the transaction's own writes as of its last `seek`, `seek_for_prev`, `first` or
/// `last`. After the transaction has ended every move fails. Otherwise it is like a
/// [`Cursor`](crate::Cursor). One thread at a time.
#[derive(Debug)]
pub struct TransactionCursor {
    inner: frondb_engine::TransactionCursor,
}

impl TransactionCursor {
    /// Whether the cursor is at an entry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// Whether no rollback to a savepoint has happened since the cursor was positioned. Otherwise
    /// its current entry may be a write that was undone; the next move shows the present state.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.inner.is_current()
    }

    /// Key of the current entry; empty without one.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// Value of the current entry; empty without one.
    ///
    /// # Errors
    /// `Corruption` or `Io` for a large value; `Closed`; `Invalid` once the transaction was
    /// prepared.
    pub fn value(&self) -> Result<&[u8]> {
        self.inner.value()
    }

    /// Moves to the first entry whose key is at least `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`Transaction::get`]; for a locking cursor as [`Transaction::get_for_update`]. The
    /// cursor is then at no entry.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.inner.seek(key)
    }

    /// Moves to the last entry whose key is at most `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        self.inner.seek_for_prev(key)
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

    /// Moves to the next entry, or to the first if the cursor is not positioned. Returns whether
    /// there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[expect(clippy::should_implement_trait, reason = "it can fail, and lends what it is at")]
    pub fn next(&mut self) -> Result<bool> {
        self.inner.next()
    }

    /// Moves over several adjacent entries in one call, returns them, and stays at the last: at
    /// most `max` entries, with at most `bytes` of keys and `bytes` of values. Cheaper than that
    /// many calls of [`next`](Self::next). May return no entries where the next one needs more than
    /// a copy, at an end, before the first entry, or after a backward move, and returns none of a
    /// locking cursor; call [`next`](Self::next) then.
    #[inline]
    #[must_use]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        self.inner.next_entries(max, bytes)
    }

    /// Moves to the previous entry, or to the last if the cursor is not positioned. Returns
    /// whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn prev(&mut self) -> Result<bool> {
        self.inner.prev()
    }

    /// Releases the lock of the current entry, for a caller that rejects the row it has read. Does
    /// nothing unless the level is read committed or below and this cursor took the lock.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn unlock(&mut self) -> Result<()> {
        self.inner.unlock()
    }
}
