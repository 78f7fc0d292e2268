"""Evidence of a monitor: the capital of bets that the loss has risen or that probabilities are wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.analyses.monitoring.steps import (
    EXCESS,
    LOSS,
    OF_EVENT,
    PER_EVENT,
    SHIFT,
    TILT,
    Scope,
    Step,
)
from verax.inference.sequences import BETS, adjusted, log_capital, log_factors
from verax.inputs.arrays import Bools, Floats
from verax.kernels.monitoring import BINS

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


# How forecasts of an event may be wrong, by the bet that finds it; the last adapts to what was seen before.
TOO_LOW, TOO_HIGH, OVERCONFIDENT, UNDERCONFIDENT, ADAPTIVE = range(5)
DIRECTIONS = ("too low", "too high", "overconfident", "underconfident", "wrong in places")
# The loss, where an event would be named.
OF_LOSS = "loss"
# A shift explains a change if its bets gained at least this share of the best ones, in logarithms.
_SIMPLER = 0.5
# How many rows without a deviation are added to each bin before bets adapt to it.
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
        The same against the probabilities of each event, by direction.
    bins : array of shape (E, 16, 2)
        What was seen so far of each event: sums of outcome minus probability, and of its square.
    share : float
        The share of all capital that was put on these rows at the beginning.
    """

    loss: Floats
    events: Floats
    bins: Floats
    share: float

    @classmethod
    def fresh(cls, n_events: int, share: float, *, restarts: bool) -> Capital:
        """Before the first bet; detectors that restart begin with nothing."""
        start = -np.inf if restarts else 0.0
        n = len(BETS)
        bins = np.zeros((n_events, BINS, 2))
        return cls(np.full(n, start), np.full((n_events, len(DIRECTIONS), n), start), bins, share)

    def bet(self, step: Step, *, opens: bool) -> None:
        """Take in a step; `opens` says that a detector that restarts puts in new capital first."""
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
        """(E,) the same for each event."""
        return np.asarray(np.logaddexp.reduce(log_capital(self.events), axis=1) - math.log(len(DIRECTIONS)))


def factors_of(step: Step, seen: Floats) -> Floats:
    """(E, 5, 24) by what a step multiplies the capital of each bet on events, in logarithms."""
    first, second = (
        sums[OF_EVENT:].reshape(-1, PER_EVENT)[:, [SHIFT, TILT]] for sums in (step.first, step.second)
    )
    slope = adapted(seen)
    found = np.empty((2, len(step.bins), len(DIRECTIONS)))
    found[0, :, [TOO_LOW, OVERCONFIDENT]], found[0, :, [TOO_HIGH, UNDERCONFIDENT]] = first.T, -first.T
    found[1, :, [TOO_LOW, OVERCONFIDENT]] = found[1, :, [TOO_HIGH, UNDERCONFIDENT]] = second.T
    found[0, :, ADAPTIVE] = (slope * step.bins[:, :, 0]).sum(axis=1)
    found[1, :, ADAPTIVE] = (slope * slope * step.bins[:, :, 1]).sum(axis=1)
    return log_factors(found[0], found[1], step.n_units)


def adapted(bins: Floats) -> Floats:
    """(E, 16) what to bet on each bin, from -1 to 1, given what was seen in it before."""
    slope = bins[:, :, 0] / (bins[:, :, 1] + _CAUTIOUS)
    largest = np.abs(slope).max(axis=1, keepdims=True)
    return np.asarray(np.divide(slope, largest, out=np.zeros_like(slope), where=largest > 0))


@dataclass
class Ledger:
    """The capital of all rows and of subgroups, and what it says.

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
        What is known of dependence within time steps; None where the unit is stated, or is the step.
    whole : dict
        Bets on whole time steps, beside those of `capital` on their rows or groups. Where dependence is found
        or cannot be told yet, the smaller of both counts: this is valid whatever the dependence, and never
        more than the bets on independent rows have.
    """

    events: tuple[str, ...]
    with_loss: bool
    columns: tuple[str, ...]
    restarts: bool
    dependence: Dependence | None = None
    capital: dict[Scope, Capital] = field(default_factory=dict)
    whole: dict[Scope, Capital] = field(default_factory=dict)

    def bet(self, steps: Mapping[Scope, Step], *, opens: bool) -> None:
        """Take in the steps of all rows and of subgroups; new subgroups share what is set aside for them."""
        self._bet(self.capital, steps, opens=opens)
        if self.dependence is not None and opens:
            # Rows of the step that come later depend on these, so no bet on them is left.
            self._bet(self.whole, {scope: step.as_one() for scope, step in steps.items()}, opens=opens)

    def _bet(self, capital: dict[Scope, Capital], steps: Mapping[Scope, Step], *, opens: bool) -> None:
        for scope in steps:
            if scope not in capital:
                share = self._share(scope, capital)
                capital[scope] = Capital.fresh(len(self.events), share, restarts=self.restarts)
        for scope, own in capital.items():
            if scope in steps:
                own.bet(steps[scope], opens=self.restarts and opens)
            elif self.restarts and opens:
                own.loss, own.events = np.logaddexp(0.0, own.loss), np.logaddexp(0.0, own.events)

    def _share(self, scope: Scope, capital: Mapping[Scope, Capital]) -> float:
        if not scope[0]:
            return 0.5 if self.columns else 1.0
        # Any number of subgroups may come: 1/2 + 1/6 + 1/12 + ... is 1.
        i = 1 + sum(known[0] == scope[0] for known in capital)
        return 0.5 / len(self.columns) / (i * (i + 1))

    def claims(self, scope: Scope) -> list[str]:
        """What is claimed of some rows: each event and, of all rows, the loss.

        The reference is the mean loss of all rows; that of a subgroup may always have been above it.
        """
        return [OF_LOSS, *self.events] if self._loss_of(scope) else list(self.events)

    def _loss_of(self, scope: Scope) -> bool:
        return self.with_loss and not scope[0]

    @property
    def targets(self) -> list[Target]:
        """What is claimed, by subgroup: the loss, and each event."""
        return [(*scope, name) for scope in self.capital for name in self.claims(scope)]

    def weights(self) -> Floats:
        """The share of each claim; the loss and the events have half each."""
        found: list[float] = []
        for scope, own in self.capital.items():
            loss = [0.5] if self._loss_of(scope) else []
            of_events = (1 - sum(loss)) / len(self.events)
            found += [own.share * each for each in (*loss, *[of_events] * len(self.events))]
        return np.array(found)

    def logs(self) -> Floats:
        """The logarithm of the evidence against each claim."""
        return np.concatenate([self._held(scope, *self._both(scope, self._of)) for scope in self.capital])

    def logs_by_unit(self) -> Floats:
        """The same if rows, or groups, are independent."""
        return np.concatenate([self._both(scope, self._of)[0] for scope in self.capital])

    def _of(self, scope: Scope, own: Capital) -> Floats:
        """The logarithms of some capital, against the loss (if that is claimed) and each event."""
        return np.append([own.log_loss] if self._loss_of(scope) else [], own.log_events)

    def _both(self, scope: Scope, take: Callable[[Scope, Capital], Floats]) -> tuple[Floats, Floats]:
        """What bets on rows or groups gained, and those on whole steps."""
        rows = take(scope, self.capital[scope])
        return rows, take(scope, self.whole[scope]) if scope in self.whole else np.zeros(rows.shape)

    def _held(self, scope: Scope, rows: Floats, whole: Floats) -> Floats:
        """Where time steps enter as a whole, at most what bets on them gained."""
        by_step = self.by_step(scope).reshape(-1, *[1] * (rows.ndim - 1))
        return np.where(by_step, np.minimum(rows, whole), rows)

    def by_step(self, scope: Scope) -> Bools:
        """For each claim about some rows, whether time steps enter as a whole."""
        if self.dependence is None:
            return np.zeros(len(self.claims(scope)), bool)
        return self.dependence.found(scope, len(self.events))[-len(self.claims(scope)) :]

    def total(self, logs: Floats | None = None) -> float:
        """The logarithm of the evidence against all claims together; `logs` is that against each."""
        logs = self.logs() if logs is None else logs
        weights = self.weights()
        rest = 0.0 if self.restarts else max(0.0, 1 - float(weights.sum()))
        with np.errstate(divide="ignore"):
            return float(np.logaddexp(np.logaddexp.reduce(logs + np.log(weights)), np.log(rest)))

    def against(self, threshold: float) -> list[tuple[Target, float]]:
        """The claims that fail at a threshold of evidence, with the evidence, strongest first.

        The family-wise error is kept: evidence is adjusted for all claims. That of detectors that restart is
        not: each of them keeps its own rate of false alarms.
        """
        evidence = self._adjusted(self.logs(), self.weights())
        found = [(t, float(e)) for t, e in zip(self.targets, evidence, strict=True) if e >= threshold]
        return sorted(found, key=lambda pair: -pair[1])

    def directions(self, threshold: float) -> dict[Target, str]:
        """How the forecasts of events are wrong, where that is certain at a threshold of evidence.

        Each direction of each event is a claim of its own here, with a share of what its event has. It is a
        shift, unless other bets gained far more: a shift alone also makes forecasts look overconfident.
        """
        gains = [self._held(scope, *self._both(scope, self._by_direction)) for scope in self.capital]
        weights = self.weights()[:, None] / len(DIRECTIONS) * np.ones(len(DIRECTIONS))
        logs = np.concatenate(gains)
        certain = self._adjusted(logs.ravel(), weights.ravel()).reshape(logs.shape) >= threshold
        found = {}
        for target, own, sure in zip(self.targets, logs, certain, strict=True):
            shift = own[[TOO_LOW, TOO_HIGH]]
            simple = shift.max() >= _SIMPLER * own.max()
            way = int(shift.argmax() if simple else own.argmax())
            if target[2] != OF_LOSS and sure[way]:
                found[target] = DIRECTIONS[way]
        return found

    def _by_direction(self, scope: Scope, own: Capital) -> Floats:
        """(claims, 5) the logarithms of some capital by direction; the loss has one."""
        loss = [np.full(len(DIRECTIONS), own.log_loss)] if self._loss_of(scope) else []
        return np.concatenate([np.reshape(loss, (-1, len(DIRECTIONS))), log_capital(own.events)])

    def _adjusted(self, logs: Floats, weights: Floats) -> Floats:
        evidence = np.exp(np.minimum(logs, 600.0))
        return evidence if self.restarts else adjusted(evidence, weights, max(0.0, 1 - float(weights.sum())))

    # ---- storing ---------------------------------------------------------------------------------

    def to_values(self) -> list[dict[str, Any]]:
        """The capital, to be stored."""
        return [
            {"scope": list(scope), **vars(own), "whole": _arrays(self.whole.get(scope))}
            for scope, own in self.capital.items()
        ]

    def restore(self, stored: Sequence[Mapping[str, Any]]) -> None:
        """The capital as it was stored."""
        n, e = len(BETS), len(self.events)
        shapes = {"loss": (n,), "events": (e, len(DIRECTIONS), n), "bins": (e, BINS, 2)}
        for each in stored:
            column, label = each["scope"]
            # Earlier versions did not bet on whole steps: such bets begin now.
            for capital, own in ((self.capital, each), (self.whole, each.get("whole"))):
                if own is None:
                    continue
                arrays = {name: np.asarray(own[name], float) for name in shapes}
                if any(arrays[name].shape != shape for name, shape in shapes.items()):
                    raise ValueError("capital of another shape")
                capital[str(column), label] = Capital(**arrays, share=float(each["share"]))


def _arrays(capital: Capital | None) -> dict[str, Any] | None:
    return None if capital is None else {k: v for k, v in vars(capital).items() if k != "share"}


def began(first: Floats, second: Floats, n: Any, drop: float) -> tuple[int, int, int]:
    """When a change began that bets have found: the likeliest step, and the first and last plausible one.

    Bets that start at a step and go on to the end gain most where they start at the change. Plausible are the
    steps from which they gain at most `drop` less, in logarithms.
    """
    tails = [np.cumsum(np.asarray(each, float)[::-1])[::-1] for each in (first, second, n)]
    gains = log_factors(*tails).max(axis=1)
    best = int(np.argmax(gains))
    plausible = np.flatnonzero(gains >= gains[best] - drop)
    return best, int(plausible[0]), int(plausible[-1])
