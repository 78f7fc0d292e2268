"""Right or wrong answers: exact tests of paired differences, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

from verax.engines.differences import PairedTally
from verax.engines.pieces import all_pairs
from verax.inference.intervals import Interval
from verax.inference.modelmeans import right_or_wrong

# Where fewer answers than this differ, the t test of their difference is not to be trusted.
_FEW_DIFFER = 30
# How often the bracket of a limit is halved.
_HALVED = 60


def sign_test(first: int, second: int) -> float:
    """The two-sided p-value of the exact sign test, which is McNemar's of two counts.

    >>> sign_test(5, 0), sign_test(3, 3)
    (0.0625, 1.0)
    """
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(first, second), first + second, 0.5)))


@dataclass(frozen=True)
class Discordant:
    """Answers of two models that are right or wrong, of which few differ.

    Attributes
    ----------
    only_a : int
        The number of questions that only the first model got wrong.
    only_b : int
        That only the second one did.
    n : int
        The number of questions.
    unit : float
        The loss of a wrong answer.

    Examples
    --------
    >>> found = Discordant(5, 0, 100, 1.0)
    >>> found.p_value, found.mid_p, f"{found.interval(0.9):.3f}"
    (0.0625, 0.03125, '0.022 to 0.099')
    """

    only_a: int
    only_b: int
    n: int
    unit: float

    @classmethod
    def of(cls, tally: PairedTally, most: float) -> list[Discordant | None]:
        """The counts of each pair; None if enough answers differ, or some are not right or wrong."""
        plain = [right_or_wrong(tally, i, most) for i in range(tally.n_models)]
        pairs: list[Discordant | None] = []
        for c, (a, b) in enumerate(all_pairs(tally.n_models), tally.n_models):
            mean, std = float(tally.means[c]) / most, float(tally.moments.std[1 + c]) / most
            differ = tally.n_positive * (std * std + mean * mean) if plain[a] and plain[b] else math.inf
            if not differ < _FEW_DIFFER - 0.5:
                pairs.append(None)
                continue
            gap = tally.n_positive * mean
            pairs.append(cls(round((differ + gap) / 2), round((differ - gap) / 2), tally.n_positive, most))
        return pairs

    @property
    def differing(self) -> int:
        """The number of answers that differ."""
        return self.only_a + self.only_b

    @property
    def p_value(self) -> float:
        """The two-sided p-value of McNemar's exact test: which of the two was wrong is a fair coin."""
        return self._binomial(1.0)

    @property
    def mid_p(self) -> float:
        """The p-value with half the probability of the observed counts (mid-p)."""
        return self._binomial(0.5)

    def _binomial(self, part: float) -> float:
        n, least = self.differing, min(self.only_a, self.only_b)
        chance = [math.comb(n, k) * 0.5**n for k in range(least + 1)]
        return min(1.0, 2 * (math.fsum(chance[:-1]) + part * chance[-1]))

    def tail(self, difference: float) -> float:
        """The chance of a difference at most that seen if this is the true one, by Tango's score.

        Tango (1998), doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B.
        """
        gap, n = difference / self.unit, self.n
        if not abs(gap) < 1:
            return 0.0 if gap > 0 else 1.0
        # The chance that only the second is wrong, most likely given the difference.
        b = (2 * n - self.only_a + self.only_b) * gap - self.differing
        other = (math.sqrt(max(b * b + 8 * n * self.only_b * gap * (1 - gap), 0.0)) - b) / (4 * n)
        variance = n * (2 * other + gap * (1 - gap))
        excess = self.only_a - self.only_b - n * gap
        if not variance > 0:
            return 0.5 if excess == 0 else float(excess > 0)
        return NormalDist().cdf(excess / math.sqrt(variance))

    def bound(self, confidence: float) -> float:
        """The one-sided upper confidence bound of the difference."""
        seen = (self.only_a - self.only_b) / self.n
        return self.unit * _last(lambda gap: self.tail(gap * self.unit) > 1 - confidence, seen, 1.0)

    def interval(self, confidence: float) -> Interval:
        """Tango's score interval; it holds zero if McNemar's exact test does not reject that."""
        one_sided = (1 + confidence) / 2
        low = -Discordant(self.only_b, self.only_a, self.n, self.unit).bound(one_sided)
        tango = Interval(low, self.bound(one_sided), method="Tango", confidence=confidence)
        return tango.holding(0.0) if self.p_value > 1 - confidence else tango


def _last(holds: Callable[[float], bool], start: float, end: float) -> float:
    """The last value from `start` towards `end` that something holds for."""
    for _ in range(_HALVED):
        middle = (start + end) / 2
        start, end = (middle, end) if holds(middle) else (start, middle)
    return start
