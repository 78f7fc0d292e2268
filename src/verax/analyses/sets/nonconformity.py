"""How unusual each class would be as the outcome of a forecast: what conformal prediction cuts off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.hashing import mixed
from verax.errors import InputError, show
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.sets.rows import mass_before
from verax.scores.base import Rule, losses_by_outcome
from verax.scores.registry import name_of, parse
from verax.scores.sets import SetRule

LAC, APS = "lac", "aps"
# Scores that exceed the threshold by less are equal to it: sums in another order differ in the last digits.
_ROUNDING = 1e-12
TITLES = {LAC: "one minus the probability", APS: "adaptive, randomised"}


@dataclass(frozen=True)
class Nonconformity:
    """A score of every class: large where it would be a surprise.

    Attributes
    ----------
    name : str
        "lac", "aps", or the name of a rule.
    seed : int
        Random seed of the shares of "aps".
    """

    name: str
    seed: int = 0

    @classmethod
    def of(cls, score: object, seed: int) -> Nonconformity:
        """What a caller passes."""
        if isinstance(score, str) and score in TITLES:
            return cls(score, seed)
        if not isinstance(score, (str, Rule)):
            raise InputError(
                f"must be 'lac', 'aps' or a rule, not {show(score)}", argument="score", kind="type"
            )
        rule = parse(score)
        if isinstance(rule, SetRule):
            raise InputError("must be a rule of probabilities, not of sets", argument="score", values=[score])
        return cls(name_of(rule), seed)

    @property
    def rule(self) -> Rule | None:
        """The rule, where it is one."""
        return None if self.name in TITLES else parse(self.name)

    @property
    def ordinal(self) -> bool:
        """Whether it depends on the order of the classes."""
        return self.rule is not None and self.rule.ordinal

    @property
    def title(self) -> str:
        """What it is, in words."""
        return TITLES.get(self.name, f"the loss by {self.name}")

    def by_class(self, p: Floats) -> Floats:
        """(N, K) the score of each class.

        >>> Nonconformity("lac").by_class(np.array([[0.75, 0.25]])).tolist()
        [[0.25, 0.75]]
        """
        rule = self.rule
        if rule is not None:
            return np.asarray(losses_by_outcome(rule, p), np.float64)
        if self.name == LAC:
            return 1 - p
        return mass_before(p) + self.shares(p)[:, None] * p

    def of_outcomes(self, p: Floats, y: Ints) -> Floats:
        """(N,) the score of the class that happened."""
        if self.name == LAC:
            return np.asarray(1 - p[np.arange(len(y)), y])
        return np.asarray(self.by_class(p)[np.arange(len(y)), y])

    def members(self, p: Floats, threshold: float) -> Bools:
        """(N, K) whether the score of each class is at most the threshold."""
        return np.asarray(self.by_class(p) <= threshold + _ROUNDING * max(1.0, abs(threshold)))

    def shares(self, p: Floats) -> Floats:
        """(N,) numbers from 0 to 1 that look random, from the probabilities and the seed alone.

        So the sets of a row do not depend on the rows around it. A score that is a function of the row keeps
        the guarantee of conformal prediction, which needs no randomness.
        """
        bits = np.ascontiguousarray(p + 0.0, np.float64).view(np.uint64)
        with np.errstate(over="ignore"):
            factors = mixed(np.arange(1, p.shape[1] + 1, dtype=np.uint64) + np.uint64(self.seed)) | np.uint64(
                1
            )
            sums = (mixed(bits) * factors).sum(axis=1, dtype=np.uint64)
        return np.asarray((mixed(sums) >> np.uint64(11)).astype(np.float64) * 2.0**-53)

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        return {"name": self.name, "seed": self.seed}
