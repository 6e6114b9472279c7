"""Batches: all writes or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import frondb


def test_a_batch_commits_at_the_end_of_its_block(db: frondb.Db, tree: frondb.Tree) -> None:
    other = db.tree("other")
    tree.update({b"a": b"0", b"b": b"0", b"c": b"0"})
    with db.batch(sync=False) as batch:
        batch.put(tree, b"a", b"1")
        batch.put_many(other, {b"x": b"1", b"y": b"2"})
        batch.delete(tree, b"b")
        batch.delete_range(tree, b"c", b"d")
        assert len(batch) == 5 and batch and batch.memory_bytes > 0
        assert tree[b"a"] == b"0" and not other
    assert dict(tree) == {b"a": b"1"} and dict(other) == {b"x": b"1", b"y": b"2"}
    with pytest.raises(frondb.Closed, match="batch"):
        batch.put(tree, b"a", b"1")


def test_an_exception_drops_the_writes(db: frondb.Db, tree: frondb.Tree) -> None:
    with pytest.raises(ZeroDivisionError), db.batch() as batch:
        batch.put(tree, b"a", b"1")
        1 / 0
    assert not tree


def test_a_batch_can_be_used_again(db: frondb.Db, tree: frondb.Tree) -> None:
    batch = db.batch()
    assert batch and len(batch) == 0
    batch.write()
    batch.put(tree, b"a", b"1")
    batch.write(sync=True)
    assert len(batch) == 0
    batch.put(tree, b"b", b"2")
    batch.clear()
    batch.put(tree, b"c", b"3")
    batch.write()
    assert dict(tree) == {b"a": b"1", b"c": b"3"}


def test_a_wrong_write_fails_the_commit_as_a_whole(db: frondb.Db, tree: frondb.Tree) -> None:
    with pytest.raises(frondb.Invalid), db.batch() as batch:
        batch.put(tree, b"a", b"1")
        batch.put(tree, bytes(40_000), b"2")
    assert not tree


def test_a_batch_that_is_too_large_says_so(db: frondb.Db, tree: frondb.Tree) -> None:
    with pytest.raises(frondb.Invalid, match="batch"), db.batch() as batch:
        for number in range(100):
            batch.put(tree, b"%d" % number, bytes(60_000))
    assert not tree


def test_trees_of_another_database_are_refused(db: frondb.Db, tree: frondb.Tree, path: Path) -> None:
    with frondb.open(f"{path}-2", memory=16 << 20) as other:
        foreign = other.tree("t")
        with pytest.raises(frondb.Invalid), db.batch() as batch:
            batch.put(tree, b"a", b"1")
            batch.put(foreign, b"a", b"1")
        assert not tree and not foreign


def test_rows_may_come_from_a_generator_that_uses_the_batch(db: frondb.Db, tree: frondb.Tree) -> None:
    with db.batch() as batch:

        def rows() -> object:
            batch.put(tree, b"a", b"1")
            yield b"b", b"2"
            batch.put(tree, b"c", b"3")

        batch.put_many(tree, rows())  # type: ignore[arg-type]
    assert list(tree) == [b"a", b"b", b"c"]


def test_a_range_needs_a_bound(db: frondb.Db, tree: frondb.Tree) -> None:
    tree[b"a"] = b"1"
    with db.begin() as transaction:
        calls: list[Callable[[], None]] = [
            tree.delete_range,
            lambda: db.batch().delete_range(tree),
            lambda: transaction.delete_range(tree),
        ]
        for call in calls:
            with pytest.raises(TypeError, match=r"clear\(\)"):
                call()
    tree.delete_range(prefix=b"b")
    assert tree
    tree.delete_range(b"")
    assert not tree


def test_counters(db: frondb.Db) -> None:
    clicks = db.tree("clicks", counters=True)
    clicks.add(b"home")
    clicks.add(b"home", 41)
    clicks.add(b"home", -2)
    with db.batch() as batch:
        batch.add(clicks, b"home", 60)
        batch.add(clicks, b"away")
    with db.begin() as transaction:
        transaction.add(clicks, b"away", 2)
    assert clicks.counter(b"home") == 100 and clicks.counter(b"away") == 3 and clicks.counter(b"none") == 0
    assert clicks[b"home"] == (100).to_bytes(8, "little", signed=True)
    db.flush()
    assert clicks.counter(b"home") == 100
    clicks.add(b"max", 2**63 - 1)
    clicks.add(b"max")
    assert clicks.counter(b"max") == -(2**63)
    with pytest.raises(OverflowError):
        clicks.add(b"home", 2**63)
    clicks[b"text"] = b"no number"
    with pytest.raises(frondb.Invalid, match="9"):
        clicks.counter(b"text")
    with pytest.raises(frondb.Invalid):
        db.tree("plain").add(b"home")
    with pytest.raises(frondb.Invalid):
        db.tree("plain", counters=True)


def test_counters_survive_a_reopen(path: Path) -> None:
    for expected in (1, 2, 3):
        with frondb.open(path, memory=16 << 20) as db:
            clicks = db.tree("clicks", counters=True)
            clicks.add(b"home")
            assert clicks.counter(b"home") == expected
