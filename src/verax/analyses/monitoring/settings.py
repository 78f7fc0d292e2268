"""What a monitor is told: the reference, the rule, and what its alarms promise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from verax.analyses.cards.saved import load_card
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.monitoring.reference import upper_bound
from verax.analyses.monitoring.steps import Tolerated, Unit
from verax.common.checks import check_choice, check_flag, check_number
from verax.errors import InputError, Remedy, join, passing
from verax.scores.base import Rule
from verax.scores.registry import headline_rule, name_of, parse

# Losses of rules without an upper bound count at most this many times the tolerated mean.
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
        What is left of `alpha` beside the error of the reference.
    tolerance, alpha, ordered, unit, by, false_alarms
        As in `Monitor`.
    unit_stated : bool
        Whether the user chose the unit. Otherwise dependence within time steps is looked for.
    cautions : tuple of str
        What the card of the reference warns of.
    """

    rule: Rule
    reference: float | None
    level: float
    tolerance: float
    alpha: float
    ordered: bool
    unit: Unit | None
    by: tuple[str, ...]
    false_alarms: FalseAlarms
    unit_stated: bool = False
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
    ) -> Settings:
        """Settings as `Monitor` is given them."""
        check_choice("unit", unit, (None, "row", "group", "time"))
        check_choice("false_alarms", false_alarms, ("ever", "rate"))
        made = cls(
            parse(rule) if rule is not None else headline_rule(ordered=ordered),
            None,
            check_number("alpha", alpha, "must be between 0 and 1", lambda a: 0 < a < 1),
            check_number(
                "tolerance", tolerance, "must be a number of at least 0", lambda d: 0 <= d < math.inf
            ),
            alpha,
            check_flag("ordered", ordered),
            unit,
            (by,) if isinstance(by, str) else tuple(by),
            false_alarms,
            unit is not None,
        )
        return made.with_reference(reference)

    def with_reference(self, given: Reference) -> Settings:
        """The same with another reference, which takes its part of `alpha`."""
        if given is None:
            return replace(self, reference=None, level=self.alpha, cautions=())
        card = load_card(given) if isinstance(given, (str, Path)) else given
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
        own = replace(self, reference=bound, level=self.alpha, cautions=(caution,) if caution else ())
        if self.false_alarms == "rate":
            return own
        if missed >= self.alpha:
            raise InputError(
                "must be larger than the error of the reference interval",
                argument="alpha",
                found=f"that is {missed:g} on the upper side, and alpha is {self.alpha:g}",
                remedies=[Remedy("Evaluate the reference with a higher `confidence`.")],
            )
        return replace(own, level=self.alpha - missed)

    @property
    def tolerated(self) -> float | None:
        """The mean loss above which bets gain: reference plus tolerance."""
        return None if self.reference is None else self.reference + self.tolerance

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
        """The settings, to be stored."""
        lists = {"by": list(self.by), "cautions": list(self.cautions)}
        return {**vars(self), "rule": repr(self.rule), **lists}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Settings:
        """The settings as they were stored."""
        told = dict(values)
        # Earlier versions did not keep whether the unit was stated; they kept no cautions.
        kept: dict[str, Any] = {
            "level": float(told.pop("level")),
            "unit_stated": bool(told.pop("unit_stated", False)),
            "cautions": tuple(map(str, told.pop("cautions", ()))),
        }
        return replace(cls.of(told.pop("reference"), **told), **kept)
