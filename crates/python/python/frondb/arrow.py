"""Bulk loads from pyarrow and pandas, without a Python object for each row.

Needs pyarrow: ``pip install frondb[arrow]``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from . import BulkLoad, BulkWriter, Invalid, Tree

__all__ = ["put_arrays"]


def put_arrays(load: BulkLoad | BulkWriter, tree: Tree, keys: Any, values: Any) -> None:
    """Adds rows to a bulk load from a column of keys and a column of values.

    A column is a pyarrow ``Array`` or ``ChunkedArray``, a pandas ``Series``, or a sequence of
    ``bytes``. Strings are encoded as UTF-8. A null is an error: the engine has no such value.

        table = pyarrow.parquet.read_table("events.parquet")
        with db.bulk_load() as load:
            frondb.arrow.put_arrays(load, events, table["id"], table["payload"])

    Errors: ``Invalid`` for a null or columns of different lengths; ``TypeError`` for a column of
    another type, such as numbers, of which the caller must say how they sort as bytes
    (``struct.pack(">Q", n)``).
    """
    key_column, value_column = _chunked("keys", keys), _chunked("values", values)
    if len(key_column) != len(value_column):
        raise Invalid(f"there are {len(key_column)} keys and {len(value_column)} values; each row has one of both")
    start = 0
    for part in key_column.chunks:
        at = 0
        # The chunks of the two columns need not begin at the same rows.
        for other in value_column.slice(start, len(part)).chunks:
            load.put_columns(tree, *_buffers(part.slice(at, len(other))), *_buffers(other))
            at += len(other)
        start += len(part)


def _chunked(name: str, column: Any) -> Any:
    """Returns a column as a chunked array of binary strings without nulls."""
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = pa.array(column, from_pandas=True)
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    is_large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    is_other = (
        pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_string_view(kind)
    )
    if is_other:
        column = column.cast(pa.large_binary())
    elif not (is_large or pa.types.is_binary(kind) or pa.types.is_string(kind)):
        raise TypeError(f"{name} are {kind}; they must be binary or string: encode them in the order in which they sort")
    if column.null_count:
        raise Invalid(f"{name} have {column.null_count} nulls; fill them, for example with fill_null(b'')")
    return column


def _buffers(array: Any) -> tuple[memoryview, memoryview]:
    """Returns the offsets of an array's strings, and their bytes."""
    _, offsets, data = array.buffers()
    is_large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    view = memoryview(offsets).cast("q" if is_large else "i")
    # An array without bytes may have no buffer for them.
    return view[array.offset : array.offset + len(array) + 1], memoryview(data if data is not None else b"")
