"""Ranking of rows by forecasts: values from counts of rows, and a second pass for intervals.

The first pass counts rows by forecast and outcome (`counts`). The second sums the influence of the rows on
each value over rows or groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from verax.analyses.binary import ScannedRows, event_names
from verax.analyses.discrimination.counts import Estimated, Ranked, RankRecipe, RankSource, delong_factor
from verax.analyses.unitsums import Means, PieceRecipe, UnitColumns, means_of
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups
from verax.inputs.handles import Handle, Part

# A single row of an outcome, up to rounding: its influence on average precision cannot be corrected.
_ONE = 1 + 1e-9
# The number of influences that are held at a time.
_HELD = 2**24


@dataclass(frozen=True)
class Influence:
    """The influence of a row on a value by its cell.

    Attributes
    ----------
    event : int
        The event whose cells these are.
    values : Floats
        (C,) the influence.
    sizes : Floats or None
        The shares of the outcomes, where squares are corrected as DeLong's are.
    outcomes : tuple of int
        The outcomes that count.
    """

    event: int
    values: Floats
    sizes: Floats | None
    outcomes: tuple[int, ...] = (0, 1)


@dataclass(frozen=True)
class Average:
    """The whole from its parts: the mean of some, or weighted by how often their events happened."""

    known: tuple[int, ...]
    rates: tuple[float, ...] | None
    values: tuple[float, ...]
    value: float

    def of(self, parts: Floats, happened: Sequence[Ints]) -> Floats:
        """The influence on the whole, from those on the parts, (P, N)."""
        known_parts = parts[list(self.known)]
        if self.rates is None:
            return np.asarray(known_parts.mean(axis=0))
        total = np.zeros(parts.shape[1])
        for part, i, rate, value in zip(known_parts, self.known, self.rates, self.values, strict=True):
            total += rate * part + (happened[i] - rate) * (value - self.value)
        return total / sum(self.rates)


@dataclass(frozen=True)
class InfluenceRecipe(PieceRecipe):
    """The influences of rows on the parts and on the whole, of every model."""

    sources: tuple[RankSource, ...]
    cells: tuple[tuple[Ranked, ...], ...]
    exact: tuple[bool, ...]
    parts: tuple[tuple[Influence, ...], ...]
    wholes: tuple[Average, ...]

    @property
    def follows(self) -> bool:
        return True

    def pieces(self, part: Part) -> Iterator[UnitColumns]:
        """A block of columns for each part and one for the whole, with a column for each model."""
        units = self.sources[0].rows(part).units
        total = self.cells[0][0].total
        events = [
            source.cells(part, exact=exact) for source, exact in zip(self.sources, self.exact, strict=True)
        ]
        at = [
            [ranked.cells_of(part_cells) for ranked, part_cells in zip(cells, of_events, strict=True)]
            for cells, of_events in zip(self.cells, events, strict=True)
        ]
        n, width = len(units.share), len(self.sources) * (len(self.parts[0]) + 1)
        step = max(1, _HELD // width)
        for start in range(0, max(n, 1), step):
            rows = slice(start, start + step)
            share = units.share[rows]
            groups = units.groups
            if groups is not None and step < n:
                groups = Groups(groups.codes[rows], groups.labels)
            columns = [
                self._of_model(
                    m, [c[rows] for c in at[m]], [e.y[rows] for e in events[m]], share / total, groups
                )
                for m in range(len(self.sources))
            ]
            copies = share if self.sources[0].copies and groups is None else None
            yield UnitColumns(share, np.swapaxes(np.array(columns), 0, 1) * share, groups, copies)

    def _of_model(
        self, m: int, cells: list[Ints], outcomes: list[Ints], share: Floats, groups: Groups | None
    ) -> Floats:
        parts, whole = self.parts[m], self.wholes[m]
        influences = np.zeros((len(parts) + 1, len(share)))
        for row, influence in zip(influences, parts, strict=False):
            row[:] = influence.values[cells[influence.event]]
            if influence.sizes is not None and groups is None:
                y = outcomes[influence.event]
                copies, total = self.sources[m].copies, self.cells[0][0].total
                single = np.full(len(share), 1 / total) if copies else share
                factor = delong_factor(single, single / influence.sizes[y])
                row *= (
                    factor
                    if len(influence.sizes) == 2
                    else np.where(np.isin(y, influence.outcomes), factor, 0.0)
                )
        if whole.known:
            influences[-1] = whole.of(influences[:-1], outcomes)
        return influences


@dataclass(frozen=True)
class RankedModel:
    """The values of one model: of each part by name, and of the whole, and how far these can be off."""

    names: list[str]
    parts: list[Estimated]
    whole: Estimated
    within: float
    known: list[int]
    influences: tuple[Influence, ...]
    average: Average

    @classmethod
    def of(
        cls,
        names: list[str],
        bounded: Sequence[tuple[Estimated, float]],
        influences: Iterable[Influence],
        rates: Sequence[float] | None = None,
    ) -> RankedModel:
        """From parts, each with how far it can be off; the whole is the mean of those that are defined, or
        weighted by rates.
        """
        parts = [part for part, _ in bounded]
        known = [i for i, part in enumerate(parts) if not math.isnan(part.value)]
        weights = None if rates is None else tuple(rates[i] for i in known)
        values = tuple(parts[i].value for i in known)
        value = float(np.average(values, weights=weights)) if known else math.nan
        within = float(np.average([bounded[i][1] for i in known], weights=weights)) if known else 0.0
        whole = Estimated(value, np.zeros(0), min((parts[i].n for i in known), default=0.0))
        average = Average(tuple(known), weights, values, value)
        return cls(names, parts, whole, within, known, tuple(influences), average)


@dataclass(frozen=True)
class RankedHandle:
    """The values of all models, with the covariances of parts and whole between models.

    Attributes
    ----------
    cells : tuple
        The cells of every event of every model, which the values come from.
    """

    models: dict[str, RankedModel]
    means: Means
    rows: ScannedRows
    cells: tuple[tuple[Ranked, ...], ...]

    def roots(self) -> Floats:
        """(M, M) rows whose products are the covariances of the wholes."""
        covariance = self.means.covariance[-1]
        if not np.isfinite(covariance).all():
            return np.full_like(covariance, np.nan)
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def rank_events(
    handle: Handle, *, ordered: bool, precise: bool, weighted: bool, copies: bool = False
) -> RankedHandle:
    """ROC AUC of all events of every model, or with `precise` average precision."""
    names = event_names(handle.class_names, ordered=ordered)
    counted = _counted(handle, len(names), 2, ordered=ordered, means=False, copies=copies)
    models = {}
    for model, cells in zip(handle.models, counted.cells, strict=True):
        bounded = [_of_event(event, precise=precise) for event in cells]
        influences = [
            Influence(i, part.influence, None if precise and part.n <= _ONE else event.sizes)
            for i, (event, (part, _)) in enumerate(zip(cells, bounded, strict=True))
        ]
        rates = [float(event.sizes[1]) for event in cells] if weighted else None
        models[model] = RankedModel.of(names, bounded, influences, rates)
    return _with_means(handle, models, counted)


def rank_order(handle: Handle, *, by_classes: bool, copies: bool = False) -> tuple[RankedHandle, list[int]]:
    """The c-index of every model over all pairs of rows, or over pairs of classes, and the classes there."""
    labels = handle.class_names
    counted = _counted(handle, 1, handle.n_classes, ordered=True, means=True, copies=copies)
    cells = {name: events[0] for name, events in zip(handle.models, counted.cells, strict=True)}
    present = np.flatnonzero(next(iter(cells.values())).sizes).tolist()
    chosen: list[list[int]] = [present] if len(present) > 1 else []
    if by_classes:
        chosen = [list(pair) for pair in combinations(present, 2)]
    names = [" or ".join(labels[i] for i in outcomes) for outcomes in chosen] if by_classes else []
    models = {}
    for model, ranked in cells.items():
        bounded = [ranked.concordance(outcomes) for outcomes in chosen]
        influences = [
            Influence(0, part.influence, ranked.sizes, tuple(outcomes))
            for (part, _), outcomes in zip(bounded, chosen, strict=True)
        ]
        models[model] = RankedModel.of(names, bounded, influences)
    return _with_means(handle, models, counted), present


def _of_event(cells: Ranked, *, precise: bool) -> tuple[Estimated, float]:
    happened = cells.y == 1
    if not happened.any() or (happened.all() and not precise):
        return Estimated.undefined(len(cells.y)), 0.0
    return cells.precision() if precise else cells.concordance([0, 1])


@dataclass(frozen=True)
class _Counted:
    """The cells of every event of every model, and how they were counted."""

    sources: tuple[RankSource, ...]
    cells: tuple[tuple[Ranked, ...], ...]
    exact: tuple[bool, ...]
    n_rows: int


def _counted(
    handle: Handle, n_events: int, n_outcomes: int, *, ordered: bool, means: bool, copies: bool
) -> _Counted:
    sources = tuple(
        RankSource(model, ordered, means, n_events, n_outcomes, copies) for model in handle.models
    )
    counts = handle.summarise({source.model: RankRecipe(source) for source in sources})
    cells = tuple(tuple(Ranked.all(counts[model], n_events, copies=copies)) for model in handle.models)
    exact = tuple(counts[model].exact for model in handle.models)
    return _Counted(sources, cells, exact, counts.n_rows)


def _with_means(handle: Handle, models: dict[str, RankedModel], counted: _Counted) -> RankedHandle:
    parts = tuple(model.influences for model in models.values())
    averages = tuple(model.average for model in models.values())
    means = means_of(handle, InfluenceRecipe(counted.sources, counted.cells, counted.exact, parts, averages))
    n_groups = means.units.n if means.units.grouped else None
    ordered = counted.sources[0].ordered
    rows = ScannedRows(counted.n_rows, n_groups, handle.n_classes, ordered, means.units)
    return RankedHandle(models, means, rows, counted.cells)
