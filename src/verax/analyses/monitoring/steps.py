"""What a monitor keeps of the rows of one time step: sums that merge over the shards of the step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from verax.analyses.binary import event_names
from verax.analyses.parts import naming, probabilities, seen
from verax.common.specs import Whole
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.stats import RowStatistic
from verax.engines.sums import Sum, Sums
from verax.errors import InputError, Remedy, passing
from verax.inputs.arrays import Bools, Floats, Ints, to_host
from verax.inputs.breakdown import Breakdown, labels_of
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.kernels.ledger import compiles
from verax.scores.base import Rule, losses_of

Unit = Literal["row", "group", "time"]
ALL = "all"
# What the most likely class is called, and whatever a list names.
TOP, LISTED = "most likely class", "any listed class"
# Beyond this number of classes only the most likely one is monitored for calibration.
MOST_EVENTS = 32
# Bins of probabilities; bets that adapt to the past are constant in each.
BINS = 16
# The columns of a step: loss, excess over the tolerated loss, the loss that forecasts expect, and how many
# rows this was computed for. For each event: its probability, whether it happened, and both bets on the gap.
LOSS, EXCESS, CLAIMED, ASKED, OF_EVENT = range(5)
STATED, HAPPENED, SHIFT, TILT, PER_EVENT = range(5)
# Of how many numbers of a part the expected loss is computed: it takes all classes as outcomes in turn.
_ASKED_NUMBERS = 2**13


class StepSums(Summary, kind="monitored step"):
    """Sums over some rows of one time step.

    Attributes
    ----------
    n : int
        The number of rows.
    weight : Sum
        (1,) the sum of their weights.
    first, second : Sum
        (C,) the sums of each column and of its squares.
    bins : Sum
        (E, 16, 2) the sums of outcome minus probability and of its square, by event and probability.
    labels, groups : arrays or None
        The groups, and (G, 1 + C) the weight and the sums of the columns in each.
    """

    n: int = merges(Whole())
    weight: Sum = merges(Sums(1, least=0))
    first: Sum = merges(Sums("columns"))
    second: Sum = merges(Sums("columns", least=0))
    bins: Sum = merges(Sums("events", BINS, 2))
    labels: Any = merges(GroupLabels(), default=None)
    groups: Floats | None = merges(ByLabel("1+columns"), default=None)


@dataclass(frozen=True)
class Tolerated:
    """The loss that raises no alarm: its mean, the smallest possible loss, and the cap of single losses."""

    mean: float
    least: float
    most: float

    @property
    def scale(self) -> float:
        """The largest that a loss can be below the mean."""
        return self.mean - self.least

    def excess(self, bounded: Floats) -> Floats:
        """Losses above the mean, in units of the largest that can be below it: -1 at least."""
        return np.asarray((bounded - self.mean) / self.scale)

    def excess_sums(self, weight: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """The sums of the excess and of its squares, from the weight and the same sums of the losses."""
        above = first - self.mean * weight
        squares = second - self.mean * (first + above)
        return above / self.scale, np.maximum(squares, 0.0) / self.scale**2


def events_of(classes: Sequence[str], *, ordered: bool, lists: bool) -> tuple[str, ...]:
    """The names of the events whose probabilities are monitored.

    >>> events_of(["dry", "wet"], ordered=False, lists=False), events_of("abc", ordered=True, lists=False)
    (('most likely class', 'wet'), ('most likely class', '> a', '> b'))
    """
    if lists:
        return TOP, LISTED
    return (TOP, *(event_names(classes, ordered=ordered) if len(classes) <= MOST_EVENTS else ()))


@dataclass(frozen=True)
class StepRecipe(Recipe[Breakdown]):
    """The sums of every time step, of all rows and of subgroups.

    Attributes
    ----------
    model : str
        The model.
    rule : Rule
        The rule by which rows are scored.
    ordered : bool
        Whether events are thresholds of ordered classes.
    tolerated : Tolerated or None
        The loss that is no reason for an alarm.
    time : str
        The column of times.
    by : tuple of str
        The columns of subgroups.
    unit : str
        What is independent: "row", "group" or "time".
    stated : bool
        Whether the user chose it. Otherwise rows that are grouped may not enter one by one.
    """

    model: str
    rule: Rule
    ordered: bool
    tolerated: Tolerated | None
    time: str
    by: tuple[str, ...]
    unit: Unit
    stated: bool

    def take(self, part: Part) -> Breakdown:
        """Of some rows."""
        rows = self._columns(part)
        times = _times(part.by[self.time], part.n_rows)
        names = times.labels.tolist()
        found: dict[Any, dict[str, Any]] = {
            time: {ALL: sums} for time, sums in zip(names, rows.sums(times.codes, len(names)), strict=True)
        }
        for column in self.by:
            own = labels_of(part.by[column], part.n_rows)
            k = len(own.labels)
            cells = rows.sums(times.codes * k + own.codes, len(names) * k)
            for i, time in enumerate(names):
                parts = zip(own.labels.tolist(), cells[i * k : (i + 1) * k], strict=True)
                found[time][column] = Breakdown({label: {ALL: sums} for label, sums in parts if sums.n})
        return Breakdown(found)

    def _columns(self, part: Part) -> _Rows:
        rows = part.models[self.model]
        check_one_way(rows.groups, "a monitor")
        check_unit(part, self.unit, stated=self.stated)
        with naming(part, self.model):
            if isinstance(rows, ListRows):
                losses, weights, stated, happened = listed_rows(rows, self.rule)
                asked = slice(0, 0)
                claimed = losses[asked]
            else:
                losses, weights, stated, happened = _of_distributions(
                    part, self.model, self.rule, self.ordered
                )
                claimed, asked = _claimed(self.rule, probabilities(part, self.model))
        bounded = losses if self.tolerated is None else np.minimum(losses, self.tolerated.most)
        groups = rows.groups if self.unit == "group" else None
        return _Rows(bounded, self.tolerated, claimed, asked, stated, happened, weights, groups)


def check_unit(part: Part, unit: Unit, *, stated: bool) -> None:
    """Refuse rows that cannot enter as the monitor says."""
    rows, rated = part.rows, part.cases is not None
    if unit == "group" and rows.groups is None:
        raise InputError("must be given: groups enter one by one", argument="groups", kind="missing")
    # The classes that raters chose for one case are not independent of each other.
    if unit == "row" and (rows.weights is not None or rated):
        raise InputError(
            "cannot be used where rows enter one by one",
            argument="raters" if rated else "weights",
            remedies=[Remedy('Make a monitor with unit="time" or unit="group": weighted means enter then.')],
        )
    if unit == "row" and rows.groups is not None and not stated:
        raise InputError(
            "must be stated where rows have groups and are not in memory",
            argument="unit",
            kind="missing",
            remedies=[passing("for groups that enter one by one", unit="group")],
        )


@dataclass(frozen=True)
class _Rows:
    """Some rows, to be summed by codes of cells: their losses, those that some of them expect, and events."""

    losses: Floats
    tolerated: Tolerated | None
    claimed: Floats
    asked: slice
    stated: Sequence[Floats]
    happened: Sequence[Bools]
    weights: Floats | None
    groups: Groups | None

    def sums(self, codes: Ints, n: int) -> list[StepSums]:
        """The sums of the rows of each cell."""
        w, e = self.weights, len(self.stated)
        counts = np.array([len(codes)]) if n == 1 else np.bincount(codes, minlength=n)
        weight: Floats = counts.astype(float) if w is None else np.bincount(codes, w, n).astype(float)
        first, second = np.zeros((2, n, OF_EVENT + PER_EVENT * e))
        first[:, LOSS], second[:, LOSS] = (
            _summed(self.losses, w, codes, n),
            _squared(self.losses, w, codes, n),
        )
        if self.tolerated is not None:
            sums = self.tolerated.excess_sums(weight, first[:, LOSS], second[:, LOSS])
            first[:, EXCESS], second[:, EXCESS] = sums
        some, of = (None if w is None else w[self.asked]), codes[self.asked]
        for c, column in ((CLAIMED, self.claimed), (ASKED, np.ones(len(of)))):
            first[:, c], second[:, c] = _summed(column, some, of, n), _squared(column, some, of, n)
        bins = np.zeros((n, e, BINS, 2))
        for i, (x, h) in enumerate(zip(self.stated, self.happened, strict=True)):
            own = slice(OF_EVENT + PER_EVENT * i, OF_EVENT + PER_EVENT * (i + 1))
            _add_event(x, h, w, codes, first[:, own], second[:, own], bins[:, i])
        tables = [(None, None)] * n if self.groups is None else self._by_group(codes, n)
        return [
            StepSums(int(c), Sum.of([u]), Sum.of(a), Sum.of(b), Sum.of(own), *table)
            for c, u, a, b, own, table in zip(counts, weight, first, second, bins, tables, strict=True)
        ]

    def _columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The columns of all rows that are not of events."""
        claimed, asked = np.zeros((2, len(self.losses)))
        claimed[self.asked], asked[self.asked] = self.claimed, 1.0
        excess = np.zeros(len(self.losses)) if self.tolerated is None else self.tolerated.excess(self.losses)
        return self.losses, excess, claimed, asked

    def _by_group(self, codes: Ints, n: int) -> list[tuple[Any, Any]]:
        assert self.groups is not None
        g = len(self.groups.labels)
        place = codes * g + self.groups.codes
        of_events = [each for x, h in zip(self.stated, self.happened, strict=True) for each in _bets(x, h)]
        columns = (np.ones(len(codes)), *self._columns(), *of_events)
        tables = np.stack([_summed(column, self.weights, place, n * g) for column in columns], axis=1)
        found = []
        for cell in tables.reshape(n, g, -1):
            some = cell[:, 0] > 0
            found.append((self.groups.labels[some], cell[some]))
        return found


def _summed(values: Floats, w: Floats | None, codes: Ints, n: int) -> Any:
    """The sums of weighted values by cell."""
    weighted = values if w is None else values * w
    return weighted.sum(keepdims=True) if n == 1 else np.bincount(codes, weighted, n)


def _squared(values: Floats, w: Floats | None, codes: Ints, n: int) -> Any:
    """The sums of weighted squares by cell."""
    if n == 1 and w is None:
        return np.einsum("i,i->", values, values)
    return _summed(values * values, w, codes, n)


def _bets(x: Floats, h: Bools) -> tuple[Floats, Floats, Floats, Floats]:
    """The columns of an event: its probability, whether it happened, and both bets on the difference."""
    # Sums of probabilities may be a little off.
    x = np.clip(x, 0, 1)
    gap = h - x
    return x, h.astype(float), gap, (1 - 2 * x) * gap


def _add_event(
    x: Floats, h: Bools, w: Floats | None, codes: Ints, first: Floats, second: Floats, bins: Floats
) -> None:
    """Add the columns of an event, their squares, and the differences by bin, to the sums of cells."""
    n = len(first)
    if compiles(x.size, "monitored events"):
        from verax.kernels.monitoring import add_event, add_plain_event

        if n == 1 and w is None:
            add_plain_event(x, h, BINS, first, second, bins)
            return
        nothing = codes[:0] if n == 1 else codes
        add_event(x, h, nothing, np.zeros(0) if w is None else w, BINS, first, second, bins)
        return
    columns = _bets(x, h)
    for c, column in enumerate(columns):
        first[:, c] += _summed(column, w, codes, n)
        second[:, c] += _squared(column, w, codes, n)
    gap = columns[SHIFT]
    place = codes * BINS + np.minimum(columns[STATED] * BINS, BINS - 1).astype(np.int64)
    for j, values in enumerate((gap, gap * gap)):
        bins[:, :, j] += _summed(values, w, place, n * BINS).reshape(n, BINS)


def _times(column: Any, n_rows: int) -> Groups:
    """The time step of each row; most parts have one."""
    values = in_plain_times(column)
    if values.dtype.kind in "iufMU" and bool((values == values[0]).all()):
        one = labels_of(values[:1], 1)
        return Groups(np.zeros(n_rows, np.int64), one.labels)
    return labels_of(values, n_rows)


def in_plain_times(column: Any) -> Any:
    """Times as dates, datetimes, numbers or texts: what files can hold and people can read."""
    values = np.asarray(column)
    if values.dtype.kind == "O" and len(values) and all(isinstance(value, date) for value in values.tolist()):
        values = values.astype("datetime64[us]")
    if values.dtype.kind != "M":
        return values
    exact = values.astype("datetime64[us]")
    days = exact.astype("datetime64[D]")
    return days if bool((days == exact).all()) else exact


def _of_distributions(
    part: Part, model: str, rule: Rule, ordered: bool
) -> tuple[Floats, Floats | None, list[Floats], list[Bools]]:
    """The losses and weights of rows, and of each event its probabilities and whether it happened."""
    rows, p = seen(part, model, (rule,)), probabilities(part, model)
    k = p.shape[1]
    stated, happened = [rows.top], [rows.decision == rows.y]
    if k <= MOST_EVENTS:
        those = range(1 if ordered or k == 2 else 0, k)
        stated += _at_least(p) if ordered else [p[:, i] for i in those]
        happened += [rows.y >= i if ordered else rows.y == i for i in those]
    return rows.losses[rule], rows.weights, stated, happened


def _at_least(p: Floats) -> list[Floats]:
    """The probabilities of class 1 or above, of class 2 or above, and so on."""
    return list(accumulate((p[:, i] for i in range(p.shape[1] - 1, 0, -1)), np.add))[::-1]


def listed_rows(rows: ListRows, rule: Rule) -> tuple[Floats, Floats | None, list[Floats], list[Bools]]:
    """The same of top lists: their answers, and whether they name the outcome at all."""
    names = ("right", "unaccounted", "listed")
    found = [np.asarray(to_host(own), float) for own in losses_of([rule, *map(RowStatistic, names)], rows)]
    losses, right, unaccounted, listed = found
    batch = rows.batch(0, rows.n_rows)
    lists = batch.lists
    top = np.zeros(rows.n_rows)
    some = lists.lengths > 0
    top[some] = lists.confidences[lists.offsets[:-1][some]]
    stated = [top, 1 - unaccounted]
    weights = None if batch.weights is None else np.asarray(to_host(batch.weights), float)
    return losses, weights, stated, [right > 0.5, listed > 0.5]


def _claimed(rule: Rule, p: Floats) -> tuple[Floats, slice]:
    """The loss that rows expect of themselves, of a sample of them, and which were asked."""
    asked = slice(None, None, max(1, -(-len(p) // max(50, _ASKED_NUMBERS // p.shape[1] ** 2))))
    return expected_losses(rule, p[asked]), asked


def expected_losses(rule: Rule, p: Floats) -> Floats:
    """The loss that each forecast expects if it is right."""
    # Softmax and rescaling leave rounding behind.
    own = p / p.sum(axis=1, keepdims=True)
    return np.asarray(losses_of([rule], Forecasts(own, own))[0], float)


@dataclass(frozen=True)
class Step:
    """One time step of all rows or of a subgroup, as it enters: its units, their means and sums.

    Attributes
    ----------
    n_rows, n_units : int
        The number of rows, and of what enters one by one: rows, groups, or the whole step.
    means : array of shape (C,)
        The weighted mean of each column.
    first, second : array of shape (C,)
        The sums over units of each column, and of its squares.
    variance : float
        The variance of the mean loss; NaN where the step is a single unit.
    bins : array of shape (E, 16, 2)
        Sums of outcome minus probability, and of its square.
    """

    n_rows: int
    n_units: int
    means: Floats
    first: Floats
    second: Floats
    variance: float
    bins: Floats

    @classmethod
    def of(cls, sums: StepSums, unit: str) -> Step:
        """From sums; `unit` says what enters one by one."""
        weight, first, second = float(sums.weight.high[0]), sums.first.high, sums.second.high
        means, bins = first / weight, sums.bins.high
        if unit == "row":
            n = sums.n
            spread = max(float(second[LOSS]) / n - float(means[LOSS]) ** 2, 0.0)
            return cls(n, n, means, first, second, spread / (n - 1) if n > 1 else np.nan, bins)
        if unit == "time":
            return cls(sums.n, 1, means, means, means * means, np.nan, bins / weight)
        assert sums.groups is not None
        u, own = sums.groups[:, 0], sums.groups[:, 1:]
        each, g = own / u[:, None], len(u)
        off = own[:, LOSS] - means[LOSS] * u
        variance = float((off * off).sum()) / weight**2 * g / (g - 1) if g > 1 else np.nan
        return cls(
            sums.n, g, means, each.sum(axis=0), (each * each).sum(axis=0), variance, np.zeros_like(bins)
        )


def scopes_of(found: Mapping[str, Any]) -> Iterable[tuple[tuple[str, Any], StepSums]]:
    """All rows of a step, and the subgroups of each column."""
    yield ("", None), found[ALL]
    for column, own in found.items():
        if column != ALL:
            for label in own.labels:
                yield (column, plain_label(label)), own[label][ALL]


def plain_label(label: Any) -> Any:
    """A label as results name it."""
    return label.isoformat() if isinstance(label, datetime) else label
