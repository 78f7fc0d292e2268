"""Calibration slope and intercept: the logistic regression of an event on the log odds of its forecast.

The first pass looks at the log odds: whether there is a fit, and a histogram, whose fit is where Newton's
method begins. Each further pass sums gradients and curvatures over the rows; a step that is smaller than
1e-10 is the last, because the error of the next point is about its square. The same sums give the sandwich
variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from verax.analyses.binary import BinaryEvent, event_names, heading, rows_of_part
from verax.analyses.calibration.slope_result import CalibrationLine, CalibrationSlopes
from verax.analyses.calibration.sources import ANY, WHOLE, ListEvents, check_places, place_name, refuse_places
from verax.analyses.parts import scaled
from verax.analyses.units import CountedUnits, IndependentUnits, dot, sums_at
from verax.analyses.unitsums import SpreadRecipe, UnitColumns, UnitRecipe, UnitSums, check_weight
from verax.common.checks import check_flag, in_digits
from verax.common.packing import UnreadableError
from verax.common.specs import Ends, Valued, Whole
from verax.common.summaries import Summary, merges
from verax.engines.keyed import Keyed, Run
from verax.inference.intervals import Interval, Resampling, WeightsAre
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Handle, Part, Recipe
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads


def log_odds(event: BinaryEvent) -> Floats:
    """The log odds of the forecasts; infinite where a forecast is 0 or 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(event.given) - np.log(event.rest))


def chances_at(odds: Floats) -> tuple[Floats, Floats]:
    """The chances of an event and of none at these log odds, both to the last digit.

    Importing `scipy.special` for its logistic function takes longer than fitting a few thousand rows.
    """
    ratio = np.exp(-np.abs(odds))
    likely = 1 / (1 + ratio)
    rare, happens = ratio * likely, odds > 0
    return np.where(happens, likely, rare), np.where(happens, rare, likely)


def log_chance(odds: Floats) -> Floats:
    """The logarithm of the chance of an event at these log odds."""
    return np.asarray(np.minimum(odds, 0.0) - np.log1p(np.exp(-np.abs(odds))))


class Overlap(Summary):
    """The ranges of the log odds of rows with and without an event, which decide whether there is a fit.

    Attributes
    ----------
    n, happened : int
        The number of rows, and of those with the event.
    finite, finite_happened : int
        The same of the rows with finite log odds.
    wrong : int
        How many rows had a forecast of 0 or 1 that was wrong.
    without, with_event : pair of floats
        The smallest and the largest finite log odds of the rows without and with the event.
    """

    n: int = merges(Whole())
    happened: int = merges(Whole(most="n"))
    finite: int = merges(Whole(most="n"))
    finite_happened: int = merges(Whole(most="finite"))
    wrong: int = merges(Whole(most="n"))
    without: tuple[float, float] = merges(Ends())
    with_event: tuple[float, float] = merges(Ends())

    @classmethod
    def of(cls, odds: Floats, happened: Bools, copies: Floats | None = None) -> Overlap:
        """Of rows with these log odds and outcomes; or of numbers of such rows, `copies`."""
        finite = np.isfinite(odds)

        def count(rows: Bools) -> int:
            return int(np.count_nonzero(rows)) if copies is None else round(float(copies[rows].sum()))

        wrong = (np.isneginf(odds) & happened) | (np.isposinf(odds) & ~happened)
        sides = [odds[finite & side] for side in (~happened, happened)]
        ends = [(float(x.min(initial=np.inf)), float(x.max(initial=-np.inf))) for x in sides]
        return cls(
            count(np.ones(len(odds), np.bool_)),
            count(happened),
            count(finite),
            count(finite & happened),
            count(wrong),
            ends[0],
            ends[1],
        )

    @property
    def certain(self) -> int:
        """The number of rows with a forecast of 0 or 1."""
        return self.n - self.finite

    @property
    def problem(self) -> str:
        """Why nothing can be fitted; empty where it can."""
        if self.happened in (0, self.n):
            return "the event always or never happened"
        if self.wrong:
            return "an event with a forecast of 0 happened, or one with a forecast of 1 did not"
        if self.finite_happened in (0, self.finite):
            return "apart from forecasts of 0 and 1, the event always or never happened"
        return ""

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the rarer outcome: with few events, tests have the tails of few rows."""
        return min(self.finite_happened, self.finite - self.finite_happened) - 1.0

    @property
    def slope_problem(self) -> str:
        """Why there is no finite slope; empty where there is one."""
        (low, high), (low_hit, high_hit) = self.without, self.with_event
        if min(low, low_hit) == max(high, high_hit):
            return "all forecasts are the same, so there is no slope"
        if low_hit >= high or high_hit <= low:
            return "the forecasts separate the outcomes, so the slope is infinite"
        return ""


# Most steps of Newton's method, which takes about six, and a step whose error is its square: rounding.
_MOST_STEPS, _LAST_STEP = 100, 1e-7


def fit_intercept(x: Floats, h: Bools, w: Floats) -> float:
    """The intercept that makes the mean forecast right, with slope 1."""
    wanted, level = float(w[h].sum()), 0.0
    high = float(np.abs(x).max()) + 800.0
    low = -high
    for _ in range(_MOST_STEPS):
        chance, rest = chances_at(level + x)
        excess, curved = dot(w, chance) - wanted, dot(w, chance * rest)
        low, high = (low, level) if excess > 0 else (level, high)
        before, level = level, level - excess / curved if curved > 0 else math.nan
        # A step of Newton's that leaves what is known to hold the root is replaced by halving.
        level = level if low <= level <= high else (low + high) / 2
        if abs(level - before) <= 1e-14 * max(1.0, abs(level)):
            break
    return level


@dataclass(frozen=True)
class Regression:
    """Intercept and slope by maximum likelihood, in units of the spread of the log odds.

    Attributes
    ----------
    coefficients : array of shape (2,)
        Of the constant, and of (x - centre) / scale.
    centre, scale : float
        The units.
    """

    coefficients: Floats
    centre: float
    scale: float

    @classmethod
    def of(cls, x: Floats, h: Bools, w: Floats) -> Regression:
        """Of rows with these log odds, outcomes and weights."""
        # Forecasts in units of their spread, so that the curvature is the same in all directions.
        units = cls(np.zeros(2), float(np.average(x, weights=w)), float(x[w > 0].std()) or 1.0)
        columns = units.columns(x)
        sign = np.where(h, 1.0, -1.0)

        def loss(b: Floats) -> float:
            return -dot(w, log_chance(sign * (b @ columns)))

        def slope_of(b: Floats) -> Floats:
            return np.asarray(columns @ (w * (chances_at(b @ columns)[0] - h)))

        def curvature(b: Floats) -> Floats:
            chance, rest = chances_at(b @ columns)
            return np.asarray((columns * (w * chance * rest)) @ columns.T)

        b = np.zeros(2)
        for _ in range(_MOST_STEPS):
            step, before = np.linalg.solve(curvature(b), slope_of(b)), loss(b)
            # The last step is smaller than rounding of the loss can tell.
            last = bool(np.abs(step).max() <= _LAST_STEP * max(1.0, float(np.abs(b).max())))
            while not last and loss(b - step) > before:
                step /= 2
            b = b - step
            if last:
                break
        return cls(b, units.centre, units.scale)

    def columns(self, x: Floats) -> Floats:
        """(2, N) the constant and the log odds in these units."""
        return np.stack([np.ones(len(x)), (x - self.centre) / self.scale])

    @property
    def back(self) -> Floats:
        """The matrix that turns coefficients into intercept and slope."""
        return np.array([[1.0, -self.centre / self.scale], [0.0, 1 / self.scale]])


def wald(deviation: Floats, covariance: Floats, freedom: float) -> float:
    """The p-value of two estimates being zero together, by Hotelling's F distribution."""
    if freedom <= 1 or not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance) < 2:
        return math.nan
    statistic = float(deviation @ np.linalg.solve(covariance, deviation))
    # The tail of F with 2 and freedom - 1 degrees of freedom.
    return math.exp(-(freedom - 1) / 2 * math.log1p(statistic / freedom))


# Where weights are so unequal that fewer rows in effect count than this share of them, a few rows decide on
# the slope, and its sandwich variance is too small: at 0.4, 10 to 13 % of calibrated slopes exclude 1, and at
# 0.1 it is 24 %.
_EVEN = 0.6
_UNEVEN = "the weights are very unequal, so the interval is too narrow"


# ---- lines -------------------------------------------------------------------------------------


def line_of(
    name: str,
    large: tuple[float, float],
    both: Floats | None,
    covariance: Floats,
    look: LogOddsBins,
    units: CountedUnits,
    confidence: float,
) -> CalibrationLine:
    """Slope and intercepts with their intervals.

    `large` is the intercept if the slope is 1, with its variance; `both` are intercept and slope, None where
    there is no slope. A rare event has no more degrees of freedom than the number of its occurrences gives,
    and forecasts near 0 and 1 no more than the number of surprising outcomes.
    """
    overlap = look.overlap
    uneven = not units.grouped and units.freedom + 1 < _EVEN * units.n
    units = replace(units, degrees=max(1.0, min(units.freedom, overlap.freedom, look.surprising - 1)))
    fits, p_value, slope_p = [large], math.nan, math.nan
    if both is None:
        fits += [(math.nan, math.nan)] * 2
    else:
        fits += [(float(both[i]), float(covariance[i, i])) for i in range(2)]
        p_value = wald(both - [0.0, 1.0], covariance, units.freedom)
        slope_p = math.nan if uneven else units.p_value(fits[2][0] - 1, fits[2][1])
    problem = "; ".join(filter(None, [overlap.slope_problem, _UNEVEN if uneven else ""]))
    cautions = ["", problem, problem]
    intervals = [
        units.interval(value, variance, confidence, caution=caution)
        for (value, variance), caution in zip(fits, cautions, strict=True)
    ]
    (level, _), (intercept, _), (slope, _) = fits
    shown = intervals[2], intervals[1], intervals[0]
    return CalibrationLine(name, slope, intercept, level, *shown, p_value, overlap.certain, slope_p)


def undefined_line(
    name: str, overlap: Overlap, units: IndependentUnits, confidence: float
) -> CalibrationLine:
    """The line of an event that has no fit."""
    none = Interval.undefined(overlap.problem, method=units.method, confidence=confidence)
    return CalibrationLine(name, math.nan, math.nan, math.nan, none, none, none, math.nan, overlap.certain)


def heading_of_lists(n_lists: int, n_groups: int | None, said: str) -> str:
    """The first line of the slopes of top lists."""
    grouped = "" if n_groups is None else f", {n_groups:,} groups"
    return f"verax calibration slopes: {n_lists:,} top lists{grouped}, {said}"


# The width of bins of log odds for the first fit.
_WIDTH = 2.0**-6
# A step that moves no coefficient by more is the last; the largest number of steps.
_SMALL, _STEPS = 1e-10, 60
# So many digits of coefficients say which step a saved summary belongs to.
_DIGITS = 8
# The columns that are summed: scores and information of the intercept if the slope is 1, scores and curvature
# of intercept and slope, and both losses.
_SCORES, _INFORMATION, _CURVATURE, _LOSSES = slice(0, 3), 3, slice(4, 7), slice(7, 9)


def fit_slopes(
    handle: Handle, ordered: bool, places: int, plan: Resampling, *, model: str | None = None
) -> CalibrationSlopes:
    """Slope and intercept of every event, of one model of several if it is named."""
    confidence = plan.confidence
    source = OddsSource(
        handle.one_model() if model is None else model,
        ordered,
        places if handle.lists else None,
        plan.copies,
    )
    names = _names(handle, ordered, places)
    summaries = handle.summarise({name: LookRecipe(source, i) for i, name in enumerate(names)})
    looks = {name: summaries[name] for name in names if summaries[name].overlap.n}
    check_weight(float(bool(looks)))
    fits = {name: _Fit.of(source, names.index(name), look) for name, look in looks.items()}
    for _ in range(_STEPS):
        open_ = {name: fit.recipe for name, fit in fits.items() if not fit.done}
        if not open_:
            break
        sums = handle.summarise(open_)
        for name in open_:
            fits[name].step(sums[name])
    _exact(handle, fits)
    whole = fits[WHOLE if handle.lists else next(iter(fits))].sums
    n_groups, n_rows = None if whole.groups is None else whole.units.n, summaries.n_rows
    lines = tuple(fit.line(name, looks[name], confidence) for name, fit in fits.items())
    if handle.lists:
        invalid = looks[WHOLE].invalid
        said = f"{in_digits(handle.n_classes)} classes"
        said += f", {invalid:,} invalid lists taken as stated" if invalid else ""
        first, prefix = heading_of_lists(n_rows, n_groups, said), ""
    else:
        first = heading("calibration slopes", n_rows, n_groups, handle.n_classes, ordered=ordered)
        prefix = "y " if ordered else "class "
    result = CalibrationSlopes(lines, first, prefix, n_rows, n_groups, ordered, confidence)
    return result.with_skipped(summaries.skipped)


def _names(handle: Handle, ordered: bool, places: int) -> list[str]:
    if handle.lists:
        return [*(place_name(i + 1) for i in range(places)), ANY, WHOLE]
    return event_names(handle.class_names, ordered=ordered)


def _exact(handle: Handle, fits: dict[str, _Fit]) -> None:
    """Read rows of unequal weights once more, for variances in which each has its own leverage."""
    uneven = {name: fit for name, fit in fits.items() if fit.sums.groups is None and not fit.sums.even}
    if uneven and handle.has_rows:
        recipes = {
            name: SpreadRecipe(fit.seen, fit.sums.first.high / fit.sums.total, fit.sums.total)
            for name, fit in uneven.items()
        }
        summaries = handle.summarise(recipes)
        for name, fit in uneven.items():
            fit.covariance = summaries[name].sums.high[0]


# ---- rows --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OddsRows:
    """The log odds x of an event in some rows, whether it happened, weights, and what is independent.

    Entries of the same list belong together: `owner` is the list of each. Groups are those of rows, or lists.
    `copies` are how many rows or lists are alike, where weights count them.
    """

    x: Floats
    happened: Bools
    weights: Floats
    owner: Ints | None = None
    groups: Groups | None = None
    n_owners: int = 0
    invalid: int = 0
    copies: Floats | None = None

    def summed(self, columns: Floats) -> UnitColumns:
        """Columns of rows as those of units, with their weights."""
        copies = self.copies if self.groups is None else None
        if self.owner is None:
            return UnitColumns(self.weights, (columns * self.weights)[None], self.groups, copies)
        n, owner = self.n_owners, self.owner
        sums = np.stack([sums_at(owner, row * self.weights, n) for row in columns])
        return UnitColumns(sums_at(owner, self.weights, n), sums[None], self.groups, copies)


@dataclass(frozen=True)
class OddsSource:
    """The events of one model, by number: of rows, or of lists with `places` places."""

    model: str
    ordered: bool
    places: int | None
    # Whether weights are numbers of rows, which the texts of `former_text` tell.
    copies: bool = field(default=False, repr=False)

    def former_text(self, text: str) -> str:
        """The text that named a saved summary of rows, or of copies, in 0.3."""
        return f"copies: {text}" if self.copies else text

    def event(self, part: Part, i: int) -> OddsRows:
        """One event in some rows; without any where no list is so long."""
        events = part.once(("log odds", self), lambda: self._lists(part) if self.places else self._rows(part))
        return events[i]

    def _rows(self, part: Part) -> list[OddsRows]:
        rows = rows_of_part(part, self.model, ordered=self.ordered, copies=self.copies)
        check_one_way(rows.units.groups, "calibration slopes")
        w, groups = rows.units.share, rows.units.groups
        copies = w if self.copies else None
        return [
            OddsRows(log_odds(event), event.happened, w, groups=groups, copies=copies)
            for event in rows.events()
        ]

    def _lists(self, part: Part) -> list[OddsRows]:
        assert self.places is not None
        none = np.zeros(0)
        groups = part.models[self.model].groups
        empty = None if groups is None else Groups(np.zeros(0, np.int64), groups.labels)
        nothing = OddsRows(none, none.astype(bool), none, groups=empty)
        events = [nothing] * (self.places + 2)
        lists = ListEvents.of(part.models[self.model], "calibration slopes")
        if not lists.n_lists:
            return events
        weights = np.ones(lists.n_lists) if lists.weights is None else lists.weights
        weights = weights if self.copies else scaled(part, weights)
        copies = weights if self.copies else None
        for event in (make() for make in lists.stated(self.places).values()):
            odds = log_odds(event)
            w, groups = event.of_rows(weights), lists.groups
            if event.name == ANY:
                rows = OddsRows(odds, event.happened, w, event.owner, groups, lists.n_lists, copies=copies)
                events[self.places] = rows
                continue
            groups = None if groups is None else Groups(event.of_rows(groups.codes), groups.labels)
            last = event.name == WHOLE
            at = -1 if last else int(event.name.split()[-1]) - 1
            invalid, copies_of = lists.n_invalid if last else 0, event.of_rows(copies)
            events[at] = OddsRows(odds, event.happened, w, groups=groups, invalid=invalid, copies=copies_of)
        return events


# ---- the first look ----------------------------------------------------------------------------


class LogOddsBins(Summary, kind="log odds"):
    """The ranges of the log odds of an event, and the sums of w, w where it happened and w*x in bins of x."""

    overlap: Overlap = merges(Valued(Overlap, flat=True))
    bins: Keyed = merges(Valued(Keyed))
    invalid: int = merges(Whole())

    def _check(self) -> None:
        run = self.bins.total
        if run.sums.high.shape[1] != 3 or not (run.sums.high[:, 0] > 0).all():
            raise UnreadableError("has other sums than those of log odds", "bins")

    @property
    def surprising(self) -> float:
        """How many of the rows with finite log odds had an outcome that was no likelier than the other one.

        A weighted share, times the number of rows. The slope of forecasts near 0 and 1 is that of these few.
        """
        weight, hit, total = self.bins.total.sums.high.T
        surprising = np.select([total < 0, total > 0], [hit, weight - hit], weight)
        return self.overlap.finite * float(surprising.sum()) / float(weight.sum())

    def start(self) -> tuple[float, Regression]:
        """The fits to the bins: the intercept if the slope is 1, and intercept and slope."""
        weight, hit, total = self.bins.total.sums.high.T
        x = total / weight
        sides = [(x[mass > 0], mass[mass > 0]) for mass in (np.maximum(weight - hit, 0.0), hit)]
        x, w = (np.concatenate(column) for column in zip(*sides, strict=True))
        h = np.repeat([False, True], [len(sides[0][0]), len(sides[1][0])])
        w = w / w.sum()
        level = fit_intercept(x, h, w)
        if self.overlap.slope_problem or Overlap.of(x, h).slope_problem:
            # From the forecasts as they are.
            centre, scale = float(np.average(x, weights=w)), float(x[w > 0].std()) or 1.0
            return level, Regression(np.array([level + centre, scale]), centre, scale)
        return level, Regression.of(x, h, w)


@dataclass(frozen=True)
class LookRecipe(Recipe[LogOddsBins]):
    """A look at one event."""

    source: OddsSource
    i: int

    def former_texts(self) -> tuple[str, ...]:
        """With copies apart, which its own text does not tell."""
        return (self.source.former_text(repr(self)),)

    def take(self, part: Part) -> LogOddsBins:
        """At some rows."""
        rows = self.source.event(part, self.i)
        overlap = Overlap.of(rows.x, rows.happened, rows.weights if self.source.copies else None)
        finite = np.isfinite(rows.x)
        x, w = rows.x[finite], rows.weights[finite]
        keys = np.floor(x / _WIDTH).astype(np.int64)
        run = Run.of(keys, [w, w * rows.happened[finite], w * x])
        return LogOddsBins(overlap, Keyed((run,)), rows.invalid)


# ---- Newton's method ---------------------------------------------------------------------------


@dataclass(frozen=True)
class FitRecipe(UnitRecipe):
    """Scores, curvatures and losses of one event at some coefficients."""

    source: OddsSource
    i: int
    level: float
    regression: Regression
    step: int = field(default=0, repr=False)

    @property
    def follows(self) -> bool:
        return True

    def named_by(self) -> Mapping[str, Any]:
        """The number of the step, and coefficients without their last digits, in which sums in another order
        or another NumPy differ.
        """
        return vars(self._rounded)

    def former_texts(self) -> tuple[str, ...]:
        """The same as text, and with all digits, as 0.2.0 saved it."""
        texts = f"step {self.step} of {self._rounded!r}", repr(self)
        return tuple(map(self.source.former_text, texts))

    @property
    def _rounded(self) -> FitRecipe:
        regression = self.regression
        rounded = Regression(
            np.round(regression.coefficients, _DIGITS) + 0.0,
            round(regression.centre, _DIGITS) + 0.0,
            float(f"{regression.scale:.{_DIGITS}e}"),
        )
        return replace(self, level=round(self.level, _DIGITS) + 0.0, regression=rounded)

    def columns(self, part: Part) -> UnitColumns:
        """Of some rows. Those with a forecast of 0 or 1 have no part in the fit."""
        rows = self.source.event(part, self.i)
        finite = np.isfinite(rows.x)
        x = np.where(finite, rows.x, 0.0)
        h, sign = rows.happened, np.where(rows.happened, 1.0, -1.0)
        columns = self.regression.columns(x)
        z = self.regression.coefficients @ columns
        (chance, rest), (plain, plain_rest) = chances_at(z), chances_at(self.level + x)
        curved = chance * rest
        addends = np.stack(
            [
                h - plain,
                *(columns * (h - chance)),
                plain * plain_rest,
                curved,
                curved * columns[1],
                curved * columns[1] ** 2,
                -log_chance(sign * (self.level + x)),
                -log_chance(sign * z),
            ]
        )
        return rows.summed(np.where(finite, addends, 0.0))


@dataclass
class _Newton:
    """Newton's method for one function, whose value, gradient and curvature are computed elsewhere."""

    point: Floats
    best: Floats | None = None
    least: float = np.inf
    done: bool = False

    def step(self, value: float, gradient: Floats, curvature: Floats) -> None:
        """Choose the next point, from what was found at the last one."""
        if self.best is not None and value > self.least + 1e-12 * abs(self.least):
            # Too far: half the way.
            self.point = (self.best + self.point) / 2
            self.done = bool(np.abs(self.point - self.best).max() < _SMALL)
            return
        self.best, self.least = self.point, value
        step = np.linalg.solve(curvature, gradient)
        self.point = self.point - step
        self.done = bool(np.abs(step).max() < _SMALL)


@dataclass
class _Fit:
    """Both fits of one event on their way."""

    recipe: FitRecipe
    level: _Newton
    both: _Newton
    problem: str
    slope_problem: str
    sums: UnitSums = field(init=False)
    seen: FitRecipe = field(init=False)
    covariance: Floats | None = None

    @classmethod
    def of(cls, source: OddsSource, i: int, look: LogOddsBins) -> _Fit:
        """From a first look."""
        level, regression = 0.0, Regression(np.array([0.0, 1.0]), 0.0, 1.0)
        if not look.overlap.problem:
            level, regression = look.start()
        recipe = FitRecipe(source, i, level, regression)
        both = _Newton(regression.coefficients, done=bool(look.overlap.slope_problem))
        first = _Newton(np.array([level]))
        return cls(recipe, first, both, look.overlap.problem, look.overlap.slope_problem)

    @property
    def done(self) -> bool:
        """Whether nothing is left to be read."""
        return hasattr(self, "sums") and (bool(self.problem) or (self.level.done and self.both.done))

    def step(self, sums: UnitSums) -> None:
        """Take in what was found at the last coefficients."""
        self.sums, self.seen = sums, self.recipe
        if self.problem:
            return
        total = sums.first.high[0] / sums.total
        losses = total[_LOSSES]
        if not self.level.done:
            self.level.step(float(losses[0]), -total[:1], np.array([[total[_INFORMATION]]]))
        if not self.both.done:
            self.both.step(float(losses[1]), -total[1:3], self._curvature)
        regression = replace(self.recipe.regression, coefficients=self.both.point)
        level, step = float(self.level.point[0]), self.recipe.step + 1
        self.recipe = replace(self.recipe, level=level, regression=regression, step=step)

    @property
    def _curvature(self) -> Floats:
        a, b, c = (self.sums.first.high[0] / self.sums.total)[_CURVATURE]
        return np.array([[a, b], [b, c]])

    def line(self, name: str, look: LogOddsBins, confidence: float) -> CalibrationLine:
        """The result."""
        units = replace(self.sums.units, in_groups=self.sums.groups is not None or name == ANY)
        if self.problem:
            return undefined_line(name, look.overlap, units, confidence)
        total = self.sums.first.high[0] / self.sums.total
        covariance = self.sums.covariance[0] if self.covariance is None else self.covariance
        scores = covariance[_SCORES, _SCORES]
        large = float(self.level.point[0]), float(scores[0, 0]) / float(total[_INFORMATION]) ** 2
        both, spread = None, np.zeros((2, 2))
        if not self.slope_problem:
            turn = self.recipe.regression.back @ np.linalg.inv(self._curvature)
            both = self.recipe.regression.back @ self.both.point
            spread = turn @ scores[1:, 1:] @ turn.T
        return line_of(name, large, both, spread, look, units, confidence)


@reads
def calibration_slope(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    places: int | None = None,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> CalibrationSlopes:
    """Calibration slope and intercept: logit P(event) = intercept + slope x logit(forecast).

    A slope below 1 means overconfident (too extreme), above 1 underconfident. The intercept
    with the slope held at 1 (calibration in the large) says whether they are too low (above 0) or too high
    on the whole. Calibrated forecasts have slope 1 and intercept 0.

    The regression is not penalized. Intervals come from the sandwich variance, with groups from sums over
    groups. Forecasts of 0 or 1 have infinite log odds: where they are right they say nothing about a positive
    slope and are left out; where one is wrong there is no fit.

    Parameters
    ----------
    y
        They are read about four times: for a first fit to bins, and for each of Newton's steps from there to
        the fit to the rows.
    p
    ordered : bool, default False
        Whether to take thresholds of ordered classes, Y > class, instead of each class. Two classes have one
        event, class 1.
    places : int, optional
        For top lists: how many of the first places have a slope; 10 if not given. Lists also have one for any
        listed class, and one for the whole list, whose sum is the forecast that the outcome is listed.
    confidence
    weights_are
    **read

    Returns
    -------
    CalibrationSlopes
        Slope and intercept of each event, by name.

    See Also
    --------
    reliability : Whole curves instead of lines.

    References
    ----------
    Cox (1958), doi:10.1093/biomet/45.3-4.562; Van Calster et al. (2016), doi:10.1016/j.jclinepi.2015.12.005

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=5000)
    >>> y = (rng.random(5000) < 1 / (1 + np.exp(-z))).astype(int)
    >>> too_sure = 1 / (1 + np.exp(-2 * z))
    >>> line = vx.calibration_slope(y, too_sure)["1"]
    >>> round(line.slope, 2), line.slope_interval.high < 1
    (0.52, True)
    """
    plan = Resampling.checked(confidence, 0, 0, or_none=True, weights_are=weights_are)
    check_flag("ordered", ordered)
    handle = open_rows(y, p, ordered=ordered, single=True, **read)
    if not handle.lists:
        refuse_places(places)
    return fit_slopes(handle, ordered, check_places(places), plan)
