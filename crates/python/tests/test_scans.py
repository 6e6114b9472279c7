"""Scans: ranges, directions, snapshots, and what other calls do during one."""

from __future__ import annotations

import itertools
import random

import pytest

import frondb


@pytest.fixture
def full(tree: frondb.Tree) -> tuple[frondb.Tree, list[tuple[bytes, bytes]]]:
    rows = [(b"%05d" % number, b"v%d" % number * (number % 7)) for number in range(5000)]
    shuffled = rows[:]
    random.Random(1).shuffle(shuffled)
    tree.update(shuffled)
    return tree, rows


@pytest.mark.parametrize("flushed", [False, True])
def test_ranges(db: frondb.Db, full: tuple[frondb.Tree, list[tuple[bytes, bytes]]], flushed: bool) -> None:
    tree, rows = full
    if flushed:
        db.flush()
    keys = [key for key, _ in rows]
    ends = [None, b"", b"00000", b"00001", b"0001", b"01234", b"012345", b"04999", b"05", b"9"]
    prefixes = [None, b"", b"0", b"0001", b"04999", b"x", b"\xff"]
    for start, stop, prefix in itertools.product(ends, ends, prefixes):
        expected = [
            (key, value)
            for key, value in rows
            if (start is None or start <= key) and (stop is None or key < stop) and (prefix is None or key.startswith(prefix))
        ]
        assert list(tree.items(start, stop, prefix=prefix)) == expected
        assert list(tree.keys(start, stop, prefix=prefix, reverse=True)) == [key for key, _ in reversed(expected)]
    assert list(tree.values()) == [value for _, value in rows]
    assert len(tree) == len(rows) and len(tree.keys(b"01", b"02")) == 1000
    assert len(tree.keys(b"01", b"02", reverse=True)) == 1000
    assert list(tree) == keys and list(reversed(tree.keys())) == keys[::-1]


def test_a_scan_shows_the_state_at_its_start(full: tuple[frondb.Tree, list[tuple[bytes, bytes]]]) -> None:
    tree, rows = full
    scan = iter(tree.items())
    first = next(scan)
    tree.clear()
    tree[b"99999"] = b"new"
    assert [first, *scan] == rows
    assert list(scan) == []
    assert dict(tree) == {b"99999": b"new"}


def test_snapshots(db: frondb.Db, tree: frondb.Tree) -> None:
    tree[b"a"] = b"1"
    with db.snapshot() as snapshot:
        tree[b"a"] = b"2"
        tree[b"b"] = b"3"
        assert tree.get(b"a", snapshot=snapshot) == b"1" and tree.get(b"a") == b"2"
        assert not tree.exists(b"b", snapshot=snapshot) and tree.exists(b"b")
        assert tree.multi_get([b"a", b"b"], snapshot=snapshot) == [b"1", None]
        view = tree.items(snapshot=snapshot)
        assert list(view) == [(b"a", b"1")] and len(view) == 1 and (b"a", b"1") in view and (b"b", b"3") not in view
        scan = iter(view)
    # The view and its iterators keep the state; the closed snapshot is of no use.
    assert list(scan) == [(b"a", b"1")]
    with pytest.raises(frondb.Closed, match="snapshot"):
        tree.get(b"a", snapshot=snapshot)
    with pytest.raises(frondb.Closed):
        with snapshot:
            pass
    snapshot.close()


def test_a_snapshot_of_another_database_is_refused(tree: frondb.Tree, path: object) -> None:
    with frondb.open(f"{path}-2", memory=16 << 20) as other, other.snapshot() as snapshot:
        with pytest.raises(frondb.Invalid):
            tree.get(b"a", snapshot=snapshot)
        with pytest.raises(frondb.Invalid):
            list(tree.items(snapshot=snapshot))


def test_an_iterator_can_be_closed(full: tuple[frondb.Tree, list[tuple[bytes, bytes]]]) -> None:
    tree, _rows = full
    scan = iter(tree.items())
    next(scan)
    scan.close()
    assert list(scan) == []
    scan.close()


def test_huge_values_between_small_ones(db: frondb.Db, tree: frondb.Tree) -> None:
    rows = {b"%03d" % number: bytes([number]) * (300_000 if number % 10 == 0 else 5) for number in range(100)}
    tree.update(rows)
    db.flush()
    assert dict(tree.items()) == rows
    assert list(tree.keys()) == sorted(rows)
    assert list(tree.values(reverse=True)) == [rows[key] for key in sorted(rows, reverse=True)]


def test_estimates(full: tuple[frondb.Tree, list[tuple[bytes, bytes]]]) -> None:
    tree, rows = full
    estimate = tree.estimate()
    assert len(rows) / 2 <= estimate.entries <= len(rows) * 2
    assert tree.estimate(prefix=b"x").entries == 0
    assert repr(estimate).startswith("Estimate(entries=")
