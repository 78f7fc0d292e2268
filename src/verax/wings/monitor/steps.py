"""Sums over the rows of a time step, which merge over the shards of the step."""

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
from verax.analyses.uncertainty_scores import expected_of_itself, expected_of_lists
from verax.common.ids import name_hash
from verax.common.specs import Whole
from verax.common.spelling import LATER
from verax.common.summaries import Summary, merges, same_names
from verax.common.times import Kind, by_value, refuse_ambiguous
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.stats import RowStatistic
from verax.engines.sums import Sum, Sums
from verax.errors import InputError, Remedy, passing, show
from verax.inputs.arrays import Bools, Floats, Ints, to_host
from verax.inputs.breakdown import Breakdown, labels_of
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Gathering, Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.kernels.ledger import compiles
from verax.scores.base import Rule, losses_of
from verax.wings.monitor.calendars import Periods
from verax.wings.monitor.loops import BINS

Unit = Literal["row", "group", "time"]
# All rows ("", None), or a subgroup: its column and its label.
Scope = tuple[str, Any]
ALL = "all"
# Names of two events: the most likely class happened, or any class that a list names.
TOP, LISTED = "most likely class", "any listed class"
# With more classes, only the most likely one is monitored for calibration.
MOST_EVENTS = 32
# The columns of a step: loss, excess over the tolerated loss, the loss that forecasts expect of themselves,
# and whether it was computed. For each event: its probability, whether it happened, and both bets on the gap.
LOSS, EXCESS, CLAIMED, SAMPLED, OF_EVENT = range(5)
STATED, HAPPENED, SHIFT, TILT, PER_EVENT = range(5)
# The expected loss is computed for a sample: some rules take all classes as outcomes in turn. These are the
# number of probabilities in the sample of a part, and its least number of rows.
_SAMPLED_NUMBERS, _SAMPLED_ROWS = 2**13, 16
# Dates that begin with the day or the month, have months or days of one digit, or name the month.
_DATED = re.compile(
    r"^\s*(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-](\d[./-]\d{1,2}|\d\d[./-]\d))(?!\d)"
    r"|(^|[\W\d_])(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july"
    r"|august|september|october|november|december)\.?([\W\d_]|$)",
    re.IGNORECASE,
)
# Runs of rows of one cell are summed one by one if they have at least this length on average.
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
    plain : int
        The number of rows that count once and stand for themselves, without weights or several raters.
    """

    n: int = merges(Whole())
    weight: Sum = merges(Sums(1, least=0))
    first: Sum = merges(Sums("columns"))
    second: Sum = merges(Sums("columns", least=0))
    bins: Sum = merges(Sums("events", BINS, 2))
    labels: Any = merges(GroupLabels(), default=None)
    groups: Floats | None = merges(ByLabel("1+columns"), default=None)
    plain: int = merges(Whole(), default=0)


@dataclass(frozen=True)
class Tolerated:
    """The loss that raises no alarm: its mean, the smallest possible loss, and the cap of single losses."""

    mean: float
    least: float
    most: float

    @property
    def scale(self) -> float:
        """The largest possible distance of a loss below the mean."""
        return self.mean - self.least

    def excess(self, bounded: Floats) -> Floats:
        """Losses minus the mean, in units of the largest possible distance below it: at least -1."""
        return np.asarray((bounded - self.mean) / self.scale)

    def excess_sums(self, weight: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Sums of the excess and of its squares, from the weight and those sums of the losses."""
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
    """Sum the rows of every time step, for all rows and for subgroups.

    Attributes
    ----------
    model : str
        The model.
    rule : Rule
        The rule that scores rows.
    ordered : bool
        Whether events are thresholds of ordered classes.
    tolerated : Tolerated or None
        The loss that raises no alarm.
    time : str
        The column of times.
    by : tuple of str
        The columns of subgroups.
    unit : str
        The units of bets: "row", "group" or "time".
    periods : Periods or None
        How times are joined into time steps; None if they are steps.
    own : Periods or None
        How times that rows have to themselves are joined; None if it is known that they are steps.
    left_out : tuple of int
        Hashes of the names of rows that were taken in before.
    zone : str or None
        The time zone of the calendar; times are then in UTC.
    """

    model: str
    rule: Rule
    ordered: bool
    tolerated: Tolerated | None
    time: str
    by: tuple[str, ...]
    unit: Unit
    periods: Periods | None = None
    own: Periods | None = None
    left_out: tuple[int, ...] = field(default=(), metadata=LATER)
    zone: str | None = field(default=None, metadata=LATER)

    def gathering(self) -> Gathering[Breakdown]:
        """Add up parts, touching only the steps that a part has rows of."""
        return _StepGathering(self)

    def take(self, part: Part) -> Breakdown:
        """Summarise one part."""
        if self.left_out:
            assert part.ids is not None
            assert part.subset is not None
            known = frozenset(self.left_out)
            part = part.subset(np.flatnonzero([name_hash(name) not in known for name in part.ids.tolist()]))
            if not part.n_rows:
                return Breakdown({})
        rows = self._rows(part)
        times = self.steps_of(part)
        names = times.labels.tolist()
        steps: dict[Any, dict[str, Any]] = {
            time: {ALL: sums} for time, sums in zip(names, rows.sums(times.codes, len(names)), strict=True)
        }
        for column in self.by:
            labels = labels_of(part.by[column], part.n_rows)
            k = len(labels.labels)
            cells = rows.sums(times.codes * k + labels.codes, len(names) * k)
            for i, time in enumerate(names):
                parts = zip(labels.labels.tolist(), cells[i * k : (i + 1) * k], strict=True)
                steps[time][column] = Breakdown({label: {ALL: sums} for label, sums in parts if sums.n})
        return Breakdown(steps)

    def steps_of(self, part: Part) -> Groups:
        """The time step of each row."""
        (times, kind), n = _plain(part.by[self.time]), part.n_rows
        if self.zone is None:
            refuse_ambiguous(times, kind)
        if self.periods is not None:
            return _times(self.periods.of(times), n)
        steps = _times(times, n)
        if self.own is None or not has_own_times(steps.codes, part.places):
            return steps
        return _times(self.own.of(times), n) if of_calendar(times) else refuse_own(steps)

    def _rows(self, part: Part) -> _Rows:
        rows = part.models[self.model]
        check_one_way(rows.groups, "a monitor")
        check_unit(part, self.unit)
        with naming(part, self.model):
            if isinstance(rows, ListRows):
                seen_rows = listed_rows(rows, self.rule)
                sampled = _sample(rows.n_rows, int(rows.lists.lengths.max(initial=0)) + 1)
                sampled_rows = (
                    rows if sampled.step == 1 else rows.taken(np.arange(rows.n_rows)[sampled], None, None)
                )
                claimed = expected_of_lists(self.rule, sampled_rows)
            else:
                seen_rows = _of_distributions(part, self.model, self.rule, self.ordered)
                p = probabilities(part, self.model)
                sampled = _sample(len(p), p.shape[1])
                claimed = expected_of_itself(self.rule, p[sampled])
        groups = None if self.unit == "row" else rows.groups
        return _Rows(seen_rows, self.tolerated, claimed, sampled, groups, part.places)


class _StepGathering:
    """The steps of consecutive parts."""

    def __init__(self, recipe: StepRecipe) -> None:
        self._recipe = recipe
        self._steps: dict[Any, Mapping[str, Any]] = {}

    def add(self, part: Part) -> None:
        """Take in the rows of one part."""
        for time, scopes in self._recipe.take(part).by_label.items():
            known = self._steps.get(time)
            self._steps[time] = scopes if known is None else same_names(known, scopes, "subgroups")

    def summary(self) -> Breakdown:
        """All steps."""
        return Breakdown(self._steps)


class OwnTimes(Summary, kind="rows with times of their own"):
    """How many rows came with times of their own, part by part.

    Attributes
    ----------
    n, own : int
        The number of rows, and of those in parts most of whose dates or datetimes belong to one row.
    """

    n: int = merges(Whole())
    own: int = merges(Whole(most="n"))


@dataclass(frozen=True)
class TimesRecipe(Recipe[OwnTimes]):
    """Count the rows whose times are their own.

    Attributes
    ----------
    time : str
        The column of times.
    """

    time: str

    def take(self, part: Part) -> OwnTimes:
        """Summarise one part."""
        times, n = in_plain_times(part.by[self.time]), part.n_rows
        own = has_own_times(_times(times, n).codes, part.places) and of_calendar(times)
        return OwnTimes(n, n if own else 0)


def has_own_times(codes: Ints, cases: Ints | None) -> bool:
    """Whether most times belong to one row, or to one case of several raters."""
    if cases is not None:
        codes = codes[np.diff(cases, prepend=-1) != 0]
    counts = np.bincount(codes)
    return bool(len(codes)) and float(np.median(counts[counts > 0])) < 2


def of_calendar(times: Any) -> bool:
    """Whether times in canonical form are days or moments."""
    return bool(times.dtype.kind == "M")


def refuse_own(steps: Groups) -> Groups:
    """Refuse several times that rows have to themselves and that are no dates: steps need a length."""
    if len(steps.labels) < 2:
        return steps
    raise InputError(
        "must be time steps of several rows, or be joined into steps",
        argument="time",
        found=f"most of the {len(steps.labels):,} times belong to a single row",
        remedies=[
            passing("with the width of a time step, for times that are numbers", period=...),
            passing("to assume that all rows are independent", unit="row"),
        ],
    )


def check_unit(part: Part, unit: Unit) -> None:
    """Refuse rows that cannot enter in the unit of the monitor."""
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


@dataclass(frozen=True)
class SeenRows:
    """Rows in the form that a monitor sums.

    Attributes
    ----------
    losses, weights : array of shape (N,)
        Their losses, and their weights if there are any.
    top, decision : array of shape (N,)
        The probability of the most likely class, and its number as in `y`; for lists -1 unless it happened.
    p, y : arrays of shape (N, m) and (N,)
        Probabilities of classes, and the class that happened.
    least : int
        The first class that is an event.
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
    """Some rows to be summed by cell, and the expected losses of a sample of them."""

    seen: SeenRows
    tolerated: Tolerated | None
    claimed: Floats
    sampled: slice
    groups: Groups | None
    cases: Ints | None

    @property
    def losses(self) -> Floats:
        """Losses, capped at the largest that counts."""
        losses = self.seen.losses
        return losses if self.tolerated is None else np.minimum(losses, self.tolerated.most)

    def sums(self, codes: Ints, n: int) -> list[StepSums]:
        """The sums of the rows of each cell."""
        w, e = self.seen.weights, self.seen.n_events
        counted = np.array([len(codes)]) if n == 1 else np.bincount(codes, minlength=n)
        weight: Floats = counted.astype(float) if w is None else np.bincount(codes, w, n).astype(float)
        if self.cases is not None:
            # Consecutive labels of several raters for one case count as one row.
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
                columns = slice(OF_EVENT + PER_EVENT * i, OF_EVENT + PER_EVENT * (i + 1))
                _add_event(x, h, w, codes, first[:, columns], second[:, columns], bins[:, i], compiled)
        else:
            for start, stop, at in runs:
                self._add_run(slice(start, stop), first[at], second[at], bins[at])
        if self.tolerated is not None:
            sums = self.tolerated.excess_sums(weight, first[:, LOSS], second[:, LOSS])
            first[:, EXCESS], second[:, EXCESS] = sums
        plain = counted if w is None and self.cases is None else np.zeros(n, np.int64)
        some, of = (None if w is None else w[self.sampled]), codes[self.sampled]
        for c, column in ((CLAIMED, self.claimed), (SAMPLED, np.ones(len(of)))):
            first[:, c], second[:, c] = _summed(column, some, of, n), _squared(column, some, of, n)
        tables = [(None, None)] * n if self.groups is None else self._by_group(codes, n)
        return [
            StepSums(
                int(c), Sum.of([u]), Sum.of(a), Sum.of(b), Sum.of(columns), table[0], table[1], int(alone)
            )
            for c, u, a, b, columns, table, alone in zip(
                counted, weight, first, second, bins, tables, plain, strict=True
            )
        ]

    def _add_run(self, run: slice, first: Floats, second: Floats, bins: Floats) -> None:
        """Add consecutive rows of one cell."""
        from verax.wings.monitor.loops import add_run

        rows, most = self.seen, np.inf if self.tolerated is None else self.tolerated.most
        sums, table = add_run(
            rows.losses[run],
            most,
            rows.top[run],
            rows.decision[run],
            rows.p[run],
            rows.y[run],
            rows.least,
            ordered=rows.ordered,
        )
        first[LOSS] += sums[0, 0]
        second[LOSS] += sums[0, 1]
        gaps = table.sum(axis=1)
        for i, event in enumerate(sums[1:].tolist()):
            stated, happened, tilted, squares, tilted_squares = event
            at = slice(OF_EVENT + PER_EVENT * i, OF_EVENT + PER_EVENT * (i + 1))
            first[at] += [stated, happened, gaps[i, 0], tilted]
            second[at] += [squares, happened, gaps[i, 1], tilted_squares]
        bins += table

    def _columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The columns of all rows that are not about events."""
        losses = self.losses
        claimed, sampled = np.zeros((2, len(losses)))
        claimed[self.sampled], sampled[self.sampled] = self.claimed, 1.0
        excess = np.zeros(len(losses)) if self.tolerated is None else self.tolerated.excess(losses)
        return losses, excess, claimed, sampled

    def _by_group(self, codes: Ints, n: int) -> list[tuple[Any, Any]]:
        assert self.groups is not None
        g = len(self.groups.labels)
        place = codes * g + self.groups.codes
        of_events = [bet for x, h in self.seen.events() for bet in _bets(x, h)]
        columns = (np.ones(len(codes)), *self._columns(), *of_events)
        tables = np.stack([_summed(column, self.seen.weights, place, n * g) for column in columns], axis=1)
        by_cell = []
        for cell in tables.reshape(n, g, -1):
            some = cell[:, 0] > 0
            by_cell.append((self.groups.labels[some], cell[some]))
        return by_cell


def _runs(codes: Ints, n: int) -> list[tuple[int, int, int]] | None:
    """The start, end and cell of each run of rows in one cell; None if most runs are short."""
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
    # Sums of probabilities may be slightly off.
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
        from verax.wings.monitor.loops import add_event

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


def _times(values: Any, n_rows: int) -> Groups:
    """The time step of each row; most parts have one, or a few consecutive ones."""
    if values.dtype.kind not in "iufMU":
        return labels_of(values, n_rows)
    starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
    labels = values[starts]
    # Missing times differ from themselves: `labels_of` handles them.
    if not bool((labels[:1] == labels[:1]).all() and (labels[1:] > labels[:-1]).all()):
        return labels_of(values, n_rows)
    return Groups(np.repeat(np.arange(len(starts)), np.diff(starts, append=n_rows)), labels)


def in_plain_times(column: Any) -> Any:
    """Times as days, moments, numbers or texts, which files can store."""
    return _plain(column)[0]


def _plain(column: Any) -> tuple[Any, Kind]:
    """Times in canonical form, and their kind; those without an order are refused."""
    values, kind = by_value(column)
    _check_times(values)
    return values, kind


def _check_times(values: Any) -> None:
    """Refuse values without an order in time, and texts of dates that do not sort like the dates."""
    kind = values.dtype.kind
    if kind in "fM":
        bad = ~np.isfinite(values)
    elif kind in "iu":
        return
    else:
        texts = kind == "U"
        bad = np.array(
            [
                not (texts or isinstance(time, (str, int, float, date))) or _lost(time)
                for time in values.tolist()
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
    """Whether a time is a bool, or a float that is not finite."""
    return isinstance(value, (bool, np.bool_)) or (isinstance(value, float) and not math.isfinite(value))


def _of_distributions(part: Part, model: str, rule: Rule, ordered: bool) -> SeenRows:
    """Rows with full distributions: the most likely class, and each class or threshold if there are few."""
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
    """Rows with top lists: their most likely class, and whether they name the outcome."""
    names = ("right", "unaccounted", "listed")
    columns = losses_of([rule, *map(RowStatistic, names)], rows)
    losses, right, unaccounted, listed = (np.asarray(to_host(column), float) for column in columns)
    batch = rows.batch(0, rows.n_rows)
    lists = batch.lists
    top = np.zeros(rows.n_rows)
    some = lists.lengths > 0
    top[some] = lists.confidences[lists.offsets[:-1][some]]
    weights = None if batch.weights is None else np.asarray(to_host(batch.weights), float)
    outcomes = np.where(listed > 0.5, 0, 1)
    decision = np.where(right > 0.5, outcomes, -1)
    return SeenRows(losses, weights, top, decision, (1 - unaccounted)[:, None], outcomes)


def _sample(n_rows: int, width: int) -> slice:
    """The rows for which the expected loss is computed: a sample if there are many."""
    return slice(None, None, max(1, -(-n_rows // max(_SAMPLED_ROWS, _SAMPLED_NUMBERS // width**2))))


@dataclass(frozen=True)
class Step:
    """One time step of all rows or of a subgroup: the number of its units, their means and sums.

    Attributes
    ----------
    n_rows, n_units : int
        The number of rows, and of units: rows or groups.
    means : array of shape (C,)
        The weighted mean of each column.
    first, second : array of shape (C,)
        The sums over units of each column, and of its squares.
    variance : float
        The variance of the mean loss of these rows; NaN if it is not known.
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
    def of(cls, sums: StepSums, unit: Unit) -> Step:
        """The step from its sums: of rows, or with the unit "group" of groups."""
        weight, first, second = float(sums.weight.high[0]), sums.first.high, sums.second.high
        n, means, bins, variance = sums.n, first / weight, sums.bins.high, np.nan
        if unit != "row" and sums.groups is not None:
            u, columns = sums.groups[:, 0], sums.groups[:, 1:]
            off, g = columns[:, LOSS] - means[LOSS] * u, len(u)
            variance = float((off * off).sum()) / weight**2 * g / (g - 1) if g > 1 else np.nan
            if unit == "group":
                of_groups = columns / u[:, None]
                sums_of_groups = of_groups.sum(axis=0), (of_groups * of_groups).sum(axis=0)
                return cls(n, g, means, *sums_of_groups, variance, np.zeros_like(bins))
        elif sums.plain == n > 1:
            variance = max(float(second[LOSS]) / n - float(means[LOSS]) ** 2, 0.0) / (n - 1)
        scale = n / weight
        return cls(n, n, means, first * scale, second * scale, variance, bins * scale)


def scopes_of(step: Mapping[str, Any]) -> Iterable[tuple[Scope, StepSums]]:
    """The sums of all rows of a step, and of the subgroups of each column."""
    yield ("", None), step[ALL]
    for column, breakdown in step.items():
        if column != ALL:
            for label in breakdown.labels:
                yield (column, plain_label(label)), breakdown[label][ALL]


def plain_label(label: Any) -> Any:
    """A label as results show it."""
    return label.isoformat() if isinstance(label, datetime) else label
