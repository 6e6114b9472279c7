"""One class for each engine of the benchmark, all with the same memory.

FronDB's memory option covers its cache, its write buffer and its filters. The others get three
quarters of the same number of bytes as a block cache and a quarter as a write buffer, as FronDB
divides them itself. LMDB has no such option: it uses the page cache of the operating system.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol


class Engine(Protocol):
    """The calls that are measured."""

    name: str

    def put_all(self, rows: list[tuple[bytes, bytes]]) -> None: ...
    def get_all(self, keys: list[bytes]) -> int: ...
    def scan(self) -> Iterator[tuple[bytes, bytes]]: ...
    def settle(self) -> None: ...
    def close(self) -> None: ...


class FronDB:
    name = "frondb"

    def __init__(self, path: Path, memory: int) -> None:
        import frondb

        self.db = frondb.open(path, memory=memory, commit_sync=False)
        self.tree = self.db.tree("t")

    def put_all(self, rows: list[tuple[bytes, bytes]]) -> None:
        put = self.tree.put
        for key, value in rows:
            put(key, value)

    def get_all(self, keys: list[bytes]) -> int:
        get = self.tree.get
        return sum(get(key) is not None for key in keys)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(self.tree.items())

    def settle(self) -> None:
        self.db.flush()
        self.db.wait_settled()

    def close(self) -> None:
        self.db.close()


class Plyvel:
    name = "plyvel"

    def __init__(self, path: Path, memory: int) -> None:
        import plyvel

        self.db = plyvel.DB(
            str(path),
            create_if_missing=True,
            lru_cache_size=memory * 3 // 4,
            write_buffer_size=memory // 4,
            bloom_filter_bits=10,
        )

    def put_all(self, rows: list[tuple[bytes, bytes]]) -> None:
        put = self.db.put
        for key, value in rows:
            put(key, value)

    def get_all(self, keys: list[bytes]) -> int:
        get = self.db.get
        return sum(get(key) is not None for key in keys)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(self.db.iterator())

    def settle(self) -> None:
        self.db.compact_range()

    def close(self) -> None:
        self.db.close()


class RocksDict:
    name = "rocksdict"

    def __init__(self, path: Path, memory: int) -> None:
        from rocksdict import BlockBasedOptions, Cache, Options, Rdict

        # Raw mode takes and returns bytes, without an encoding of Python types.
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(memory // 4)
        table = BlockBasedOptions()
        table.set_block_cache(Cache(memory * 3 // 4))
        table.set_bloom_filter(10.0, False)
        options.set_block_based_table_factory(table)
        self.db = Rdict(str(path), options)

    def put_all(self, rows: list[tuple[bytes, bytes]]) -> None:
        put = self.db.put
        for key, value in rows:
            put(key, value)

    def get_all(self, keys: list[bytes]) -> int:
        get = self.db.get
        return sum(get(key) is not None for key in keys)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(self.db.items())

    def settle(self) -> None:
        self.db.flush()
        self.db.compact_range(None, None)

    def close(self) -> None:
        self.db.close()


class Lmdb:
    name = "lmdb"

    def __init__(self, path: Path, memory: int) -> None:
        import lmdb

        self.env = lmdb.open(str(path), map_size=8 << 30, sync=False, metasync=False)

    def put_all(self, rows: list[tuple[bytes, bytes]]) -> None:
        # A transaction for each put, as each put of the others is a commit of its own.
        for key, value in rows:
            with self.env.begin(write=True) as transaction:
                transaction.put(key, value)

    def get_all(self, keys: list[bytes]) -> int:
        with self.env.begin() as transaction:
            get = transaction.get
            return sum(get(key) is not None for key in keys)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        with self.env.begin() as transaction:
            yield from transaction.cursor()

    def settle(self) -> None:
        self.env.sync(True)

    def close(self) -> None:
        self.env.close()


ENGINES = {engine.name: engine for engine in (FronDB, Plyvel, RocksDict, Lmdb)}
