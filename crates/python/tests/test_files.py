"""Opening, options, backups, verification, statistics."""

from __future__ import annotations

import datetime
import os
import stat
from pathlib import Path

import pytest

import frondb

MEMORY = 16 << 20


def test_open_takes_options_by_name(path: Path) -> None:
    with frondb.open(path, memory="32M", create_new=True, sync="100ms", checkpoint_period=datetime.timedelta(minutes=1),
                     file_mode=0o640, log_dir=path / "wal", attachable=False, log_segment_bytes=None) as db:
        assert db.memory == 32 << 20 and db.path == path and not db.closed
        db.set_memory(MEMORY)
        assert db.memory == MEMORY
    assert db.closed and "closed" in repr(db)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir() if file.is_file()}
    assert modes == {0o640}


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"no_such": 1}, frondb.Invalid, "no option \"no_such\""),
        ({"memory": 1}, frondb.Invalid, "at least 16777216"),
        ({"memory": "lots"}, frondb.Invalid, "not a number"),
        ({"memory": 1.5}, TypeError, "memory_bytes"),
        ({"sync": "sometimes"}, frondb.Invalid, "sync"),
        ({"create": False}, frondb.NotFound, "there is no"),
        ({"read_only": object()}, TypeError, "read_only"),
    ],
)
def test_wrong_options(path: Path, options: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        frondb.open(path, **options)  # type: ignore[arg-type]


def test_a_database_is_opened_once(db: frondb.Db, path: Path) -> None:
    with pytest.raises(frondb.Busy, match=str(os.getpid())):
        frondb.open(path, memory=MEMORY)
    with pytest.raises(frondb.Exists):
        db.close()
        frondb.open(path, memory=MEMORY, create_new=True)


def test_read_only(path: Path) -> None:
    with frondb.open(path, memory=MEMORY) as db:
        db.tree("t")[b"a"] = b"1"
    with frondb.open(path, memory=MEMORY, read_only=True) as db:
        tree = db.open_tree("t")
        assert dict(tree) == {b"a": b"1"}
        with pytest.raises(frondb.Invalid):
            tree[b"b"] = b"2"


def test_trees(db: frondb.Db) -> None:
    tree = db.create_tree("a", codec="zstd:3", block_bytes=8192)
    with pytest.raises(frondb.Exists):
        db.create_tree("a")
    with pytest.raises(frondb.NotFound):
        db.open_tree("b")
    with pytest.raises(frondb.Invalid, match="no option"):
        db.tree("b", no_such=1)
    with pytest.raises(frondb.Invalid, match="aggressive"):
        db.tree("b", preset="fast")  # type: ignore[arg-type]
    db.tree("b", preset="aggressive").put(b"a", b"1")
    db.rename_tree("a", "c")
    assert db.list_trees() == ["b", "c"] and tree.name == "c" and '"c"' in repr(tree)
    tree.set_options(codec="lz4")
    with pytest.raises(frondb.Invalid):
        tree.set_options(codec="magic")
    db.drop_tree("c")
    with pytest.raises(frondb.NotFound):
        tree.get(b"a")
    assert db.list_trees() == ["b"]


def test_maintenance(db: frondb.Db, tree: frondb.Tree) -> None:
    tree.update((b"%05d" % number, bytes(100)) for number in range(5000))
    db.sync()
    db.flush()
    db.checkpoint()
    db.wait_settled()
    told: list[tuple[int, int]] = []
    report = tree.optimize(progress=lambda done, total: told.append((done, total)))
    assert report.leaves >= 1 and report.failed == 0 and report.failures == []
    named: list[tuple[str, int, int]] = []
    checked = db.verify(progress=lambda name, done, total: named.append((name, done, total)))
    assert checked.faults == [] and checked.entries == 5000 and {name for name, _, _ in named} == {"t"}
    assert tree.verify().entries == 5000
    assert db.stats()["trees"] == 1 and db.stats()["commits"] > 0 and tree.stats()
    assert "# TYPE frondb_commits_total counter" in db.prometheus()
    with pytest.raises(frondb.Cancelled):
        db.verify(progress=lambda _name, _done, _total: False)


def test_backups(db: frondb.Db, tree: frondb.Tree, tmp_path: Path) -> None:
    full, later, copy = tmp_path / "full", tmp_path / "later", tmp_path / "copy"
    tree[b"a"] = b"1"
    told: list[tuple[int, int]] = []
    report = db.backup(full, progress=lambda done, total: told.append((done, total)))
    assert report.bytes > 0 and not report.is_incremental and told
    tree[b"b"] = b"2"
    assert db.backup(later, since=full).is_incremental
    tree[b"c"] = b"3"
    assert frondb.verify_backup(full).faults == []
    assert frondb.restore([full, str(later)], copy, file_mode=0o640).bytes > 0
    with frondb.open(copy, memory=MEMORY) as restored:
        assert dict(restored.tree("t")) == {b"a": b"1", b"b": b"2"}
    with pytest.raises(frondb.Exists):
        db.backup(full)
    with pytest.raises(frondb.NotFound):
        frondb.restore([tmp_path / "none"], tmp_path / "other")
    with pytest.raises(frondb.Cancelled):
        db.backup(tmp_path / "cancelled", progress=lambda _done, _total: False)
    with pytest.raises(KeyboardInterrupt):
        db.backup(tmp_path / "interrupted", progress=interrupt)


def interrupt(_done: int, _total: int) -> None:
    raise KeyboardInterrupt


def test_a_damaged_file_is_named(path: Path) -> None:
    with frondb.open(path, memory=MEMORY) as db:
        tree = db.tree("t", codec="none")
        tree.update((b"%05d" % number, bytes(100)) for number in range(20_000))
        db.checkpoint()
        db.wait_settled()
    for file in path.glob("data-*.fdb"):
        data = bytearray(file.read_bytes())
        for at in range(2000, len(data), 4096):
            data[at] ^= 0x55
        file.write_bytes(data)
    with pytest.raises(frondb.Corruption) as raised, frondb.open(path, memory=MEMORY) as db:
        for _ in db.tree("t").items():
            pass
    error = raised.value
    assert error.file is not None and error.file.startswith("data-") and isinstance(error.offset, int)
    assert f"offset {error.offset} of {error.file}" in str(error)
