"""A tree is a mutable mapping in key order."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any

import pytest

import frondb


def test_a_tree_has_the_methods_of_a_mutable_mapping(tree: frondb.Tree) -> None:
    assert isinstance(tree, MutableMapping)
    for name in MutableMapping.__abstractmethods__ | set(dir(Mapping)) | {"pop", "popitem", "setdefault", "update", "clear"}:
        assert hasattr(tree, name) or name.startswith("_"), name
    assert not tree and len(tree) == 0
    tree[b"b"] = b"2"
    tree[b"a"] = b"1"
    assert tree and len(tree) == 2
    assert tree[b"a"] == b"1" and b"a" in tree and b"c" not in tree
    assert list(tree) == [b"a", b"b"] and list(reversed(tree)) == [b"b", b"a"]
    assert dict(tree) == {b"a": b"1", b"b": b"2"}
    assert dict(tree.items()) == dict(tree)
    del tree[b"a"]
    assert tree.get(b"a") is None and tree.get(b"a", 7) == 7


def test_missing_keys_raise_key_errors_with_the_key(tree: frondb.Tree) -> None:
    for call in (lambda: tree[b"x"], lambda: tree.__delitem__(b"x"), lambda: tree.pop(b"x")):
        with pytest.raises(KeyError) as raised:
            call()
        assert raised.value.args == (b"x",)
    with pytest.raises(KeyError, match="the tree is empty"):
        tree.popitem()
    assert tree.pop(b"x", None) is None
    with pytest.raises(TypeError):
        tree.pop(b"x", 1, 2)  # type: ignore[call-overload]


def test_pops_and_defaults(tree: frondb.Tree) -> None:
    tree.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    assert tree.pop(b"a") == b"1" and b"a" not in tree
    assert tree.popitem() == (b"c", b"3")
    assert tree.setdefault(b"b", b"x") == b"2"
    assert tree.setdefault(b"d", b"4") == b"4" and tree[b"d"] == b"4"
    assert tree.replace(b"d", b"5") == b"4" and tree.replace(b"e", b"6") is None
    assert tree.first() == (b"b", b"2") and tree.last() == (b"e", b"6")
    tree.clear()
    assert tree.first() is None and tree.last() is None


def test_update_takes_mappings_pairs_and_trees(db: frondb.Db, tree: frondb.Tree) -> None:
    tree.update([(b"a", b"1"), (bytearray(b"b"), memoryview(b"2"))])
    tree.update(iter([[b"c", b"3"]]))  # type: ignore[arg-type]
    other = db.tree("other")
    other.update(tree)
    assert list(other.items()) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    for wrong in ([1], [(b"a",)], [(b"a", b"b", b"c")], [(b"a", "b")], 7):
        with pytest.raises(TypeError):
            tree.update(wrong)  # type: ignore[arg-type]


def test_update_commits_large_input_in_batches(tree: frondb.Tree) -> None:
    # More than a batch may have with 16 MiB of memory.
    rows = 80
    tree.update((b"%03d" % number, bytes(60_000)) for number in range(rows))
    assert len(tree) == rows


def test_views_are_views(tree: frondb.Tree) -> None:
    tree.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    keys, values, items = tree.keys(), tree.values(), tree.items()
    assert isinstance(keys, KeysView) and isinstance(values, ValuesView) and isinstance(items, ItemsView)
    assert list(keys) == [b"a", b"b", b"c"] and list(values) == [b"1", b"2", b"3"]
    assert list(reversed(keys)) == [b"c", b"b", b"a"] and list(reversed(values)) == [b"3", b"2", b"1"]
    assert len(keys) == len(values) == len(items) == 3
    assert b"a" in keys and b"x" not in keys and b"3" in values and b"x" not in values
    assert (b"a", b"1") in items and (b"a", b"2") not in items and not items.__contains__(7)
    assert keys & {b"a", b"x"} == {b"a"} and keys - {b"a"} == {b"b", b"c"}
    # A view shows the tree as it is when it is used.
    tree[b"d"] = b"4"
    assert len(keys) == 4 and list(items)[-1] == (b"d", b"4")
    part = tree.keys(b"b", b"d")
    assert b"b" in part and b"d" not in part and b"a" not in part
    for view in (keys, values, items):
        assert "frondb" in repr(view)


@pytest.mark.parametrize("wrong", ["text", 7, None, [b"a"], object()])
def test_keys_and_values_are_bytes(tree: frondb.Tree, wrong: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: tree.get(wrong),
        lambda: tree.put(wrong, b""),
        lambda: tree.put(b"", wrong),
        lambda: tree[wrong],
        lambda: tree.delete(wrong),
        lambda: wrong in tree,
        lambda: tree.multi_get([wrong]),
        lambda: tree.setdefault(b"a", wrong),
        lambda: tree.items(prefix=[wrong]),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert not tree


def test_every_bytes_like_object_is_a_key(tree: frondb.Tree) -> None:
    import array

    tree.put(bytearray(b"key"), memoryview(b"value"))
    assert tree.get(memoryview(b"xkeyx")[1:4]) == b"value"
    numbers = array.array("I", [1, 2])
    tree.put(numbers, b"numbers")
    assert tree[numbers.tobytes()] == b"numbers"
    assert tree[memoryview(b"yxeyk")[::-1][0:1].tobytes() + b"ey"] == b"value"
    assert tree.get(memoryview(b"y-e-k")[::-2]) == b"value"


def test_long_keys_and_values_are_refused(tree: frondb.Tree) -> None:
    tree.put(bytes(32 << 10), b"longest key")
    with pytest.raises(frondb.Invalid, match="key"):
        tree.put(bytes((32 << 10) + 1), b"")
    big = bytes(range(256)) * 4096
    tree.put(b"big", big)
    assert tree[b"big"] == big and (b"big", big) in list(tree.items())
    tree.put(b"", b"empty key")
    assert tree.first() == (b"", b"empty key")


def test_multi_get_keeps_the_order(tree: frondb.Tree) -> None:
    tree.update({b"a": b"1", b"b": b"2"})
    assert tree.multi_get([b"b", b"x", b"a", b"b"]) == [b"2", None, b"1", b"2"]
    assert tree.multi_get(iter([])) == []
    with pytest.raises(TypeError):
        tree.multi_get(7)  # type: ignore[arg-type]
