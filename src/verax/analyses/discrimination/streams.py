"""How well forecasts rank rows that are not in memory: from histograms, and a second pass for intervals.

The first pass counts rows in bins of their forecasts, by outcome. Rows of a bin are taken to tie, which gives
the value but for the order inside the bins, and the influence of a row on it by bin and outcome. The second
pass sums these influences over rows or groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from verax.analyses.binary import ScannedRows, event_names, rows_of_part
from verax.analyses.discrimination.statistics import Estimated, average_precision_of, delong_factor, placed
from verax.analyses.units import sums_at
from verax.analyses.unitsums import Columns, Means, UnitRecipe, check_weight, means_of
from verax.common.packing import dump, load, refusing
from verax.engines.histograms import MOST_RANKS, Keyed, Run, rank_bins
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.handles import Handle, Part, Recipe, refuse_lists

_KIND = "ranks of forecasts"
# Bins of all events together, before neighbours are joined; how many numbers a bin may have.
_MOST, _SPAN = 2**20, 2**17


@dataclass(frozen=True)
class RankSource:
    """What is ranked: the probability of each event, or with `means` the mean class, by outcome.

    Attributes
    ----------
    model : str
        The model.
    ordered : bool
        Whether events are thresholds.
    means : bool
        Whether rows are ranked by their mean class.
    level : int
        How many times neighbouring bins are joined.
    """

    model: str
    ordered: bool
    means: bool
    level: int

    def read(self, part: Part) -> list[tuple[Ints, Floats, Ints]]:
        """Of each event the bins of the rows, what ranks them, and their outcomes."""

        def made() -> list[tuple[Ints, Floats, Ints]]:
            rows = rows_of_part(part, self.model, ordered=self.ordered)
            if self.means:
                most = rows.n_classes - 1
                score = np.round(rows.p @ np.arange(rows.n_classes), rows.decimals) / most
                found = [(score, rows.y)]
            else:
                found = [(event.ranked, event.happened.astype(np.int64)) for event in rows.events()]
            return [(rank_bins(np.clip(v, 0.0, 1.0), self.level), v, y) for v, y in found]

        return part.once(("ranks", self), made)


@dataclass(frozen=True)
class RankBins:
    """By event, bin and outcome the sums of w and w*w, and the extremes of what ranks the rows."""

    bins: Keyed

    def merge(self, other: RankBins) -> RankBins:
        """Of the rows of both."""
        return RankBins(self.bins.merge(other.bins))

    def to_bytes(self) -> bytes:
        """As bytes that the recipe reads."""
        return dump(_KIND, {"bins": self.bins.total.to_values()})


@dataclass(frozen=True)
class RankRecipe(Recipe[RankBins]):
    """Counts of rows by what ranks them."""

    source: RankSource
    n_outcomes: int

    def take(self, part: Part) -> RankBins:
        """Of some rows."""
        rows = rows_of_part(part, self.source.model, ordered=self.source.ordered)
        w = rows.units.share
        runs = [
            Run.of((i * _SPAN + bins) * self.n_outcomes + y, [w, w * w], [values])
            for i, (bins, values, y) in enumerate(self.source.read(part))
        ]
        return RankBins(Keyed((Run.merged(runs),)))

    def load(self, stored: bytes) -> RankBins:
        """From bytes."""
        values = load(stored, _KIND)
        with refusing("is missing or of another type"):
            return RankBins(Keyed((Run.from_values(values["bins"]),)))


@dataclass(frozen=True)
class Ranked:
    """The cells of one event: bins by outcome.

    Attributes
    ----------
    keys : Ints
        (C,) bin times the number of outcomes plus the outcome.
    place : Ints
        (C,) the number of the bin among those that have rows.
    y : Ints
        (C,) the outcome.
    share, squares : Floats
        (C,) the share of the weight, and the sum of the squared shares of the rows.
    least, most : Floats
        (B,) the extremes of what ranks the rows of each bin.
    total : float
        The weight of all rows.
    """

    keys: Ints
    place: Ints
    y: Ints
    share: Floats
    squares: Floats
    least: Floats
    most: Floats
    total: float

    @classmethod
    def all(cls, found: RankBins, n_events: int, n_outcomes: int) -> list[Ranked]:
        """The cells of every event."""
        run = found.bins.total
        edges = np.searchsorted(run.keys, np.arange(n_events + 1) * _SPAN * n_outcomes)
        events = []
        for i in range(n_events):
            own = slice(edges[i], edges[i + 1])
            keys = run.keys[own] - i * _SPAN * n_outcomes
            bins, y = np.divmod(keys, n_outcomes)
            _, place = np.unique(bins, return_inverse=True)
            n = int(place.max(initial=-1)) + 1
            least, most = np.full(n, np.inf), np.full(n, -np.inf)
            np.minimum.at(least, place, run.least[own, 0])
            np.maximum.at(most, place, run.most[own, 0])
            weight, squares = run.sums.high[own].T
            total = float(weight.sum())
            check_weight(total)
            events.append(cls(keys, place, y, weight / total, squares / total**2, least, most, total))
        return events

    @property
    def tied(self) -> Bools:
        """(B,) whether the rows of a bin all rank the same."""
        return np.asarray(self.least == self.most)

    @property
    def sizes(self) -> Floats:
        """The share of each outcome."""
        return sums_at(self.y, self.share, int(self.y.max()) + 1)

    def effective(self, outcomes: Sequence[int]) -> float:
        """The smallest number of rows of equal weight that one of these outcomes has in effect."""
        squares = np.bincount(self.y, self.squares)
        return min(float(self.sizes[k] ** 2 / squares[k]) for k in outcomes)

    def concordance(self, outcomes: Sequence[int]) -> tuple[Estimated, float]:
        """The c-index of rows with these outcomes, and how far it can be from that of the rows."""
        counted = np.isin(self.y, outcomes)
        found = placed(self.place.astype(float), np.where(counted, self.y, -1), self.share)
        share = np.where(counted, self.share, 0.0)
        all_of = np.bincount(self.place, share)
        same = np.bincount(self.place, share**2)
        pairs = float(share.sum() ** 2 - (np.bincount(self.y, share) ** 2).sum())
        off = float(np.where(self.tied, 0.0, all_of**2 - same).sum()) / 2 / pairs
        return Estimated(found.value, found.influence, self.effective(outcomes)), off

    def precision(self) -> tuple[Estimated, float]:
        """The average precision, and how far it can be from that of the rows."""
        happened = self.y == 1
        value, influence = average_precision_of(self.place.astype(float), happened, self.share)
        both = happened.any() and not happened.all()
        n = self.effective([0, 1]) if both else float(1 / self.squares.sum())
        hits, others = (np.bincount(self.place, self.share * side) for side in (happened, ~happened))
        above = np.cumsum((hits + others)[::-1])[::-1] - hits - others
        hits_above = np.cumsum(hits[::-1])[::-1] - hits
        with np.errstate(divide="ignore", invalid="ignore"):
            tie = (hits_above + hits) / (above + hits + others)
            low = np.where(above + others > 0, hits_above / (above + others), 1.0)
            high = (hits_above + hits) / (above + hits)
            off = np.where(self.tied | (hits <= 0), 0.0, hits * np.maximum(tie - low, high - tie))
        return Estimated(value, influence, n), float(off.sum() / hits.sum())


@dataclass(frozen=True)
class Influence:
    """The influence of a row on a value by its cell.

    Attributes
    ----------
    event : int
        Which event's cells these are.
    keys : Ints
        (C,) the cells.
    values : Floats
        (C,) the influence.
    sizes : Floats or None
        The shares of the outcomes, where squares are corrected as DeLong's are.
    """

    event: int
    keys: Ints
    values: Floats
    sizes: Floats | None


@dataclass(frozen=True)
class Average:
    """How parts make the whole: the mean of some, or weighted by how often their events happened."""

    known: tuple[int, ...]
    rates: tuple[float, ...] | None
    values: tuple[float, ...]
    value: float

    def of(self, parts: Floats, happened: Sequence[Ints]) -> Floats:
        """The influence on the whole, from those on the parts, (P, N)."""
        own = parts[list(self.known)]
        if self.rates is None:
            return np.asarray(own.mean(axis=0))
        total = np.zeros(parts.shape[1])
        for part, i, rate, value in zip(own, self.known, self.rates, self.values, strict=True):
            total += rate * part + (happened[i] - rate) * (value - self.value)
        return total / sum(self.rates)


@dataclass(frozen=True)
class InfluenceRecipe(UnitRecipe):
    """The influences of rows on the parts and on the whole, of every model."""

    sources: tuple[RankSource, ...]
    n_outcomes: int
    parts: tuple[tuple[Influence, ...], ...]
    wholes: tuple[Average, ...]
    total: float

    def columns(self, part: Part) -> Columns:
        """Of some rows: a block for each part, and one for the whole, with a column for each model."""
        columns = []
        units = rows_of_part(part, self.sources[0].model, ordered=self.sources[0].ordered).units
        share = units.share / self.total
        for source, parts, whole in zip(self.sources, self.parts, self.wholes, strict=True):
            events = source.read(part)
            own = np.zeros((len(parts), len(share)))
            for i, each in enumerate(parts):
                bins, _, y = events[each.event]
                cells = bins * self.n_outcomes + y
                at = np.minimum(np.searchsorted(each.keys, cells), len(each.keys) - 1)
                own[i] = each.values[at]
                if each.sizes is not None and units.groups is None:
                    own[i] *= delong_factor(share, share / each.sizes[y])
            average = whole.of(own, [y for _, _, y in events]) if whole.known else np.zeros(len(share))
            columns.append([*own, average])
        return Columns(units.share, np.swapaxes(np.array(columns), 0, 1) * units.share, units.groups)


@dataclass(frozen=True)
class RankedModel:
    """The values of one model: of each part by name, and of the whole, and how far these can be off."""

    names: list[str]
    parts: list[Estimated]
    whole: Estimated
    within: float
    known: list[int]


@dataclass(frozen=True)
class RankedHandle:
    """The values of all models, with the covariances of parts and whole between models."""

    models: dict[str, RankedModel]
    means: Means
    rows: ScannedRows

    def roots(self) -> Floats:
        """(M, M) rows whose products are the covariances of the wholes."""
        covariance = self.means.covariance[-1]
        if not np.isfinite(covariance).all():
            return np.full_like(covariance, np.nan)
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def rank_events(handle: Handle, *, ordered: bool, precise: bool, weighted: bool) -> RankedHandle:
    """ROC AUC of all events of every model, or with `precise` average precision."""
    refuse_lists(handle)
    handle = handle.in_order() if ordered else handle
    labels = tuple(handle.classes or range(handle.n_classes))
    names = event_names(labels, ordered=ordered)
    found, sources = _counted(handle, len(names), 2, ordered=ordered, means=False)
    models, parts, averages = {}, [], []
    for name, cells in found.items():
        estimated = [_of_event(each, precise=precise) for each in cells]
        known = [i for i, (part, _) in enumerate(estimated) if not math.isnan(part.value)]
        rates = [float(cells[i].sizes[1]) for i in known] if weighted else None
        values = [estimated[i][0].value for i in known]
        bounds = [estimated[i][1] for i in known]
        value = float(np.average(values, weights=rates)) if known else math.nan
        within = float(np.average(bounds, weights=rates)) if known else 0.0
        n = min((estimated[i][0].n for i in known), default=0.0)
        models[name] = RankedModel(
            names, [part for part, _ in estimated], Estimated(value, np.zeros(0), n), within, known
        )
        parts.append(
            tuple(
                Influence(i, each.keys, estimated[i][0].influence, None if precise else _both(each.sizes))
                for i, each in enumerate(cells)
            )
        )
        averages.append(Average(tuple(known), None if rates is None else tuple(rates), tuple(values), value))
    recipe = InfluenceRecipe(sources, 2, tuple(parts), tuple(averages), cells[0].total)
    return _with_means(handle, models, recipe, ordered=ordered)


def rank_order(handle: Handle, *, by_classes: bool, most: int) -> tuple[RankedHandle, list[int]]:
    """The c-index of every model over all pairs of rows, or over pairs of classes, and the classes there."""
    refuse_lists(handle)
    handle = handle.in_order()
    k = handle.n_classes
    labels = [str(label) for label in (handle.classes or range(k))]
    found, sources = _counted(handle, 1, k, ordered=True, means=True)
    cells = {name: events[0] for name, events in found.items()}
    present = np.flatnonzero(next(iter(cells.values())).sizes).tolist()
    chosen: list[list[int]] = [present] if len(present) > 1 else []
    if by_classes and len(present) <= most:
        chosen = [list(pair) for pair in combinations(present, 2)]
    models, parts, averages = {}, [], []
    for name, own in cells.items():
        estimated = [own.concordance(outcomes) for outcomes in chosen]
        values = [part.value for part, _ in estimated]
        n = min((part.n for part, _ in estimated), default=0.0)
        value = float(np.mean(values)) if values else math.nan
        models[name] = RankedModel(
            [" or ".join(labels[i] for i in outcomes) for outcomes in chosen] if by_classes else [],
            [part for part, _ in estimated] if by_classes else [],
            Estimated(value, np.zeros(0), n),
            float(np.mean([off for _, off in estimated])) if estimated else 0.0,
            list(range(len(chosen))),
        )
        parts.append(tuple(Influence(0, own.keys, part.influence, own.sizes) for part, _ in estimated))
        averages.append(Average(tuple(range(len(chosen))), None, tuple(values), value))
    recipe = InfluenceRecipe(sources, k, tuple(parts), tuple(averages), own.total)
    return _with_means(handle, models, recipe, ordered=True), present


def _of_event(cells: Ranked, *, precise: bool) -> tuple[Estimated, float]:
    happened = cells.y == 1
    if not happened.any() or (happened.all() and not precise):
        return Estimated.undefined(len(cells.y)), 0.0
    return cells.precision() if precise else cells.concordance([0, 1])


def _both(sizes: Floats) -> Floats:
    """The shares of no event and of the event."""
    return np.array([sizes[0], sizes[1] if len(sizes) > 1 else 0.0])


def _counted(
    handle: Handle, n_events: int, n_outcomes: int, *, ordered: bool, means: bool
) -> tuple[dict[str, list[Ranked]], tuple[RankSource, ...]]:
    """The cells of every event of every model."""
    level = max(0, math.ceil(math.log2(n_events * n_outcomes * MOST_RANKS / _MOST)))
    sources = tuple(RankSource(model, ordered, means, level) for model in handle.models)
    found = handle.summarise({source.model: RankRecipe(source, n_outcomes) for source in sources})
    return {model: Ranked.all(found[model], n_events, n_outcomes) for model in handle.models}, sources


def _with_means(
    handle: Handle,
    models: dict[str, RankedModel],
    recipe: InfluenceRecipe,
    *,
    ordered: bool,
) -> RankedHandle:
    means = means_of(handle, recipe)
    n_groups = means.units.n if means.units.grouped else None
    rows = ScannedRows(means.sums.n, n_groups, handle.n_classes, ordered, means.units)
    return RankedHandle(models, means, rows)
