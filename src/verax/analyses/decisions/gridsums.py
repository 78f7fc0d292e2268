"""Curves over thresholds of predictions that are not in memory: rows counted in cells, which add up.

What a row adds depends only on its cell: between which thresholds its forecasts lie, and whether the event
happened. So the sums of weights by cell, and by group and cell, say all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from verax.analyses.binary import ScannedRows, event_names, rows_of_part
from verax.analyses.decisions.curves import Counted
from verax.analyses.decisions.grid import Cells, Side, codes_of, places_of
from verax.analyses.discrimination.counts import Ranked, RankRecipe, RankSource
from verax.analyses.units import CellUnits, CountedUnits, SamplingUnits
from verax.analyses.unitsums import check_weight
from verax.common.summaries import Summary, UnreadableError, Valued, Whole, merges, within
from verax.engines.clusters import ByLabel, Labels, sums_by_label
from verax.engines.histograms import Keyed, Run
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups, check_one_way, paired
from verax.inputs.handles import Handle, Part, Recipe, refuse_lists


class CellSums(Summary, kind="cells of thresholds"):
    """Sums over the rows of each cell.

    Attributes
    ----------
    cells : Keyed
        By cell the sums of w and w*w, and of leverages where the weight of all rows is known; with the
        extremes of w.
    rows : int
        The number of rows that have weight.
    labels, groups : arrays or None
        Of each group and cell: both as labels with two fields, and the sum of w.
    """

    cells: Keyed = merges(Valued(Keyed))
    rows: int = merges(Whole())
    labels: Any = merges(Labels(), default=None)
    groups: Floats | None = merges(ByLabel(1), default=None)

    def _check(self) -> None:
        run = self.cells.total
        if run.sums.high.shape[1] != 3 or run.least.shape[1] != 1 or len(run.keys) > self.rows:
            raise UnreadableError("has other sums than those of cells, or more cells than rows", "cells")
        within(run.keys, 0, math.inf)
        within(run.sums.high, 0, math.inf)
        # Groups and cells are named by two fields.
        if self.labels is not None:
            names = self.labels.dtype.names
            if names is None or self.labels[names[1]].dtype != np.int64:
                raise UnreadableError("does not name groups and cells", "labels")
            within(self.labels[names[1]], 0, math.inf)

    @property
    def even(self) -> bool:
        """Whether all rows have the same weight."""
        run = self.cells.total
        return bool(run.least.min(initial=np.inf) == run.most.max(initial=-np.inf))

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.cells.total.sums.high[:, 0].sum())


@dataclass(frozen=True)
class GridRecipe(Recipe[CellSums]):
    """The cells of one event, by the forecasts of one or two models."""

    models: tuple[str, ...]
    event: int
    ordered: bool
    grid: Floats
    side: Side
    total: float | None = None

    def take(self, part: Part) -> CellSums:
        """Of some rows."""
        places, happened = [], None
        for model in self.models:
            rows = rows_of_part(part, model, ordered=self.ordered)
            events = part.once(("binary events", model, self.ordered), rows.events)
            event = events[self.event]
            places.append(places_of(event.given, self.grid, rows.decimals, self.side))
            happened = event.happened
        assert happened is not None
        codes, w = codes_of(places, happened, len(self.grid) + 1), rows.units.share
        share = w / self.total if self.total else np.zeros(len(w))
        run = Run.of(codes, [w, w * w, share**2 / np.maximum(1 - share, 1e-300)], [w])
        labels = sums = None
        if rows.units.groups is not None:
            check_one_way(rows.units.groups, "curves over thresholds")
            groups = rows.units.groups
            labels, sums = sums_by_label(paired(groups.labels[groups.codes], codes), w[:, None])
        return CellSums(Keyed((run,)), len(w), labels, sums)


class CountedHandle(Counted):
    """The rows of a handle in cells of thresholds and outcomes."""

    rows: ScannedRows

    def __init__(
        self,
        handle: Handle,
        events: list[str],
        grid: Floats,
        found: dict[Any, CellSums],
        ranks: dict[str, Any],
    ) -> None:
        self.models: tuple[str, ...] = handle.models
        self.events: list[str] = events
        self._grid, self._found, self._ranks = grid, found, ranks

    @classmethod
    def of(cls, handle: Handle, grid: Floats, side: Side, *, ordered: bool) -> CountedHandle:
        """From one pass over the rows; two where they have unequal weights."""
        refuse_lists(handle)
        handle = handle.in_order() if ordered else handle
        events = event_names(tuple(handle.classes or range(handle.n_classes)), ordered=ordered)
        chosen = [(name,) for name in handle.models] + list(combinations(handle.models, 2))
        recipes = {
            (models, i): GridRecipe(models, i, ordered, grid, side)
            for models in chosen
            for i in range(len(events))
        }
        keys = list(recipes)
        sources = {name: RankSource(name, ordered, False, len(events), 2) for name in handle.models}
        named: dict[str, Recipe[Any]] = {str(i): recipes[key] for i, key in enumerate(keys)}
        if side == "left" and len(sources) > 1:
            named |= {f"ranks of {name}": RankRecipe(source) for name, source in sources.items()}
        found = handle.summarise(named)
        sums = {key: found[str(i)] for i, key in enumerate(keys)}
        first = sums[keys[0]]
        check_weight(first.total)
        if first.groups is None and handle.has_rows:
            # Leverages need the weight of all rows, which is now known.
            if first.even:
                sums = {key: _with_leverages(each) for key, each in sums.items()}
            else:
                again = {str(i): replace(recipes[key], total=first.total) for i, key in enumerate(keys)}
                second = handle.summarise(again)
                sums = {key: second[str(i)] for i, key in enumerate(keys)}
        counts = {name: found.found[key] for name in sources if (key := f"ranks of {name}") in found.found}
        if not all(each.exact for each in counts.values()):
            counts = {name: each.in_bins() for name, each in counts.items()}
        ranks = {name: Ranked.all(each, len(events)) for name, each in counts.items()}
        counted = cls(handle, events, grid, sums, ranks)
        units = counted.cells(0, handle.models[0])[1]
        known = CountedUnits(units.n, units.freedom, units.grouped)
        n_groups = units.n if units.grouped else None
        counted.rows = ScannedRows(first.rows, n_groups, handle.n_classes, ordered, known)
        counted.skipped = found.skipped
        return counted

    def cells(self, event: int, *models: str) -> tuple[Cells, SamplingUnits]:
        """The cells of one event by the forecasts of some models, and what is independent in them."""
        found = self._found[models, event]
        run, total = found.cells.total, found.total
        squares = float(run.sums.high[:, 1].sum()) / total**2
        n_places = len(self._grid) + 1
        if found.groups is None:
            share = run.sums.high[:, 0] / total
            units = CellUnits(share, None, found.rows, squares, run.sums.high[:, 2])
            return Cells.of_codes(run.keys, np.arange(len(run.keys)), len(models), n_places), units
        names = found.labels.dtype.names
        codes, place = np.unique(found.labels[names[1]], return_inverse=True)
        groups = Groups.of(found.labels[names[0]], len(place))
        share = found.groups[:, 0] / total
        units = CellUnits(share, groups, found.rows, squares, share**2)
        return Cells.of_codes(codes, place.ravel(), len(models), n_places), units

    def stretches(self, event: int, a: str, b: str) -> Floats:
        """Differences of mean elementary scores, a - b, at both ends of the stretches between bins."""
        first, second = self._ranks[a][event], self._ranks[b][event]
        bins = np.union1d(first.keys, second.keys)
        charged = []
        for own in (first, second):
            at = np.searchsorted(bins, own.keys)[own.place]
            without, happened = (np.bincount(at, own.share * (own.y == k), len(bins)) for k in (0, 1))
            above = without.sum() - np.concatenate([[0.0], np.cumsum(without)])
            charged.append((above, np.concatenate([[0.0], np.cumsum(happened)])))
        alarms, misses = (charged[0][k] - charged[1][k] for k in (0, 1))
        least, most = np.full(len(bins), np.inf), np.full(len(bins), -np.inf)
        for own in (first, second):
            at = np.searchsorted(bins, own.keys)
            least[at], most[at] = np.minimum(least[at], own.least), np.maximum(most[at], own.most)
        low, high = np.concatenate([[0.0], most]), np.concatenate([least, [1.0]])
        ends = [np.clip(edge, 0.0, 1.0) for edge in (low, high)]
        return np.concatenate([edge * alarms + (1 - edge) * misses for edge in ends])


def _with_leverages(found: CellSums) -> CellSums:
    """With the leverages of rows that all have the same weight."""
    run = found.cells.total
    share = 1 / found.rows
    columns = run.sums.high.copy()
    columns[:, 2] = columns[:, 0] / found.total * share / max(1 - share, 1e-300)
    sums = type(run.sums)(columns, run.sums.low * [1, 1, 0])
    return CellSums(Keyed((Run(run.keys, sums, run.least, run.most),)), found.rows)
