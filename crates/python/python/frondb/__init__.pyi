"""FronDB: an embedded storage engine for data with many writes and many indexes.

Keys and values are bytes: every argument takes a bytes-like object, every result is ``bytes``. Keys
have 0 to 32 KiB and are in byte order; values have 0 to 64 MiB.

Threads: any thread may use any object. A ``Batch``, a ``BulkWriter`` and an iterator serve one
thread at a time, and raise ``Busy`` in a second one. Calls on one transaction run one after the
other. Every call that may wait releases the interpreter lock.

Processes: after a fork while a database is open, the child raises ``ForkedProcess`` for each use of
an object of its parent, and for each ``open``.

Errors: a call raises a subclass of ``Error`` that says what to do, or ``TypeError`` for an argument
of a wrong type. All calls on a closed object raise ``Closed``; all reads may raise ``Corruption``
and ``Io``, all writes ``NoSpace`` and ``Poisoned``.
"""

import datetime
import os
import pathlib
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from types import GenericAlias, TracebackType
from typing import Literal, Self, TypeAlias, TypeVar, final, overload

from typing_extensions import Buffer

from ._errors import (
    Busy as Busy,
    Cancelled as Cancelled,
    Closed as Closed,
    Conflict as Conflict,
    Corruption as Corruption,
    Deadlock as Deadlock,
    Error as Error,
    Exists as Exists,
    ForkedProcess as ForkedProcess,
    Internal as Internal,
    Invalid as Invalid,
    Io as Io,
    LockTimeout as LockTimeout,
    NoSpace as NoSpace,
    NotFound as NotFound,
    Poisoned as Poisoned,
    TooManyLocks as TooManyLocks,
    Unsupported as Unsupported,
)
from ._views import Items as Items, Keys as Keys, Values as Values

_T = TypeVar("_T")
_Path: TypeAlias = str | os.PathLike[str]
_Option: TypeAlias = str | int | bool | None | datetime.timedelta | os.PathLike[str]
_Rows: TypeAlias = Mapping[bytes, bytes] | Iterable[tuple[Buffer, Buffer]]
_Preset: TypeAlias = Literal["secondary", "aggressive"]
_Wait: TypeAlias = Literal["timeout", "nowait", "skip-locked", "show-locked"]
_Isolation: TypeAlias = Literal["read-uncommitted", "read-committed", "repeatable-read", "serializable"]
_Progress: TypeAlias = Callable[[int, int], bool | None]

__all__ = [
    "BackupContents",
    "BackupReport",
    "Batch",
    "BulkLoad",
    "BulkReport",
    "BulkWriter",
    "Busy",
    "Cancelled",
    "Closed",
    "Conflict",
    "Corruption",
    "Db",
    "Deadlock",
    "Error",
    "Estimate",
    "Exists",
    "ForkedProcess",
    "Internal",
    "Invalid",
    "Io",
    "Items",
    "Keys",
    "LockTimeout",
    "NoSpace",
    "NotFound",
    "OptimizeReport",
    "Poisoned",
    "RestoreReport",
    "Rows",
    "Savepoint",
    "Snapshot",
    "TooManyLocks",
    "Transaction",
    "Tree",
    "Unsupported",
    "Values",
    "VerifyReport",
    "__version__",
    "open",
    "restore",
    "verify_backup",
]

__version__: str

def open(path: _Path, *, memory: int | str | None = None, commit_sync: bool = True, **options: _Option) -> Db:
    """Opens the database in a directory, and creates it if there is none.

    ``memory`` is the memory budget in bytes, or a text such as ``"256M"``: cache, write buffer,
    filters and work buffers; at least 16 MiB, by default a quarter of the machine's memory.

    ``commit_sync`` is the default of the argument ``sync`` of all writes: whether a write returns
    only when it survives a power failure. Without it, a write survives the end of the process, and
    a power failure once ``Db.sync`` was called.

    All other options of a database are set by their names: ``create=False``, ``create_new=True``,
    ``read_only=True``, ``sync="100ms"``, ``checkpoint_period=timedelta(minutes=1)``. The page
    docs/operating/options.md lists them.

    Errors: ``Busy`` if another process, or this one, has the database open; ``NotFound`` with
    ``create=False``; ``Exists`` with ``create_new=True``; ``Invalid`` for an unknown option or a
    value out of its range; ``Corruption``; ``Unsupported`` if a newer version wrote the data.

        with frondb.open("data", memory="256M") as db:
            db.tree("users")[b"ada"] = b"1815"
    """

def restore(
    backups: Iterable[_Path],
    to: _Path,
    *,
    file_mode: int | None = None,
    dir_mode: int | None = None,
    progress: _Progress | None = None,
) -> RestoreReport:
    """Makes a database in the directory ``to`` from a full backup and the incremental ones after it.

    ``to`` must be empty or missing. All bytes are checked with their checksums. The modes are the
    permission bits of the new files. ``progress`` is called with the bytes written and the total,
    and cancels the call by returning ``False``.

    Errors: ``NotFound`` if a directory has no complete backup; ``Invalid`` if the backups do not
    continue each other; ``Exists`` if ``to`` has files; ``Corruption``; ``Cancelled``.
    """

def verify_backup(backup: _Path, *, progress: _Progress | None = None) -> BackupContents:
    """Reads the backup in a directory and checks all its bytes with their checksums.

    ``BackupContents.faults`` lists the faults. An incremental backup does not contain the data that
    it shares with earlier ones: verify each of these, too.

    Errors: ``NotFound`` if there is no complete backup; ``Corruption`` if its list is damaged.
    """

@final
class Db:
    """An open database; ``frondb.open`` makes one.

    Leaving a ``with`` block closes the database. A database that is not closed loses nothing: the
    next open replays its log.
    """

    @property
    def path(self) -> pathlib.Path:
        """The directory of the database, as it was given."""

    @property
    def closed(self) -> bool:
        """Whether the database was closed."""

    def tree(self, name: str, *, preset: _Preset | None = None, counters: bool = False, **options: _Option) -> Tree:
        """Returns the tree of this name, and creates it if there is none.

        The options are for a new tree; those of an existing one stay as they are. ``preset`` is
        ``"secondary"`` for a non-unique index that is scanned by prefix, or ``"aggressive"`` for
        the smallest files. ``counters`` allows ``Tree.add``. All other options of a tree are set by
        their names, such as ``codec="zstd:3"``; docs/operating/options.md lists them.

        Errors: ``Invalid`` for a bad name or option, or for ``counters`` if the tree has none.
        """

    def create_tree(
        self, name: str, *, preset: _Preset | None = None, counters: bool = False, **options: _Option
    ) -> Tree:
        """Creates an empty tree, durably; the options are those of ``tree``.

        Errors: ``Exists``; ``Invalid`` for a bad name or option.
        """

    def open_tree(self, name: str) -> Tree:
        """Returns the tree of this name.

        Errors: ``NotFound``.
        """

    def list_trees(self) -> list[str]:
        """Returns the names of all trees, sorted."""

    def rename_tree(self, old: str, new: str) -> None:
        """Renames a tree, durably; its handles stay valid.

        Errors: ``NotFound``; ``Exists``; ``Invalid`` for a bad name.
        """

    def drop_tree(self, name: str) -> None:
        """Removes a tree and its data, durably.

        Errors: ``NotFound``; ``Busy`` if a prepared transaction has written to the tree.
        """

    def batch(self, *, sync: bool | None = None) -> Batch:
        """Begins a batch: writes to any number of trees that take effect together.

        ``sync`` says whether the commit waits until it survives a power failure.

            with db.batch(sync=False) as batch:
                batch.put(users, b"ada", b"1815")
                batch.put(by_year, b"1815ada", b"")
        """

    def begin(
        self,
        *,
        isolation: _Isolation = "repeatable-read",
        snapshot_isolation: bool = False,
        lock_timeout: float = 10.0,
        sync: bool | None = None,
    ) -> Transaction:
        """Begins a transaction.

        ``snapshot_isolation``, at repeatable read only, makes a write of a row that was changed
        since the transaction's snapshot fail with ``Conflict``. ``lock_timeout`` is the longest
        wait for a lock, in seconds.

            with db.begin(isolation="serializable") as transaction:
                balance = int(transaction.get_for_update(accounts, b"ada") or 0)
                transaction.put(accounts, b"ada", b"%d" % (balance + 1))

        Errors: ``Invalid`` for an unknown isolation level or a negative time.
        """

    def snapshot(self) -> Snapshot:
        """Takes a snapshot, at which reads see the whole database as it is now.

        The space of rows that a snapshot can see is not freed, so close it.
        """

    def bulk_load(
        self,
        *,
        duplicates: Literal["replace", "fail"] = "replace",
        memory: int = 0,
        sync: bool | None = None,
        lock_timeout: float = 60.0,
    ) -> BulkLoad:
        """Begins a bulk load: much data, in any order, with less work than batches.

        With ``duplicates="fail"`` a key that is given twice makes the load fail with ``Exists``.
        ``memory`` is for sorting, in bytes; 0 means a quarter of the memory budget.
        ``lock_timeout`` is how long the commit waits for transactions that hold locks, in seconds.
        """

    def prepared(self) -> list[bytes]:
        """Returns the names of all prepared transactions, sorted."""

    def commit_prepared(self, xid: Buffer, *, sync: bool | None = None) -> None:
        """Commits a prepared transaction by its name.

        Errors: ``NotFound``.
        """

    def rollback_prepared(self, xid: Buffer) -> None:
        """Rolls back a prepared transaction by its name, durably.

        Errors: ``NotFound``.
        """

    def sync(self) -> None:
        """Makes everything that was committed so far durable."""

    def flush(self) -> None:
        """Writes all memtables to the data files."""

    def checkpoint(self) -> None:
        """Writes all memtables to the data files and frees the log, so that the next open replays nothing."""

    def wait_settled(self) -> None:
        """Waits until background work has caught up."""

    def verify(self, *, progress: Callable[[str, int, int], bool | None] | None = None) -> VerifyReport:
        """Reads all data of all trees and checks it; ``VerifyReport.faults`` lists the faults.

        ``progress`` is called with the name of a tree, the bytes read and the bytes to read, and
        cancels the call by returning ``False``.

        Errors: ``Cancelled``.
        """

    def backup(
        self,
        to: _Path,
        *,
        since: _Path | None = None,
        bytes_per_second: int = 0,
        file_mode: int | None = None,
        progress: _Progress | None = None,
    ) -> BackupReport:
        """Copies the database into the directory ``to`` while others read and write it.

        The backup has everything that was committed before the call. ``to`` must be empty or
        missing. ``since`` is the directory of an earlier backup that this one continues: it then
        has only new data. ``bytes_per_second`` limits the reads; 0 means no limit. ``progress`` is
        called with the bytes read and to read, and cancels the call by returning ``False``.

        Errors: ``Exists`` if ``to`` has files; ``Invalid`` if ``to`` overlaps the database, or if
        this database did not make ``since``; ``Busy`` if another backup is being made;
        ``Corruption``; ``Cancelled``.
        """

    @property
    def memory(self) -> int:
        """The memory budget, bytes."""

    def set_memory(self, bytes: int) -> None:
        """Changes the memory budget, bytes; 0 means a quarter of the machine's memory.

        Errors: ``Invalid`` below 16 MiB.
        """

    def stats(self) -> dict[str, int]:
        """Returns the statistics by name; docs/operating/status.md explains each."""

    def prometheus(self) -> str:
        """Returns the statistics and latencies in the text format of Prometheus."""

    def close(self) -> None:
        """Closes the database and unlocks its directory, even while trees, iterators and transactions exist.

        Later calls on these raise ``Closed``. A second ``close`` does nothing.

        Errors: ``Poisoned``, ``NoSpace`` or ``Io`` if something could not be written; the database
        is closed nevertheless, and durable commits stay durable.
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Tree(MutableMapping[bytes, bytes]):
    """One ordered index of a database: a mutable mapping from bytes to bytes.

    ``len(tree)`` reads all keys to count them; ``bool(tree)`` and ``tree.estimate()`` do not.
    Trees are equal only to themselves: to compare contents, compare ``dict(tree)``. Leaving a
    ``with`` block closes the handle, not the tree.
    """

    @property
    def name(self) -> str:
        """The name of the tree."""

    @overload
    def get(self, key: Buffer, default: None = None, *, snapshot: Snapshot | None = None) -> bytes | None:
        """Returns the value of a key, or ``default`` if the key has none.

        ``snapshot`` is the state to read; by default the newest commits.
        """

    @overload
    def get(self, key: Buffer, default: _T, *, snapshot: Snapshot | None = None) -> bytes | _T: ...
    def exists(self, key: Buffer, *, snapshot: Snapshot | None = None) -> bool:
        """Returns whether a key has a value."""

    def multi_get(self, keys: Iterable[Buffer], *, snapshot: Snapshot | None = None) -> list[bytes | None]:
        """Returns the values of several keys as of one moment, in the order of ``keys``.

        Blocks that are not in memory are read at the same time, so this takes less time than a
        ``get`` for each key.
        """

    def first(self) -> tuple[bytes, bytes] | None:
        """Returns the row with the smallest key; ``None`` if the tree is empty."""

    def last(self) -> tuple[bytes, bytes] | None:
        """Returns the row with the largest key; ``None`` if the tree is empty."""

    def items(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        snapshot: Snapshot | None = None,
    ) -> Items:
        """Returns a view of the rows whose keys are in ``[start, stop)`` and begin with ``prefix``.

        Each iteration over the view shows the state at its start, or that of ``snapshot``. With
        ``reverse`` it runs from the largest key to the smallest. ``len`` of a view counts its rows.

            for key, value in tree.items(b"a", b"c"):
                print(key, value)
            newest = next(iter(tree.items(prefix=b"log/", reverse=True)), None)
        """

    def keys(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        snapshot: Snapshot | None = None,
    ) -> Keys:
        """Returns a view of the keys of a range; otherwise as ``items``."""

    def values(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        snapshot: Snapshot | None = None,
    ) -> Values:
        """Returns a view of the values of a range; otherwise as ``items``."""

    def put(self, key: Buffer, value: Buffer, *, sync: bool | None = None) -> None:
        """Sets the value of a key.

        ``sync`` says whether the call returns only when the write survives a power failure; by
        default as ``commit_sync`` of ``frondb.open`` says. Many writes are cheaper in a batch.

        Errors: ``Invalid`` if the key or the value is too long; ``LockTimeout`` or ``Deadlock`` if
        a transaction holds a lock on the key; ``NotFound`` if the tree was dropped.
        """

    def delete(self, key: Buffer, *, sync: bool | None = None) -> None:
        """Removes a key, which need not exist; unlike ``del tree[key]``, reads nothing.

        Errors: as ``put``.
        """

    def delete_range(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        sync: bool | None = None,
    ) -> None:
        """Removes all keys that are in ``[start, stop)`` and begin with ``prefix``, and reads nothing.

        Errors: ``TypeError`` without any bound, for which there is ``clear``; otherwise as ``put``.
        """

    def clear(self) -> None:
        """Removes all keys."""

    @overload
    def pop(self, key: Buffer, /) -> bytes:
        """Removes a key and returns its value, or the default if the key has none.

        No other write of the key can come between the read and the removal.

        Errors: ``KeyError`` if the key has no value and there is no default; otherwise as ``put``.
        """

    @overload
    def pop(self, key: Buffer, default: _T, /) -> bytes | _T: ...
    def popitem(self) -> tuple[bytes, bytes]:
        """Removes the row with the largest key and returns it.

        Errors: ``KeyError`` if the tree is empty; otherwise as ``put``.
        """

    def setdefault(self, key: Buffer, default: Buffer) -> bytes:
        """Returns the value of a key; sets it to ``default`` if the key has none.

        Errors: as ``put``.
        """

    def update(self, rows: _Rows, *, sync: bool | None = None) -> None:  # type: ignore[override]
        """Puts the rows of a mapping, or of an iterable of pairs, in batches of about 1 MiB.

        Not atomic: after an error, the rows of earlier batches stay. For rows that must be
        committed together, use ``Db.batch``; for much data, ``Db.bulk_load``.

        Errors: as ``put``.
        """

    def replace(self, key: Buffer, value: Buffer) -> bytes | None:
        """Sets the value of a key and returns its former value; ``None`` if it had none.

        No other write of the key can come between the read and the write.

        Errors: as ``put``.
        """

    def add(self, key: Buffer, number: int = 1, *, sync: bool | None = None) -> None:
        """Adds a number of 64 bits to a counter, and reads nothing.

        A counter is a value of 8 bytes, two's complement, little-endian; a key without a value
        counts from 0. Sums wrap around at 2**63.

        Errors: ``Invalid`` if the tree was created without ``counters``; ``OverflowError`` for a
        number of more than 64 bits; otherwise as ``put``.
        """

    def counter(self, key: Buffer, *, snapshot: Snapshot | None = None) -> int:
        """Returns the number of a counter; 0 if the key has no value.

        Errors: ``Invalid`` if the value has not 8 bytes.
        """

    def estimate(
        self, start: Buffer | None = None, stop: Buffer | None = None, *, prefix: Buffer | None = None
    ) -> Estimate:
        """Estimates how many rows a range has, usually within a factor of two, and their size on disk."""

    def set_options(self, **options: _Option) -> None:
        """Durably changes options, such as ``codec``, while others read and write.

        New data uses the new options; ``optimize`` rewrites the rest.

        Errors: ``Invalid`` for an option that is unknown, fixed or out of its range.
        """

    def optimize(
        self, *, fraction: float = 1.0, leaves_per_second: int = 0, progress: _Progress | None = None
    ) -> OptimizeReport:
        """Rewrites the leaves of the tree in key order while others read and write.

        ``fraction`` is the part of the tree that is worked on; ``leaves_per_second`` limits the
        speed, 0 means no limit. ``progress`` is called with the leaves done and the total, and
        cancels the call by returning ``False``.

        Errors: ``Cancelled``; ``NoSpace``.
        """

    def verify(self, *, progress: _Progress | None = None) -> VerifyReport:
        """Reads all data of the tree and checks it; ``VerifyReport.faults`` lists the faults.

        Errors: ``Cancelled``.
        """

    def stats(self) -> dict[str, int]:
        """Returns the statistics of the tree by name."""

    def close(self) -> None:
        """Closes this handle; the tree and other handles of it stay as they are."""

    def __getitem__(self, key: Buffer, /) -> bytes: ...
    def __setitem__(self, key: Buffer, value: Buffer, /) -> None: ...
    def __delitem__(self, key: Buffer, /) -> None: ...
    def __contains__(self, key: Buffer, /) -> bool: ...  # type: ignore[override]
    def __iter__(self) -> Rows[bytes]: ...
    def __reversed__(self) -> Rows[bytes]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Rows(Iterator[_T]):
    """An iterator over a range, for one thread at a time. It ends after its first error."""

    def close(self) -> None:
        """Ends the iterator and releases its snapshot."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> _T: ...
    @classmethod
    def __class_getitem__(cls, key: object) -> GenericAlias: ...

@final
class Snapshot:
    """A fixed state of the whole database, for the argument ``snapshot`` of reads."""

    def close(self) -> None:
        """Releases the snapshot. Iterators that have begun continue."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Batch:
    """Writes to any number of trees that are committed together; ``Db.batch`` makes one.

    Leaving a ``with`` block commits the writes, or drops them if the block raised an exception.
    Within a tree the last write of a key wins. A batch is kept in memory, and may take a quarter of
    the memory budget; larger ones raise ``Invalid``. A wrong write, such as one with a key that is
    too long, makes the commit fail, and nothing is changed.
    """

    def put(self, tree: Tree, key: Buffer, value: Buffer) -> None:
        """Adds a write that sets the value of a key."""

    def put_many(self, tree: Tree, rows: _Rows) -> None:
        """Adds writes of all rows of a mapping, or of an iterable of pairs."""

    def delete(self, tree: Tree, key: Buffer) -> None:
        """Adds a write that removes a key."""

    def delete_range(
        self, tree: Tree, start: Buffer | None = None, stop: Buffer | None = None, *, prefix: Buffer | None = None
    ) -> None:
        """Adds a write that removes a range; its arguments are those of ``Tree.delete_range``."""

    def add(self, tree: Tree, key: Buffer, number: int = 1) -> None:
        """Adds a write that adds a number to a counter; see ``Tree.add``."""

    def write(self, *, sync: bool | None = None) -> None:
        """Commits the writes; the batch is then empty and can be used again.

        After an error nothing has changed, and the writes are still in the batch.

        Errors: as ``Tree.put``; ``Invalid`` for a batch that is too large.
        """

    def clear(self) -> None:
        """Drops the writes."""

    @property
    def memory_bytes(self) -> int:
        """The size of the batch in memory, bytes."""

    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        raised: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Transaction:
    """Reads and writes over any number of trees that take effect together; ``Db.begin`` makes one.

    Leaving a ``with`` block commits, or rolls back if the block raised an exception. Only the
    transaction sees its writes until the commit. Each written key stays locked until the end. A
    transaction may be larger than memory. After ``Deadlock`` the transaction is rolled back
    already; after ``Deadlock``, ``Conflict`` and ``LockTimeout`` begin it again.
    """

    @property
    def id(self) -> int:
        """The number of the transaction; numbers ascend in the order of the begins."""

    @overload
    def get(self, tree: Tree, key: Buffer, default: None = None) -> bytes | None:
        """Returns the value of a key as the isolation level shows it, or ``default``.

        At serializable the read locks the key.
        """

    @overload
    def get(self, tree: Tree, key: Buffer, default: _T) -> bytes | _T: ...
    def exists(self, tree: Tree, key: Buffer) -> bool:
        """Returns whether a key has a value."""

    def get_for_update(self, tree: Tree, key: Buffer, *, wait: _Wait = "timeout") -> bytes | None:
        """Locks a key, which need not exist, for writing, and returns its newest value.

        Errors: ``LockTimeout``; ``Deadlock``; ``Busy`` if the key is locked and ``wait`` is not
        ``"timeout"``; ``Conflict`` under snapshot isolation; ``Cancelled``.
        """

    def get_for_share(self, tree: Tree, key: Buffer, *, wait: _Wait = "timeout") -> bytes | None:
        """Locks a key against writes of others, and returns its newest value.

        Errors: as ``get_for_update``.
        """

    def items(
        self,
        tree: Tree,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        lock: Literal["update", "share"] | None = None,
        wait: _Wait = "timeout",
    ) -> Items:
        """Returns a view of the rows of a range as the transaction sees them.

        With ``lock`` an iteration shows the newest data and locks each row before it shows the row;
        ``wait="skip-locked"`` leaves out rows that others have locked.
        """

    def keys(
        self,
        tree: Tree,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        lock: Literal["update", "share"] | None = None,
        wait: _Wait = "timeout",
    ) -> Keys:
        """Returns a view of the keys of a range; otherwise as ``items``."""

    def values(
        self,
        tree: Tree,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        prefix: Buffer | None = None,
        reverse: bool = False,
        lock: Literal["update", "share"] | None = None,
        wait: _Wait = "timeout",
    ) -> Values:
        """Returns a view of the values of a range; otherwise as ``items``."""

    def put(self, tree: Tree, key: Buffer, value: Buffer) -> None:
        """Locks a key and sets its value.

        Errors: ``Invalid`` if the key or the value is too long; otherwise as ``get_for_update``.
        """

    def insert(self, tree: Tree, key: Buffer, value: Buffer) -> None:
        """Sets the value of a key that must not have one.

        Errors: ``Exists``; otherwise as ``put``.
        """

    def delete(self, tree: Tree, key: Buffer) -> None:
        """Locks and removes a key, which need not exist.

        Errors: as ``put``.
        """

    def delete_range(
        self, tree: Tree, start: Buffer | None = None, stop: Buffer | None = None, *, prefix: Buffer | None = None
    ) -> None:
        """Locks and removes a range; its arguments are those of ``Tree.delete_range``.

        Errors: as ``put``.
        """

    def add(self, tree: Tree, key: Buffer, number: int = 1) -> None:
        """Adds a number to a counter; see ``Tree.add``.

        Errors: as ``put``; ``Invalid`` if the tree was created without ``counters``.
        """

    def replace(self, tree: Tree, key: Buffer, new: Buffer) -> bytes | None:
        """Sets the value of a key and returns its former value; ``None`` if it had none.

        Errors: as ``put``.
        """

    def take(self, tree: Tree, key: Buffer) -> bytes | None:
        """Removes a key and returns its value; ``None`` if it had none.

        Errors: as ``put``.
        """

    def pop_first(self, tree: Tree, *, wait: _Wait = "timeout") -> tuple[bytes, bytes] | None:
        """Removes the row with the smallest key and returns it; ``None`` if there is none.

        With ``wait="skip-locked"`` several workers take different rows of a queue.

        Errors: as ``put``.
        """

    def pop_last(self, tree: Tree, *, wait: _Wait = "timeout") -> tuple[bytes, bytes] | None:
        """Removes the row with the largest key and returns it; otherwise as ``pop_first``.

        Errors: as ``put``.
        """

    def savepoint(self) -> Savepoint:
        """Sets a savepoint, to which the transaction can roll back. Savepoints nest.

            with db.begin() as transaction:
                transaction.put(tree, b"kept", b"1")
                try:
                    with transaction.savepoint():
                        transaction.put(tree, b"undone", b"1")
                        raise ValueError
                except ValueError:
                    pass
        """

    def commit(self) -> None:
        """Commits: all writes take effect together.

        Errors: ``NoSpace`` and ``Cancelled``: nothing has changed, and the transaction can be
        committed again; ``Poisoned``; ``Invalid`` if the transaction has ended.
        """

    def rollback(self) -> None:
        """Undoes all writes and releases all locks.

        Errors: ``Invalid`` if the transaction has ended.
        """

    def prepare(self, xid: Buffer) -> None:
        """Prepares the transaction under a name of 1 to 256 bytes, the first phase of two-phase commit.

        It can then be committed or rolled back here or by its name, also after a restart. The end
        of a ``with`` block leaves it prepared.

        Errors: ``Exists`` if the name is taken; otherwise as ``commit``.
        """

    def cancel(self) -> None:
        """Makes the wait of another thread in this transaction, or the next one, fail with ``Cancelled``."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        raised: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Savepoint:
    """A savepoint of a transaction; ``Transaction.savepoint`` makes one.

    Leaving a ``with`` block releases it, or first rolls back to it if the block raised an exception.
    """

    def rollback(self) -> None:
        """Undoes all writes since the savepoint, which stays set. The locks stay, too.

        Errors: ``NotFound`` if the savepoint was released; ``Invalid`` if the transaction has ended.
        """

    def release(self) -> None:
        """Removes the savepoint and later ones, and keeps the writes.

        Errors: as ``rollback``.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        raised: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class BulkLoad:
    """A load of much data into any number of trees; ``Db.bulk_load`` makes one.

    Rows come in any order; they are sorted, and take effect together in ``finish``. Before that,
    and after an error or a crash, the trees are unchanged. A loaded row replaces the row with the
    same key. Leaving a ``with`` block finishes the load, or cancels it if the block raised an
    exception. The rows of ``put`` and ``put_many`` are handed on many at a time, so an error of a
    row may be raised by a later call.

        with db.bulk_load() as load:
            load.put_many(tree, ((b"%d" % n, b"x") for n in range(1000)))
    """

    def new_tree(
        self, name: str, *, preset: _Preset | None = None, counters: bool = False, **options: _Option
    ) -> Tree:
        """Makes a tree that exists from the commit of this load on; the options are those of ``Db.tree``.

        Until then only this load accepts the tree.

        Errors: ``Exists``; ``Invalid`` for a bad name or option.
        """

    def writer(self) -> BulkWriter:
        """Returns a writer, for a load by several threads, one writer for each."""

    def put(self, tree: Tree, key: Buffer, value: Buffer) -> None:
        """Adds a row.

        Errors: ``Invalid`` if the key or the value is too long; ``NotFound`` if the tree was
        dropped; ``Cancelled``; ``NoSpace``.
        """

    def put_many(self, tree: Tree, rows: _Rows) -> None:
        """Adds all rows of a mapping, or of an iterable of pairs.

        Errors: as ``put``.
        """

    def put_columns(
        self, tree: Tree, key_offsets: Buffer, key_data: Buffer, value_offsets: Buffer, value_data: Buffer
    ) -> None:
        """Adds rows from buffers, as Apache Arrow has them.

        ``key_data`` has the bytes of all keys, one after the other; key ``n`` is
        ``key_data[key_offsets[n]:key_offsets[n + 1]]``. Offsets are integers of 4 or 8 bytes, one
        more than there are rows: an ``array.array``, a numpy array, or a ``memoryview``. Values are
        given in the same way. ``frondb.arrow.put_arrays`` takes arrays of pyarrow.

        Errors: ``TypeError`` for other buffers; ``Invalid`` for offsets that descend or lead out of
        the data, or different numbers of rows; otherwise as ``put``.
        """

    def finish(self, *, progress: _Progress | None = None) -> BulkReport:
        """Sorts the rows of all writers and commits them.

        ``progress`` is called with the rows done and the total, and cancels the load by returning
        ``False``.

        Errors: ``Invalid`` if a writer is not finished; ``Exists`` if a key was given twice with
        ``duplicates="fail"``, or the name of a new tree is taken; ``Cancelled``; ``LockTimeout`` if
        transactions kept the trees locked; ``NoSpace``; after all errors nothing is loaded.
        """

    def cancel(self) -> None:
        """Makes all calls of the load, also those of other threads, fail with ``Cancelled``."""

    def duplicate(self) -> bytes | None:
        """Returns a key that was given twice, if there is one."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        raised: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class BulkWriter:
    """A writer of a bulk load, for one thread at a time; ``BulkLoad.writer`` makes one.

    Leaving a ``with`` block finishes it. A writer with rows that is dropped unfinished makes the
    load fail.
    """

    def put(self, tree: Tree, key: Buffer, value: Buffer) -> None:
        """Adds a row; see ``BulkLoad.put``."""

    def put_many(self, tree: Tree, rows: _Rows) -> None:
        """Adds rows; see ``BulkLoad.put_many``."""

    def put_columns(
        self, tree: Tree, key_offsets: Buffer, key_data: Buffer, value_offsets: Buffer, value_data: Buffer
    ) -> None:
        """Adds rows from buffers; see ``BulkLoad.put_columns``."""

    def finish(self) -> None:
        """Hands the rows to the load.

        Errors: ``Closed`` if it is finished; otherwise as ``BulkLoad.put``.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        raised: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class BackupReport:
    """The result of a backup."""

    @property
    def bytes(self) -> int:
        """Bytes in the backup."""

    @property
    def database_bytes(self) -> int:
        """Bytes that the database has in use, including those that only earlier backups have."""

    @property
    def log_bytes(self) -> int:
        """Bytes of the log among ``bytes``."""

    @property
    def log_end(self) -> int:
        """The position in the log before which the backup has all commits."""

    @property
    def is_incremental(self) -> bool:
        """Whether the backup continues another one, which a restore needs too."""

@final
class RestoreReport:
    """The result of a restore."""

    @property
    def bytes(self) -> int:
        """Bytes written."""

    @property
    def log_end(self) -> int:
        """The position in the log before which the database has all commits."""

@final
class BackupContents:
    """What a backup contains."""

    @property
    def bytes(self) -> int:
        """Bytes in the backup."""

    @property
    def database_bytes(self) -> int:
        """Bytes that the database had in use, including those that only earlier backups have."""

    @property
    def log_end(self) -> int:
        """The position in the log before which the backup has all commits."""

    @property
    def is_incremental(self) -> bool:
        """Whether the backup continues another one, which a restore needs too."""

    @property
    def faults(self) -> list[str]:
        """The faults; empty for a backup that can be restored."""

@final
class BulkReport:
    """The result of a bulk load."""

    @property
    def entries(self) -> int:
        """Rows loaded, without duplicates."""

    @property
    def duplicates(self) -> int:
        """Rows that were dropped, because another row has the same key."""

    @property
    def raw_bytes(self) -> int:
        """Bytes of the loaded keys and values, without values over 64 KiB."""

    @property
    def sorted_runs(self) -> int:
        """Sorted runs that were written to disk because the memory for sorting was full."""

@final
class VerifyReport:
    """The result of a verification."""

    @property
    def runs(self) -> int:
        """Runs that were read."""

    @property
    def entries(self) -> int:
        """Messages in those runs."""

    @property
    def values(self) -> int:
        """Values over 64 KiB that were read."""

    @property
    def bytes(self) -> int:
        """Bytes that were read."""

    @property
    def faults(self) -> list[str]:
        """The faults, each with its file and offset; empty for undamaged data."""

@final
class OptimizeReport:
    """The result of an optimize."""

    @property
    def leaves(self) -> int:
        """Leaves in the part of the tree that was worked on."""

    @property
    def rewritten(self) -> int:
        """Leaves that were rewritten."""

    @property
    def held(self) -> int:
        """Leaves that keep old rows because a snapshot can see them."""

    @property
    def failed(self) -> int:
        """Leaves that could not be rewritten."""

    @property
    def failures(self) -> list[str]:
        """The reasons for the first of these."""

    @property
    def disk_bytes_before(self) -> int:
        """Size of the tree on disk before, bytes."""

    @property
    def disk_bytes_after(self) -> int:
        """Size of the tree on disk after, bytes."""

@final
class Estimate:
    """An estimate of a range."""

    @property
    def entries(self) -> int:
        """Rows."""

    @property
    def disk_bytes(self) -> int:
        """Size on disk, bytes."""
