"""Predictions in memory that are read as those elsewhere are: in parts, merged through bytes in any order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verax import Forecasts, TopLists
from verax.inputs.handles import Collector, Handle, Part, Recipe, Summaries
from verax.scans import dask as dask_engine
from verax.scans import scan as scanning
from verax.scans.partitions import PartitionedHandle


class Scattered(Handle):
    """Rows cut at random into parts, whose summaries are stored, read and merged in random order."""

    def __init__(self, y: Any, models: Any, *, n_parts: int = 5, seed: int = 0, **options: Any) -> None:
        by = options.pop("by", {})
        self.labels = by if isinstance(by, Mapping) else {"by": np.asarray(by)}
        self.given = {
            "y": np.asarray(y),
            **{name: np.asarray(v) for name, v in options.items() if v is not None},
        }
        self.forecasts = models if isinstance(models, Mapping) else {"model": models}
        self.n_parts, self.rng = n_parts, np.random.default_rng(seed)
        self.name, self.models, self.taken = "scattered", tuple(self.forecasts), ()
        self.classes, self.n_rows = None, len(self.given["y"])
        first = next(iter(self.forecasts.values()))
        self.n_classes, self.lists = first.shape[1], isinstance(first, TopLists)
        self.by = tuple(self.labels)
        self.passes = 0

    def in_order(self) -> Handle:
        return self

    def part(self, rows: Any) -> Part:
        given = {name: values[rows] for name, values in self.given.items()}
        own = {name: given.get(name) for name in ("weights", "groups")}
        first = int(rows[0])
        read = {
            name: p[rows].with_outcomes(given["y"], part=True, first_row=first, **own)
            if self.lists
            else Forecasts(given["y"], p[rows], part=True, **own)
            for name, p in self.forecasts.items()
        }
        labels = {name: column[rows] for name, column in self.labels.items()}
        return Part(read, first, given.get("ids"), labels, subset=lambda some: self.part(rows[some]))

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        self.passes += 1
        cuts = np.sort(self.rng.choice(np.arange(1, self.n_rows), self.n_parts - 1, replace=False))
        edges = [0, *cuts.tolist(), self.n_rows]
        collectors = [Collector(recipes) for _ in range((self.n_parts + 1) // 2)]
        for a, b in itertools.pairwise(edges):
            collectors[int(self.rng.integers(len(collectors)))].add(self.part(np.arange(a, b)))
        found = [collector.summaries() for collector in collectors]
        while len(found) > 1:
            i, j = self.rng.choice(len(found), 2, replace=False)
            merged = stored(found[i], recipes).merge(stored(found[j], recipes))
            found = [each for k, each in enumerate(found) if k not in (i, j)] + [merged]
        return found[0]


class Cut:
    """A table whose rows are cut at random places and handed out in random order."""

    def __init__(self, table: Any, seed: int, cuts: int = 8) -> None:
        self.table, self.seed, self.cuts = table, seed, cuts


class CutHandle(PartitionedHandle):
    """Scores random parts, and merges their bytes as a random tree."""

    def _run(self, work: Any) -> Any:
        rng, table = np.random.default_rng(self._frame.seed), self._frame.table
        n = table.num_rows
        parts = np.split(np.arange(n), np.sort(rng.integers(0, n + 1, self._frame.cuts)))
        found = [
            work.score(table.select(work.reader.columns).take(part).to_batches(max_chunksize=301), i)
            for i, part in enumerate(parts)
        ]
        rng.shuffle(found)
        while len(found) > 1:
            some = [found.pop(int(rng.integers(len(found)))) for _ in range(min(len(found), 3))]
            found.append(work.merge(some).to_bytes())
        return found


def cut_engine(monkeypatch: Any, table: Any, seed: int) -> Cut:
    """A source that `scan` opens: an engine is a function `opened`."""

    open_cuts(monkeypatch)
    return Cut(table, seed)


def open_cuts(monkeypatch: Any) -> None:
    """Let `scan` open such tables."""

    others = dask_engine.opened

    def opened(source: Any, asked: Any) -> Any:
        if not isinstance(source, Cut):
            return others(source, asked)
        return CutHandle("the rows", source, asked, source.table.slice(0, 50))

    assert "dask" in scanning.ENGINES
    monkeypatch.setattr(dask_engine, "opened", opened)


def stored(found: Summaries, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
    """The same after a journey as bytes, where the summaries have a byte form."""
    return replace(
        found,
        by_name={
            name: recipes[name].load(each.to_bytes()) if hasattr(each, "to_bytes") else each
            for name, each in found.by_name.items()
        },
    )


def problem(n: int, k: int, seed: int, *, decimals: int | None = None) -> tuple[Any, Any, Any]:
    """A random generator, outcomes and forecasts that are somewhat overconfident."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    if decimals is not None:
        p = np.round(p, decimals)
        p[:, 0] = np.round(1 - p[:, 1:].sum(axis=1), decimals)
        p = p[(p >= 0).all(axis=1)]
    y = (rng.random(len(p))[:, None] > np.cumsum(0.7 * p + 0.3 / k, axis=1)).sum(axis=1).clip(0, k - 1)
    return rng, y, np.abs(p)
