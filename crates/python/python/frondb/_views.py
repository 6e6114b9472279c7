"""Views of a range: the keys, the values or the items of its rows.

The native part makes them. Each iteration begins a new scan, which shows the state at that moment,
or the state of the snapshot.
"""

from __future__ import annotations

from collections.abc import ItemsView, KeysView, ValuesView
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from . import Rows


class _Range(Protocol):
    """The native part of a view."""

    def rows(self, part: str, flip: bool) -> Rows[Any]: ...
    def count(self) -> int: ...
    def get(self, key: Any) -> bytes | None: ...


class Keys(KeysView[bytes]):
    """The keys of a range, in order."""

    __slots__ = ()
    _mapping: _Range

    def __len__(self) -> int:
        return self._mapping.count()

    def __iter__(self) -> Rows[bytes]:
        return self._mapping.rows("keys", False)

    def __reversed__(self) -> Rows[bytes]:
        return self._mapping.rows("keys", True)

    def __contains__(self, key: object) -> bool:
        return self._mapping.get(key) is not None

    def __repr__(self) -> str:
        return f"<frondb.Keys of {self._mapping!r}>"


class Values(ValuesView[bytes]):
    """The values of a range, in the order of the keys."""

    __slots__ = ()
    _mapping: _Range

    def __len__(self) -> int:
        return self._mapping.count()

    def __iter__(self) -> Rows[bytes]:
        return self._mapping.rows("values", False)

    def __reversed__(self) -> Rows[bytes]:
        return self._mapping.rows("values", True)

    def __contains__(self, value: object) -> bool:
        return any(value == other for other in self)

    def __repr__(self) -> str:
        return f"<frondb.Values of {self._mapping!r}>"


class Items(ItemsView[bytes, bytes]):
    """The rows of a range as pairs of key and value, in the order of the keys."""

    __slots__ = ()
    _mapping: _Range

    def __len__(self) -> int:
        return self._mapping.count()

    def __iter__(self) -> Rows[tuple[bytes, bytes]]:
        return self._mapping.rows("items", False)

    def __reversed__(self) -> Rows[tuple[bytes, bytes]]:
        return self._mapping.rows("items", True)

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        key, value = item
        return bool(self._mapping.get(key) == value)

    def __repr__(self) -> str:
        return f"<frondb.Items of {self._mapping!r}>"
