"""What a monitor keeps of the rows of one time step: sums that merge over the shards of the step."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np

from verax.analyses.binary import event_names
from verax.analyses.parts import naming, probabilities, seen
from verax.analyses.retention.uncertainty_scores import expected_of_itself, expected_of_lists
from verax.common.hashing import label_hash
from verax.common.specs import Whole
from verax.common.summaries import Summary, merges, same_names
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.stats import RowStatistic
from verax.engines.sums import Sum, Sums
from verax.errors import InputError, Remedy, passing, show
from verax.inputs.arrays import Bools, Floats, Ints, to_host
from verax.inputs.breakdown import Breakdown, labels_of
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import LATER, Gathering, Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.kernels.ledger import compiles
from verax.kernels.monitoring import BINS
from verax.scores.base import Rule, losses_of

Unit = Literal["row", "group", "time"]
# All rows ("", None), or a subgroup: its column and its label.
Scope = tuple[str, Any]
ALL = "all"
# What the most likely class is called, and whatever a list names.
TOP, LISTED = "most likely class", "any listed class"
# Beyond this number of classes only the most likely one is monitored for calibration.
MOST_EVENTS = 32
# The columns of a step: loss, excess over the tolerated loss, the loss that forecasts expect, and how many
# rows this was computed for. For each event: its probability, whether it happened, and both bets on the gap.
LOSS, EXCESS, CLAIMED, ASKED, OF_EVENT = range(5)
STATED, HAPPENED, SHIFT, TILT, PER_EVENT = range(5)
# Of how many numbers of a part the expected loss is computed, and of how many rows at least: some rules take
# all classes as outcomes in turn.
_ASKED_NUMBERS, _ASKED_ROWS = 2**13, 16
# Dates that begin with the day or the month, have months or days of one digit, or name the month.
_DATED = re.compile(
    r"^\s*(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-](\d[./-]\d{1,2}|\d\d[./-]\d))(?!\d)"
    r"|(^|[\W\d_])(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july"
    r"|august|september|october|november|december)\.?([\W\d_]|$)",
    re.IGNORECASE,
)
# Runs of rows of one cell that are this long on average are summed one by one.
_LONG = 256


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
    left_out : tuple of int
        Hashes of the names of rows that were taken in before.
    """

    model: str
    rule: Rule
    ordered: bool
    tolerated: Tolerated | None
    time: str
    by: tuple[str, ...]
    unit: Unit
    stated: bool
    left_out: tuple[int, ...] = field(default=(), metadata=LATER)

    def gathering(self) -> Gathering[Breakdown]:
        """Steps that rows are added to, without a look at those that a part has no rows of."""
        return _Gathered(self)

    def take(self, part: Part) -> Breakdown:
        """Of some rows."""
        if self.left_out:
            assert part.ids is not None
            assert part.subset is not None
            known = frozenset(self.left_out)
            part = part.subset(np.flatnonzero([label_hash(name) not in known for name in part.ids.tolist()]))
            if not part.n_rows:
                return Breakdown({})
        rows = self._rows(part)
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

    def _rows(self, part: Part) -> _Rows:
        rows = part.models[self.model]
        check_one_way(rows.groups, "a monitor")
        check_unit(part, self.unit, stated=self.stated)
        with naming(part, self.model):
            if isinstance(rows, ListRows):
                found = listed_rows(rows, self.rule)
                asked = _asked(rows.n_rows, int(rows.lists.lengths.max(initial=0)) + 1)
                some = rows if asked.step == 1 else rows.taken(np.arange(rows.n_rows)[asked], None, None)
                claimed = expected_of_lists(self.rule, some)
            else:
                found = _of_distributions(part, self.model, self.rule, self.ordered)
                p = probabilities(part, self.model)
                asked = _asked(len(p), p.shape[1])
                claimed = expected_of_itself(self.rule, p[asked])
        groups = rows.groups if self.unit == "group" else None
        return _Rows(found, self.tolerated, claimed, asked, groups, part.places)


class _Gathered:
    """The steps of parts that come one after the other."""

    def __init__(self, recipe: StepRecipe) -> None:
        self._recipe = recipe
        self._steps: dict[Any, Mapping[str, Any]] = {}

    def add(self, part: Part) -> None:
        """Take in the rows of one part."""
        for time, found in self._recipe.take(part).by_label.items():
            known = self._steps.get(time)
            self._steps[time] = found if known is None else same_names(known, found, "subgroups")

    def summary(self) -> Breakdown:
        """All steps."""
        return Breakdown(self._steps)


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
class SeenRows:
    """Rows as a monitor sees them.

    Attributes
    ----------
    losses, weights : array of shape (N,)
        Their losses and weights; no weights where all are alike.
    top, decision : array of shape (N,)
        The probability of the most likely class, and its number; one that no outcome has where it is not
        among the others.
    p, y : arrays of shape (N, m) and (N,)
        Probabilities of classes, and which of these happened.
    least : int
        The first of them that is an event.
    ordered : bool
        Whether an event is a class or one above it.
    """

    losses: Floats
    weights: Floats | None
    top: Floats
    decision: Ints
    p: Floats
    y: Ints
    least: int = 0
    ordered: bool = False

    @property
    def right(self) -> Bools:
        """Whether the most likely class happened."""
        return np.asarray(self.decision == self.y)

    @property
    def n_events(self) -> int:
        """The number of events."""
        return 1 + int(self.p.shape[1]) - self.least

    def events(self) -> Iterator[tuple[Floats, Bools]]:
        """The probability of each event, and whether it happened."""
        yield self.top, self.right
        columns = [self.p[:, k] for k in range(self.p.shape[1])]
        stated = list(accumulate(columns[::-1], np.add))[::-1] if self.ordered else columns
        for k in range(self.least, len(columns)):
            yield stated[k], self.y >= k if self.ordered else self.y == k


@dataclass(frozen=True)
class _Rows:
    """Some rows, to be summed by codes of cells, and the losses that some of them expect."""

    seen: SeenRows
    tolerated: Tolerated | None
    claimed: Floats
    asked: slice
    groups: Groups | None
    cases: Ints | None

    @property
    def losses(self) -> Floats:
        """Losses, none above the largest that counts."""
        losses = self.seen.losses
        return losses if self.tolerated is None else np.minimum(losses, self.tolerated.most)

    def sums(self, codes: Ints, n: int) -> list[StepSums]:
        """The sums of the rows of each cell."""
        w, e = self.seen.weights, self.seen.n_events
        counted = np.array([len(codes)]) if n == 1 else np.bincount(codes, minlength=n)
        weight: Floats = counted.astype(float) if w is None else np.bincount(codes, w, n).astype(float)
        if self.cases is not None:
            # The classes that raters chose for a case are neighbours, and one row.
            counted = np.bincount(codes[np.diff(self.cases, prepend=-1) != 0], minlength=n)
        first, second = np.zeros((2, n, OF_EVENT + PER_EVENT * e))
        bins = np.zeros((n, e, BINS, 2))
        compiled = compiles(e * len(codes), "monitored events")
        runs = _runs(codes, n) if compiled and w is None else None
        if runs is None:
            losses = self.losses
            first[:, LOSS], second[:, LOSS] = (
                _summed(losses, w, codes, n),
                _squared(losses, w, codes, n),
            )
            for i, (x, h) in enumerate(self.seen.events()):
                own = slice(OF_EVENT + PER_EVENT * i, OF_EVENT + PER_EVENT * (i + 1))
                _add_event(x, h, w, codes, first[:, own], second[:, own], bins[:, i], compiled)
        else:
            for start, stop, at in runs:
                self._add_run(slice(start, stop), first[at], second[at], bins[at])
        if self.tolerated is not None:
            sums = self.tolerated.excess_sums(weight, first[:, LOSS], second[:, LOSS])
            first[:, EXCESS], second[:, EXCESS] = sums
        some, of = (None if w is None else w[self.asked]), codes[self.asked]
        for c, column in ((CLAIMED, self.claimed), (ASKED, np.ones(len(of)))):
            first[:, c], second[:, c] = _summed(column, some, of, n), _squared(column, some, of, n)
        tables = [(None, None)] * n if self.groups is None else self._by_group(codes, n)
        return [
            StepSums(int(c), Sum.of([u]), Sum.of(a), Sum.of(b), Sum.of(own), *table)
            for c, u, a, b, own, table in zip(counted, weight, first, second, bins, tables, strict=True)
        ]

    def _add_run(self, own: slice, first: Floats, second: Floats, bins: Floats) -> None:
        """Add neighbouring rows of one cell."""
        from verax.kernels.monitoring import add_run

        rows, most = self.seen, np.inf if self.tolerated is None else self.tolerated.most
        sums, table = add_run(
            rows.losses[own],
            most,
            rows.top[own],
            rows.decision[own],
            rows.p[own],
            rows.y[own],
            rows.least,
            ordered=rows.ordered,
        )
        first[LOSS] += sums[0, 0]
        second[LOSS] += sums[0, 1]
        gaps = table.sum(axis=1)
        for i, found in enumerate(sums[1:].tolist()):
            stated, happened, tilted, squares, tilted_squares = found
            at = slice(OF_EVENT + PER_EVENT * i, OF_EVENT + PER_EVENT * (i + 1))
            first[at] += [stated, happened, gaps[i, 0], tilted]
            second[at] += [squares, happened, gaps[i, 1], tilted_squares]
        bins += table

    def _columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The columns of all rows that are not of events."""
        losses = self.losses
        claimed, asked = np.zeros((2, len(losses)))
        claimed[self.asked], asked[self.asked] = self.claimed, 1.0
        excess = np.zeros(len(losses)) if self.tolerated is None else self.tolerated.excess(losses)
        return losses, excess, claimed, asked

    def _by_group(self, codes: Ints, n: int) -> list[tuple[Any, Any]]:
        assert self.groups is not None
        g = len(self.groups.labels)
        place = codes * g + self.groups.codes
        of_events = [each for x, h in self.seen.events() for each in _bets(x, h)]
        columns = (np.ones(len(codes)), *self._columns(), *of_events)
        tables = np.stack([_summed(column, self.seen.weights, place, n * g) for column in columns], axis=1)
        found = []
        for cell in tables.reshape(n, g, -1):
            some = cell[:, 0] > 0
            found.append((self.groups.labels[some], cell[some]))
        return found


def _runs(codes: Ints, n: int) -> list[tuple[int, int, int]] | None:
    """Where neighbours in the same cell begin and end, and their cell; None where most runs are short."""
    if n == 1:
        return [(0, len(codes), 0)]
    edges = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
    if (len(edges) - 1) * _LONG > len(codes):
        return None
    return [(start, stop, int(codes[start])) for start, stop in pairwise(edges)]


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
    x: Floats,
    h: Bools,
    w: Floats | None,
    codes: Ints,
    first: Floats,
    second: Floats,
    bins: Floats,
    compiled: bool,
) -> None:
    """Add the columns of an event, their squares, and the differences by bin, to the sums of cells."""
    if compiled:
        from verax.kernels.monitoring import add_event

        add_event(x, h, codes, np.zeros(0) if w is None else w, first, second, bins)
        return
    n, columns = len(first), _bets(x, h)
    for c, column in enumerate(columns):
        first[:, c] += _summed(column, w, codes, n)
        second[:, c] += _squared(column, w, codes, n)
    gap = columns[SHIFT]
    place = codes * BINS + np.minimum(columns[STATED] * BINS, BINS - 1).astype(np.int64)
    for j, values in enumerate((gap, gap * gap)):
        bins[:, :, j] += _summed(values, w, place, n * BINS).reshape(n, BINS)


def _times(column: Any, n_rows: int) -> Groups:
    """The time step of each row; most parts have one, or a few that follow each other."""
    values = in_plain_times(column)
    if values.dtype.kind not in "iufMU":
        return labels_of(values, n_rows)
    starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
    labels = values[starts]
    # Missing times differ from themselves, so that they are looked at one by one.
    if not bool((labels[:1] == labels[:1]).all() and (labels[1:] > labels[:-1]).all()):
        return labels_of(values, n_rows)
    return Groups(np.repeat(np.arange(len(starts)), np.diff(starts, append=n_rows)), labels)


def in_plain_times(column: Any) -> Any:
    """Times as dates, datetimes, numbers or texts: what files can hold and people can read."""
    values = np.asarray(column)
    if values.dtype.kind == "O" and len(values) and all(isinstance(value, date) for value in values.tolist()):
        values = values.astype("datetime64[us]")
    _check_times(values)
    if values.dtype.kind != "M":
        return values
    exact = values.astype("datetime64[us]")
    days = exact.astype("datetime64[D]")
    return days if bool((days == exact).all()) else exact


def _check_times(values: Any) -> None:
    """Refuse what has no place in an order of times, and dates whose texts have another order than they."""
    kind = values.dtype.kind
    if kind in "fM":
        bad = ~np.isfinite(values)
    elif kind in "iu":
        return
    else:
        texts = kind == "U"
        bad = np.array(
            [
                not (texts or isinstance(each, (str, int, float, date))) or _lost(each)
                for each in values.tolist()
            ],
            bool,
        )
    if bad.any():
        rows = np.flatnonzero(bad)
        raise InputError(
            "must be finite numbers, dates or texts",
            argument="time",
            kind="value",
            found=f"row {rows[0]:,} has {show(values[rows[0]])} ({len(rows):,} in all)",
            rows=rows[:5].tolist(),
            count=len(rows),
        )
    if kind in "UO":
        dated = [
            text for text in dict.fromkeys(values.tolist()) if isinstance(text, str) and _DATED.search(text)
        ]
        if dated:
            raise InputError(
                "must be in an order that texts have as well",
                argument="time",
                kind="order",
                found=f"{show(dated[0])} looks like a date, and such dates are not in order as texts",
                values=dated[:5],
                remedies=[
                    Remedy("Write dates as 2025-12-31."),
                    Remedy(
                        'Convert them first, for example with pandas.to_datetime(..., format="%d.%m.%Y").'
                    ),
                ],
            )


def _lost(value: Any) -> bool:
    """Whether a time is a truth value, or no number."""
    return isinstance(value, (bool, np.bool_)) or (isinstance(value, float) and not math.isfinite(value))


def _of_distributions(part: Part, model: str, rule: Rule, ordered: bool) -> SeenRows:
    """Rows with full distributions: most likely classes, and each class or threshold where they are few."""
    rows, p = seen(part, model, (rule,)), probabilities(part, model)
    k = p.shape[1]
    few = k <= MOST_EVENTS
    return SeenRows(
        rows.losses[rule],
        rows.weights,
        rows.top,
        rows.decision,
        p if few else p[:, :0],
        rows.y,
        int(few and (ordered or k == 2)),
        ordered and few,
    )


def listed_rows(rows: ListRows, rule: Rule) -> SeenRows:
    """The same of top lists: their answers, and whether they name the outcome at all."""
    names = ("right", "unaccounted", "listed")
    found = [np.asarray(to_host(own), float) for own in losses_of([rule, *map(RowStatistic, names)], rows)]
    losses, right, unaccounted, listed = found
    batch = rows.batch(0, rows.n_rows)
    lists = batch.lists
    top = np.zeros(rows.n_rows)
    some = lists.lengths > 0
    top[some] = lists.confidences[lists.offsets[:-1][some]]
    weights = None if batch.weights is None else np.asarray(to_host(batch.weights), float)
    outcomes = np.where(listed > 0.5, 0, 1)
    decision = np.where(right > 0.5, outcomes, -1)
    return SeenRows(losses, weights, top, decision, (1 - unaccounted)[:, None], outcomes)


def _asked(n_rows: int, width: int) -> slice:
    """Which rows are asked for the loss that they expect: some of many."""
    return slice(None, None, max(1, -(-n_rows // max(_ASKED_ROWS, _ASKED_NUMBERS // width**2))))


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

    def as_one(self) -> Step:
        """The same rows as a single unit, which may depend on each other in any way."""
        means, bins = self.means, self.bins / self.n_rows
        return Step(self.n_rows, 1, means, means, means * means, np.nan, bins)


def scopes_of(found: Mapping[str, Any]) -> Iterable[tuple[Scope, StepSums]]:
    """All rows of a step, and the subgroups of each column."""
    yield ("", None), found[ALL]
    for column, own in found.items():
        if column != ALL:
            for label in own.labels:
                yield (column, plain_label(label)), own[label][ALL]


def plain_label(label: Any) -> Any:
    """A label as results name it."""
    return label.isoformat() if isinstance(label, datetime) else label
