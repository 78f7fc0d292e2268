"""How often 95 % intervals of a mean cover where rows belong together in two ways: ways to combine variances.

Run `python studies/coverage_two_way.py`; it prints a Markdown table, by default of 2,000 samples per design
(`--samples`). Rows are the sum of an effect of their first group, of their second, of the pair, and of noise
with a standard deviation of 1. Groups are of unequal size; "within": the second kind lies in the first.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from verax.engines.clusters import both_ways, leave_one_out, sums_by_code
from verax.inference.intervals import t_quantile

SIZES = ((8, 8, 400), (8, 50, 800), (20, 20, 800), (20, 100, 2000))
EFFECTS = (
    *((0.5, 0.5, 0.0), (0.7, 0.2, 0.0), (0.2, 0.7, 0.0), (0.5, 0.0, 0.0)),
    *((0.0, 0.0, 0.0), (0.0, 0.0, 0.5), (0.4, 0.4, 0.4)),
)
NESTED_SIZES, NESTED_EFFECTS = ((8, 50, 800), (20, 100, 2000)), ((0.5, 0.5, 0.0), (0, 0.5, 0.0), (0, 0, 0.0))
WAYS = ("rows", "first", "second", "sum less pairs, fewer groups", "used")

Design = tuple[tuple[int, int, int], tuple[float, float, float], bool]


def sample(design: Design, rng: Any) -> tuple[Any, Any, Any]:
    """Values, and their groups of both kinds."""
    (n_first, n_second, n), (first, second, pairs), nested = design
    sizes = [rng.exponential(size=k) + 0.2 for k in (n_first, n_second)]
    b = rng.choice(n_second, n, p=sizes[1] / sizes[1].sum())
    a = b % n_first if nested else rng.choice(n_first, n, p=sizes[0] / sizes[0].sum())
    values = first * rng.normal(size=n_first)[a] + second * rng.normal(size=n_second)[b]
    values += pairs * rng.normal(size=(n_first, n_second))[a, b] + rng.normal(size=n)
    return values, a, b


def variances(values: Any, a: Any, b: Any) -> dict[str, tuple[float, float]]:
    """The variance of the mean and its degrees of freedom, in each of the ways."""
    columns = np.column_stack([np.ones(len(values)), values])
    _, pair = np.unique(a * (b.max() + 1) + b, return_inverse=True)
    found = []
    for code in (a, b, pair):
        sums = sums_by_code(code, columns)
        (variance,), freedom = leave_one_out(sums[:, 0], sums[:, 1:])
        found.append((float(variance), freedom))
    (first, f), (second, s), (pairs, _) = found
    both, freedom = both_ways([np.array([v]) for v in (first, second, pairs)], (f, s))
    plain = first + second - pairs
    rows = float(values.var(ddof=1)) / len(values), len(values) - 1.0
    less_pairs = plain if plain > 0 else max(first, second), min(f, s)
    return dict(zip(WAYS, (rows, *found[:2], less_pairs, (float(both[0]), float(freedom[0]))), strict=True))


def coverage(design: Design, n_samples: int) -> dict[str, float]:
    """The share of samples whose interval covers zero."""
    rng = np.random.default_rng(1)
    hits = dict.fromkeys(WAYS, 0)
    for _ in range(n_samples):
        values, a, b = sample(design, rng)
        for way, (variance, freedom) in variances(values, a, b).items():
            hits[way] += abs(values.mean()) <= t_quantile(freedom, 0.95) * math.sqrt(variance)
    return {way: n / n_samples for way, n in hits.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    n_samples = parser.parse_args().samples
    designs = [(size, effect, False) for size in SIZES for effect in EFFECTS]
    designs += [(size, effect, True) for size in NESTED_SIZES for effect in NESTED_EFFECTS]
    print(f"| groups, rows | effects | {' | '.join(WAYS)} |")
    print("| --- | --- |" + " ---: |" * len(WAYS))
    for size, effects, nested in designs:
        shares = coverage((size, effects, nested), n_samples)
        where = f"{size[0]} and {size[1]}{' within' if nested else ''}, {size[2]}"
        cells = " | ".join(f"{100 * share:.1f}" for share in shares.values())
        print(f"| {where} | {', '.join(f'{e:g}' for e in effects)} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
