"""FronDB: an embedded storage engine for data with many writes and many indexes.

    import frondb

    with frondb.open("data", memory="256M") as db:
        users = db.tree("users")
        users[b"ada"] = b"1815"
        for key, value in users.items(prefix=b"a"):
            print(key, value)

The documentation of all classes and functions is in the stubs, ``frondb/__init__.pyi``.
"""

from collections.abc import Iterator, MutableMapping

from ._errors import (
    Busy,
    Cancelled,
    Closed,
    Conflict,
    Corruption,
    Deadlock,
    Error,
    Exists,
    ForkedProcess,
    Internal,
    Invalid,
    Io,
    LockTimeout,
    NoSpace,
    NotFound,
    Poisoned,
    TooManyLocks,
    Unsupported,
)
from ._frondb import (
    BackupContents,
    BackupReport,
    Batch,
    BulkLoad,
    BulkReport,
    BulkWriter,
    Db,
    Estimate,
    OptimizeReport,
    RestoreReport,
    Rows,
    Savepoint,
    Snapshot,
    Transaction,
    Tree,
    VerifyReport,
    __version__,
    open,
    restore,
    verify_backup,
)
from ._views import Items, Keys, Values

MutableMapping.register(Tree)
Iterator.register(Rows)

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
