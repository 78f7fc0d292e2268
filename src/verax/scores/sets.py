"""Proper scores of prediction sets, which elicit the intended set; coverage alone does not.

Lower is better. They are rules like any other, but for the rows that they score: `Sets` in place of
probabilities.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from verax.common.checks import as_float, check_number
from verax.engines.stats import RowStats
from verax.inputs.arrays import Array, Bools, Floats
from verax.inputs.sets.sets import Sets
from verax.scores.base import Rule
from verax.scores.properties import Holds, Properties

ALWAYS, NEVER, BINARY = Holds.ALWAYS, Holds.NEVER, Holds.BINARY
# Sums of probabilities that miss a quantile by less than this reach it.
_ROUNDING = 1e-12


class SetRule(Rule):
    """A rule that scores sets of classes. It is proper if the set that the truth asks for is never beaten.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rule = vx.rules.LevelSet(t=0.2)
    >>> isinstance(rule, vx.rules.SetRule), rule.elicited(np.array([[0.7, 0.25, 0.05]])).tolist()
    (True, [[True, True, False]])
    """

    @abstractmethod
    def elicited(self, q: Floats) -> Bools:
        """Return the set with the smallest expected loss under each true distribution.

        Parameters
        ----------
        q : array of shape (N, K)
            True distributions.

        Returns
        -------
        bool array of shape (N, K)
            True for the classes in the set.
        """

    def by_set(self, mask: Bools) -> Floats:
        """Compute the loss of each set for each possible outcome.

        Parameters
        ----------
        mask : bool array of shape (N, K)
            The sets.

        Returns
        -------
        array of shape (N, K)
            The loss if class j happens, in column j.
        """
        return np.asarray(self.by_outcome(Sets.from_mask(mask)))


@dataclass(frozen=True, repr=False)
class LevelSet(SetRule):
    """Level-set score: t for every class in the set, and 1 for a miss.

    Its expectation under the truth q is 1 + sum over k in C of (t - q_k), smallest for C = {k: q_k > t}. So
    it elicits the classes whose probability is above t. Lower is better; from t to 1 + t (K - 1).

    Parameters
    ----------
    t : float, default 0.1
        The cost of one more class, where a miss costs 1; between 0 and 1.

    Examples
    --------
    >>> import verax as vx
    >>> sets = vx.Sets.from_labels([[0], [0, 1], [2]], n_classes=3)
    >>> vx.rules.LevelSet(t=0.25).samples([0, 0, 1], sets).tolist()
    [0.25, 0.5, 1.25]
    """

    t: float = 0.1

    name = "level_set"
    title = "level-set score"
    summary = "t for every class in a set, 1 for a miss"
    description = (
        "The size of the set times t, plus 1 if the outcome is not in it. It elicits the classes whose "
        "probability is above t."
    )
    latex = r"t\,|C| + \mathbf{1}[y \notin C]"
    use = "Comparing prediction sets: it rewards small sets and coverage together, at a stated exchange rate."
    avoid = "Ordered classes, where a near miss is better than a far one: use winkler."
    needs: ClassVar[frozenset[str]] = frozenset({"size", "missed"})
    properties: ClassVar[Properties] = Properties(
        proper=ALWAYS,
        strictly_proper=NEVER,
        local=BINARY,
        symmetric=ALWAYS,
        distance_sensitive=NEVER,
        superior=Holds.UNKNOWN,
        bounded=ALWAYS,
    )

    def __post_init__(self) -> None:
        check_number("t", self.t, "must lie between 0 and 1", lambda t: 0 < t < 1)

    def formula(self, stats: RowStats) -> Array:
        return self.t * stats.size + stats.missed

    def elicited(self, q: Floats) -> Bools:
        return np.asarray(q > self.t)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return float(self.t), 1 + self.t * (as_float(n_classes) - 1)


@dataclass(frozen=True, repr=False)
class Winkler(SetRule):
    """Winkler's interval score of ordered classes: the width, plus 2/a times the distance of a miss.

    For an interval from class l to class u with level 1 - a the score is (u - l) + (2/a) (l - y)^+
    + (2/a) (y - u)^+, in steps between classes. It elicits the quantiles a/2 and 1 - a/2. A set with gaps is
    scored as the interval that spans it. An empty set has no interval, and its score is infinite.

    Parameters
    ----------
    level : float, default 0.9
        The level of the intervals, between 0 and 1.

    References
    ----------
    Winkler (1972), doi:10.1080/01621459.1972.10481224; Gneiting and Raftery (2007),
    doi:10.1198/016214506000001437

    Examples
    --------
    >>> import verax as vx
    >>> sets = vx.Sets.from_labels([[0, 1], [1, 2]], n_classes=4)
    >>> vx.rules.Winkler(level=0.8).samples([0, 3], sets).round(6).tolist()
    [1.0, 11.0]
    """

    level: float = 0.9

    name = "winkler"
    title = "Winkler interval score"
    summary = "width of the interval, plus 2/(1 - level) for every step that it misses by"
    description = (
        "The width of the interval, in steps between ordered classes, plus 2/a for every step between the "
        "interval and the outcome, for the level 1 - a. It elicits the quantiles a/2 and 1 - a/2."
    )
    latex = r"(u - l) + \tfrac{2}{a}(l - y)^+ + \tfrac{2}{a}(y - u)^+"
    use = "Comparing prediction intervals of ordered classes with a stated level."
    avoid = "Classes without an order, and sets that may be empty: use level_set."
    reference = "doi:10.1080/01621459.1972.10481224"
    ordinal = True
    needs: ClassVar[frozenset[str]] = frozenset({"span", "beyond"})
    properties: ClassVar[Properties] = Properties(
        proper=ALWAYS,
        strictly_proper=NEVER,
        local=BINARY,
        symmetric=BINARY,
        distance_sensitive=NEVER,
        superior=Holds.UNKNOWN,
        bounded=ALWAYS,
    )

    def __post_init__(self) -> None:
        check_number("level", self.level, "must lie between 0 and 1", lambda level: 0 < level < 1)

    def formula(self, stats: RowStats) -> Array:
        return stats.span + 2 / (1 - self.level) * stats.beyond

    def elicited(self, q: Floats) -> Bools:
        # Of the quantiles between two classes the lower one: all have the same expected loss.
        tail = (1 - self.level) / 2
        below = np.cumsum(q, axis=1)
        low = (below < tail - _ROUNDING).sum(axis=1)
        high = (below[:, :-1] < 1 - tail - _ROUNDING).sum(axis=1)
        places = np.arange(q.shape[1])
        return np.asarray((low[:, None] <= places) & (places <= high[:, None]))

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, max(1.0, 2 / (1 - self.level)) * (as_float(n_classes) - 1)
