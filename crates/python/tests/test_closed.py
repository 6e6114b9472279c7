"""Everything that a program may do with closed objects raises an exception, and nothing crashes."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

import frondb

MEMORY = 16 << 20


def calls_of(db: frondb.Db, tree: frondb.Tree) -> list[Callable[[], object]]:
    """Returns calls that need an open database."""
    snapshot, batch, transaction = db.snapshot(), db.batch(), db.begin()
    other = db.begin()
    savepoint = transaction.savepoint()
    load = db.bulk_load()
    writer = load.writer()
    rows, view = iter(tree.items()), tree.items()
    own = iter(transaction.items(tree))
    next(rows)
    next(own)
    batch.put(tree, b"b", b"2")
    return [
        lambda: tree.get(b"a"),
        lambda: tree.get(b"a", snapshot=snapshot),
        lambda: tree[b"a"],
        lambda: b"a" in tree,
        lambda: len(tree),
        lambda: bool(tree),
        lambda: list(tree),
        lambda: tree.multi_get([b"a"]),
        lambda: tree.put(b"a", b"1"),
        lambda: tree.pop(b"a"),
        lambda: tree.popitem(),
        lambda: tree.setdefault(b"a", b""),
        lambda: tree.update({b"a": b""}),
        lambda: tree.clear(),
        lambda: tree.estimate(),
        lambda: tree.verify(),
        lambda: tree.optimize(),
        lambda: tree.stats(),
        lambda: next(rows),
        lambda: list(view),
        lambda: len(view),
        lambda: (b"00000", b"") in view,
        lambda: batch.write(),
        lambda: transaction.get(tree, b"a"),
        lambda: transaction.put(tree, b"a", b"1"),
        lambda: next(own),
        lambda: transaction.commit(),
        lambda: savepoint.rollback(),
        lambda: other.prepare(b"x"),
        lambda: writer.put_many(tree, ((b"%d" % n, bytes(1000)) for n in range(1000))),
        lambda: load.new_tree("new"),
        lambda: load.finish(),
        lambda: db.tree("t"),
        lambda: db.batch(),
        lambda: db.begin(),
        lambda: db.snapshot(),
        lambda: db.bulk_load(),
        lambda: db.sync(),
        lambda: db.backup("/nowhere"),
        lambda: db.stats(),
        lambda: db.memory,
        lambda: db.list_trees(),
        lambda: db.__enter__(),
    ]


def test_calls_after_the_close_of_the_database(path: Path) -> None:
    db = frondb.open(path, memory=MEMORY)
    tree = db.tree("t")
    tree.update((b"%05d" % number, b"") for number in range(5000))
    calls = calls_of(db, tree)
    db.close()
    for number, call in enumerate(calls):
        with pytest.raises(frondb.Closed):
            call()
            pytest.fail(f"call {number} did not raise")
    db.close()
    db.__exit__(None, None, None)
    # Nothing that is left may do harm when it goes away, or keep the directory locked.
    del calls, call
    gc.collect()
    with frondb.open(path, memory=MEMORY) as db:
        assert len(db.tree("t")) == 5000


def test_a_closed_tree(db: frondb.Db, tree: frondb.Tree) -> None:
    tree[b"a"] = b"1"
    with db.tree("t") as handle:
        rows = iter(handle.items())
    for call in (lambda: handle[b"a"], lambda: handle.put(b"a", b""), lambda: handle.name, handle.__enter__):
        with pytest.raises(frondb.Closed, match="tree"):
            call()
    assert "closed" in repr(handle)
    assert list(rows) == [(b"a", b"1")] and tree[b"a"] == b"1"


def test_a_block_that_raises_closes_the_database(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), frondb.open(path, memory=MEMORY) as db:
        transaction = db.begin()
        transaction.put(db.tree("t"), b"a", b"1")
        1 / 0
    assert db.closed
    # An open transaction, left by a block whose database is closed, raises what the block raises.
    with pytest.raises(ZeroDivisionError), transaction:
        1 / 0


def test_dropping_without_closing_unlocks_the_directory(path: Path) -> None:
    for expected in range(3):
        db = frondb.open(path, memory=MEMORY)
        tree = db.tree("t")
        assert len(tree) == expected
        tree[b"%d" % expected] = b""
        alive = weakref.ref(db)
        rows = iter(tree)
        next(rows)
        transaction = db.begin()
        transaction.put(tree, b"x", b"never committed")
        del rows, transaction, tree, db
        gc.collect()
        assert alive() is None


def test_objects_cannot_be_made_copied_or_pickled(db: frondb.Db, tree: frondb.Tree) -> None:
    import copy
    import pickle

    for made in (frondb.Db, frondb.Tree, frondb.Batch, frondb.Transaction, frondb.Rows, frondb.Snapshot):
        with pytest.raises(TypeError):
            made()
    for thing in (db, tree, db.batch(), iter(tree)):
        for call in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError):
                call(thing)


@pytest.mark.parametrize(
    "left",
    [
        "",
        "rows = iter(tree); next(rows)",
        "transaction = db.begin(); transaction.put(tree, b'x', b'')",
        "batch = db.batch(); batch.put(tree, b'x', b'')",
        "load = db.bulk_load(); load.put(tree, b'x', b'')",
        "snapshot = db.snapshot(); cycle = [snapshot, db]; cycle.append(cycle)",
        "import threading\nthreading.Thread(target=lambda: [len(tree) for _ in iter(int, 1)], daemon=True).start()",
        "import atexit\natexit.register(lambda: print(len(tree)))",
        "import sys\nsys.exit(0)",
        "class Last:\n    def __init__(self, tree): self.tree = tree\n"
        "    def __del__(self): self.tree.get(b'a')\nlast = Last(tree)",
    ],
)
def test_the_interpreter_ends_with_open_objects(path: Path, left: str) -> None:
    program = f"""
import frondb
db = frondb.open({str(path)!r}, memory={MEMORY})
tree = db.tree("t")
tree.update((b"%05d" % n, b"") for n in range(3000))
"""
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(program) + left], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0 and not ended.stderr, ended
    with frondb.open(path, memory=MEMORY) as db:
        assert len(db.tree("t")) == 3000
