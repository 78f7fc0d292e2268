"""Hostile calls against verax, bounded in the tests and long with `make fuzz`.

Modules of `fuzz` hold verax to other computations, those of `attack` to the law that is in `attack.law`. Each
module listed in FUZZERS has a function `attempt(rng)`: one hostile call, made of random numbers
from `rng` alone. It returns quietly where verax behaves and raises where it does not, with what is needed
to repeat the call in its message.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

# Every fuzzer and every attack, with four times the number of calls that each run of the tests makes. The
# long tests make the others, and twice as many again.
FUZZERS: dict[str, int] = {
    "attack.commands": 50,
    "attack.garbage": 1200,
    "attack.saved": 400,
    "attack.stored": 80,
    "fuzz.bruteforce": 40,
    "fuzz.elsewhere": 40,
    "fuzz.files": 100,
    "fuzz.grades": 60,
    "fuzz.lists": 250,
    "fuzz.logs": 120,
    "fuzz.monitors": 30,
    "fuzz.records": 250,
    "fuzz.sets": 60,
    "fuzz.sums": 50,
    "fuzz.valid_rows": 150,
}
# Run by itself, this file finds the modules of the tests.
sys.path.append(str(Path(__file__).parents[1]))


def failures(
    name: str, calls: range, seed: int, *, limit: int = 20, thorough: bool = False
) -> tuple[int, list[str]]:
    """How many attempts of some numbers failed, and what the first different failures said."""
    module: Any = import_module(name)
    module.THOROUGH = thorough
    seen: Counter[str] = Counter()
    for call in calls:
        try:
            module.attempt(np.random.default_rng([seed, call]))
        except Exception as error:
            seen[f"seed [{seed}, {call}]: {type(error).__name__}: {error}"] += 1
    return sum(seen.values()), list(seen)[:limit]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FUZZERS))
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    failed = 0
    for name in options.names:
        start = time.perf_counter()
        count, messages = failures(name, range(options.calls), options.seed, thorough=True)
        failed += count
        took = time.perf_counter() - start
        print(
            f"{name}: {options.calls} calls, seed {options.seed}, {count} failures, {took:.0f} s", flush=True
        )
        for message in messages:
            print(f"  {message}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
