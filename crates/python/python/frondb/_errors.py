"""The exceptions of FronDB, one for each kind of error.

The kind says what the caller must do.
"""

from __future__ import annotations


class Error(Exception):
    """Base of all exceptions of FronDB. Its text says what happened, to which object, and what to do."""

    def __init__(
        self,
        message: str = "",
        *,
        file: str | None = None,
        offset: int | None = None,
        what: str | None = None,
        os_error: int | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset
        self.what = what
        self.os_error = os_error
        if isinstance(self, OSError):
            # Assigned like this, the attribute stays one of OSError for checkers of types.
            setattr(self, "errno", os_error)

    def __str__(self) -> str:
        message = str(self.args[0]) if self.args else ""
        if self.file is None:
            return message
        return f"{message} ({self.what} at offset {self.offset} of {self.file})"

    def __reduce__(self) -> tuple[object, ...]:
        # Keeps the fields when multiprocessing passes the exception to another process.
        state = self.__dict__ | ({"errno": self.errno} if isinstance(self, OSError) else {})
        return (type(self), self.args, state)


class Conflict(Error):
    """Another transaction changed the row: retry the transaction."""


class Deadlock(Error):
    """The transaction was the victim of a deadlock: retry it."""


class LockTimeout(Error, TimeoutError):
    """The wait for a lock was too long: retry the transaction."""


class Busy(Error):
    """Another call, thread or process uses the resource: retry the call."""


class Invalid(Error, ValueError):
    """The call is wrong: fix it."""


class NotFound(Error, LookupError):
    """The named tree, directory or savepoint does not exist."""


class Exists(Error):
    """The named thing exists already."""


class NoSpace(Error, OSError):
    """The disk is full: free space. Reads continue, and writes resume by themselves."""


class Corruption(Error):
    """Data on disk is not what was written: ``file``, ``offset`` and ``what`` name the place."""


class Poisoned(Error):
    """A write or a sync failed, so it is unknown what is durable: close the database and open it again."""


class Io(Error, OSError):
    """The device or the operating system reported an error; ``os_error`` is its number."""


class Closed(Error):
    """The database, or the object on which the call was made, was closed."""


class Cancelled(Error):
    """The caller cancelled the operation."""


class Unsupported(Error):
    """A newer version wrote the data, or the data needs a feature that this build does not have."""


class Internal(Error):
    """A bug of FronDB: please report it."""


class TooManyLocks(Error):
    """The locks of all transactions take too much memory: end transactions, or make them smaller."""


class ForkedProcess(Error, RuntimeError):
    """The parent of this process had a database open at the fork: this process can use none."""
