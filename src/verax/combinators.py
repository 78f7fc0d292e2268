"""Rules made of rules. What they promise follows from theorems about the inner rule, or is unknown."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from verax.arrays import Array
from verax.claims import Holds, Properties
from verax.errors import RuleError
from verax.rowstats import RowStats
from verax.rule import Rule
from verax.rules import ZeroOne


@dataclass(frozen=True, repr=False)
class Penalized(Rule):
    """A proper rule plus a constant times the zero-one loss, so that no wrong forecast beats a correct one.

    Made by `penalized`, which says what the parameters mean.
    """

    rule: Rule
    penalty: Literal["sup", "minimal"] | float = "sup"
    ties: Literal["fractional", "lowest"] = "fractional"

    name = "penalized"

    def __post_init__(self) -> None:
        self._check_inner()
        if isinstance(self.penalty, str):
            if self.penalty not in ("sup", "minimal"):
                raise RuleError(f"`penalty` must be 'sup', 'minimal' or a number, not {self.penalty!r}.")
            self.constant(3)
        elif not (math.isfinite(self.penalty) and self.penalty > 0):
            raise RuleError(f"`penalty` must be a positive finite number, not {self.penalty!r}.")
        ZeroOne(self.ties)

    def _check_inner(self) -> None:
        inner = self.rule
        if not isinstance(inner, Rule):
            raise RuleError(f"penalized() takes a rule, not {inner!r}.")
        if inner.properties.proper != Holds.ALWAYS:
            extent = "not proper" if inner.properties.proper == Holds.NEVER else "proper for K=2 only"
            raise RuleError(
                f"penalized() needs a proper rule and {inner} is {extent}: "
                "with a penalty, too, it would reward dishonest forecasts."
            )
        if isinstance(inner, (Penalized, ZeroOne)):
            raise RuleError(f"penalized() of {inner} adds nothing: the zero-one loss is in it already.")

    @property
    def summary(self) -> str:  # type: ignore[override]
        return f"{self.rule} plus a constant for a wrong mode"

    @property
    def reference(self) -> str:  # type: ignore[override]
        return "doi:10.1016/j.ijar.2025.109421"

    @property
    def ordinal(self) -> bool:  # type: ignore[override]
        return self.rule.ordinal

    @property
    def _zero_one(self) -> ZeroOne:
        return ZeroOne(self.ties)

    @property
    def needs(self) -> frozenset[str]:
        return self.rule.needs | self._zero_one.needs

    def constant(self, n_classes: int) -> float:
        """What a wrong mode costs for `n_classes` classes."""
        if not isinstance(self.penalty, str):
            return float(self.penalty)
        sup = self.rule.sup_correct(n_classes)
        return sup if self.penalty == "sup" else sup - self.rule.inf_wrong(n_classes)

    def formula(self, stats: RowStats) -> Array:
        return stats.loss(self.rule) + self.constant(stats.n_classes) * stats.loss(self._zero_one)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        low, high = self.rule.bounds(n_classes)
        return low, high + self.constant(n_classes)

    def sup_correct(self, n_classes: int) -> float:
        return self.rule.sup_correct(n_classes)

    def inf_wrong(self, n_classes: int) -> float:
        return self.rule.inf_wrong(n_classes) + self.constant(n_classes)

    @property
    def properties(self) -> Properties:
        inner = self.rule.properties
        symmetric = inner.symmetric if self.ties == "fractional" else Holds.NEVER
        return Properties(
            proper=inner.proper,
            strictly_proper=inner.strictly_proper,
            local=Holds.BINARY,
            symmetric=symmetric,
            # For three classes and more, moving mass away from a wrong mode can make the outcome the mode.
            distance_sensitive=inner.distance_sensitive & Holds.BINARY,
            superior=self._superior(),
            bounded=inner.bounded,
        )

    def _superior(self) -> Holds:
        if isinstance(self.penalty, str):
            return Holds.ALWAYS
        try:
            return Holds(_largest(self._separates))
        except RuleError:
            return Holds.UNKNOWN

    def _separates(self, n_classes: int) -> bool:
        # Neither limit is attained, so equality is enough; 1e-12 is for rounding alone.
        return self.rule.sup_correct(n_classes) <= self.inf_wrong(n_classes) + 1e-12


def _largest(holds: Callable[[int], bool], limit: int = 2**24) -> float:
    """The largest K for which `holds` is true, given that it stays false once it is; inf past `limit`."""
    if holds(limit):
        return math.inf
    return bisect.bisect_left(range(2, limit), True, key=lambda k: not holds(k)) + 1


def penalized(
    rule: Rule,
    penalty: Literal["sup", "minimal"] | float = "sup",
    ties: Literal["fractional", "lowest"] = "fractional",
) -> Penalized:
    """A proper rule plus a constant times the zero-one loss: superior, and still proper.

    Every forecast whose unique mode is the outcome then scores below every forecast whose unique
    mode is not. This holds row by row, not for means: a model with fewer correct modes can still
    have the smaller mean.

    Parameters
    ----------
    rule : a proper rule. Squared-absolute and absolute RPS are not, and are refused.
    penalty : "sup" adds the largest loss of a correct forecast (Ahmadian et al.), "minimal" the
        least constant that will do, a number itself.
    ties : who is right when several classes are most likely: "fractional" gives each its share,
        "lowest" the lowest index. Counting every tie as correct would make the rule improper.

    References
    ----------
    Ahmadian, Ghatee and Wahlström (2025), doi:10.1016/j.ijar.2025.109421

    Examples
    --------
    >>> import verax as vx
    >>> vx.penalized(vx.brier) == vx.pbs
    True
    >>> round(vx.pbs([1], [[0.33, 0.34, 0.33]]), 4), round(vx.pbs([1], [[0.51, 0.49, 0.0]]), 4)
    (0.6534, 1.1869)
    """
    return Penalized(rule, penalty, ties)
