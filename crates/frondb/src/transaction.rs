//! [`Transaction`]: reads and writes that take effect together or not at all.

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

/// What a transaction is begun with. The defaults: repeatable read, waits of 10 s for a lock, and
/// a commit that waits for the disk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TransactionOptions {
    pub(crate) inner: frondb_engine::TransactionOptions,
    /// What was asked for; else the handle decides.
    durability: Option<Durability>,
}

impl TransactionOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it sees of others. Default [`Isolation::RepeatableRead`].
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.inner.isolation = isolation;
        self
    }

    /// Whether a write to a row that was changed since the transaction's snapshot fails with
    /// `Conflict`. Default false: then it writes over what it has not seen. For repeatable read only: at
    /// another level the begin fails with `Invalid`.
    #[must_use]
    pub fn snapshot_isolation(mut self, on: bool) -> Self {
        self.inner.snapshot_isolation = on;
        self
    }

    /// How long each lock is waited for before the call fails with `LockTimeout`. Default 10 s.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.inner.lock_timeout = timeout;
        self
    }

    /// What the commit waits for. Default: what the handle says that begins it
    /// ([`Db::with_commit_sync`](crate::Db::with_commit_sync)), which is [`Durability::Sync`] if
    /// nothing else was said.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// As the engine takes them, begun by a handle of this default.
    pub(crate) fn with_default(self, durability: Durability) -> frondb_engine::TransactionOptions {
        let durability = self.durability.unwrap_or(durability);
        frondb_engine::TransactionOptions { durability, ..self.inner }
    }
}

/// Reads and writes over any number of trees that take effect together or not at all.
///
/// What it writes is its own until [`commit`](Self::commit): it sees it, others do not. Each key it
/// writes is locked until it ends, so that others wait. What it sees of others and what its reads
/// lock is up to its [`Isolation`]. A transaction of any size works: beyond a part of the memory
/// its writes go to disk, and the commit is short all the same.
///
/// Any thread may use it; calls take turns. One that is dropped is rolled back. The victim of a
/// deadlock is rolled back at once: every later call but [`rollback`](Self::rollback) fails.
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
///     // Locked, so that nobody changes it between the read and the write.
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

    /// Its number: ascending in the order in which transactions begin; names it in
    /// [`Db::locks`](crate::Db::locks).
    #[must_use]
    pub fn id(&self) -> u64 {
        self.inner.id()
    }

    /// Begins a statement: at read committed, all plain reads until the next call of this see one
    /// state. Without it each call, and each cursor, is a statement of its own. A cancel
    /// ([`canceller`](Self::canceller)) that no wait has met is forgotten: it was meant for the statement
    /// before.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn begin_statement(&self) -> Result<()> {
        self.inner.begin_statement()
    }

    /// Forgets a cancel ([`canceller`](Self::canceller)) that no wait has met, as
    /// [`begin_statement`](Self::begin_statement) does: for a commit that is a statement of its own.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn forget_cancel(&self) -> Result<()> {
        self.inner.forget_cancel()
    }

    /// Ends a statement: at read committed, the state that its reads saw is kept for it no longer. What
    /// comes before the next statement sees the newest.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn end_statement(&self) -> Result<()> {
        self.inner.end_statement()
    }

    /// Changes how long each lock is waited for, from the next call on
    /// ([`TransactionOptions::lock_timeout`] is what it begins with). Waits its turn like any call.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or is prepared; `Closed`.
    pub fn set_lock_timeout(&self, timeout: Duration) -> Result<()> {
        self.inner.set_lock_timeout(timeout)
    }

    /// Changes what the prepare and the commit to come wait for ([`TransactionOptions::durability`]
    /// and the handle are what it begins with). Also once it is prepared, for its commit by this
    /// handle. Waits its turn like any call.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn set_durability(&self, durability: Durability) -> Result<()> {
        self.inner.set_durability(durability)
    }

    /// Fixes now what a repeatable read sees; else its first read does.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn take_snapshot(&self) -> Result<()> {
        self.inner.take_snapshot()
    }

    /// Something with which any thread can make this transaction's wait for a lock fail with
    /// `Cancelled`, or its commit while that waits for background work to make room: that commit is then
    /// as if it had not been tried. If it does not wait its next wait does, unless a statement begins before
    /// ([`begin_statement`](Self::begin_statement)): so a cancel that comes too late for one statement
    /// does not hit the next.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.inner.canceller()
    }

    // --- Reading ---

    /// The value of `key`, own writes included. At serializable it locks the key in shared mode,
    /// also if it has no value.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if
    /// the tree was dropped; `Corruption`, `Io`, `Closed`. At serializable those of
    /// [`get_for_share`](Self::get_for_share) too.
    pub fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.inner.get(&tree.inner, key)
    }

    /// The values of several keys, in their order, as of one moment.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, tree: &Tree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.inner.multi_get(&tree.inner, keys)
    }

    /// Whether `key` has a value; reads and locks as [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn exists(&self, tree: &Tree, key: &[u8]) -> Result<bool> {
        self.inner.exists(&tree.inner, key)
    }

    /// The newest value of `key`, whatever the snapshot, locked in exclusive mode, also if it has
    /// none: nobody else can lock or write it until the transaction ends.
    ///
    /// # Errors
    /// As [`get`](Self::get); `LockTimeout`; `Deadlock`: the transaction was rolled back, try it
    /// again; `Busy` if it is locked and `wait` is not [`Wait::Timeout`]; `Cancelled`.
    pub fn get_for_update(&self, tree: &Tree, key: &[u8], wait: Wait) -> Result<Option<Vec<u8>>> {
        self.inner.get_for_update(&tree.inner, key, wait)
    }

    /// The newest value of `key`, whatever the snapshot, locked in shared mode: nobody else can
    /// write it until the transaction ends.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_share(&self, tree: &Tree, key: &[u8], wait: Wait) -> Result<Option<Vec<u8>>> {
        self.inner.get_for_share(&tree.inner, key, wait)
    }

    /// Gives up the lock of `key` that the last [`get_for_update`](Self::get_for_update) or
    /// [`get_for_share`](Self::get_for_share) took: for a caller that looked and does not want it. Only
    /// at read committed and below, only if the transaction had no lock on it before, and only if it has
    /// locked or written nothing since; else nothing happens.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Closed`.
    pub fn unlock(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.inner.unlock(&tree.inner, key)
    }

    /// Whether `key` was committed after the snapshot that plain reads of this transaction read at, and if so its
    /// value there: the outer `None` means that plain reads see the newest commit. That is also the answer
    /// without a snapshot, where the overlay has the key, and under snapshot isolation. Own writes do not count.
    ///
    /// For keys that the transaction has locked and is about to write, by a caller that keeps other
    /// trees derived from their values: the transaction's writes to those trees lead from the newest value to
    /// its own, and its plain reads need the way from this value too, which is for
    /// [`overlay_put`](Self::overlay_put) and [`overlay_delete`](Self::overlay_delete). Costs next to
    /// nothing while nobody has committed to the tree since the snapshot.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`, `Io`, `Closed`.
    pub fn outdated(&self, tree: &Tree, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        self.inner.outdated(&tree.inner, key)
    }

    /// From now on plain reads see this value of `key` in place of what their snapshot has, unless the transaction
    /// writes the key itself. It is neither locked nor committed, and locking reads do not see it. It ends
    /// with the snapshot; rolling back to a savepoint undoes it.
    ///
    /// # Errors
    /// `Invalid` if plain reads have no snapshot (yet), and at serializable; else as [`put`](Self::put), but for
    /// those of a lock.
    pub fn overlay_put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.overlay_put(&tree.inner, key, value)
    }

    /// From now on plain reads see no value of `key`, as [`overlay_put`](Self::overlay_put).
    ///
    /// # Errors
    /// As [`overlay_put`](Self::overlay_put).
    pub fn overlay_delete(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.inner.overlay_delete(&tree.inner, key)
    }

    /// Locks all keys with `lo <= key < hi`, there or not, until the transaction ends; without `hi`
    /// all from `lo` on. An empty `lo` without `hi` is the whole tree.
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

    /// A cursor over all of `tree`; at serializable it locks what it passes in shared mode.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn cursor(&self, tree: &Tree) -> Result<TransactionCursor> {
        self.cursor_with(tree, TransactionCursorOptions::new())
    }

    /// A cursor over a part of `tree`, plain or locking.
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
    /// and try again; `Cancelled`; `NoSpace` if a large transaction cannot go on to disk; `Io`,
    /// `Closed`. The transaction is as it was before the call, but for `Deadlock`.
    pub fn put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(&tree.inner, key, value)
    }

    /// Sets the value of a `key` that has none.
    ///
    /// # Errors
    /// `Exists` if it has one; it is locked now. Else as [`put`](Self::put).
    pub fn insert(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.insert(&tree.inner, key, value)
    }

    /// Removes `key`, whether it exists or not.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.inner.delete(&tree.inner, key)
    }

    /// Removes all keys with `lo <= key < hi`; without `hi`, all from `lo` on. The range is locked
    /// as a whole.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<()> {
        self.inner.delete_range(&tree.inner, lo, hi)
    }

    /// Applies the tree's update function to `key` with this operand, without reading it.
    ///
    /// # Errors
    /// As [`put`](Self::put); `Invalid` if the tree has no update function, or was opened
    /// without it.
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

    /// Undoes all writes since the savepoint was set. It stays set; those set after it are gone.
    /// Locks stay.
    ///
    /// # Errors
    /// `NotFound` if it is not set any more; `Invalid` for one of another transaction; `NoSpace`
    /// or `Io` if a part of a large transaction has to be written anew: the call may be repeated.
    pub fn roll_back_to(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.roll_back_to(savepoint)
    }

    /// Forgets the savepoint and those set after it, and keeps what was written.
    ///
    /// # Errors
    /// `NotFound` if it is not set any more; `Invalid` for one of another transaction.
    pub fn release(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.release(savepoint)
    }

    /// Forgets the savepoint alone: those set after it stay, and what was written.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn forget_savepoint(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.forget_savepoint(savepoint)
    }

    // --- The end ---

    /// Commits: all writes take effect together. Returns when they are as durable as it asks;
    /// others see them, and get the locks, before the wait for the disk.
    ///
    /// # Errors
    /// `NoSpace`, or `NotFound` if a tree was dropped: nothing has changed, and the transaction
    /// goes on, for another try or a rollback. `Poisoned`, `Io`, `Closed`; `Invalid` if it has
    /// ended.
    pub fn commit(&self) -> Result<()> {
        self.inner.commit()
    }

    /// The first half of a [`commit`](Self::commit): all but the wait for the disk, which is the
    /// second. Who calls it for several transactions one after the other decides their order, and
    /// lets one sync serve them all.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_in_order(&self) -> Result<Committing> {
        self.inner.commit_in_order()
    }

    /// Prepares under a name of 1 to 256 bytes, the first of two phases: from now on it can be
    /// committed or rolled back, whatever happens, by this handle or by name
    /// ([`Db::commit_prepared`](crate::Db::commit_prepared)), also after a restart. It keeps its
    /// write locks and takes no more reads or writes; dropping the handle leaves it prepared.
    /// Durable, as it asks, when this returns.
    ///
    /// # Errors
    /// `Exists` if one of this name is prepared; `Invalid` for the name, or if it has ended. Else
    /// as [`commit`](Self::commit).
    pub fn prepare(&self, xid: &[u8]) -> Result<()> {
        self.inner.prepare(xid)
    }

    /// The first half of a [`prepare`](Self::prepare): all but the wait for the disk. Only when that
    /// is over may a coordinator be told that the transaction is prepared.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_in_order(&self, xid: &[u8]) -> Result<Committing> {
        self.inner.prepare_in_order(xid)
    }

    /// Undoes all writes and lets go of all locks.
    ///
    /// # Errors
    /// `Invalid` if it was committed or rolled back before.
    pub fn rollback(&self) -> Result<()> {
        self.inner.rollback()
    }

    /// Rolls the transaction back unless another thread is in a call of it, or of one of its cursors: then
    /// it returns false, and nothing has changed. Never waits for who waits for a lock. One that has ended,
    /// or is prepared, stays as it is. For who may not wait, as a drop would.
    #[must_use = "it may be in use"]
    pub fn try_abandon(&self) -> bool {
        self.inner.try_abandon()
    }
}

/// What a cursor of a transaction shows and locks. All of the tree, without locks of its own, by
/// default.
#[derive(Clone, Debug, Default)]
pub struct TransactionCursorOptions {
    inner: frondb_engine::TransactionCursorOptions,
}

impl TransactionCursorOptions {
    /// All of the tree; locks only at serializable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only keys in `range`.
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

/// A position in a tree in a transaction: committed data as the isolation level shows it, with the
/// transaction's own writes above. A locking cursor shows the newest data and locks each entry, and
/// from repeatable read on the gap before it, before it shows it.
///
/// It shows what the transaction had written when it was last positioned by `seek`,
/// `seek_for_prev`, `first` or `last`. After the transaction has ended every move fails. Else it
/// is like a [`Cursor`](crate::Cursor). For one thread at a time.
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

    /// Whether no rollback to a savepoint came since it was positioned: else the entry it is at may be
    /// a write that was undone. Its next move finds what is there now.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.inner.is_current()
    }

    /// Key of the entry it is at; empty if it is at none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// Value of the entry it is at; empty if it is at none.
    ///
    /// # Errors
    /// `Corruption` or `Io` for a large value; `Closed`; `Invalid` once the transaction was prepared.
    pub fn value(&self) -> Result<&[u8]> {
        self.inner.value()
    }

    /// Goes to the first entry with a key not below `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`Transaction::get`]; of a locking cursor as [`Transaction::get_for_update`]. It is at no
    /// entry then.
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

    /// Goes to the next entry; to the first if it is not positioned. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[expect(clippy::should_implement_trait, reason = "it can fail, and lends what it is at")]
    pub fn next(&mut self) -> Result<bool> {
        self.inner.next()
    }

    /// Goes on over entries that lie one after the other and is at the last of them: at most `max`, with
    /// at most `bytes` of keys and as many of values. Saves the cost of that many calls of
    /// [`next`](Self::next), and promises nothing: none where the next entry needs more than a copy, at an
    /// end, before the first entry, or after a move backward, and none of a locking
    /// cursor; then call `next`.
    #[inline]
    #[must_use]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        self.inner.next_entries(max, bytes)
    }

    /// Goes to the entry before; to the last if it is not positioned. Returns whether there is
    /// one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn prev(&mut self) -> Result<bool> {
        self.inner.prev()
    }

    /// Gives up the lock of the entry it is at: for a caller that looked and does not want it. Only
    /// at read committed and below, and only a lock that this cursor took; else nothing happens.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn unlock(&mut self) -> Result<()> {
        self.inner.unlock()
    }
}
