"""What curves of predictions that are not in memory are read from: histograms of what ranks the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from verax.analyses.parts import RowPass, probabilities, seen
from verax.analyses.replicates import poisson_copies
from verax.analyses.retention.bounds import RANGES
from verax.analyses.retention.cuts import Metric
from verax.analyses.retention.uncertainty_scores import UncertaintyScore
from verax.common.summaries import Each, Several, Spec, Summary, UnreadableError, Valued, merges
from verax.engines.counts import CONFUSION_UP_TO
from verax.engines.histograms import Histogram, compiled
from verax.engines.tables import RankTable, ReplicateTable, WeightedRankTable, coded
from verax.errors import InputError, VeraxError
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Gathering, Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.scores.base import Rule, losses_of
from verax.scores.coverage import RowMetric
from verax.scores.decisions import cheapest
from verax.scores.metrics import METRICS, CostsLike, DecisionMetric
from verax.scores.registry import name_of

# By how much bins are joined in replicates of groups, which every row adds to.
_JOINED = 4
# How many kinds of rows the tables tell apart that rows are added to in place.
_KINDS = 128
# How many sums the replicates of a bin may have together in tables.
_REPLICATED = 2**11


@dataclass(frozen=True)
class Measures:
    """What is measured along curves: means over rows, and metrics of tables of counts.

    Attributes
    ----------
    values : tuple
        The rules, and the metrics that are means over rows.
    tables : tuple
        The other metrics of decisions.
    """

    values: tuple[Rule | DecisionMetric | RowMetric, ...]
    tables: tuple[DecisionMetric, ...]

    @classmethod
    def of(cls, metrics: Sequence[Metric], n_classes: int) -> Measures:
        """Sort metrics; those that need all rows in memory are refused."""
        values: list[Rule | DecisionMetric | RowMetric] = []
        tables: list[DecisionMetric] = []
        for metric in metrics:
            if isinstance(metric, (Rule, RowMetric)):
                values.append(metric)
            elif not isinstance(metric, DecisionMetric) or (
                metric.of_row is None and not _tabled(metric, n_classes)
            ):
                name = getattr(metric, "name", getattr(metric, "__name__", repr(metric)))
                raise InputError(
                    "must be a rule or a metric by name where predictions are not in memory; beyond "
                    f"{CONFUSION_UP_TO:,} classes, one that is a mean over rows",
                    argument="metric",
                    found=f"{name} needs all rows, or a table that is too large",
                    values=[name],
                )
            else:
                metric.bounds(n_classes)
                (values if metric.of_row is not None else tables).append(metric)
        return cls(tuple(values), tuple(tables))

    @property
    def rules(self) -> list[Rule]:
        """The rules among them."""
        return [value for value in self.values if isinstance(value, Rule)]


def _tabled(metric: DecisionMetric, n_classes: int) -> bool:
    known = METRICS.get(metric.name)
    return (
        metric.name in RANGES and known is not None and metric.of == known.of and n_classes <= CONFUSION_UP_TO
    )


class _Replicates(Each):
    """Histograms of each replicate, by name; parts without groups have none."""

    def __init__(self, of: Spec) -> None:
        super().__init__(of)
        self.names = {"replicates": _all_replicates}

    def merged(self, name: str) -> str:
        return f"replicates(self.{name}, other.{name})"


def _all_replicates(
    one: Mapping[str, tuple[Histogram, ...]], other: Mapping[str, tuple[Histogram, ...]]
) -> dict[str, tuple[Histogram, ...]]:
    drawn = dict(one)
    for name, theirs in other.items():
        ours = drawn.get(name)
        if ours and theirs and len(ours) != len(theirs):
            raise VeraxError("Histograms of different numbers of replicates cannot be merged.")
        both = zip(ours, theirs, strict=True) if ours and theirs else ()
        drawn[name] = tuple(a.merge(b) for a, b in both) or ours or theirs
    return drawn


class Histograms(Summary, kind="loss histograms"):
    """Histograms by what ranks the rows, and of bootstrap replicates where rows belong to groups.

    Parts may lack some of them.
    """

    orders: Mapping[str, Histogram] = merges(Each(Valued(Histogram), "union"))
    replicates: Mapping[str, tuple[Histogram, ...]] = merges(_Replicates(Several(Valued(Histogram))))


@dataclass(frozen=True)
class CurveRecipe(Recipe[Histograms]):
    """The histograms that curves of one model are read from."""

    model: str
    keys: tuple[Rule | UncertaintyScore, ...]
    measures: Measures
    decision_costs: CostsLike | None
    bootstrap: int
    seed: int

    def check(self, found: Histograms) -> None:
        """Refuse histograms of other ranks, measures or replicates."""
        names = set(map(named, self.keys))
        if set(found.orders) != names or set(found.replicates) != names:
            raise UnreadableError("is about other ranks", "orders")
        drawn = [each for own in found.replicates.values() for each in own]
        if any(len(own) not in (0, self.bootstrap) for own in found.replicates.values()):
            raise UnreadableError("has another number of replicates", "replicates")
        histograms = [*found.orders.values(), *drawn]
        if any(each.n_values != len(self.measures.values) for each in histograms):
            raise UnreadableError("is about other measures", "orders")
        if any(bool(each.n_cells) != bool(self.measures.tables) for each in histograms):
            raise UnreadableError("has other tables", "orders")

    def gathering(self) -> Gathering[Histograms]:
        """Tables that rows are added to in place."""
        return _Gathered(self)

    def take(self, part: Part) -> Histograms:
        """The histograms of some rows."""
        lists = part.models[self.model]
        if isinstance(lists, ListRows):
            return self._of_lists(lists)
        own = [key for key in self.keys if isinstance(key, Rule)]
        rows = seen(part, self.model, [*own, *self.measures.rules])
        groups = part.models[self.model].groups
        check_one_way(groups, "curves")
        decided = self.decided(part, rows)
        values = [self._values(measure, rows, decided) for measure in self.measures.values]
        n_classes = part.models[self.model].n_classes
        n_cells = n_classes**2 if self.measures.tables else 0
        cells = rows.y * n_classes + decided if n_cells else None
        ranks = {named(key): self.ranks(key, part, rows) for key in self.keys}
        return self._counted(ranks, values, rows.weights, groups, cells, n_cells)

    def _of_lists(self, rows: ListRows) -> Histograms:
        """Those of top lists, which have no decisions."""
        check_one_way(rows.groups, "curves")
        formulas = [key for key in (*self.keys, *self.measures.values) if isinstance(key, (Rule, RowMetric))]
        formulas = list(dict.fromkeys(formulas))
        losses = dict(zip(formulas, map(np.asarray, losses_of(formulas, rows)), strict=True))
        ranks = {
            named(key): losses[key] if isinstance(key, Rule) else key.of_lists(rows) for key in self.keys
        }
        values = [losses[measure] for measure in self.measures.values]  # type: ignore[index]
        weights = None if rows.weights is None else np.asarray(rows.weights)
        return self._counted(ranks, values, weights, rows.groups)

    def _counted(
        self,
        orders: Mapping[str, Floats],
        values: Sequence[Floats],
        weights: Floats | None,
        groups: Groups | None,
        cells: Ints | None = None,
        n_cells: int = 0,
    ) -> Histograms:
        """The histograms of rows by what ranks them in each order."""
        drawn = self._drawn(weights, groups)
        return Histograms(
            {name: Histogram.of(ranks, values, weights, cells, n_cells) for name, ranks in orders.items()},
            {
                name: tuple(
                    Histogram.of(ranks, values, w, cells, n_cells).coarser(_JOINED).means() for w in drawn
                )
                for name, ranks in orders.items()
            },
        )

    def _drawn(self, weights: Floats | None, groups: Groups | None) -> list[Floats]:
        """The weights of the rows in each replicate; there are none without groups."""
        if groups is None:
            return []
        copies = self.copies(groups)[groups.codes].T
        return [n if weights is None else n * weights for n in copies]

    def copies(self, groups: Groups) -> Floats:
        """(G, B) how often each group is in each replicate."""
        each = replace(groups, codes=np.arange(len(groups.labels)))
        drawn = list(poisson_copies(each, self.bootstrap, self.seed))
        return np.stack(drawn, axis=1) if drawn else np.zeros((len(groups.labels), 0))

    def decided(self, part: Part, rows: RowPass) -> Ints:
        """The decisions that metrics are about."""
        if self.decision_costs is None:
            return rows.decision
        return np.asarray(cheapest(probabilities(part, self.model), self.decision_costs))

    def ranks(self, key: Rule | UncertaintyScore, part: Part, rows: RowPass) -> Floats:
        """What ranks the rows."""
        if isinstance(key, Rule):
            return rows.losses[key]
        return 1 - rows.top if key.name == "max_probability" else key.of(probabilities(part, self.model))

    def _values(self, measure: Rule | DecisionMetric | RowMetric, rows: RowPass, decided: Ints) -> Floats:
        if isinstance(measure, Rule):
            return rows.losses[measure]
        return _of_row(measure, rows.y, decided)


class _Gathered:
    """Histograms of parts, whose rows are added to tables in place where that is possible."""

    def __init__(self, recipe: CurveRecipe) -> None:
        self._recipe = recipe
        self._kinds: _Kinds | None = None
        self._tables: dict[str, RankTable] = {}
        self._weighted: dict[str, WeightedRankTable] = {}
        self._drawn: dict[str, ReplicateTable] = {}
        self._others: Histograms | None = None

    def add(self, part: Part) -> None:
        if not self._added(part):
            found = self._recipe.take(part)
            self._others = found if self._others is None else self._others.merge(found)

    def _added(self, part: Part) -> bool:
        """Add the rows to the tables, if they have finite values and are of few kinds."""
        recipe, forecasts = self._recipe, part.models[self._recipe.model]
        if not isinstance(forecasts, Forecasts) or not compiled(part.n_rows):
            return False
        kinds = self._kinds = self._kinds or _Kinds.of(recipe.measures, forecasts.n_classes)
        n_replicates = 0 if forecasts.groups is None else recipe.bootstrap
        if kinds.n > _KINDS or (kinds.n + len(kinds.rules)) * n_replicates > _REPLICATED:
            return False
        check_one_way(forecasts.groups, "curves")
        rows = seen(part, recipe.model, [*(k for k in recipe.keys if isinstance(k, Rule)), *kinds.rules])
        if not all(np.isfinite(rows.losses[rule].sum()) for rule in kinds.rules):
            return False
        values = tuple(rows.losses[rule] for rule in kinds.rules)
        codes = coded(rows.y, recipe.decided(part, rows), forecasts.n_classes, kinds.codes)
        ranks = {named(key): np.ascontiguousarray(recipe.ranks(key, part, rows)) for key in recipe.keys}
        size = len(values), kinds.n
        for name, own in ranks.items():
            if rows.weights is None:
                self._tables.setdefault(name, RankTable(*size)).add(own, values, codes)
            else:
                table = self._weighted.setdefault(name, WeightedRankTable(*size))
                table.add(own, values, codes, rows.weights)
        if n_replicates and forecasts.groups is not None:
            copies = recipe.copies(forecasts.groups)
            for name, own in ranks.items():
                drawn = self._drawn.setdefault(name, ReplicateTable(*size, n_replicates, _JOINED))
                drawn.add(own, values, codes, rows.weights, forecasts.groups.codes, copies)
        return True

    def summary(self) -> Histograms:
        found = [] if self._others is None else [self._others]
        for tables in (self._tables, self._weighted):
            if self._kinds is not None and tables:
                asked = self._kinds.values, self._kinds.n_cells
                orders = {name: table.histogram(*asked) for name, table in tables.items()}
                found.append(Histograms(orders, dict.fromkeys(orders, ())))
        if self._kinds is not None and self._drawn:
            asked = self._kinds.values, self._kinds.n_cells
            drawn = {name: table.histograms(*asked) for name, table in self._drawn.items()}
            found.append(Histograms({}, drawn))
        return reduce(lambda one, other: one.merge(other), found)


@dataclass(frozen=True)
class _Kinds:
    """Rows that no metric of decisions tells apart are of one kind.

    Attributes
    ----------
    n, n_cells : int
        The number of kinds, and of cells where tables are kept, which are the kinds then.
    codes : array
        (K * K,) the kind of each pair of outcome and decision, as uint8.
    values : tuple
        For each measure the number of its rule, or (n,) what rows of each kind have.
    rules : tuple
        The rules among the measures.
    """

    n: int
    n_cells: int
    codes: Any
    values: tuple[int | Floats, ...]
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, measures: Measures, n_classes: int) -> _Kinds:
        """The kinds of rows of so many classes."""
        rules = tuple(measures.rules)
        if n_classes > _KINDS:
            return cls(_KINDS + 1, 0, np.zeros(0, np.uint8), (), rules)
        y, decided = (each.ravel() for each in np.indices((n_classes, n_classes)))
        metrics = [each for each in measures.values if not isinstance(each, Rule)]
        found = np.array([_of_row(metric, y, decided) for metric in metrics]).reshape(-1, len(y))
        codes, n, n_cells = np.arange(len(y)), len(y), len(y)
        if not measures.tables:
            found, codes = np.unique(np.vstack([y * 0, found]), axis=1, return_inverse=True)
            found, n, n_cells = found[1:], found.shape[1], 0
        columns, numbers = iter(found), iter(range(len(rules)))
        values = (next(numbers) if isinstance(each, Rule) else next(columns) for each in measures.values)
        return cls(n, n_cells, codes.reshape(-1).astype(np.uint8), tuple(values), rules)


def _of_row(metric: Rule | DecisionMetric | RowMetric, y: Ints, decided: Ints) -> Floats:
    assert isinstance(metric, DecisionMetric)
    assert metric.of_row is not None
    return metric.of_row(y, decided)


def named(key: Any) -> str:
    """The name of a rule, a doubt or a metric."""
    return name_of(key) if isinstance(key, Rule) else str(key.name)
