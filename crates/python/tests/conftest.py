"""Databases for the tests, in a folder that pytest removes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import frondb

# The smallest memory budget: a test that needs more says so.
MEMORY = 16 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


@pytest.fixture
def db(path: Path) -> Iterator[frondb.Db]:
    with frondb.open(path, memory=MEMORY, commit_sync=False) as db:
        yield db


@pytest.fixture
def tree(db: frondb.Db) -> frondb.Tree:
    return db.tree("t")
