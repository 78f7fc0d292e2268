"""Rows counted in cells of thresholds and outcomes, which add up.

What a row adds at every threshold depends only on its cell: between which thresholds its forecasts lie, and
whether the event happened. So the sums of weights by cell, and by group and cell, are all that curves need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from typing import Any, Literal

import numpy as np

from verax.analyses.bands import States, ThresholdCells
from verax.analyses.binary import ScannedRows, event_names, rows_of_part
from verax.analyses.discrimination.counts import Ranked, RankRecipe, RankSource
from verax.analyses.units import CountedUnits, SamplingUnits, sums_at
from verax.analyses.unitsums import check_weight
from verax.common.packing import UnreadableError
from verax.common.specs import Valued, Whole
from verax.common.spelling import LATER
from verax.common.stored import only_weights, within
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.keyed import Keyed, Run
from verax.errors import InputError, show
from verax.inputs.arrays import Bools, Floats, Ints, to_array, to_host
from verax.inputs.groups import check_one_way, distinct, paired
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.skipping import Skipped

# By default, thresholds from 1 to 99 percent. Thresholds are compared to this number of decimals.
DEFAULT_GRID = np.arange(1, 100) / 100
_DECIMALS = 12
_MOST = 1000


def check_grid(thresholds: object) -> Floats:
    """Increasing thresholds above 0 and below 1; by default 1 to 99 percent."""
    if thresholds is None:
        return DEFAULT_GRID
    given = to_host(to_array(thresholds, "thresholds")[0])
    grid = given.astype(float) if given.dtype.kind in "fiu" and given.ndim == 1 else np.zeros(0)
    fits = len(grid) and (grid > 0).all() and (grid < 1).all() and (np.diff(grid) > 0).all()
    if not fits or len(grid) > _MOST:
        raise InputError(
            f"must be increasing probabilities above 0 and below 1, at most {_MOST:,}",
            argument="thresholds",
            found=f"it is {show(given)}",
            values=given.ravel()[:8].tolist(),
        )
    return np.round(grid, _DECIMALS)


Side = Literal["left", "right"]


def places_of(given: Floats, grid: Floats, decimals: int, side: Side) -> Ints:
    """The number of thresholds that each forecast reaches ("right") or exceeds ("left")."""
    return np.asarray(np.searchsorted(grid, np.round(given, decimals), side=side))


def runs(flags: Bools, grid: Floats) -> list[tuple[float, float]]:
    """The first and last threshold of each run of flags that are true.

    >>> runs(np.array([True, True, False, True]), np.array([0.1, 0.2, 0.3, 0.4]))
    [(0.1, 0.2), (0.4, 0.4)]
    """
    stretches = []
    for true, places in groupby(range(len(grid)), key=lambda i: bool(flags[i])):
        if true:
            at = list(places)
            stretches.append((float(grid[at[0]]), float(grid[at[-1]])))
    return stretches


def in_words(ranges: Sequence[tuple[float, float]]) -> str:
    """Ranges of thresholds as a text.

    >>> in_words([(0.1, 0.2), (0.4, 0.4)])
    '0.1 to 0.2 and 0.4'
    >>> in_words([(0.1, 0.2), (0.4, 0.4), (0.6, 0.8)])
    '0.1 to 0.8, with gaps'
    """
    if len(ranges) > 2:
        return f"{ranges[0][0]:g} to {ranges[-1][1]:g}, with gaps"
    return " and ".join(f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in ranges)


# Smaller parts of a whole are rounding.
_NONE = 1e-15


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
    labels: Any = merges(GroupLabels(ids=1), default=None)
    groups: Floats | None = merges(ByLabel(1), default=None)

    def _check(self) -> None:
        run = self.cells.total
        if run.sums.high.shape[1] != 3 or run.least.shape[1] != 1 or len(run.keys) > self.rows:
            raise UnreadableError("has other sums than those of cells, or more cells than rows", "cells")
        within(run.keys, 0, math.inf)
        only_weights(run.sums.high[:, 0])
        within(run.sums.high, 0, math.inf)
        if self.groups is not None:
            only_weights(self.groups)
        # Groups and cells are named by two fields.
        if self.labels is not None:
            names = self.labels.dtype.names
            if names is None or self.labels[names[1]].dtype != np.int64:
                raise UnreadableError("does not name groups and cells", "labels")
            if not np.isin(self.labels[names[1]], run.keys).all():
                raise UnreadableError("names cells without rows", "labels")

    @property
    def even(self) -> bool:
        """Whether all rows have the same weight."""
        run = self.cells.total
        return bool(run.least.min(initial=np.inf) == run.most.max(initial=-np.inf))

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.cells.total.sums.high[:, 0].sum())

    def as_cells(self, n_models: int, n_places: int) -> ThresholdCells:
        """The cells, with shares in place of weights."""
        run, total = self.cells.total, self.total
        weight, squares, leverages = run.sums.high.T
        places, happened = [], run.keys
        for _ in range(n_models):
            happened, place = np.divmod(happened, n_places)
            places.append(place)
        squared, n, sums = float(squares.sum()), self.rows, None
        if self.groups is None:
            if self.even:
                leverages = weight / total / max(n - 1, 1)
            elif not leverages.any():
                # Rows that cannot be read again all have the mean leverage.
                leverages = squares / max(total**2 - squared, _NONE * total**2)
        else:
            from scipy.sparse import csr_array

            names, group = distinct(self.labels[self.labels.dtype.names[0]])
            cell = np.searchsorted(run.keys, self.labels[self.labels.dtype.names[1]])
            n = len(names)
            sums = csr_array((self.groups[:, 0] / total, (group, cell)), shape=(n, len(run.keys)))
            squared = float((sums_at(group, self.groups[:, 0], n) ** 2).sum())
        units = CountedUnits.of(n, total, squared, in_groups=sums is not None)
        return ThresholdCells(
            np.stack(places[::-1], axis=1),
            happened.astype(float),
            weight / total,
            squares / total**2,
            leverages,
            sums,
            units,
        )


# In place of the number of an event: that the most likely class happened, by its probability.
RIGHT = -1


@dataclass(frozen=True)
class GridRecipe(Recipe[CellSums]):
    """The cells of one event, by the forecasts of one or two models.

    Forecasts are rounded before they are compared with thresholds, or are `ranked`, as for ranking scores.
    """

    models: tuple[str, ...]
    event: int
    ordered: bool
    grid: Floats
    side: Side
    total: float | None = None
    ranked: bool = field(default=False, metadata=LATER)

    def check(self, sums: CellSums) -> None:
        """Refuse cells of other thresholds."""
        within(sums.cells.total.keys, 0, 2 * (len(self.grid) + 1) ** len(self.models) - 1)

    def take(self, part: Part) -> CellSums:
        """Count the rows of one part."""
        places, happened = zip(*(self._placed(part, model) for model in self.models), strict=True)
        units = rows_of_part(part, self.models[0], ordered=self.ordered).units
        total = float(units.share.sum()) if part.whole else self.total
        return cell_sums(places, happened[0], units, len(self.grid) + 1, total)

    def _placed(self, part: Part, model: str) -> tuple[Ints, Bools]:
        """The number of thresholds at which a model acts in each row, and whether the event happened."""

        def placed() -> tuple[Ints, Bools]:
            rows = rows_of_part(part, model, ordered=self.ordered)
            if self.event == RIGHT:
                event = rows.right()
            else:
                event = part.once(("binary events", model, self.ordered), rows.events)[self.event]
            if self.ranked:
                return np.searchsorted(self.grid, np.clip(event.ranked, 0.0, 1.0), self.side), event.happened
            return places_of(event.given, self.grid, rows.decimals, self.side), event.happened

        key = ("places", model, self.ordered, self.event, self.side, self.ranked, self.grid.tobytes())
        return part.once(key, placed)


def cell_sums(
    places: Sequence[Ints], happened: Bools, units: SamplingUnits, n_places: int, total: float | None
) -> CellSums:
    """The cells of rows, from the place of each model's forecast and whether the event happened.

    `total` is the weight of all rows, where it is known.
    """
    codes, w = codes_of(places, happened, n_places), units.share
    run = Run.of(codes, [w, w * w, _leverages(w, total)], [w])
    labels = sums = None
    if units.groups is not None:
        check_one_way(units.groups, "curves over thresholds")
        cell = np.searchsorted(run.keys, codes)
        both, place = np.unique(units.groups.codes * len(run.keys) + cell, return_inverse=True)
        group, cell = np.divmod(both, len(run.keys))
        labels = paired(units.groups.labels[group], run.keys[cell])
        sums = sums_at(place.ravel(), w, len(both))[:, None]
    return CellSums(Keyed((run,)), len(w), labels, sums)


def _leverages(w: Floats, total: float | None) -> Floats:
    """The squared share of each row in all weight over one minus the share; nothing where it is not known."""
    if not total:
        return np.zeros(len(w))
    share = w / total
    # In place, because rows may be many.
    rest = 1 - share
    np.maximum(rest, 1e-300, out=rest)
    np.square(share, out=share)
    share /= rest
    return share


def codes_of(places: Sequence[Ints], happened: Bools, n_places: int) -> Ints:
    """A number for the place of each model's forecast in each row, and whether the event happened."""
    key = happened.astype(np.int64)
    for place in places:
        key *= n_places
        key += place
    return key


def read_cells(
    handle: Handle, recipes: Mapping[Any, GridRecipe], also: Mapping[str, Recipe[Any]] | None = None
) -> tuple[dict[Any, CellSums], Summaries]:
    """The cells of every recipe, and all that one pass found; two passes where parts have unequal weights."""
    named: dict[str, Recipe[Any]] = {str(i): recipe for i, recipe in enumerate(recipes.values())}
    summaries = handle.summarise({**named, **(also or {})})
    first: CellSums = summaries["0"]
    check_weight(first.total)
    sums = summaries
    if first.groups is None and not first.even and not first.cells.total.sums.high[:, 2].any():
        # Leverages need the weight of all rows, which is now known.
        again = {str(i): replace(recipe, total=first.total) for i, recipe in enumerate(recipes.values())}
        if all(map(handle.knows, again.values())):
            sums = handle.summarise(again)
    return {key: sums[str(i)] for i, key in enumerate(recipes)}, summaries


class Counted:
    """The rows of a handle in cells of thresholds and outcomes."""

    def __init__(self, handle: Handle, grid: Floats, side: Side, *, ordered: bool, stretches: bool) -> None:
        """From one pass over the rows; two where parts of them have unequal weights."""
        self.models: tuple[str, ...] = handle.models
        self.events: list[str] = event_names(handle.class_names, ordered=ordered)
        self.grid: Floats = grid
        chosen = [(name,) for name in handle.models] + list(combinations(handle.models, 2))
        recipes = {
            (models, i): GridRecipe(models, i, ordered, grid, side)
            for models in chosen
            for i in range(len(self.events))
        }
        ranks: dict[str, Recipe[Any]] = {}
        if stretches and len(handle.models) > 1:
            sources = [RankSource(name, ordered, False, len(self.events), 2) for name in handle.models]
            ranks = {f"ranks of {source.model}": RankRecipe(source) for source in sources}
        self._sums: dict[Any, CellSums]
        self._sums, summaries = read_cells(handle, recipes, ranks)
        self._states: dict[Any, States] = {}
        counts = {
            n: summaries.by_name[key] for n in self.models if (key := f"ranks of {n}") in summaries.by_name
        }
        if not all(of_model.exact for of_model in counts.values()):
            counts = {name: of_model.in_bins() for name, of_model in counts.items()}
        self._ranks = {name: Ranked.all(of_model, len(self.events)) for name, of_model in counts.items()}
        self.skipped: Skipped | None = summaries.skipped
        units = self.states(0, self.models[0]).cells.units
        n_groups = units.n if units.grouped else None
        self.rows: ScannedRows = ScannedRows(summaries.n_rows, n_groups, handle.n_classes, ordered, units)

    def states(self, event: int, *models: str) -> States:
        """The states of the rows at each threshold, for one event and the forecasts of some models."""
        key = models, event
        if key not in self._states:
            cells = self._sums[key].as_cells(len(models), len(self.grid) + 1)
            self._states[key] = States(cells, len(self.grid))
        return self._states[key]

    def stretches(self, event: int, a: str, b: str) -> Floats:
        """Differences of mean elementary scores, a - b, at both ends of the stretches between bins."""
        first, second = self._ranks[a][event], self._ranks[b][event]
        bins = np.union1d(first.keys, second.keys)
        charged = []
        for ranked in (first, second):
            at = np.searchsorted(bins, ranked.keys)[ranked.place]
            without, happened = (np.bincount(at, ranked.share * (ranked.y == k), len(bins)) for k in (0, 1))
            above = without.sum() - np.concatenate([[0.0], np.cumsum(without)])
            charged.append((above, np.concatenate([[0.0], np.cumsum(happened)])))
        alarms, misses = (charged[0][k] - charged[1][k] for k in (0, 1))
        least, most = np.full(len(bins), np.inf), np.full(len(bins), -np.inf)
        for ranked in (first, second):
            at = np.searchsorted(bins, ranked.keys)
            least[at], most[at] = np.minimum(least[at], ranked.least), np.maximum(most[at], ranked.most)
        low, high = np.concatenate([[0.0], most]), np.concatenate([least, [1.0]])
        ends = [np.clip(edge, 0.0, 1.0) for edge in (low, high)]
        return np.concatenate([edge * alarms + (1 - edge) * misses for edge in ends])
