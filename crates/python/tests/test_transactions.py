"""Transactions, savepoints, locks, two-phase commit."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import frondb


def test_a_transaction_commits_at_the_end_of_its_block(db: frondb.Db, tree: frondb.Tree) -> None:
    tree[b"old"] = b"1"
    with db.begin() as transaction:
        transaction.put(tree, b"a", b"1")
        assert transaction.get(tree, b"a") == b"1" and b"a" not in tree
        assert transaction.get(tree, b"x") is None and transaction.get(tree, b"x", 7) == 7
        assert transaction.exists(tree, b"old")
        assert dict(transaction.items(tree)) == {b"a": b"1", b"old": b"1"}
        assert list(transaction.keys(tree, reverse=True)) == [b"old", b"a"]
        assert list(transaction.values(tree, b"b")) == [b"1"]
        assert len(transaction.items(tree)) == 2 and (b"a", b"1") in transaction.items(tree)
        transaction.delete(tree, b"old")
    assert dict(tree) == {b"a": b"1"}
    assert "ended" in repr(transaction)


def test_an_exception_rolls_back(db: frondb.Db, tree: frondb.Tree) -> None:
    with pytest.raises(ZeroDivisionError), db.begin() as transaction:
        transaction.put(tree, b"a", b"1")
        1 / 0
    assert not tree
    with pytest.raises(frondb.Invalid):
        transaction.put(tree, b"a", b"1")
    with pytest.raises(frondb.Closed, match="transaction"):
        with transaction:
            pass


def test_a_block_may_end_its_transaction_itself(db: frondb.Db, tree: frondb.Tree) -> None:
    with db.begin() as transaction:
        transaction.put(tree, b"a", b"1")
        transaction.commit()
    with db.begin() as transaction:
        transaction.put(tree, b"b", b"2")
        transaction.rollback()
    assert dict(tree) == {b"a": b"1"}


def test_a_dropped_transaction_is_rolled_back(db: frondb.Db, tree: frondb.Tree) -> None:
    transaction = db.begin()
    transaction.put(tree, b"a", b"1")
    del transaction
    with db.begin(lock_timeout=0) as transaction:
        assert transaction.get_for_update(tree, b"a", wait="nowait") is None
    assert not tree


def test_the_writes_of_a_transaction(db: frondb.Db, tree: frondb.Tree) -> None:
    tree.update({b"a": b"1", b"b": b"2", b"c": b"3", b"d": b"4", b"e1": b"", b"e2": b""})
    with db.begin() as transaction:
        assert transaction.replace(tree, b"a", b"9") == b"1"
        assert transaction.take(tree, b"b") == b"2" and transaction.take(tree, b"b") is None
        assert transaction.pop_first(tree) == (b"a", b"9")
        transaction.delete_range(tree, prefix=b"e")
        assert transaction.pop_last(tree) == (b"d", b"4")
        transaction.insert(tree, b"f", b"5")
        with pytest.raises(frondb.Exists):
            transaction.insert(tree, b"c", b"6")
    assert dict(tree) == {b"c": b"3", b"f": b"5"}


def test_savepoints(db: frondb.Db, tree: frondb.Tree) -> None:
    with db.begin() as transaction:
        transaction.put(tree, b"a", b"1")
        with pytest.raises(ZeroDivisionError), transaction.savepoint():
            transaction.put(tree, b"b", b"2")
            1 / 0
        with transaction.savepoint() as savepoint:
            transaction.put(tree, b"c", b"3")
        with pytest.raises(frondb.NotFound):
            savepoint.rollback()
        savepoint = transaction.savepoint()
        transaction.put(tree, b"d", b"4")
        savepoint.rollback()
        savepoint.release()
    assert dict(tree) == {b"a": b"1", b"c": b"3"}
    with pytest.raises(frondb.Invalid):
        transaction.savepoint()


def test_repeatable_read_and_read_committed(db: frondb.Db, tree: frondb.Tree) -> None:
    tree[b"a"] = b"1"
    with db.begin() as repeatable, db.begin(isolation="read-committed") as newest:
        assert repeatable.get(tree, b"a") == newest.get(tree, b"a") == b"1"
        tree[b"a"] = b"2"
        assert repeatable.get(tree, b"a") == b"1" and newest.get(tree, b"a") == b"2"
        assert dict(repeatable.items(tree)) == {b"a": b"1"} and dict(newest.items(tree)) == {b"a": b"2"}


def test_conflicts_locks_and_deadlocks(db: frondb.Db, tree: frondb.Tree) -> None:
    tree.update({b"a": b"1", b"b": b"2"})
    with db.begin(snapshot_isolation=True) as transaction:
        transaction.get(tree, b"a")
        tree[b"a"] = b"2"
        with pytest.raises(frondb.Conflict):
            transaction.put(tree, b"a", b"3")
        transaction.rollback()
    with db.begin() as holder, db.begin(lock_timeout=0.01) as waiter:
        holder.get_for_update(tree, b"a")
        with pytest.raises(frondb.LockTimeout) as raised:
            waiter.put(tree, b"a", b"4")
        assert isinstance(raised.value, TimeoutError)
        with pytest.raises(frondb.Busy):
            waiter.get_for_share(tree, b"a", wait="nowait")
        assert list(waiter.keys(tree, lock="update", wait="skip-locked")) == [b"b"]

    deadlocks = []
    meeting = threading.Barrier(2)

    def swap(first: bytes, second: bytes) -> None:
        try:
            with db.begin() as transaction:
                transaction.put(tree, first, b"")
                meeting.wait()
                transaction.put(tree, second, b"")
        except frondb.Deadlock as error:
            deadlocks.append(error)

    threads = [threading.Thread(target=swap, args=keys) for keys in ((b"a", b"b"), (b"b", b"a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(deadlocks) == 1 and dict(tree) == {b"a": b"", b"b": b""}


def test_an_iterator_locks_only_the_rows_it_shows(db: frondb.Db, tree: frondb.Tree) -> None:
    tree.update({b"%d" % number: b"" for number in range(9)})
    with db.begin(isolation="read-committed") as one, db.begin() as two:
        rows = iter(one.items(tree, lock="update"))
        assert next(rows)[0] == b"0" and next(rows)[0] == b"1"
        assert two.get_for_update(tree, b"2", wait="nowait") == b""
        with pytest.raises(frondb.Busy):
            two.get_for_update(tree, b"1", wait="nowait")


def test_workers_of_a_queue_take_different_rows(db: frondb.Db, tree: frondb.Tree) -> None:
    tree.update({b"1": b"sweep", b"2": b"water"})
    with db.begin() as one, db.begin() as two:
        assert one.pop_first(tree, wait="skip-locked") == (b"1", b"sweep")
        assert two.pop_first(tree, wait="skip-locked") == (b"2", b"water")
        assert two.pop_first(tree, wait="skip-locked") is None
        one.rollback()
    assert dict(tree) == {b"1": b"sweep"}


def test_a_wait_can_be_cancelled(db: frondb.Db, tree: frondb.Tree) -> None:
    with db.begin() as holder, db.begin() as waiter:
        holder.put(tree, b"a", b"1")
        errors: list[Exception] = []

        def wait() -> None:
            try:
                waiter.put(tree, b"a", b"2")
            except frondb.Cancelled as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        # A cancellation stays pending, so it does not matter which of the two is first.
        waiter.cancel()
        thread.join()
        assert len(errors) == 1
    assert tree[b"a"] == b"1"


def test_prepared_transactions_survive_a_reopen(path: Path) -> None:
    with frondb.open(path, memory=16 << 20) as db:
        tree = db.tree("t")
        for name in (b"yes", b"no", b"here"):
            with db.begin() as transaction:
                transaction.put(tree, name, b"1")
                transaction.prepare(name)
        transaction.commit()
        with pytest.raises(frondb.Busy):
            db.drop_tree("t")
    with frondb.open(path, memory=16 << 20) as db:
        assert db.prepared() == [b"no", b"yes"]
        db.commit_prepared(b"yes")
        db.rollback_prepared(b"no")
        with pytest.raises(frondb.NotFound):
            db.commit_prepared(b"yes")
        assert list(db.tree("t")) == [b"here", b"yes"]


def test_iterators_end_with_their_transaction(db: frondb.Db, tree: frondb.Tree) -> None:
    tree.update({b"%d" % number: b"" for number in range(9)})
    with db.begin() as transaction:
        rows = iter(transaction.items(tree))
        next(rows)
    with pytest.raises(frondb.Closed, match="transaction"):
        next(rows)
    with pytest.raises(frondb.Invalid):
        iter(transaction.items(tree))


@pytest.mark.parametrize(
    "options", [{"isolation": "none"}, {"lock_timeout": -1}, {"lock_timeout": float("nan")}, {"snapshot_isolation": True, "isolation": "serializable"}]
)
def test_wrong_options(db: frondb.Db, options: dict[str, object]) -> None:
    with pytest.raises(frondb.Invalid):
        db.begin(**options)  # type: ignore[arg-type]


def test_wrong_words(db: frondb.Db, tree: frondb.Tree) -> None:
    with db.begin() as transaction:
        with pytest.raises(frondb.Invalid, match="skip-locked"):
            transaction.get_for_update(tree, b"a", wait="maybe")  # type: ignore[arg-type]
        with pytest.raises(frondb.Invalid, match="share"):
            transaction.items(tree, lock="both")  # type: ignore[arg-type]
