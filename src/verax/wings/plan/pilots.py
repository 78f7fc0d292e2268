"""Pilots: how much a mean varied, or how much it can, before rows are collected."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.paired import OF_RULE, PairedRecipe
from verax.analyses.comparison.records import Difference
from verax.analyses.comparison.result import Comparison
from verax.analyses.unitsums import UnitColumns, UnitRecipe, UnitSums, means_of
from verax.common.faces import Hidden, Record
from verax.errors import InputError, ParseError, VeraxError, join, passing, show
from verax.inference.sequences import SHARES, STAKES
from verax.inference.sizes import MeanSpread, Sharing, rows_until_decided
from verax.inputs.arrays import to_host
from verax.inputs.groups import GroupCount, counts_by_kind
from verax.inputs.handles import Handle, Part
from verax.scores.base import Rule
from verax.scores.registry import name_of, parse

# Where the kurtosis exceeds that of a normal distribution by this share of the number of units, a few of them
# make most of the spread.
_HEAVY = 1 / 15
# Above this share of the number of units, one of them carries the spread.
_CARRIES = 0.5
# A sample's kurtosis is far too small where tails are heavy: below this share of the degrees of freedom of a
# normal distribution, those of rows are halved.
_LIGHT = 0.8
# With fewer degrees of freedom a pilot is too small to plan from.
_FEW = 8.0


@dataclass(frozen=True)
class Tails:
    """The tails of losses, or of their differences, over rows or groups.

    Attributes
    ----------
    kurtosis : float
        The fourth central moment over the squared variance: 3 for a normal distribution.
    units : float
        The number of rows of equal weight, or of groups, that tell as much.
    what : str
        The kind of the units: "rows" or "groups".
    even : float
        The number of groups of equal weight that vary as these do in size; that of the units otherwise.
    """

    kurtosis: float
    units: float
    what: str = "rows"
    even: float = math.inf

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the variance: it varies by (kurtosis - 1) / units of its square."""
        normal = max(1.0, self.units - 1)
        found = min(normal, 2 * self.units / (self.kurtosis - 1 + 2 / self.units), self.even - 1)
        if self.what == "rows" and found < _LIGHT * normal:
            found /= 2
        return max(1.0, found)

    @property
    def carried(self) -> bool:
        """Whether one unit makes most of the spread."""
        return self.kurtosis > _CARRIES * self.units

    @property
    def caution(self) -> str:
        """Why the spread is not known well; otherwise empty."""
        if self.kurtosis - 3 <= _HEAVY * self.units:
            return ""
        return f"heavy tails: a few of {self.units:.4g} {self.what} make most of the spread"


def tails_of(handle: Handle, models: tuple[str, ...], rule: Rule) -> Tails:
    """The tails of the loss of a model, or of the difference of two."""
    sums = means_of(handle, TailRecipe(models, rule)).sums
    return _of_rows(sums) if sums.groups is None else _of_groups(sums)


def _of_rows(sums: UnitSums) -> Tails:
    first, second, third, fourth = sums.mean[0].tolist()
    variance = second - first**2
    central = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4
    units = sums.total**2 / float(sums.weight.high[1])
    return Tails(max(central / variance**2, 1.0) if variance > 0 else 1.0, units)


def _of_groups(sums: UnitSums) -> Tails:
    assert sums.groups is not None
    weight, sum_of_group = sums.groups[:, 0], sums.groups[:, 1]
    around = (sum_of_group - sums.mean[0, 0] * weight)[weight > 0]
    square = float((around**2).sum())
    n = len(around)
    kurtosis = max(n * float((around**4).sum()) / square**2, 1.0) if square > 0 else 1.0
    squares = weight[weight > 0] ** 2
    return Tails(kurtosis, n, "groups", float(squares.sum() ** 2 / (squares**2).sum()))


@dataclass(frozen=True)
class TailRecipe(UnitRecipe, cases=True):
    """The first four powers of losses, or of their differences.

    Attributes
    ----------
    models : tuple of str
        A model, or two whose losses are subtracted.
    rule : Rule
        The rule.
    """

    models: tuple[str, ...]
    rule: Rule

    def columns(self, part: Part) -> UnitColumns:
        """The columns of all rows of a part."""
        losses = PairedRecipe(self.models, (self.rule,)).columns(part)[OF_RULE.format(name_of(self.rule))]
        values = losses[:, 0] if len(self.models) == 1 else losses[:, 0] - losses[:, 1]
        given = part.rows.batch(0, part.rows.n_rows).weights
        weight = np.ones(len(values)) if given is None else np.asarray(to_host(given), float)
        powers = np.stack([values, values**2, values**3, values**4])
        return UnitColumns(weight, (weight * powers)[None], part.rows.groups)


# A rule whose bounds are the same for these numbers of classes has them for all.
_FEW_CLASSES, _MANY_CLASSES = 2, 1000


@dataclass(frozen=True)
class Pilot(Record):
    """The starting point of a plan.

    Attributes
    ----------
    what : str
        The quantity, in words.
    spread : MeanSpread
        How much its mean varies over rows or groups.
    seen : float
        Its value in the pilot; NaN without one.
    n_rows : int
        The number of rows; 0 without a pilot.
    n_groups : int or None
        The number of groups, the smaller of both kinds; None without groups.
    sharing : Sharing or None
        How rows of a group resemble each other; None where that is not known.
    pair : tuple of str, or None
        The models whose difference it is.
    caution : str
        Why the pilot may mislead; otherwise empty.
    rule : str
        The name of the rule; empty for metrics.
    group_size : float or None
        Rows per group; None for those of the pilot.
    tails_known : bool
        Whether the certainty of the spread allows for heavy tails.
    carried : bool
        Whether one row or group makes most of the spread, so that no single number can be planned.
    unit : str
        What is collected: "row", or "question" where questions are asked several times.
    """

    what: Hidden[str]
    spread: Hidden[MeanSpread]
    seen: float = math.nan
    n_rows: int = 0
    n_groups: int | None = None
    sharing: Hidden[Sharing | None] = None
    pair: Hidden[tuple[str, str] | None] = None
    caution: str = ""
    rule: Hidden[str] = ""
    group_size: Hidden[float | None] = None
    tails_known: Hidden[bool] = False
    carried: Hidden[bool] = False
    unit: Hidden[str] = "row"

    _facts = ("deviation", "correlation", "freedom")

    @property
    def freedom(self) -> float:
        """The degrees of freedom with which the pilot tells the variance; infinite without one."""
        return self.spread.known

    @property
    def too_small(self) -> str:
        """Why the pilot is too small to plan from; otherwise empty."""
        if not self.freedom < _FEW:
            return ""
        return f"degrees of freedom of its variance: {self.freedom:.2g}"

    @property
    def deviation(self) -> float:
        """The standard deviation of a row, or of a group."""
        return self.spread.error_at(1)

    @property
    def correlation(self) -> float | None:
        """The correlation of two rows of a group; None where it is not known."""
        return None if self.sharing is None else self.sharing.correlation

    @property
    def rows_per_unit(self) -> float:
        """How many rows a unit has: 1 without groups."""
        if self.n_groups is None:
            return 1.0
        return self.n_rows / self.n_groups if self.group_size is None else self.group_size

    def with_mean(self, mean: float) -> Pilot:
        """The pilot itself; without one, the most that bounded differences with this mean can vary."""
        if self.n_rows:
            return self
        largest = self.spread.error_at(1)
        if mean >= largest:
            raise InputError(
                f"must be below {largest:g}, the largest that is possible",
                argument="difference",
                values=[mean],
            )
        return replace(self, spread=MeanSpread.at_most(math.sqrt(largest**2 - mean**2)))

    def with_groups_of(self, rows: float) -> Pilot:
        """The pilot with groups of another size."""
        if self.sharing is None or self.n_groups is None:
            raise InputError(
                "needs a pilot with groups of one kind, and a mean over rows",
                argument="rows_per_group",
                remedies=[passing("with the rows of the pilot", groups=...)],
            )
        error = self.sharing.spread(rows).error_at(self.n_groups)
        spread = replace(self.spread, error=error)
        return replace(self, spread=spread, group_size=rows)

    def with_tails(self, tails: Tails) -> Pilot:
        """The pilot with what its rows tell of the certainty of its spread."""
        spread = replace(self.spread, certainty=min(tails.freedom, self.spread.known))
        caution = self.caution or tails.caution
        return replace(self, spread=spread, caution=caution, carried=tails.carried, tails_known=True)

    def rows_until_decided(self, difference: float, level: float) -> float | None:
        """About how many rows a confidence sequence takes; None where rows are grouped or unbounded."""
        largest = _range_of(self.rule)
        if self.n_groups is not None or self.pair is None or largest is None:
            return None
        deviation = self.spread.error_at(1)
        return rows_until_decided(STAKES / largest, SHARES, difference, deviation, level)


@runtime_checkable
class HasPilot(Protocol):
    """A result that plans may start from, of a subject that builds on plans."""

    def _pilot(self, name: str | None) -> Pilot:
        """The pilot of its mean, or of a score with this name."""


def of_comparison(comparison: Comparison, rule: str | None, models: tuple[str, str] | None) -> Pilot:
    """The difference of two models."""
    if rule is not None and rule not in comparison.models:
        raise not_there("rule", rule, list(comparison.models))
    name = rule or next(iter(comparison.models))
    gap = _pair(comparison, name, models)
    if not gap.standard_error > 0 or math.isinf(gap.standard_error):
        why = "some losses are infinite" if gap.infinite_a + gap.infinite_b else "their losses are identical"
        raise InputError(
            "must give a finite, nonzero spread of the models' differences to plan from",
            argument="y",
            found=f"{why} under {name}",
        )
    own = comparison.repeated and comparison.n_groups == comparison.n_rows
    groups = None if own else comparison.n_groups
    n_groups, spread, sharing = _units(
        (gap.standard_error, gap.freedom), gap.deviation, comparison.n_rows, groups
    )
    what = f"{name}, {gap.a} - {gap.b}"
    return Pilot(
        *(what, spread, gap.difference, comparison.n_rows, n_groups, sharing, (gap.a, gap.b)),
        caution=gap.interval.caution,
        rule=name,
        unit="question" if comparison.repeated else "row",
    )


def _pair(comparison: Comparison, rule: str, models: tuple[str, str] | None) -> Difference:
    if models is None:
        gaps = comparison.differences[rule]
        if not gaps:
            raise InputError("must compare two models", argument="y", found="there is one")
        if len(gaps) == 1:
            return gaps[0]
        best, second = (model.name for model in comparison.models[rule][:2])
        return comparison.difference(best, second, rule)
    unknown = [name for name in models if name not in comparison.names]
    if len(models) != 2 or unknown or models[0] == models[1]:
        raise InputError(
            f"must be two of {join(map(show, comparison.names))}",
            argument="models",
            kind="label",
            found=f"they are {join(map(show, models))}",
            values=list(models),
        )
    return comparison.difference(*models, rule)


def of_card(card: Scorecard, name: str | None) -> Pilot:
    """A score or metric of one model."""
    line = _line(card, name)
    return of_mean(
        line.name,
        line.mean,
        card.error_of(line),
        deviation=line.std,
        n_rows=card.n_rows,
        groups=card.n_groups,
        caution=line.interval.caution,
        rule="" if line.rule is None else line.name,
    )


def of_mean(
    what: str,
    mean: float,
    error: tuple[float, float],
    *,
    deviation: float,
    n_rows: int,
    groups: GroupCount | None,
    caution: str,
    rule: str = "",
    of: str = "",
    alike: str = "it is the same in all rows",
    unit: str = "row",
) -> Pilot:
    """A mean over rows, from its standard error with degrees of freedom.

    Where nothing can be planned from it, an error calls it `of`, by default `what`, and gives as the reason
    the caution or how rows are `alike`.
    """
    if not 0 < error[0] < math.inf:
        raise InputError(
            f"must give a finite, nonzero spread of {of or what} to plan from",
            argument="y",
            found=caution or alike,
        )
    n_groups, spread, sharing = _units(error, deviation, n_rows, groups)
    return Pilot(what, spread, mean, n_rows, n_groups, sharing, caution=caution, rule=rule, unit=unit)


def _line(card: Scorecard, name: str | None) -> CardLine:
    lines = {**card.scores, **card.metrics}
    if name is None:
        return next(iter(card.scores.values()))
    if name in lines:
        return lines[name]
    try:
        return card.metric(name)
    except VeraxError:
        raise not_there("rule", name, list(lines)) from None


def not_there(argument: str, name: str, known: list[str]) -> InputError:
    """The error of a name that a pilot does not have."""
    return InputError(
        f"must be in the pilot, which has {join(known)}",
        argument=argument,
        kind="label",
        found=f"it is {show(name)}",
        values=[name],
    )


def _units(
    spread_known: tuple[float, float], deviation: float, n_rows: int, groups: GroupCount | None
) -> tuple[int | None, MeanSpread, Sharing | None]:
    """The number of groups, the spread of a mean, and how rows of a group resemble each other."""
    error, freedom = spread_known
    if groups is None:
        return None, MeanSpread(error, freedom, n_rows), None
    n_groups = min(counts_by_kind(groups))
    spread = MeanSpread(error, freedom, n_groups)
    known = not isinstance(groups, tuple) and deviation > 0
    return n_groups, spread, Sharing.of(spread, deviation, n_rows) if known else None


def of_rule(rule: Rule | str | None, n_classes: int | None, *, paired: bool) -> Pilot:
    """The most that a loss, or a difference of two, can vary under a rule, without a pilot."""
    if rule is None:
        raise InputError("must be given where there is no pilot", argument="rule", kind="missing")
    known = parse(rule)
    low, high = known.bounds(_MANY_CLASSES if n_classes is None else n_classes)
    if not math.isfinite(high - low):
        raise InputError(
            f"must have bounds where there is no pilot, and {name_of(known)} has none", argument="rule"
        )
    if n_classes is None and _range_of(name_of(known)) is None:
        raise InputError(
            f"must be given: the bounds of {name_of(known)} depend on it",
            argument="n_classes",
            kind="missing",
            remedies=[passing(n_classes=3)],
        )
    spread = MeanSpread.at_most((high - low) if paired else (high - low) / 2)
    pair = ("a", "b") if paired else None
    what = f"{name_of(known)}, a - b" if paired else name_of(known)
    return Pilot(what, spread, pair=pair, rule=name_of(known))


def _range_of(rule: str) -> float | None:
    """The largest difference of two losses; None where it depends on the classes or is infinite."""
    try:
        known = parse(rule)
    except ParseError:
        return None
    few, many = (known.bounds(k) for k in (_FEW_CLASSES, _MANY_CLASSES))
    width = few[1] - few[0]
    return width if few == many and math.isfinite(width) else None
