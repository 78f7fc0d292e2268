"""Hostile calls against verax, bounded in the tests and long with `make fuzz`.

Each module listed in FUZZERS has a function `attempt(rng)`: one hostile call, made of random numbers
from `rng` alone. It returns quietly where verax behaves and raises where it does not, with what is needed
to repeat the call in its message.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np

# Every fuzzer, with the number of calls that every run of the tests makes. The long tests make three times as
# many.
FUZZERS: dict[str, int] = {
    "bruteforce": 40,
    "commands": 50,
    "files": 100,
    "elsewhere": 40,
    "garbage": 500,
    "grades": 60,
    "lists": 250,
    "logs": 120,
    "monitors": 30,
    "options": 200,
    "records": 250,
    "sets": 60,
    "stored": 80,
    "sums": 50,
    "valid_rows": 150,
}


# Rows cut into parts are made as in other tests.
sys.path.append(str(Path(__file__).parents[1]))


def load(name: str) -> ModuleType:
    """The module of a fuzzer, by its place beside this file."""
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look themselves up among the modules.
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def failures(
    name: str, calls: range, seed: int, *, limit: int = 20, thorough: bool = False
) -> tuple[int, list[str]]:
    """How many attempts of some numbers failed, and what the first different failures said."""
    module = load(name)
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
