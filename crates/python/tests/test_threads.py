"""Several threads: progress while others wait, one thread at a time where a class says so, closes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import frondb

MEMORY = 16 << 20


def in_threads(*calls: Callable[[], object]) -> list[BaseException]:
    """Runs each call in a thread of its own. Returns the exceptions."""
    raised: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_threads_write_and_scan_at_the_same_time(tree: frondb.Tree) -> None:
    def write(part: int) -> Callable[[], None]:
        def run() -> None:
            for number in range(2000):
                tree.put(b"%d/%05d" % (part, number), b"v")

        return run

    def scan() -> None:
        for _ in range(20):
            for part in range(3):
                rows = list(tree.keys(prefix=b"%d/" % part))
                # Each thread writes in order, so every state has all rows before its last one.
                assert rows == [b"%d/%05d" % (part, number) for number in range(len(rows))]

    assert in_threads(write(0), write(1), write(2), scan, scan) == []
    assert len(tree) == 6000


def test_other_threads_run_while_a_call_waits(db: frondb.Db, tree: frondb.Tree) -> None:
    holder = db.begin()
    holder.put(tree, b"a", b"1")

    def wait() -> None:
        with db.begin(lock_timeout=60) as waiter:
            waiter.put(tree, b"a", b"2")

    def release() -> None:
        # Would never run if the waiting thread kept the interpreter lock.
        while db.stats()["lock_waits"] == 0:
            pass
        holder.commit()

    assert in_threads(wait, release) == []
    assert tree[b"a"] == b"2"


def test_an_object_for_one_thread_says_so(db: frondb.Db, tree: frondb.Tree) -> None:
    # The transaction of this thread holds a lock for which the commit of the batch waits, so the
    # batch is in use until this thread ends the transaction.
    holder = db.begin()
    holder.put(tree, b"a", b"1")
    batch = db.batch()
    batch.put(tree, b"a", b"2")

    def write() -> None:
        batch.write()

    def look() -> None:
        while db.stats()["lock_waits"] == 0:
            pass
        try:
            with pytest.raises(frondb.Busy, match="batch"):
                batch.put(tree, b"b", b"3")
        finally:
            holder.commit()

    assert in_threads(write, look) == []
    assert dict(tree) == {b"a": b"2"}


def test_a_shared_iterator_gives_each_row_once_or_is_busy(tree: frondb.Tree) -> None:
    tree.update((b"%05d" % number, b"") for number in range(20_000))
    rows = iter(tree.keys())
    taken: list[bytes] = []

    def take() -> None:
        while True:
            try:
                taken.append(next(rows))
            except frondb.Busy:
                continue
            except StopIteration:
                return

    assert in_threads(take, take, take) == []
    assert sorted(taken) == [b"%05d" % number for number in range(20_000)]


@pytest.mark.parametrize("turn", range(5))
def test_a_close_while_threads_work(path: Path, turn: int) -> None:
    db = frondb.open(path, memory=MEMORY, commit_sync=False)
    tree = db.tree("t")
    tree.update((b"%05d" % number, bytes(50)) for number in range(3000))
    begun = threading.Barrier(6)

    def until_closed(call: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            begun.wait()
            with pytest.raises(frondb.Closed):
                while True:
                    call()

        return run

    def transact() -> None:
        with db.begin() as transaction:
            transaction.put(tree, b"x", b"")
            list(transaction.keys(tree, b"00100", b"00200"))

    def batch() -> None:
        with db.batch() as writes:
            writes.put(tree, b"y", b"")

    def close() -> None:
        begun.wait()
        for _ in range(turn * 200):
            tree.get(b"00001")
        db.close()

    workers = [lambda: list(tree.items()), lambda: tree.put(b"z", b""), transact, batch, lambda: len(tree)]
    assert in_threads(close, *(until_closed(worker) for worker in workers)) == []
    with frondb.open(path, memory=MEMORY) as db:
        assert len(db.tree("t").keys(b"0", b"1")) == 3000


def test_progress_functions_may_use_the_database(db: frondb.Db, tree: frondb.Tree, tmp_path: Path) -> None:
    tree.update((b"%05d" % number, bytes(100)) for number in range(5000))

    def use(_done: int, _total: int) -> None:
        tree.put(b"told", b"")
        assert len(tree.keys(b"0", b"1")) == 5000

    db.backup(tmp_path / "backup", progress=use)
    assert b"told" in tree


def test_a_generator_may_write_what_it_reads(tree: frondb.Tree) -> None:
    tree.update((b"a%05d" % number, b"1") for number in range(3000))

    def rows() -> Iterator[tuple[bytes, bytes]]:
        for key, value in tree.items():
            yield b"b" + key, value

    tree.update(rows())
    assert len(tree) == 6000
