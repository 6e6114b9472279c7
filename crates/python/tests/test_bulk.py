"""Bulk loads, also from buffers and pyarrow."""

from __future__ import annotations

import array
import importlib
import os
import random
import threading
from typing import Any

import pytest

import frondb


def library(name: str) -> Any:
    """Imports a large library, which `make python` installs and `make test` does not."""
    return importlib.import_module(name) if "FRONDB_PYTHON_ALL" in os.environ else pytest.importorskip(name)


def test_a_load_takes_effect_as_a_whole(db: frondb.Db, tree: frondb.Tree) -> None:
    tree.update({b"00001": b"old", b"x": b"kept"})
    numbers = list(range(3000))
    random.Random(1).shuffle(numbers)
    load = db.bulk_load()
    other = load.new_tree("other", preset="secondary")
    for number in numbers:
        load.put(tree, b"%05d" % number, b"v%d" % number)
        load.put(other, b"v%d" % number, b"")
    load.put_many(tree, {b"y": b"many"})
    assert len(tree) == 2 and db.list_trees() == ["t"]
    with pytest.raises(frondb.NotFound):
        other.get(b"v1")
    told: list[tuple[int, int]] = []
    report = load.finish(progress=lambda done, total: told.append((done, total)))
    assert report.entries == 6001 and report.duplicates == 0
    assert all(done <= total for done, total in told)
    assert len(tree) == 3002 and tree[b"00001"] == b"v1" and len(other) == 3000
    with pytest.raises(frondb.Closed, match="bulk writer"):
        load.put(tree, b"a", b"")
    with pytest.raises(frondb.Invalid):
        load.finish()


def test_blocks_finish_or_cancel(db: frondb.Db, tree: frondb.Tree) -> None:
    with db.bulk_load() as load:
        load.put(tree, b"a", b"1")
    with pytest.raises(ZeroDivisionError), db.bulk_load() as load:
        load.put(tree, b"b", b"2")
        1 / 0
    with db.bulk_load() as load:
        load.put(tree, b"c", b"3")
        assert load.finish().entries == 1
    assert dict(tree) == {b"a": b"1", b"c": b"3"}


def test_duplicates(db: frondb.Db, tree: frondb.Tree) -> None:
    with pytest.raises(frondb.Exists), db.bulk_load(duplicates="fail") as load:
        load.put_many(tree, [(b"a", b"1"), (b"a", b"2")])
    assert load.duplicate() == b"a" and not tree
    with db.bulk_load() as load:
        load.put_many(tree, [(b"a", b"1"), (b"a", b"2")])
        assert load.finish().duplicates == 1
    assert dict(tree) == {b"a": b"2"}
    with pytest.raises(frondb.Invalid, match="replace or fail"):
        db.bulk_load(duplicates="keep")  # type: ignore[arg-type]


def test_several_threads_load(db: frondb.Db, tree: frondb.Tree) -> None:
    with db.bulk_load() as load:

        def work(writer: frondb.BulkWriter, part: int) -> None:
            with writer:
                for number in range(part, 4000, 4):
                    writer.put(tree, b"%05d" % number, b"")

        threads = [threading.Thread(target=work, args=(load.writer(), part)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert list(tree) == [b"%05d" % number for number in range(4000)]


def test_an_unfinished_writer_fails_the_load(db: frondb.Db, tree: frondb.Tree) -> None:
    load = db.bulk_load()
    writer = load.writer()
    writer.put_many(tree, ((b"%d" % number, bytes(1000)) for number in range(1000)))
    with pytest.raises(frondb.Invalid, match="finish"):
        load.finish()
    writer.finish()
    with pytest.raises(frondb.Closed):
        writer.finish()


def test_progress_cancels(db: frondb.Db, tree: frondb.Tree) -> None:
    def fail(_done: int, _total: int) -> bool:
        raise ZeroDivisionError

    for progress, error in ((lambda _done, _total: False, frondb.Cancelled), (fail, ZeroDivisionError)):
        load = db.bulk_load()
        load.put_many(tree, ((b"%06d" % number, bytes(100)) for number in range(20_000)))
        with pytest.raises(error):
            load.finish(progress=progress)
        assert not tree
    load = db.bulk_load()
    load.cancel()
    with pytest.raises(frondb.Cancelled):
        load.put_many(tree, [(b"%06d" % number, bytes(1000)) for number in range(1000)])


def columns(strings: list[bytes], code: str) -> tuple[array.array[int], bytes]:
    offsets = array.array(code, [0])
    for string in strings:
        offsets.append(offsets[-1] + len(string))
    return offsets, b"".join(strings)


@pytest.mark.parametrize("code", "iIqQ")
def test_columns(db: frondb.Db, tree: frondb.Tree, code: str) -> None:
    source = random.Random(1)
    rows = {source.randbytes(source.randrange(1, 40)): source.randbytes(source.randrange(400)) for _ in range(5000)}
    rows[b"large"] = bytes(300_000)
    with db.bulk_load() as load:
        load.put_columns(tree, *columns(list(rows), code), *columns(list(rows.values()), code))
        assert load.finish().entries == len(rows)
    assert dict(tree) == rows


def test_columns_may_begin_anywhere(db: frondb.Db, tree: frondb.Tree) -> None:
    keys, values = array.array("i", [2, 3, 5]), array.array("q", [0, 0, 1])
    with db.bulk_load() as load:
        load.put_columns(tree, keys, bytearray(b"--abb--"), values, memoryview(b"x"))
        load.put_columns(tree, array.array("i", [0]), b"", array.array("i", [0]), b"")
    assert dict(tree) == {b"a": b"", b"bb": b"x"}


@pytest.mark.parametrize(
    ("keys", "data", "error", "text"),
    [
        ([], b"", frondb.Invalid, "empty"),
        ([0, 2, 1], b"abc", frondb.Invalid, "descend at row 1"),
        ([0, 1, 4], b"abc", frondb.Invalid, "end at 4, and key_data has 3 bytes"),
        ([-1, 1, 2], b"abc", frondb.Invalid, "-1"),
        ([0, 1], b"abc", frondb.Invalid, "1 keys and 2 values"),
    ],
)
def test_wrong_columns(
    db: frondb.Db, tree: frondb.Tree, keys: list[int], data: bytes, error: type[Exception], text: str
) -> None:
    load = db.bulk_load()
    values = array.array("i", [0, 0, 0])
    with pytest.raises(error, match=text):
        load.put_columns(tree, array.array("q", keys), data, values, b"")
    wrongs: list[Any] = [7, b"abc", array.array("d", [0, 1, 2]), array.array("h", [0, 1, 2])]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="4 or 8 bytes"):
            load.put_columns(tree, wrong, data, values, b"")
    others: list[Any] = [7, "abc", memoryview(b"abcd")[::2]]
    for wrong in others:
        with pytest.raises(TypeError, match="key_data"):
            load.put_columns(tree, values, wrong, values, b"")


def test_arrow(db: frondb.Db, tree: frondb.Tree) -> None:
    pa = library("pyarrow")
    from frondb import arrow

    rows = [(b"k%04d" % number, b"v%d" % number) for number in range(1000)]
    keys, values = [key for key, _ in rows], [value for _, value in rows]
    uneven = pa.chunked_array([pa.array(keys[:100], pa.binary()), pa.array([], pa.binary()), pa.array(keys[100:], pa.binary())])
    other = pa.chunked_array([pa.array(values[:37], pa.binary()), pa.array(values[37:], pa.binary())])
    cases = [
        (pa.array(keys, pa.binary()), pa.array(values, pa.large_binary())),
        (pa.array([key.decode() for key in keys]), pa.array(values, pa.binary_view())),
        (pa.array(keys, pa.binary(5)), pa.array(values).dictionary_encode()),
        (uneven, other),
        (keys, values),
    ]
    for some_keys, some_values in cases:
        tree.clear()
        with db.bulk_load() as load:
            arrow.put_arrays(load, tree, some_keys, some_values)
        assert list(tree.items()) == rows
    tree.clear()
    with db.bulk_load() as load:
        arrow.put_arrays(load, tree, pa.array(keys, pa.binary())[500:510], pa.array(values, pa.binary())[500:510])
        arrow.put_arrays(load, tree, pa.array([], pa.binary()), pa.array([], pa.string()))
    assert list(tree.items()) == rows[500:510]
    with db.bulk_load() as load:
        with pytest.raises(frondb.Invalid, match="1 nulls"):
            arrow.put_arrays(load, tree, pa.array([b"a", None], pa.binary()), pa.array([b"", b""], pa.binary()))
        with pytest.raises(frondb.Invalid, match="1 keys and 2 values"):
            arrow.put_arrays(load, tree, [b"a"], [b"", b""])
        with pytest.raises(TypeError, match="int64"):
            arrow.put_arrays(load, tree, pa.array([1, 2]), pa.array([b"", b""], pa.binary()))


def test_pandas(db: frondb.Db, tree: frondb.Tree) -> None:
    library("pyarrow")
    pd = library("pandas")
    from frondb import arrow

    frame = pd.DataFrame({"key": ["b", "a", "c"], "value": [b"2", b"1", b"3"]})
    with db.bulk_load() as load:
        arrow.put_arrays(load, tree, frame["key"], frame["value"])
    assert dict(tree) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    with db.bulk_load() as load, pytest.raises(frondb.Invalid, match="nulls"):
        arrow.put_arrays(load, tree, frame["key"].where(frame["key"] != "a"), frame["value"])
