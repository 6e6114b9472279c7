"""Compares a put, a get and a scanned row with plyvel, rocksdict and lmdb, in one run.

The engines take turns: in each round every engine makes a new database, puts all rows in random
order without a sync, settles its background work, gets all keys in random order, and scans. So a
slow minute of the machine affects all engines. Prints the median and the quartiles of the rounds,
microseconds for each row.

    pip install plyvel rocksdict lmdb
    python crates/python/bench/compare.py --rows 300000 --rounds 5
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from engines import ENGINES

KINDS = ("put", "get", "scan")


def rows_of(count: int, seed: int) -> list[tuple[bytes, bytes]]:
    """Returns rows in random order: keys of 16 bytes, values of 100 bytes, half of them random."""
    source = random.Random(seed)
    rows = [(b"%016d" % number, source.randbytes(50) + b"v" * 50) for number in range(count)]
    source.shuffle(rows)
    return rows


def measure(name: str, rows: list[tuple[bytes, bytes]], memory: int, directory: Path) -> dict[str, float]:
    """Measures one engine once: microseconds for each row."""
    path = directory / name
    keys = [key for key, _ in rows]
    random.Random(1).shuffle(keys)
    engine = ENGINES[name](path, memory)
    times = {}
    try:
        start = time.perf_counter()
        engine.put_all(rows)
        times["put"] = time.perf_counter() - start
        engine.settle()
        start = time.perf_counter()
        found = engine.get_all(keys)
        times["get"] = time.perf_counter() - start
        assert found == len(rows), f"{name} found {found} of {len(rows)} rows"
        start = time.perf_counter()
        scanned = 0
        for _key, _value in engine.scan():
            scanned += 1
        times["scan"] = time.perf_counter() - start
        assert scanned == len(rows), f"{name} scanned {scanned} of {len(rows)} rows"
    finally:
        engine.close()
        shutil.rmtree(path)
    return {kind: seconds / len(rows) * 1e6 for kind, seconds in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=int, default=256, help="MiB")
    parser.add_argument("--engines", nargs="+", choices=sorted(ENGINES), default=list(ENGINES))
    parser.add_argument("--dir", type=Path, help="where the databases are made")
    parser.add_argument("--json", type=Path, help="writes all figures to this file")
    arguments = parser.parse_args()
    rows = rows_of(arguments.rows, seed=42)
    results: dict[str, dict[str, list[float]]] = {name: {kind: [] for kind in KINDS} for name in arguments.engines}
    with tempfile.TemporaryDirectory(dir=arguments.dir) as directory:
        for number in range(arguments.rounds):
            # Another engine is first in each round.
            turn = number % len(arguments.engines)
            for name in arguments.engines[turn:] + arguments.engines[:turn]:
                times = measure(name, rows, arguments.memory << 20, Path(directory))
                for kind in KINDS:
                    results[name][kind].append(times[kind])
                print(f"round {number + 1} {name:10}", *(f"{kind} {times[kind]:.2f}" for kind in KINDS), flush=True)
    print(f"\n{arguments.rows} rows, {arguments.memory} MiB, {arguments.rounds} rounds; us per row: median (quartiles)")
    for name, kinds in results.items():
        cells = []
        for kind in KINDS:
            figures = kinds[kind]
            low, middle, high = statistics.quantiles(figures, n=4) if len(figures) > 1 else figures * 3
            cells.append(f"{kind} {middle:6.2f} ({low:.2f}-{high:.2f})")
        print(f"{name:10}", *cells, sep="  ")
    peers = [name for name in ("plyvel", "rocksdict") if name in results]
    if "frondb" in results and peers:
        for kind in KINDS:
            best = min(statistics.median(results[name][kind]) for name in peers)
            print(f"{kind}: {statistics.median(results['frondb'][kind]) / best:.2f} times the best of {', '.join(peers)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
