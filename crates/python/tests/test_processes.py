"""Forked and killed processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import frondb

MEMORY = 16 << 20

# Python 3.12 and later warn of a fork while threads run, which is what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(call: Callable[[], object]) -> str:
    """Runs a call in a forked child. Returns the name of its exception, or its result."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # A child that hangs fails the test.
        signal.alarm(60)
        try:
            said = repr(call())
        except BaseException as error:
            said = type(error).__name__
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said_by_child:
        said = said_by_child.read().decode()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return said


def test_a_child_cannot_use_the_objects_of_its_parent(db: frondb.Db, tree: frondb.Tree, path: Path, tmp_path: Path) -> None:
    tree[b"a"] = b"1"
    snapshot, batch, transaction, rows = db.snapshot(), db.batch(), db.begin(), iter(tree)
    load = db.bulk_load()
    calls: list[Callable[[], object]] = [
        lambda: tree.get(b"a"),
        lambda: tree.put(b"a", b"2"),
        lambda: len(tree),
        lambda: next(rows),
        lambda: tree.get(b"a", snapshot=snapshot),
        lambda: batch.put(tree, b"a", b"2"),
        lambda: transaction.commit(),
        lambda: load.finish(),
        lambda: db.close(),
        lambda: db.tree("t"),
        lambda: db.closed,
    ]
    for call in calls:
        assert in_child(call) == "ForkedProcess"
    for other in (path, tmp_path / "other"):
        assert in_child(lambda: frondb.open(other, memory=MEMORY)) == "ForkedProcess"
    assert in_child(lambda: frondb.verify_backup(path)) == "ForkedProcess"
    assert "closed" in in_child(lambda: snapshot) and "ended" in in_child(lambda: transaction)
    assert tree[b"a"] == b"1" and not db.closed


def test_a_child_that_drops_everything_does_no_harm(path: Path) -> None:
    db = frondb.open(path, memory=MEMORY)
    things: dict[str, Any] = {"db": db, "tree": db.tree("t"), "transaction": db.begin(), "snapshot": db.snapshot()}
    things["rows"] = iter(things["tree"])
    things["transaction"].put(things["tree"], b"a", b"1")
    del db
    assert in_child(lambda: things.clear()) == "None"
    # The child has neither unlocked the directory nor ended the transaction.
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(frondb.Busy):
        pool.apply(count, (path,))
    things["transaction"].commit()
    assert things["tree"][b"a"] == b"1"
    things["db"].close()


def test_a_child_opens_a_database_if_its_parent_has_none_open(path: Path) -> None:
    def work() -> int:
        with frondb.open(path, memory=MEMORY) as own:
            own.tree("t").update((b"%d" % number, b"") for number in range(100))
            return len(own.tree("t"))

    assert in_child(work) == "100"
    # A close, and the drop of the last handle, end the threads of a database.
    frondb.open(path, memory=MEMORY).close()
    tree = frondb.open(path, memory=MEMORY).tree("t")
    assert in_child(work) == "ForkedProcess"
    del tree
    with pytest.raises(frondb.Invalid):
        frondb.open(path, memory=1)
    assert in_child(work) == "100"


def count(path: Path) -> int:
    with frondb.open(path, memory=MEMORY) as db:
        return len(db.tree("t"))


def test_multiprocessing_spawn(path: Path) -> None:
    with frondb.open(path, memory=MEMORY) as db:
        db.tree("t").update({b"a": b"1", b"b": b"2"})
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(count, (path,)) == 2


WRITER = """
import sys
import frondb

db = frondb.open(sys.argv[1], memory=16 << 20)
tree, index = db.tree("t"), db.tree("index")
number = len(tree)
while True:
    with db.batch() as batch:
        batch.put(tree, b"%08d" % number, b"v" * 100)
        batch.put(index, b"v%08d" % number, b"")
    number += 1
    print(number, flush=True)
"""


def test_acknowledged_batches_survive_kill_9(path: Path) -> None:
    acknowledged = 0
    for turn in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert child.stdout is not None and child.stderr is not None
        wanted = acknowledged + 20 + turn * 30
        while acknowledged < wanted:
            line = child.stdout.readline()
            assert line, child.stderr.read()
            acknowledged = int(line)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
        child.wait()
        child.stdout.close()
        child.stderr.close()
        acknowledged = max([acknowledged, *map(int, rest[:-1])])
        with frondb.open(path, memory=MEMORY) as db:
            tree, index = db.tree("t"), db.tree("index")
            numbers = [int(key) for key in tree]
            assert numbers == list(range(len(numbers))) and len(numbers) >= acknowledged
            assert [key[1:] for key in index] == list(tree)


def test_ctrl_c_interrupts_an_update(path: Path) -> None:
    program = f"""
import os, signal, threading
import frondb
with frondb.open({str(path)!r}, memory={MEMORY}, commit_sync=False) as db:
    tree = db.tree("t")
    def rows():
        number = 0
        while True:
            number += 1
            if number == 50_000:
                os.kill(os.getpid(), signal.SIGINT)
            yield b"%08d" % number, b""
    try:
        tree.update(rows())
    except KeyboardInterrupt:
        print("interrupted")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "interrupted\n", ended
