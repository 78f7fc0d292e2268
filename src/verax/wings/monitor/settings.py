"""Settings of a monitor: reference, rule, and the error rate of its alarms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.loading import load_card
from verax.common.checks import check_choice, check_count, check_flag, check_number
from verax.errors import InputError, Remedy, join, passing
from verax.inference.sequences import upper_mean
from verax.inputs.arrays import Floats
from verax.scores.base import Rule
from verax.scores.registry import headline_rule, name_of, parse
from verax.wings.monitor.calendars import Periods, checked_period, checked_zone
from verax.wings.monitor.steps import Tolerated, Unit


def upper_bound(card: Scorecard, rule: Rule, error: float) -> tuple[float, str]:
    """An upper confidence bound of the mean loss, with error probability `error`, and a caution.

    For bounded rules it comes from betting, which is valid with heavy tails and few rows. For other rules it
    is the upper end of the card's interval.
    """
    interval = card.scores[name_of(rule)].interval
    i, (_, most) = card.tally.rules.index(rule), rule.bounds(card.n_classes)
    if math.isfinite(most):
        high = max(upper_mean(*sums, most, error, largest) for sums, largest in _units(card, i))
        if not high < most:
            raise InputError(
                f"must have rows enough to bound the mean loss below {most:g}, the largest possible",
                argument="reference",
                found=interval.caution or f"it has {card.n_rows:,}",
                remedies=[Remedy("Evaluate more rows, or pass the mean loss as a number if it is known.")],
            )
        return high, interval.caution
    if not interval.defined or not 0 < interval.high < math.inf:
        raise InputError(
            "must have a confidence interval with a finite, positive upper end",
            argument="reference",
            found=interval.caution or f"the interval is {interval:.4g}",
        )
    return interval.high, interval.caution


def _units(card: Scorecard, i: int) -> list[tuple[tuple[float, float, tuple[float, float, float]], float]]:
    """Arguments of `upper_mean` for independent units: rows, or groups of each kind, and the largest weight.

    Only sums of weights are known, so weighted rows count as an effective number of rows of equal weight.
    """
    tally, copies = card.tally, card.resampling.copies
    mean = float(tally.moments.mean[i])
    if tally.clusters is None:
        n = tally.effective_rows(copies=copies)
        return [((n, mean, (n * (n - 1) * float(tally.variances(copies=copies)[i]), 0.0, n)), 1.0)]
    units = []
    for kind in tally.clusters.kinds[:-1] or [tally.clusters]:
        unit = kind.weight.mean()
        weight: Floats = kind.weight / unit
        off = mean * weight - kind.sums.high[:, 2 + i] / unit
        squares = float(off @ off), 2 * float(off @ weight), float(weight @ weight)
        units.append(((float(len(weight)), mean, squares), float(weight.max())))
    return units


# Losses of unbounded rules count at most this multiple of the tolerated mean.
_LARGEST = 10.0
FalseAlarms = Literal["ever", "rate"]
Reference = float | Scorecard | str | Path | None


@dataclass(frozen=True)
class Settings:
    """The settings of a monitor, checked.

    Attributes
    ----------
    rule : Rule
        The rule that scores rows.
    reference : float or None
        The baseline mean loss; if estimated, its upper bound.
    level : float
        `alpha` minus the error of the reference.
    tolerance, alpha, ordered, unit, by, false_alarms, period, zone, memory
        As in `Monitor`.
    cautions : tuple of str
        Cautions of the reference's card.
    """

    rule: Rule
    reference: float | None
    level: float
    tolerance: float
    alpha: float
    ordered: bool
    unit: Unit
    by: tuple[str, ...]
    false_alarms: FalseAlarms
    period: str | float | None = None
    zone: str | None = None
    memory: int | None = None
    cautions: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        reference: Reference,
        *,
        rule: Rule | str | None,
        tolerance: float,
        alpha: float,
        ordered: bool,
        unit: Unit | None,
        by: str | Sequence[str],
        false_alarms: FalseAlarms,
        period: str | float | None = None,
        zone: str | None = None,
        memory: int | None = None,
    ) -> Settings:
        """Settings from the arguments of `Monitor`."""
        check_choice("unit", unit, (None, "row", "group", "time"))
        check_choice("false_alarms", false_alarms, ("ever", "rate"))
        if memory is not None:
            check_count("memory", memory)
        settings = cls(
            parse(rule) if rule is not None else headline_rule(ordered=ordered),
            None,
            check_number("alpha", alpha, "must be between 0 and 1", lambda a: 0 < a < 1),
            check_number(
                "tolerance", tolerance, "must be a number of at least 0", lambda d: 0 <= d < math.inf
            ),
            alpha,
            check_flag("ordered", ordered),
            "time" if unit is None else unit,
            (by,) if isinstance(by, str) else tuple(by),
            false_alarms,
            checked_period(period),
            checked_zone(zone),
            memory,
        )
        return settings.with_reference(reference)

    def with_reference(self, reference: Reference) -> Settings:
        """The settings with another reference, whose error is part of `alpha`."""
        if reference is None:
            return replace(self, reference=None, level=self.alpha, cautions=())
        card = load_card(reference) if isinstance(reference, (str, Path)) else reference
        if not isinstance(card, Scorecard):
            finite = "must be a positive number, a card, or the file of a saved card"
            known = check_number("reference", card, finite, lambda m: 0 < m < math.inf)
            return replace(self, reference=known, level=self.alpha, cautions=())
        if self.rule not in card.tally.rules:
            raise InputError(
                f"must have {name_of(self.rule)}, the rule that is monitored",
                argument="reference",
                found=f"the card has {join(card.scores)}",
                remedies=[passing("with one of these", rule=...)],
            )
        missed = (1 - card.resampling.confidence) / 2
        bound, caution = upper_bound(card, self.rule, missed)
        settings = replace(self, reference=bound, level=self.alpha, cautions=(caution,) if caution else ())
        if self.false_alarms == "rate":
            return settings
        if missed >= self.alpha:
            raise InputError(
                "must be larger than the error of the reference interval",
                argument="alpha",
                found=f"that is {missed:g} on the upper side, and alpha is {self.alpha:g}",
                remedies=[Remedy("Evaluate the reference with a higher `confidence`.")],
            )
        return replace(settings, level=self.alpha - missed)

    @property
    def tolerated(self) -> float | None:
        """The mean loss above which bets gain: reference plus tolerance."""
        return None if self.reference is None else self.reference + self.tolerance

    @property
    def periods(self) -> Periods | None:
        """How times are joined into time steps, where that is stated."""
        return None if self.period is None else Periods(self.period, self.zone)

    @property
    def restarts(self) -> bool:
        """Whether detectors restart at every step."""
        return self.false_alarms == "rate"

    def bounds(self, n_classes: int) -> Tolerated | None:
        """The tolerated mean with the bounds of single losses; None without a reference."""
        mean = self.tolerated
        if mean is None:
            return None
        low, high = self.rule.bounds(n_classes)
        if mean <= low:
            raise InputError(
                f"must be above {low:g}, the smallest loss by {name_of(self.rule)}",
                argument="reference",
                found=f"with the tolerance it is {mean:g}",
            )
        return Tolerated(mean, low, high if math.isfinite(high) else low + _LARGEST * (mean - low))

    def to_values(self) -> dict[str, Any]:
        """The settings, for storing."""
        lists = {"by": list(self.by), "cautions": list(self.cautions)}
        return {**vars(self), "rule": repr(self.rule), **lists}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Settings:
        """The stored settings."""
        rest = dict(values)
        # Earlier versions stored no cautions.
        checked: dict[str, Any] = {
            "level": float(rest.pop("level")),
            "cautions": tuple(map(str, rest.pop("cautions", ()))),
        }
        return replace(cls.of(rest.pop("reference"), **rest), **checked)
