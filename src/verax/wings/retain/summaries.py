"""Rows as far as curves need them, or histograms of what ranks them.

Up to `settings.exact_up_to` rows are kept, so curves are exact wherever the rows are. Beyond that, rows are
counted in bins. Rows in memory are never binned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.parts import losses_of_cases, probabilities, seen
from verax.analyses.sampled import poisson_copies
from verax.analyses.table import RowTable, common_unit, different
from verax.analyses.uncertainty_scores import UncertaintyScore
from verax.analyses.worst import rank_in
from verax.common.memory import give_back
from verax.common.packing import UnreadableError
from verax.common.sorting import DECIMALS
from verax.common.specs import Array, Each, Names, Several, Spec, Valued, Whole
from verax.common.spelling import LATER
from verax.common.summaries import Summary, merges
from verax.common.summaries import compiled as merging
from verax.engines.counts import CONFUSION_UP_TO
from verax.engines.histograms import Histogram
from verax.engines.keys import compiled
from verax.engines.stats import Formula
from verax.engines.tables import RankTable, ReplicateTable, WeightedRankTable, coded
from verax.errors import InputError, VeraxError
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Gathering, Part, Recipe, Seen
from verax.inputs.lists.rows import ListRows
from verax.scores.base import Rule
from verax.scores.coverage import RowMetric
from verax.scores.decisions import cheapest
from verax.scores.metrics import METRICS, CostsLike, DecisionMetric
from verax.wings.retain.cuts import Metric, named

# Fewer rows in memory are read by array calls alone, which start sooner.
_FEW = 2**11
# By how much bins are joined in replicates of groups, which every row adds to.
_JOINED = 4
# Kinds of rows, at most, in the tables that rows are added to in place.
_KINDS = 128
# Sums, at most, of all replicates of a bin in tables.
_REPLICATED = 2**11


@dataclass(frozen=True)
class Measures:
    """Measures along curves: means over rows, and metrics of tables of counts.

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
        """Sort metrics; functions of users are neither kind."""
        values: list[Rule | DecisionMetric | RowMetric] = []
        tables: list[DecisionMetric] = []
        for metric in metrics:
            if isinstance(metric, DecisionMetric):
                # Costs that do not fit the classes are refused here.
                metric.bounds(n_classes)
                if metric.of_row is None and n_classes > CONFUSION_UP_TO:
                    means = [name for name, known in METRICS.items() if known.of_row is not None]
                    raise InputError(
                        f"must be a rule or one of {', '.join(means)} beyond {CONFUSION_UP_TO:,} classes",
                        argument="metric",
                        found=f"{metric.name} needs a table of {n_classes:,} x {n_classes:,} counts at every "
                        "cut",
                        values=[metric.name],
                    )
                (values if metric.of_row is not None else tables).append(metric)
            elif isinstance(metric, (Rule, RowMetric)):
                values.append(metric)
        return cls(tuple(values), tuple(tables))

    @property
    def rules(self) -> list[Rule]:
        """The rules among them."""
        return [value for value in self.values if isinstance(value, Rule)]


class _Classes(Array):
    """Numbers of classes, in as few bytes as rows in memory need."""

    def pack(self, value: Any) -> Any:
        return None if value is None else value.astype(self._dtype)


class _GroupOfEach(Names):
    """The group of each row."""

    def pack(self, value: Groups | None) -> Any:
        return None if value is None else super().pack(value.labels[value.codes])

    def read(self, stored: Any, sizes: Any) -> Groups:
        names = super().read(stored, sizes)
        return Groups.of(names, len(names))


class CurveRows(Summary):
    """Rows as far as curves need them.

    Attributes
    ----------
    n_classes : int
        The number of classes that outcomes and decisions are among; 0 where there are none.
    numbers : Ints
        (N,) the numbers of the rows in the whole.
    ranks : mapping of str to Floats
        The ranks of the rows, by the name of each order.
    values : mapping of str to Floats
        Their values by each rule or metric of lists that is measured.
    y, decisions : Ints or None
        Outcomes and decisions; top lists have none.
    weights : Floats or None
        Their weights.
    groups : Groups or None
        Their groups.
    p : Floats or None
        Their forecasts where functions of users need these; never stored.
    bounded : bool
        Whether there may be more rows elsewhere, so that many are binned.
    """

    n_classes: int = merges(Whole("equal", most=2**31))
    numbers: Ints = merges(Array("i8", "n", how="join", least=0))
    ranks: Mapping[str, Floats] = merges(Each(Array("f8", "n")))
    values: Mapping[str, Floats] = merges(Each(Array("f8", "n")))
    y: Any = merges(_Classes("i4", "n", least=0, most="n_classes-1", optional=True))
    decisions: Any = merges(_Classes("i4", "n", least=0, most="n_classes-1", optional=True))
    weights: Floats | None = merges(Array("f8", "n", least=0, optional=True))
    groups: Groups | None = merges(_GroupOfEach("n"))
    p: Floats | None = field(default=None, repr=False)
    bounded: bool = field(default=True)

    def _check(self) -> None:
        if (self.y is None) != (self.decisions is None) or not len(self.numbers):
            raise UnreadableError("has no rows, or outcomes without decisions", "y")
        if self.weights is not None and not np.isfinite(self.weights).all():
            raise UnreadableError("has invalid weights", "weights")

    def __len__(self) -> int:
        return len(self.numbers)

    def forget_ranks(self) -> None:
        """Let go of what ranks the rows."""
        object.__setattr__(self, "ranks", {})

    def to_values(self) -> dict[str, Any]:
        """The fields, to be stored: the same whatever the order of merging."""
        return super(CurveRows, self.in_order()).to_values()

    def merge(self, other: CurveRows) -> CurveRows:
        """The rows of both."""
        return self.joined([self, other])

    @classmethod
    def joined(cls, parts: Sequence[CurveRows]) -> CurveRows:
        """The rows of all parts."""
        first = parts[0]
        if len(parts) == 1:
            return first
        kinds = {
            (part.n_classes, *part.ranks, None, *part.values, part.weights is None, part.groups is None)
            for part in parts
        }
        if len(kinds) > 1:
            raise VeraxError("Rows with different ranks, values, weights or groups cannot be merged.")

        small = np.min_scalar_type(max(first.n_classes - 1, 0))

        def column(of: Any, dtype: Any = None) -> Any:
            columns = [of(part) for part in parts]
            return None if columns[0] is None else np.concatenate(columns, dtype=dtype, casting="unsafe")

        return cls(
            first.n_classes,
            column(lambda part: part.numbers),
            {name: column(lambda part, name=name: part.ranks[name]) for name in first.ranks},
            {name: column(lambda part, name=name: part.values[name]) for name in first.values},
            column(lambda part: part.y, small),
            column(lambda part: part.decisions, small),
            column(lambda part: part.weights),
            None if first.groups is None else _joined_groups([part.groups for part in parts]),
        )

    def in_order(self) -> CurveRows:
        """The same rows in their order in the whole; where numbers repeat, by their content."""
        if bool((self.numbers[1:] > self.numbers[:-1]).all()):
            return self
        order = np.argsort(self.numbers, kind="stable")
        if not bool((np.diff(self.numbers[order]) > 0).all()):
            codes = None if self.groups is None else self.groups.codes
            columns = *self.values.values(), *self.ranks.values(), self.y, self.decisions, self.weights, codes
            order = np.lexsort((*(column for column in columns if column is not None), self.numbers))
        return self._at(order)

    def weighty(self) -> CurveRows:
        """Without rows of weight zero, which are as if absent."""
        if self.weights is None or self.weights.all():
            return self
        kept = self._at(np.flatnonzero(self.weights))
        groups = kept.groups
        return kept if groups is None else replace(kept, groups=groups.at(np.arange(len(kept))))

    def _at(self, rows: Ints) -> CurveRows:
        """Some of the rows."""

        def at(column: Any) -> Any:
            return None if column is None else column[rows]

        return CurveRows(
            self.n_classes,
            at(self.numbers),
            {name: at(ranks) for name, ranks in self.ranks.items()},
            {name: at(values) for name, values in self.values.items()},
            at(self.y),
            at(self.decisions),
            at(self.weights),
            None if self.groups is None else replace(self.groups, codes=at(self.groups.codes)),
            at(self.p),
            self.bounded,
        )

    def table(self, measures: Sequence[Any], n_classes: int) -> RowTable:
        """The rows with their losses by what is measured."""
        formulas = (measure for measure in measures if isinstance(measure, (Rule, RowMetric)))
        losses: dict[Formula, Floats] = {formula: self.values[named(formula)] for formula in formulas}
        # Lists do not always say which class is most likely.
        y: Any = np.zeros(len(self), np.uint8) if self.y is None else self.y
        decisions = np.zeros(0, np.int64) if self.decisions is None else self.decisions
        p = np.zeros((0, 0)) if self.p is None else self.p
        rows = RowTable(y, p, decisions, losses, self.weights, self.groups, n_classes)
        return rows if len(p) else rows.without_forecasts()


def _joined_groups(parts: Sequence[Any]) -> Groups:
    """The groups of the rows of all parts."""
    labels, place = np.unique(np.concatenate([part.labels for part in parts]), return_inverse=True)
    ends = np.cumsum([0, *(len(part.labels) for part in parts)])
    codes = [place[start + part.codes] for part, start in zip(parts, ends, strict=False)]
    return Groups(np.concatenate(codes), labels)


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


class _EitherRows(Valued):
    """Rows that parts may lack."""

    names: Mapping[str, Any] = MappingProxyType(
        {"either": lambda a, b: b if a is None else a if b is None else a.merge(b)}
    )

    def merged(self, name: str) -> str:
        return f"either(self.{name}, other.{name})"


class _Different(Array):
    """Different weights of the rows of both."""

    names: Mapping[str, Any] = MappingProxyType({"different": different})

    def before(self, name: str) -> list[str]:
        return []

    def merged(self, name: str) -> str:
        return "different(self.known_weights, other.known_weights)"


class Histograms(Summary, kind="loss histograms", version=3):
    """Rows, or histograms by what ranks them, with bootstrap replicates where rows belong to groups.

    Parts may lack some histograms. Where there are both, the rows are others than those in the histograms.
    `weights` are the different weights of the rows in histograms, which say together what their unit is; None
    where rows have no weights.
    """

    orders: Mapping[str, Histogram] = merges(Each(Valued(Histogram), "union"))
    replicates: Mapping[str, tuple[Histogram, ...]] = merges(_Replicates(Several(Valued(Histogram))))
    rows: CurveRows | None = merges(_EitherRows(CurveRows, optional=True), default=None)
    recipe: CurveRecipe | None = field(default=None, repr=False, compare=False)
    weights: Floats | None = merges(_Different("f8", "weights", least=0, optional=True), default=None)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Version 1 had histograms only, and version 2 no weights.
        return {"rows": None, "weights": None, **values}

    @property
    def known_weights(self) -> Floats:
        """The different weights of the rows in histograms."""
        if self.weights is not None or not self.orders:
            return np.zeros(0) if self.weights is None else self.weights
        # Version 2 kept whether weights are whole. If not, sums of bins mostly have the same unit.
        sums = (histogram.bins.total.sums.high[:, 1] for histogram in self.orders.values())
        return np.ones(1) if self.whole else different(*sums)

    @property
    def whole(self) -> bool:
        """Whether all weights in histograms are whole numbers."""
        return all(histogram.whole for histogram in self.orders.values())

    @property
    def unit(self) -> float | None:
        """The number that all weights in histograms are whole multiples of."""
        return common_unit(self.known_weights)

    def rank(self, name: str, loss: float) -> tuple[int, int]:
        """The smallest rank of a row of this loss in an order, and by how much it can be larger."""
        if self.rows is not None:
            return 1 + int(np.count_nonzero(np.round(self.rows.ranks[name], DECIMALS) > loss)), 0
        histogram = self.orders[name]
        return rank_in(histogram.bins.total, histogram.level, loss)

    def merge(self, other: Histograms) -> Histograms:
        """Of the rows of both, in bins where there are too many; only a recipe knows how to count them."""
        both: Histograms = _MERGED(self, other)
        recipe = self.recipe or other.recipe
        return both if recipe is None else recipe.fitting(both)


_MERGED = merging(Histograms)


@dataclass(frozen=True)
class CurveRecipe(Recipe[Histograms]):
    """The rows or histograms that curves of one model are read from.

    Attributes
    ----------
    forecasts : bool
        Whether functions of users need the forecasts.
    bounded : bool
        Whether rows are binned where there are many.
    """

    model: str
    keys: tuple[Rule | UncertaintyScore, ...]
    measures: Measures
    decision_costs: CostsLike | None
    bootstrap: int
    seed: int
    forecasts: bool = field(default=False, metadata=LATER)
    bounded: bool = field(default=True, metadata=LATER)

    def check(self, summary: Histograms) -> None:
        """Refuse rows and histograms of other ranks, measures or replicates."""
        names = set(map(named, self.keys))
        if summary.rows is not None:
            valued = {named(m) for m in self.measures.values if not isinstance(m, DecisionMetric)}
            if set(summary.rows.ranks) != names or set(summary.rows.values) != valued:
                raise UnreadableError("is about other ranks or values", "rows")
        if summary.rows is not None and not summary.orders and not summary.replicates:
            return
        if set(summary.orders) != names or set(summary.replicates) != names:
            raise UnreadableError("is about other ranks", "orders")
        drawn = [histogram for replicates in summary.replicates.values() for histogram in replicates]
        if any(len(replicates) not in (0, self.bootstrap) for replicates in summary.replicates.values()):
            raise UnreadableError("has another number of replicates", "replicates")
        histograms = [*summary.orders.values(), *drawn]
        if any(histogram.n_values != len(self.measures.values) for histogram in histograms):
            raise UnreadableError("is about other measures", "orders")
        if any(bool(histogram.n_cells) != bool(self.measures.tables) for histogram in histograms):
            raise UnreadableError("has other tables", "orders")

    def load(self, stored: bytes, sizes: Mapping[str, int] | None = None) -> Histograms:
        """A summary from its bytes; it knows from now on how its rows are counted."""
        return self.fitting(super().load(stored, sizes))

    def gathering(self) -> Gathering[Histograms]:
        """Rows, or tables that rows are added to in place where there are many."""
        return _Gathered(self)

    def take(self, part: Part) -> Histograms:
        """Keep or count the rows of one part."""
        return self.fitting(Histograms({}, {}, self.rows(part), self))

    def fitting(self, summary: Histograms) -> Histograms:
        """The same with its rows in bins if there are too many, or if there are bins already."""
        rows = summary.rows
        many = rows is not None and (summary.orders or len(rows) > settings.exact_up_to)
        if rows is not None and self.bounded and rows.bounded and many:
            binned = self.binned(rows)
            summary = binned if not summary.orders else _MERGED(replace(summary, rows=None), binned)
        return summary if summary.recipe is self else replace(summary, recipe=self)

    def rows(self, part: Part) -> CurveRows:
        """The rows of a part, as far as curves need them."""
        forecasts, bounded = part.models[self.model], not part.whole
        check_one_way(forecasts.groups, "curves")
        numbers = part.numbers
        if numbers is None:
            numbers = np.arange(part.start, part.start + part.n_rows)
        measured = [measure for measure in self.measures.values if not isinstance(measure, DecisionMetric)]
        formulas = list(dict.fromkeys([*(key for key in self.keys if isinstance(key, Rule)), *measured]))
        lists, p = isinstance(forecasts, ListRows), None
        if lists or (part.whole and part.n_rows < _FEW):
            table = RowTable.of(forecasts, formulas, self.decision_costs)
            y, decisions, weights, losses = table.y, table.decisions, table.weights, table.losses
            top, p = None, table.p
        else:
            rows = seen(part, self.model, [formula for formula in formulas if isinstance(formula, Rule)])
            y, weights, top = rows.y, rows.weights, rows.top
            losses, decisions = dict(rows.losses.items()), rows.decision
            if self.decision_costs is not None:
                decisions = np.asarray(cheapest(probabilities(part, self.model), self.decision_costs))

        def ranks(key: Rule | UncertaintyScore) -> Floats:
            if isinstance(key, Rule):
                return losses_of_cases(part, self.model, key, losses[key])
            if isinstance(forecasts, ListRows):
                return key.of_lists(forecasts)
            if top is not None and key.name == "max_probability":
                return 1 - top
            blocks = list(key.by_blocks(probabilities(part, self.model) if p is None else p))
            return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

        if self.forecasts and p is None:
            p = probabilities(part, self.model)
        if part.whole and not lists and not self.forecasts:
            # These are held longer than what they were made with.
            small = np.min_scalar_type(forecasts.n_classes - 1)
            y, decisions = y.astype(small), decisions.astype(small)
        return CurveRows(
            0 if lists else forecasts.n_classes,
            numbers,
            {named(key): ranks(key) for key in self.keys},
            {named(measure): losses[measure] for measure in measured},
            None if lists else y,
            None if lists else decisions,
            weights,
            forecasts.groups,
            p if self.forecasts else None,
            bounded,
        )

    def binned(self, rows: CurveRows) -> Histograms:
        """The histograms of rows."""
        n_cells, cells = 0, None
        if self.measures.tables and rows.y is not None:
            n_cells = rows.n_classes**2
            cells = np.multiply(rows.y, rows.n_classes, dtype=np.int64) + rows.decisions
        values = [self.values_of(measure, rows) for measure in self.measures.values]
        drawn: list[Floats] = []
        if rows.groups is not None:
            copies = self.copies(rows.groups)[rows.groups.codes].T
            drawn = [n if rows.weights is None else n * rows.weights for n in copies]
        return Histograms(
            {
                name: Histogram.of(ranks, values, rows.weights, cells, n_cells)
                for name, ranks in rows.ranks.items()
            },
            {
                name: tuple(
                    Histogram.of(ranks, values, w, cells, n_cells).coarser(_JOINED).means() for w in drawn
                )
                for name, ranks in rows.ranks.items()
            },
            weights=None if rows.weights is None else different(rows.weights),
        )

    def copies(self, groups: Groups) -> Floats:
        """(G, B) how often each group is in each replicate."""
        singles = replace(groups, codes=np.arange(len(groups.labels)))
        drawn = list(poisson_copies(singles, self.bootstrap, self.seed))
        return np.stack(drawn, axis=1) if drawn else np.zeros((len(groups.labels), 0))

    def values_of(self, measure: Rule | DecisionMetric | RowMetric, rows: CurveRows) -> Floats:
        """The value of each row by what is measured."""
        if isinstance(measure, DecisionMetric):
            return _of_row(measure, rows.y, rows.decisions)
        return rows.values[named(measure)]


class _Gathered:
    """Rows of parts. Where there are many, they are added to tables in place as far as that is possible."""

    def __init__(self, recipe: CurveRecipe) -> None:
        self._recipe = recipe
        self._seen = Seen()
        self._rows: list[CurveRows] = []
        self._n_rows = 0
        self._kinds: _Kinds | None = None
        self._tables: dict[str, RankTable] = {}
        self._weighted: dict[str, WeightedRankTable] = {}
        self._weights = np.zeros(0)
        self._drawn: dict[str, ReplicateTable] = {}
        self._others: Histograms | None = None

    def watch(self, seen: Seen) -> None:
        """Look at how many rows others have seen: where that is too many, none are kept."""
        self._seen = seen

    def add(self, part: Part) -> None:
        self._rows.append(self._recipe.rows(part))
        self._n_rows += part.n_rows
        if not self._recipe.bounded or max(self._n_rows, self._seen.n_rows) <= settings.exact_up_to:
            return
        kept = len(self._rows) > 1
        while self._rows:
            self._count(self._rows.pop(0))
        if kept:
            # The rows that were kept so far take more memory than all that follows.
            give_back()

    def _count(self, rows: CurveRows) -> None:
        if not self._added(rows):
            binned = self._recipe.binned(rows)
            self._others = binned if self._others is None else self._others.merge(binned)

    def _added(self, rows: CurveRows) -> bool:
        """Add the rows to the tables, if they have finite values and are of few kinds."""
        recipe = self._recipe
        if rows.y is None or not compiled(len(rows)):
            return False
        kinds = self._kinds = self._kinds or _Kinds.of(recipe.measures, rows.n_classes)
        n_replicates = 0 if rows.groups is None else recipe.bootstrap
        if kinds.n > _KINDS or (kinds.n + len(kinds.rules)) * n_replicates > _REPLICATED:
            return False
        values = tuple(rows.values[named(rule)] for rule in kinds.rules)
        if not all(np.isfinite(losses.sum()) for losses in values):
            return False
        codes = coded(rows.y, rows.decisions, rows.n_classes, kinds.codes)
        size = len(values), kinds.n
        ranks = {name: np.ascontiguousarray(column) for name, column in rows.ranks.items()}
        if rows.weights is not None:
            self._weights = different(self._weights, rows.weights)
        for name, column in ranks.items():
            if rows.weights is None:
                self._tables.setdefault(name, RankTable(*size)).add(column, values, codes)
            else:
                table = self._weighted.setdefault(name, WeightedRankTable(*size))
                table.add(column, values, codes, rows.weights)
        if n_replicates and rows.groups is not None:
            copies = recipe.copies(rows.groups)
            for name, column in ranks.items():
                drawn = self._drawn.setdefault(name, ReplicateTable(*size, n_replicates, _JOINED))
                drawn.add(column, values, codes, rows.weights, rows.groups.codes, copies)
        return True

    def summary(self) -> Histograms:
        parts = [] if self._others is None else [self._others]
        if self._rows:
            parts.append(Histograms({}, {}, CurveRows.joined(self._rows)))
        for tables in (self._tables, self._weighted):
            if self._kinds is not None and tables:
                asked = self._kinds.values, self._kinds.n_cells
                orders = {name: table.histogram(*asked) for name, table in tables.items()}
                weights = self._weights if tables is self._weighted else None
                parts.append(Histograms(orders, dict.fromkeys(orders, ()), weights=weights))
        if self._kinds is not None and self._drawn:
            asked = self._kinds.values, self._kinds.n_cells
            drawn = {name: table.histograms(*asked) for name, table in self._drawn.items()}
            parts.append(Histograms({}, drawn))
        return self._recipe.fitting(reduce(lambda one, other: one.merge(other), parts))


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
        """Number of kinds of rows, given the number of classes."""
        rules = tuple(measures.rules)
        if n_classes > _KINDS:
            return cls(_KINDS + 1, 0, np.zeros(0, np.uint8), (), rules)
        y, decided = (classes.ravel() for classes in np.indices((n_classes, n_classes)))
        metrics = [measure for measure in measures.values if isinstance(measure, DecisionMetric)]
        values_by_pair = np.array([_of_row(metric, y, decided) for metric in metrics]).reshape(-1, len(y))
        codes, n, n_cells = np.arange(len(y)), len(y), len(y)
        if not measures.tables:
            values_by_pair, codes = np.unique(np.vstack([y * 0, values_by_pair]), axis=1, return_inverse=True)
            values_by_pair, n, n_cells = values_by_pair[1:], values_by_pair.shape[1], 0
        columns, numbers = iter(values_by_pair), iter(range(len(rules)))
        values = (
            next(numbers) if isinstance(measure, Rule) else next(columns) for measure in measures.values
        )
        return cls(n, n_cells, codes.reshape(-1).astype(np.uint8), tuple(values), rules)


def _of_row(metric: DecisionMetric, y: Ints, decided: Ints) -> Floats:
    assert metric.of_row is not None
    return metric.of_row(y, decided)
