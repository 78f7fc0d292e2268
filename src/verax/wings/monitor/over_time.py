"""`vx.over_time`: losses, calibration and class frequencies by period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

import numpy as np

from verax.analyses.cards.evaluation import CardRecipe
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.parts import faults_in, probabilities, scaled, seen, with_fault_recipes
from verax.analyses.unitsums import UnitColumns, UnitRecipe, UnitSums
from verax.common.checks import check_choice
from verax.common.faces import Worded
from verax.common.times import with_zones
from verax.display.tables import Column, FrameKind, Table, Tabled, data_frame, interval_head
from verax.errors import InputError, Remedy, passing, show
from verax.inference.findings import Claim, Finding, WithVerdict, in_brackets
from verax.inference.intervals import Interval, Resampling, check_confidence
from verax.inputs.arrays import to_array, to_host
from verax.inputs.breakdown import Breakdown, BreakdownRecipe, not_scanned
from verax.inputs.groups import Groups
from verax.inputs.handles import Handle, Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.inputs.skipping import MaySkip
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.registry import headline_rule, name_of, parse
from verax.wings.monitor.calendars import moments_of, start_of
from verax.wings.monitor.intake import in_order
from verax.wings.monitor.steps import MOST_EVENTS, in_plain_times, listed_rows

if TYPE_CHECKING:
    from verax.display.figures import Sheet

# Number of periods in tables; data frames and JSON have all.
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class PeriodLine:
    """One period.

    Attributes
    ----------
    period : object
        The time, or the name of the period.
    n_rows : int
        The number of rows.
    loss : float
        Their mean loss.
    interval : Interval
        Its confidence interval.
    stated : float
        The mean probability of the most likely class.
    accuracy : float
        The share of rows whose most likely class happened.
    gap : float
        `stated` minus `accuracy`: positive if forecasts are overconfident.
    gap_interval : Interval
        Its confidence interval.
    frequencies : tuple of float
        The frequency of each class; empty for more than 32 classes and for top lists.
    probabilities : tuple of float
        The mean probability of each class; empty likewise.
    """

    period: Worded[Any]
    n_rows: int
    loss: float
    interval: Interval
    stated: float
    accuracy: float
    gap: float
    gap_interval: Interval
    frequencies: tuple[float, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True, repr=False, eq=False)
class OverTime(WithVerdict, Tabled, MaySkip):
    """Losses, calibration and class frequencies by period.

    Attributes
    ----------
    lines : tuple of PeriodLine
        The periods, in order.
    rule : str
        The rule that scores rows.
    every : str or None
        The length of a period; None if each distinct time is one.
    classes : tuple of str
        The names of the classes; empty if lines have no frequencies.
    n_rows : int
        The number of rows.
    confidence : float
        Confidence level of the intervals, each for its own period.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.over_time([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.6], time=[2025, 2025, 2026, 2026])
    >>> [line.accuracy for line in found.lines]
    [1.0, 0.0]
    """

    lines: tuple[PeriodLine, ...]
    rule: str
    every: Literal["day", "week", "month", "quarter", "year"] | None
    classes: tuple[str, ...]
    n_rows: int
    confidence: float

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean loss of each period with its interval, and confidence and accuracy below it.

        Parameters
        ----------
        ax : sequence of two Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib.figure.Figure
            The losses above confidence and accuracy.
        """
        from verax.display.plots import draw

        return draw(self._sheet(), ax)

    def _sheet(self) -> Sheet:
        """The losses with their intervals, and confidence and accuracy below them."""
        from verax.display.axes import Axis
        from verax.display.figures import Figure, Sheet
        from verax.display.marks import Line, Points

        places = range(len(self.lines))
        times = Axis("time", names=tuple(str(line.period) for line in self.lines), ordered=True)
        loss = [line.loss for line in self.lines]
        ends = [line.interval if line.interval.defined else (line.loss,) * 2 for line in self.lines]
        level = f"mean with its {100 * self.confidence:g}% interval"
        low, high = zip(*ends, strict=True)
        losses = Points(level, places, loss, low, high)
        stated = Line("confidence", places, [line.stated for line in self.lines], "soft", dots=True)
        right = Line("accuracy", places, [line.accuracy for line in self.lines], dots=True)
        above = Figure("", [losses], times, Axis(f"mean {self.rule}"))
        below = Figure("", [stated, right], times, Axis("most likely class"))
        return Sheet([above, below], 1, (6.5, 2.15), shared="x", key="above")

    def to_frame(self, kind: FrameKind = "pandas", *, of: Literal["periods", "classes"] = "periods") -> Any:
        """One row per period, or per period and class, as a data frame of the kind named.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.
        of : {"periods", "classes"}, default "periods"
            What a row is: a period, or a class in a period.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        check_choice("of", of, ("periods", "classes"))
        if of == "periods":
            return super().to_frame(kind)
        columns: dict[str, list[Any]] = {name: [] for name in ("period", "name", "frequency", "probability")}
        for line in self.lines:
            rows = zip(self.classes, line.frequencies, line.probabilities, strict=True)
            for name, frequency, probability in rows:
                values = (line.period, name, frequency, probability)
                for column, value in zip(columns.values(), values, strict=True):
                    column.append(value)
        return data_frame(columns, kind)

    def _findings(self) -> list[Finding]:
        low, high = (pick(self.lines, key=lambda line: line.loss) for pick in (min, max))
        if low is high:
            text = f"Mean {self.rule} {low.loss:.4g}{in_brackets(low.interval)} in {low.period}."
        else:
            best, worst = (f"{end.period}, {end.loss:.4g}{in_brackets(end.interval)}" for end in (low, high))
            text = f"Mean {self.rule} is lowest in {best}, and highest in {worst}."
            text += f" The {len(self.lines):,} periods are not tested against each other."
        numbers = {"lowest": (low.loss, low.interval), "highest": (high.loss, high.interval)}
        about = tuple(dict.fromkeys((str(low.period), str(high.period))))
        return [Finding(Claim.SCORE, text, about, numbers)]

    def _columns(self) -> list[Column]:
        level = interval_head(self.confidence)
        return [
            Column("period", self.every or "time", right=False),
            Column("n_rows", "rows", ","),
            Column("loss", self.rule, ".4f"),
            Column("low high", level, ".4f", "interval"),
            Column("stated", "confidence", ".3f"),
            Column("accuracy", "accuracy", ".3f"),
            Column("gap", "gap", "+.3f"),
            Column("gap_low gap_high", level, "+.3f", "gap_interval"),
        ]

    def _tables(self) -> list[Table]:
        return [Table(self._columns(), self.lines[-_SHOWN:])]

    def _frame(self) -> Table:
        return Table(self._columns(), self.lines)

    def _heading(self) -> str:
        n = len(self.lines)
        return f"verax over time: {self.n_rows:,} rows in {n:,} period{'s' if n > 1 else ''}"

    def _notes(self) -> list[str]:
        n = len(self.lines)
        shown = [f"The last {_SHOWN} of {n:,} periods."] if n > _SHOWN else []
        return [*shown, "A positive gap means overconfident: confidence minus accuracy.", *self.remarks]


# A table with more periods is unreadable.
_MOST_PERIODS = 2**12
Every = Literal["day", "week", "month", "quarter", "year"]
_EVERY = get_args(Every)
_TIME = "time"
# Columns: confidence, whether the most likely class happened, their difference, then those of the classes.
STATED, RIGHT, GAP, OF_CLASSES = range(4)


@reads
def over_time(
    y: object,
    p: object = None,
    *,
    time: object,
    rule: Rule | str | None = None,
    every: Every | None = None,
    ordered: bool = False,
    confidence: float = 0.95,
    **read: Unpack[RowOptions],
) -> OverTime:
    """Mean loss, calibration and class frequencies of each period, with confidence intervals.

    This describes rows that have a time. For alarms as rows come in, use `Monitor`.

    Parameters
    ----------
    y
    p
    time : array_like of shape (N,) or str
        The time of each row: dates, datetimes, numbers or texts. For predictions that `scan` has opened, the
        name of a column in its `by=`.
    rule : Rule or str, optional
        The rule that scores rows; by default `rps` for ordered classes, else `brier`.
    every : {"day", "week", "month", "quarter", "year"}, optional
        The length of a period, for dates and datetimes, also as ISO texts. By default each distinct time is
        a period.
    ordered
    confidence
    **read

    Returns
    -------
    OverTime
        A line for each period, in order.

    See Also
    --------
    Monitor : Alarms with a bounded probability of false alarms.
    subgroups : The same rows by another column, with tests of calibration.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 1, 590)
    >>> day = np.datetime64("2026-01-01") + np.arange(590) // 10
    >>> y = rng.random(590) < np.where(day < np.datetime64("2026-02-01"), p, 0.5)
    >>> found = vx.over_time(y, p, time=day, every="month")
    >>> [(line.period, line.gap_interval.low > 0) for line in found.lines]
    [('2026-01', False), ('2026-02', True)]
    """
    check_confidence(confidence)
    check_choice("every", every, (None, *_EVERY))
    chosen = parse(rule) if rule is not None else headline_rule(ordered=ordered)
    by = {} if isinstance(time, str) else {_TIME: _given_times(time)}
    handle = open_rows(y, p, single=True, ordered=ordered or chosen.ordinal, by=by, **read)
    column = _column(handle, time)
    model = handle.one_model()
    scored: Rule = Padded(chosen) if handle.lists and not isinstance(chosen, Padded) else chosen
    plan = Resampling(confidence)
    recipes: dict[str, Recipe[Any]] = {
        "card": CardRecipe(model, (scored,), ordered, None, plan),
        "events": _EventRecipe(model, chosen),
    }
    recipe = _PeriodRecipe(column, every, BreakdownRecipe(column, recipes))
    summaries = handle.summarise(with_fault_recipes(handle, {"periods": recipe}))
    periods: Breakdown = summaries["periods"]
    lines = tuple(_line(label, periods[label], scored, confidence) for label in in_order(periods))
    classes = _classes(handle) if len(lines[0].frequencies) else ()
    result = OverTime(lines, name_of(chosen), every, classes, sum(line.n_rows for line in lines), confidence)
    faults = dict(zip([""], faults_in(handle, summaries).values(), strict=False))
    return result.with_skipped(summaries.skipped).with_faults(faults)


def _given_times(time: object) -> Any:
    """The time of each row."""
    values = to_host(to_array(with_zones(time), "time")[0])
    if values.ndim != 1:
        raise InputError(
            "must be a time for each row", argument="time", kind="type", found=f"it is {show(time)}"
        )
    return in_plain_times(values)


def _column(handle: Handle, time: object) -> str:
    if not isinstance(time, str):
        return _TIME
    if time in handle.by:
        return time
    raise not_scanned(time, handle.by, "time")


def _classes(handle: Handle) -> tuple[str, ...]:
    return tuple(map(str, range(handle.n_classes) if handle.classes is None else handle.classes))


def _line(label: Any, summaries: Mapping[str, Any], rule: Rule, confidence: float) -> PeriodLine:
    card: Scorecard = summaries["card"]
    sums: UnitSums = summaries["events"]
    if not sums.total > 0:
        raise InputError(
            "must not all be zero in a period",
            argument="weights",
            found=f"they are in {show(label)}",
            values=[label],
            remedies=[Remedy("Leave these rows out.")],
        )
    score = card.scores[name_of(rule)]
    means, variance = sums.mean[0].tolist(), float(sums.covariance[0, GAP, GAP])
    of_classes = means[OF_CLASSES:]
    return PeriodLine(
        label,
        card.n_rows,
        score.mean,
        score.interval,
        means[STATED],
        means[RIGHT],
        means[GAP],
        sums.units.interval(means[GAP], variance, confidence),
        tuple(of_classes[1::2]),
        tuple(of_classes[::2]),
    )


@dataclass(frozen=True)
class _PeriodRecipe(Recipe[Breakdown], cases=True):
    """Apply a recipe to each period."""

    column: str
    every: Every | None
    recipe: BreakdownRecipe

    def take(self, part: Part) -> Breakdown:
        """Summarise one part."""
        periods = periods_of(part.by[self.column], self.every)
        n = len(Groups.of(periods, part.n_rows).labels)
        if n > _MOST_PERIODS:
            raise InputError(
                f"must have at most {_MOST_PERIODS:,} periods",
                argument=_TIME,
                found=f"there are {n:,}",
                remedies=[passing("for longer periods", every="month")],
            )
        return self.recipe.take(replace(part, by={self.column: periods}))


def periods_of(times: Any, every: Every | None) -> Any:
    """The period of each time; dates and datetimes as texts, which are the same in every part.

    >>> periods_of(np.array(["2026-03-05T12:00", "2026-12-31T23:00"]), "quarter").tolist()
    ['2026-Q1', '2026-Q4']
    >>> periods_of(np.array(["2026-03-05", "2026-03-09"]), "week").tolist()
    ['2026-03-02', '2026-03-09']
    """
    values = in_plain_times(times)
    if every is None:
        return values.astype(str) if values.dtype.kind == "M" else values
    remedy = passing("each distinct time is then a period", every=None)
    starts = start_of(moments_of(values, (remedy,)), every)
    if every != "quarter":
        return starts.astype(str)
    months, places = np.unique(starts.astype(np.int64), return_inverse=True)
    return np.array([f"{1970 + m // 12}-Q{m % 12 // 3 + 1}" for m in months.tolist()])[places]


@dataclass(frozen=True)
class _EventRecipe(UnitRecipe):
    """Sum confidence and accuracy; with few classes also their probabilities and frequencies."""

    model: str
    rule: Rule

    def columns(self, part: Part) -> UnitColumns:
        """The columns of one part: confidence, accuracy, their difference, and each class."""
        rows = part.models[self.model]
        if isinstance(rows, ListRows):
            listed = listed_rows(rows, self.rule)
            weights, right = listed.weights, listed.right.astype(float)
            columns = [listed.top, right, listed.top - right]
        else:
            row_pass, p = seen(part, self.model, ()), probabilities(part, self.model)
            weights, right = row_pass.weights, (row_pass.decision == row_pass.y).astype(float)
            columns = [row_pass.top, right, row_pass.top - right]
            if p.shape[1] <= MOST_EVENTS:
                for k in range(p.shape[1]):
                    columns += [p[:, k], (row_pass.y == k).astype(float)]
        w = np.ones(len(columns[0])) if weights is None else scaled(part, weights)
        return UnitColumns(w, np.stack(columns)[None] * w, rows.groups)
