"""Whether the rows of one time step depend on each other, as complete time steps tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from verax.analyses.monitoring.steps import LOSS, OF_EVENT, PER_EVENT, SHIFT, TILT, Scope, Step
from verax.inputs.arrays import Bools, Floats

# The numbers of differences of neighbouring steps, and of degrees of freedom within steps, that can tell.
_LEAST, _FREEDOM = 8, 8
# How much of the spread within earlier steps counts one step later: it may change with the forecasts.
_FADING = 0.9
# A squared difference counts at most this many times its expectation: a change is one large difference.
_MOST = 4.0
# The mean and variance of a chi-square variable (1 degree of freedom) that is capped there. Neighbouring
# differences share a step, which makes the variance of their sum half as large again.
_MEAN, _VARIANCE = 0.9205, 1.2325 * 1.5
# Dependence is assumed where the sum of the differences lies this many standard errors above its expectation.
# If that of another claim about the same rows lies further above it, it is assumed as well. It is said to be
# there at a larger distance still.
_LIMIT, _OTHER, _CERTAIN = 1.28, 3.0, 4.0


@dataclass
class _Differences:
    """The means of neighbouring steps compared with the spread within steps: losses, and gaps of events."""

    n: int = 0
    means: Floats = field(default_factory=lambda: np.zeros(0))
    squares: Floats | float = 0.0
    freedom: float = 0.0
    units: int = 0
    steps: int = 0
    count: int = 0
    capped: Floats | float = 0.0
    plain: Floats | float = 0.0

    def note(self, step: Step) -> None:
        """Take in a complete step."""
        at = np.arange(OF_EVENT, len(step.first), PER_EVENT)
        columns = np.concatenate([[LOSS], at + SHIFT, at + TILT])
        n, first, second = step.n_units, step.first[columns], step.second[columns]
        means = first / n
        self.squares = _FADING * self.squares + np.maximum(second - means * first, 0.0)
        self.freedom = _FADING * self.freedom + n - 1
        self.units, self.steps = self.units + n, self.steps + 1
        if self.n and self.freedom >= _FREEDOM:
            scale = self.squares / self.freedom * (1 / n + 1 / self.n)
            gap = (means - self.means) ** 2
            # Rows of a step that are all alike leave nothing to compare with.
            ratio = np.divide(gap, scale, out=np.where(gap > 0, _MOST, 0.0), where=scale > 1e-12)
            self.count += 1
            self.capped = self.capped + np.minimum(ratio, _MOST)
            self.plain = self.plain + ratio
        self.n, self.means = n, means

    @property
    def untold(self) -> bool:
        """Whether there are too few steps to tell."""
        return self.count < _LEAST

    @property
    def distance(self) -> Floats:
        """(1 + E,) of the loss and each event, how much more steps differ than those of independent rows.

        In standard errors.
        """
        over = (np.asarray(self.capped) - _MEAN * self.count) / math.sqrt(_VARIANCE * self.count)
        return _by_claim(over)

    @property
    def correlation(self) -> Floats:
        """(1 + E,) of the same, the intraclass correlation: the share of the variance between steps."""
        excess = np.maximum(np.asarray(self.plain) / self.count - 1, 0.0)
        return _by_claim(excess / (excess + self.units / self.steps))


def _by_claim(columns: Floats) -> Floats:
    """The largest number of each claim: one of the loss, two of each event."""
    e = len(columns) // 2
    return np.append(columns[:1], np.maximum(columns[1 : 1 + e], columns[1 + e :]))


class Dependence:
    """What complete time steps tell, for all rows and for subgroups.

    Steps whose rows are independent differ by chance alone: the means of neighbouring steps differ as the
    spread within steps lets them. Only neighbours are compared, because a change that lasts makes one such
    difference large, and rows that depend on each other all of them.
    """

    def __init__(self) -> None:
        self._scopes: dict[Scope, _Differences] = {}

    def note(self, steps: Mapping[Scope, Step]) -> None:
        """Take in a complete time step."""
        for scope, step in steps.items():
            self._scopes.setdefault(scope, _Differences()).note(step)

    def _telling(self, scope: Scope) -> _Differences | None:
        """The steps that tell about some rows; of a subgroup with too few of its own, those of all rows."""
        for each in (scope, ("", None)):
            own = self._scopes.get(each)
            if own is not None and not own.untold:
                return own
        return None

    def found(self, scope: Scope, n_events: int) -> Bools:
        """(1 + E,) whether dependence is found, of the loss and each event; true also until one can tell."""
        own = self._telling(scope)
        if own is None:
            return np.ones(1 + n_events, bool)
        distance = own.distance
        return np.asarray((distance > _LIMIT) | (distance.max() > _OTHER))

    def certain(self, scope: Scope) -> Floats:
        """(1 + E,) intraclass correlations where dependence is certain, else 0; empty until one can tell."""
        own = self._telling(scope)
        return np.zeros(0) if own is None else np.where(own.distance > _CERTAIN, own.correlation, 0.0)
