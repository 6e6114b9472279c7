"""Random histories of calls, compared with a sorted dictionary."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

import frondb

# Few different keys, so that calls meet the same ones; prefixes of each other and bytes at the ends.
KEYS = st.one_of(st.binary(max_size=2), st.sampled_from([b"", b"\xff", b"\xff\xff", b"a", b"ab", b"abc", b"b"]))
VALUES = st.one_of(st.binary(max_size=8), st.integers(0, 70_000).map(bytes))
ENDS = st.none() | KEYS
Rows = dict[bytes, bytes]
# A snapshot, the rows that it shows, and the number of opens before it.
Taken = tuple[frondb.Snapshot, Rows, int]
# An iterator, the rows that it must still show, the first one last, and the number of opens before.
Begun = tuple[frondb.Rows[tuple[bytes, bytes]], list[tuple[bytes, bytes]], int]


def part(rows: Rows, start: bytes | None, stop: bytes | None, prefix: bytes | None) -> Rows:
    """Returns the rows of a range."""
    return {
        key: rows[key]
        for key in sorted(rows)
        if (start is None or start <= key) and (stop is None or key < stop) and (prefix is None or key.startswith(prefix))
    }


class Histories(RuleBasedStateMachine):
    """One tree, snapshots of it, iterators over it, and at most one transaction."""

    snapshots: Bundle[Taken] = Bundle("snapshots")
    iterators: Bundle[Begun] = Bundle("iterators")

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.rows: Rows = {}
        self.opens = 0

    @initialize()
    def begin(self) -> None:
        self.open()

    def open(self) -> None:
        self.opens += 1
        self.db = frondb.open(self.path, memory=16 << 20, commit_sync=False)
        self.tree = self.db.tree("t")

    @rule(key=KEYS, value=VALUES)
    def put(self, key: bytes, value: bytes) -> None:
        self.tree[key] = value
        self.rows[key] = value

    @rule(key=KEYS)
    def delete(self, key: bytes) -> None:
        self.tree.delete(key)
        self.rows.pop(key, None)

    @rule(key=KEYS)
    def pop(self, key: bytes) -> None:
        assert self.tree.pop(key, None) == self.rows.pop(key, None)

    @rule(key=KEYS, value=VALUES)
    def setdefault(self, key: bytes, value: bytes) -> None:
        assert self.tree.setdefault(key, value) == self.rows.setdefault(key, value)

    @rule(start=ENDS, stop=ENDS, prefix=KEYS)
    def delete_range(self, start: bytes | None, stop: bytes | None, prefix: bytes) -> None:
        self.tree.delete_range(start, stop, prefix=prefix)
        for key in part(self.rows, start, stop, prefix):
            del self.rows[key]

    @rule(rows=st.dictionaries(KEYS, VALUES), deleted=st.sets(KEYS), fails=st.booleans())
    def batch(self, rows: Rows, deleted: set[bytes], fails: bool) -> None:
        try:
            with self.db.batch() as batch:
                for key in sorted(deleted):
                    batch.delete(self.tree, key)
                batch.put_many(self.tree, rows)
                if fails:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            return
        for key in deleted:
            self.rows.pop(key, None)
        self.rows.update(rows)

    @rule(rows=st.dictionaries(KEYS, VALUES), deleted=st.sets(KEYS), undone=st.dictionaries(KEYS, VALUES), fails=st.booleans())
    def transaction(self, rows: Rows, deleted: set[bytes], undone: Rows, fails: bool) -> None:
        expected = self.rows.copy()
        try:
            with self.db.begin() as transaction:
                for key, value in rows.items():
                    assert transaction.replace(self.tree, key, value) == expected.get(key)
                    expected[key] = value
                savepoint = transaction.savepoint()
                for key, value in undone.items():
                    transaction.put(self.tree, key, value)
                savepoint.rollback()
                for key in deleted:
                    assert transaction.take(self.tree, key) == expected.pop(key, None)
                assert list(transaction.items(self.tree)) == sorted(expected.items())
                assert list(transaction.keys(self.tree, reverse=True)) == sorted(expected, reverse=True)
                if fails:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            return
        self.rows = expected

    @rule(rows=st.dictionaries(KEYS, VALUES))
    def bulk_load(self, rows: Rows) -> None:
        with self.db.bulk_load() as load:
            load.put_many(self.tree, rows)
        self.rows.update(rows)

    @rule(target=snapshots)
    def snapshot(self) -> Taken:
        return self.db.snapshot(), self.rows.copy(), self.opens

    @rule(pair=snapshots, start=ENDS, stop=ENDS, prefix=ENDS, reverse=st.booleans())
    def read_at(
        self, pair: Taken, start: bytes | None, stop: bytes | None, prefix: bytes | None, reverse: bool
    ) -> None:
        snapshot, rows, opens = pair
        view = self.tree.items(start, stop, prefix=prefix, reverse=reverse, snapshot=snapshot)
        if opens != self.opens:
            with pytest.raises(frondb.Invalid):
                list(view)
            return
        shown = list(view)
        expected = list(part(rows, start, stop, prefix).items())
        assert shown == (expected[::-1] if reverse else expected)
        assert len(view) == len(expected)

    @rule(pair=consumes(snapshots))
    def close_snapshot(self, pair: Taken) -> None:
        pair[0].close()

    @rule(target=iterators)
    def iterate(self) -> Begun:
        return iter(self.tree.items()), sorted(self.rows.items(), reverse=True), self.opens

    @rule(pair=iterators, steps=st.integers(1, 20))
    def step(self, pair: Begun, steps: int) -> None:
        rows, expected, opens = pair
        if opens != self.opens:
            with pytest.raises(frondb.Closed):
                next(rows)
            return
        for _ in range(steps):
            assert next(rows, None) == (expected.pop() if expected else None)

    @rule()
    def flush(self) -> None:
        self.db.flush()

    @rule()
    def reopen(self) -> None:
        self.db.close()
        self.open()

    @invariant()
    def reads_show_the_rows(self) -> None:
        if not hasattr(self, "tree"):
            return
        assert list(self.tree.items()) == sorted(self.rows.items())
        assert list(reversed(self.tree.keys())) == sorted(self.rows, reverse=True)
        assert self.tree.multi_get(sorted(self.rows)) == [self.rows[key] for key in sorted(self.rows)]
        assert len(self.tree) == len(self.rows) and bool(self.tree) == bool(self.rows)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()
        shutil.rmtree(self.path)


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    # A failure prints how to replay it; nothing is kept in the source tree.
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
