"""Evidence of a monitor: the capital of bets that the loss has risen or that probabilities are wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.inference.sequences import BETS, adjusted, log_capital, log_factors
from verax.inputs.arrays import Bools, Floats
from verax.wings.monitor.loops import BINS
from verax.wings.monitor.steps import (
    EXCESS,
    LOSS,
    OF_EVENT,
    PER_EVENT,
    SHIFT,
    TILT,
    Scope,
    Step,
)

# The least numbers of differences of neighbouring steps, and of degrees of freedom within steps, for a test.
_LEAST, _FREEDOM = 8, 8
# Weight of the spread within earlier steps one step later: it may change with the forecasts.
_FADING = 0.9
# A squared difference counts at most this multiple of its expectation: a change is one large difference.
_MOST = 4.0
# The mean and variance of a chi-square variable (1 degree of freedom) that is capped there. Neighbouring
# differences share a step, which makes the variance of their sum half as large again.
_MEAN, _VARIANCE = 0.9205, 1.2325 * 1.5
# Dependence is assumed if the sum of the differences lies this many standard errors above its expectation, or
# that of another claim about the same rows even further. It is reported at a larger distance still.
_LIMIT, _OTHER, _CERTAIN = 1.28, 3.0, 4.0


@dataclass
class _Differences:
    """Differences of neighbouring steps relative to the spread within steps: of losses, and of event gaps."""

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
            # If all rows of a step are alike, there is no spread to compare with.
            ratio = np.divide(gap, scale, out=np.where(gap > 0, _MOST, 0.0), where=scale > 1e-12)
            self.count += 1
            self.capped = self.capped + np.minimum(ratio, _MOST)
            self.plain = self.plain + ratio
        self.n, self.means = n, means

    @property
    def undecided(self) -> bool:
        """Whether there are too few steps for a test."""
        return self.count < _LEAST

    @property
    def distance(self) -> Floats:
        """(1 + E,) excess differences of steps over those of independent rows, in standard errors.

        The first is that of the loss, the others of events.
        """
        over = (np.asarray(self.capped) - _MEAN * self.count) / math.sqrt(_VARIANCE * self.count)
        return _by_claim(over)

    @property
    def correlation(self) -> Floats:
        """(1 + E,) intraclass correlations: the share of the variance that is between steps."""
        excess = np.maximum(np.asarray(self.plain) / self.count - 1, 0.0)
        return _by_claim(excess / (excess + self.units / self.steps))


def _by_claim(columns: Floats) -> Floats:
    """The larger number for each event, which has two; the loss has one."""
    e = len(columns) // 2
    return np.append(columns[:1], np.maximum(columns[1 : 1 + e], columns[1 + e :]))


class Dependence:
    """Tests for dependence within time steps, for all rows and for subgroups.

    If rows are independent, means of neighbouring steps differ no more than the spread within steps allows.
    Only neighbours are compared: a lasting change makes one such difference large, dependence all of them.
    """

    def __init__(self) -> None:
        self._scopes: dict[Scope, _Differences] = {}

    def note(self, steps: Mapping[Scope, Step]) -> None:
        """Take in a complete time step."""
        for scope, step in steps.items():
            self._scopes.setdefault(scope, _Differences()).note(step)

    def _informative(self, scope: Scope) -> _Differences | None:
        """The differences of a scope; for a subgroup with too few steps, those of all rows."""
        for candidate in (scope, ("", None)):
            differences = self._scopes.get(candidate)
            if differences is not None and not differences.undecided:
                return differences
        return None

    def assumed(self, scope: Scope, n_events: int) -> Bools:
        """(1 + E,) whether to assume dependence of the loss and each event; true until it can be tested."""
        differences = self._informative(scope)
        if differences is None:
            return np.ones(1 + n_events, bool)
        distance = differences.distance
        return np.asarray((distance > _LIMIT) | (distance.max() > _OTHER))

    def certain(self, scope: Scope) -> Floats:
        """(1 + E,) intraclass correlations, 0 unless certain; empty until a test is possible."""
        differences = self._informative(scope)
        if differences is None:
            return np.zeros(0)
        return np.where(differences.distance > _CERTAIN, differences.correlation, 0.0)


# How forecasts of an event may be wrong, one bet for each; the last adapts to earlier steps.
TOO_LOW, TOO_HIGH, OVERCONFIDENT, UNDERCONFIDENT, ADAPTIVE = range(5)
DIRECTIONS = ("too low", "too high", "overconfident", "underconfident", "wrong in places")
# The name of the claim about the loss, in place of an event.
OF_LOSS = "loss"
# A shift explains a change if its bets gained at least this share of the best ones, in logarithms.
_SIMPLER = 0.5
# Number of rows without deviation added to each bin before bets adapt to it.
_CAUTIOUS = 10.0

Target = tuple[str, Any, str]


@dataclass
class Capital:
    """The bets of all rows, or of a subgroup.

    Attributes
    ----------
    loss : array of shape (24,)
        Logarithms of the capital of each stake against the claim about the loss.
    events : array of shape (E, 5, 24)
        Likewise against the probabilities of each event, by direction.
    bins : array of shape (E, 16, 2)
        Sums so far for each event: of outcome minus probability, and of its square.
    share : float
        The share of the initial capital that was bet on these rows.
    """

    loss: Floats
    events: Floats
    bins: Floats
    share: float

    @classmethod
    def fresh(cls, n_events: int, share: float, *, restarts: bool) -> Capital:
        """The capital before the first bet; detectors that restart begin with none."""
        start = -np.inf if restarts else 0.0
        n = len(BETS)
        bins = np.zeros((n_events, BINS, 2))
        return cls(np.full(n, start), np.full((n_events, len(DIRECTIONS), n), start), bins, share)

    def bet(self, step: Step, *, opens: bool) -> None:
        """Take in a step; if it `opens`, a detector that restarts adds new capital first."""
        if opens:
            self.loss, self.events = np.logaddexp(0.0, self.loss), np.logaddexp(0.0, self.events)
        self.loss = self.loss + log_factors(step.first[EXCESS], step.second[EXCESS], step.n_units)
        self.events = self.events + factors_of(step, self.bins)
        self.bins = self.bins + step.bins

    @property
    def log_loss(self) -> float:
        """The logarithm of the capital against the claim about the loss."""
        return float(log_capital(self.loss))

    @property
    def log_events(self) -> Floats:
        """(E,) logarithms of the capital against each event's probabilities."""
        return np.asarray(np.logaddexp.reduce(log_capital(self.events), axis=1) - math.log(len(DIRECTIONS)))


def factors_of(step: Step, past: Floats) -> Floats:
    """(E, 5, 24) logarithms of the factors by which a step multiplies the capital of each bet on events."""
    first, second = (
        sums[OF_EVENT:].reshape(-1, PER_EVENT)[:, [SHIFT, TILT]] for sums in (step.first, step.second)
    )
    slope = adapted(past)
    sums_of_bets = np.empty((2, len(step.bins), len(DIRECTIONS)))
    sums_of_bets[0, :, [TOO_LOW, OVERCONFIDENT]], sums_of_bets[0, :, [TOO_HIGH, UNDERCONFIDENT]] = (
        first.T,
        -first.T,
    )
    sums_of_bets[1, :, [TOO_LOW, OVERCONFIDENT]] = sums_of_bets[1, :, [TOO_HIGH, UNDERCONFIDENT]] = second.T
    sums_of_bets[0, :, ADAPTIVE] = (slope * step.bins[:, :, 0]).sum(axis=1)
    sums_of_bets[1, :, ADAPTIVE] = (slope * slope * step.bins[:, :, 1]).sum(axis=1)
    return log_factors(sums_of_bets[0], sums_of_bets[1], step.n_units)


def adapted(bins: Floats) -> Floats:
    """(E, 16) stakes on each bin, from -1 to 1, given its earlier sums."""
    slope = bins[:, :, 0] / (bins[:, :, 1] + _CAUTIOUS)
    largest = np.abs(slope).max(axis=1, keepdims=True)
    return np.asarray(np.divide(slope, largest, out=np.zeros_like(slope), where=largest > 0))


@dataclass
class Ledger:
    """The capital of all rows and of subgroups, and the evidence in it.

    Attributes
    ----------
    events : tuple of str
        The names of the events.
    with_loss : bool
        Whether there is a claim about the loss.
    columns : tuple of str
        The columns of subgroups.
    restarts : bool
        Whether detectors restart at every step (a rate of false alarms), instead of betting once from the
        beginning (a probability of ever having one).
    dependence : Dependence or None
        Tests for dependence within time steps; None if the unit is stated, or is the step.
    whole : dict
        Bets on whole time steps, in addition to those of `capital` on their rows or groups. If dependence is
        assumed, the smaller of both counts: this is valid for any dependence, and never more than the bets on
        independent rows have.
    """

    events: tuple[str, ...]
    with_loss: bool
    columns: tuple[str, ...]
    restarts: bool
    dependence: Dependence | None = None
    capital: dict[Scope, Capital] = field(default_factory=dict)
    whole: dict[Scope, Capital] = field(default_factory=dict)

    def bet(self, steps: Mapping[Scope, Step], *, opens: bool) -> None:
        """Take in the steps of all rows and of subgroups; new subgroups share a reserve of capital."""
        self._bet(self.capital, steps, opens=opens)
        if self.dependence is not None and opens:
            # Later rows of the same step depend on these, so they cannot be bet on again.
            self._bet(self.whole, {scope: step.as_one() for scope, step in steps.items()}, opens=opens)

    def _bet(self, capital: dict[Scope, Capital], steps: Mapping[Scope, Step], *, opens: bool) -> None:
        for scope in steps:
            if scope not in capital:
                share = self._share(scope, capital)
                capital[scope] = Capital.fresh(len(self.events), share, restarts=self.restarts)
        for scope, bets in capital.items():
            if scope in steps:
                bets.bet(steps[scope], opens=self.restarts and opens)
            elif self.restarts and opens:
                bets.loss, bets.events = np.logaddexp(0.0, bets.loss), np.logaddexp(0.0, bets.events)

    def _share(self, scope: Scope, capital: Mapping[Scope, Capital]) -> float:
        if not scope[0]:
            return 0.5 if self.columns else 1.0
        # Any number of subgroups may come: 1/2 + 1/6 + 1/12 + ... is 1.
        i = 1 + sum(known[0] == scope[0] for known in capital)
        return 0.5 / len(self.columns) / (i * (i + 1))

    def claims(self, scope: Scope) -> list[str]:
        """The claims about some rows: each event and, for all rows, the loss.

        The reference is the mean loss of all rows; that of a subgroup may always have been above it.
        """
        return [OF_LOSS, *self.events] if self._has_loss(scope) else list(self.events)

    def _has_loss(self, scope: Scope) -> bool:
        return self.with_loss and not scope[0]

    @property
    def targets(self) -> list[Target]:
        """All claims, by scope: the loss, and each event."""
        return [(*scope, name) for scope in self.capital for name in self.claims(scope)]

    def weights(self) -> Floats:
        """The share of each claim; the loss and the events have half each."""
        shares: list[float] = []
        for scope, capital in self.capital.items():
            loss = [0.5] if self._has_loss(scope) else []
            of_events = (1 - sum(loss)) / len(self.events)
            shares += [capital.share * part for part in (*loss, *[of_events] * len(self.events))]
        return np.array(shares)

    def logs(self) -> Floats:
        """The logarithm of the evidence against each claim."""
        return np.concatenate([self._valid(scope, self._by_claim) for scope in self.capital])

    def logs_by_unit(self) -> Floats:
        """The logarithm of the evidence against each claim if rows, or groups, are independent."""
        return np.concatenate([self._by_claim(*item) for item in self.capital.items()])

    def _by_claim(self, scope: Scope, capital: Capital) -> Floats:
        """The logarithms of some capital, against the loss (if that is claimed) and each event."""
        return np.append([capital.log_loss] if self._has_loss(scope) else [], capital.log_events)

    def _valid(self, scope: Scope, logs_of: Callable[[Scope, Capital], Floats]) -> Floats:
        """Logarithms of the capital; at most those of bets on whole time steps, where these are needed."""
        rows = logs_of(scope, self.capital[scope])
        whole = logs_of(scope, self.whole[scope]) if scope in self.whole else 0.0
        by_step = self.by_step(scope).reshape(-1, *[1] * (rows.ndim - 1))
        return np.where(by_step, np.minimum(rows, whole), rows)

    def by_step(self, scope: Scope) -> Bools:
        """For each claim about a scope, whether time steps enter as a whole."""
        if self.dependence is None:
            return np.zeros(len(self.claims(scope)), bool)
        return self.dependence.assumed(scope, len(self.events))[-len(self.claims(scope)) :]

    def total(self, logs: Floats | None = None) -> float:
        """The logarithm of the evidence against all claims together; `logs` has those against each."""
        logs = self.logs() if logs is None else logs
        weights = self.weights()
        rest = 0.0 if self.restarts else max(0.0, 1 - float(weights.sum()))
        with np.errstate(divide="ignore"):
            return float(np.logaddexp(np.logaddexp.reduce(logs + np.log(weights)), np.log(rest)))

    def against(self, threshold: float) -> list[tuple[Target, float]]:
        """The claims that fail at a threshold of evidence, with the evidence, strongest first.

        Evidence is adjusted for all claims, which bounds the family-wise error. That of restarting detectors
        is not adjusted: each has its own rate of false alarms.
        """
        evidence = self._adjusted(self.logs(), self.weights())
        failed = [(t, float(e)) for t, e in zip(self.targets, evidence, strict=True) if e >= threshold]
        return sorted(failed, key=lambda pair: -pair[1])

    def directions(self, threshold: float) -> dict[Target, str]:
        """How the forecasts of events are wrong, if certain at a threshold of evidence.

        Each direction of an event is a separate claim here, with a part of the event's weight. It is a shift
        unless other bets gained far more: a shift alone also makes forecasts look overconfident.
        """
        gains = [self._valid(scope, self._by_direction) for scope in self.capital]
        weights = self.weights()[:, None] / len(DIRECTIONS) * np.ones(len(DIRECTIONS))
        logs = np.concatenate(gains)
        certain = self._adjusted(logs.ravel(), weights.ravel()).reshape(logs.shape) >= threshold
        directions = {}
        for target, gained, sure in zip(self.targets, logs, certain, strict=True):
            shift = gained[[TOO_LOW, TOO_HIGH]]
            simple = shift.max() >= _SIMPLER * gained.max()
            way = int(shift.argmax() if simple else gained.argmax())
            if target[2] != OF_LOSS and sure[way]:
                directions[target] = DIRECTIONS[way]
        return directions

    def _by_direction(self, scope: Scope, capital: Capital) -> Floats:
        """(claims, 5) logarithms of some capital by direction; those of the loss are all equal."""
        loss = [np.full(len(DIRECTIONS), capital.log_loss)] if self._has_loss(scope) else []
        return np.concatenate([np.reshape(loss, (-1, len(DIRECTIONS))), log_capital(capital.events)])

    def _adjusted(self, logs: Floats, weights: Floats) -> Floats:
        evidence = np.exp(np.minimum(logs, 600.0))
        return evidence if self.restarts else adjusted(evidence, weights, max(0.0, 1 - float(weights.sum())))

    # ---- storing ---------------------------------------------------------------------------------

    def to_values(self) -> list[dict[str, Any]]:
        """The capital, for storing."""
        return [
            {"scope": list(scope), **vars(bets), "whole": _arrays(self.whole.get(scope))}
            for scope, bets in self.capital.items()
        ]

    def restore(self, stored: Sequence[Mapping[str, Any]]) -> None:
        """Restore the stored capital."""
        n, e = len(BETS), len(self.events)
        shapes = {"loss": (n,), "events": (e, len(DIRECTIONS), n), "bins": (e, BINS, 2)}
        for values in stored:
            column, label = values["scope"]
            # Earlier versions did not bet on whole steps: such bets begin now.
            for capital, arrays_of in ((self.capital, values), (self.whole, values.get("whole"))):
                if arrays_of is None:
                    continue
                arrays = {name: np.asarray(arrays_of[name], float) for name in shapes}
                if any(arrays[name].shape != shape for name, shape in shapes.items()):
                    raise ValueError("capital of another shape")
                capital[str(column), label] = Capital(**arrays, share=float(values["share"]))


def _arrays(capital: Capital | None) -> dict[str, Any] | None:
    return None if capital is None else {k: v for k, v in vars(capital).items() if k != "share"}
