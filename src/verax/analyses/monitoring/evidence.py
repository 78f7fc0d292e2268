"""Evidence of a monitor: the capital of bets that the loss has risen or that probabilities are wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.analyses.monitoring.steps import (
    EXCESS,
    OF_EVENT,
    PER_EVENT,
    SHIFT,
    TILT,
    Step,
)
from verax.inference.betting import STAKES, adjusted, log_capital, log_factors
from verax.inputs.arrays import Floats
from verax.kernels.monitoring import BINS

# How forecasts of an event may be wrong, by the bet that finds it; the last adapts to what was seen before.
TOO_LOW, TOO_HIGH, OVERCONFIDENT, UNDERCONFIDENT, ADAPTIVE = range(5)
DIRECTIONS = ("too low", "too high", "overconfident", "underconfident", "wrong in places")
# The loss, where an event would be named.
OF_LOSS = "loss"
# A shift explains a change if its bets gained at least this share of the best ones, in logarithms.
_SIMPLER = 0.5
# How many rows without a deviation are added to each bin before bets adapt to it.
_CAUTIOUS = 10.0

Scope = tuple[str, Any]
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
        n = len(STAKES)
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

    @property
    def directions(self) -> list[int]:
        """For each event, how its forecasts are wrong: a shift, unless other bets gained far more."""
        gains = log_capital(self.events)
        shift = gains[:, [TOO_LOW, TOO_HIGH]]
        simple = shift.max(axis=1) >= _SIMPLER * gains.max(axis=1)
        return np.where(simple, shift.argmax(axis=1), gains.argmax(axis=1)).tolist()  # type: ignore[no-any-return]


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
    """

    events: tuple[str, ...]
    with_loss: bool
    columns: tuple[str, ...]
    restarts: bool
    capital: dict[Scope, Capital] = field(default_factory=dict)

    def bet(self, steps: Mapping[Scope, Step], *, opens: bool) -> None:
        """Take in the steps of all rows and of subgroups; new subgroups share what is set aside for them."""
        for scope in steps:
            if scope not in self.capital:
                self.capital[scope] = Capital.fresh(
                    len(self.events), self._share(scope), restarts=self.restarts
                )
        for scope, own in self.capital.items():
            if scope in steps:
                own.bet(steps[scope], opens=self.restarts and opens)
            elif self.restarts and opens:
                own.loss, own.events = np.logaddexp(0.0, own.loss), np.logaddexp(0.0, own.events)

    def _share(self, scope: Scope) -> float:
        if not scope[0]:
            return 0.5 if self.columns else 1.0
        # Any number of subgroups may come: 1/2 + 1/6 + 1/12 + ... is 1.
        i = 1 + sum(known[0] == scope[0] for known in self.capital)
        return 0.5 / len(self.columns) / (i * (i + 1))

    @property
    def targets(self) -> list[Target]:
        """What is claimed, by subgroup: the loss, and each event."""
        own = ([OF_LOSS] if self.with_loss else []) + list(self.events)
        return [(*scope, name) for scope in self.capital for name in own]

    def weights(self) -> Floats:
        """The share of each claim; the loss and the events have half each."""
        of_events = (0.5 if self.with_loss else 1.0) / len(self.events)
        own = ([0.5] if self.with_loss else []) + [of_events] * len(self.events)
        return np.array([capital.share * each for capital in self.capital.values() for each in own])

    def logs(self) -> Floats:
        """The logarithm of the evidence against each claim."""
        found: list[float] = []
        for own in self.capital.values():
            found += ([own.log_loss] if self.with_loss else []) + own.log_events.tolist()
        return np.array(found)

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
        logs = self.logs()
        evidence = np.exp(np.minimum(logs, 600.0))
        if not self.restarts:
            weights = self.weights()
            evidence = adjusted(evidence, weights, max(0.0, 1 - float(weights.sum())))
        found = [(t, float(e)) for t, e in zip(self.targets, evidence, strict=True) if e >= threshold]
        return sorted(found, key=lambda pair: -pair[1])

    def direction(self, target: Target) -> str:
        """How the forecasts of an event are wrong."""
        column, label, event = target
        return DIRECTIONS[self.capital[column, label].directions[self.events.index(event)]]

    # ---- storing ---------------------------------------------------------------------------------

    def to_values(self) -> list[dict[str, Any]]:
        """The capital, to be stored."""
        return [
            {
                "scope": list(scope),
                "loss": own.loss,
                "events": own.events,
                "bins": own.bins,
                "share": own.share,
            }
            for scope, own in self.capital.items()
        ]

    def restore(self, stored: Sequence[Mapping[str, Any]]) -> None:
        """The capital as it was stored."""
        n, e = len(STAKES), len(self.events)
        for each in stored:
            column, label = each["scope"]
            shapes = {"loss": (n,), "events": (e, len(DIRECTIONS), n), "bins": (e, BINS, 2)}
            arrays = {name: np.asarray(each[name], float) for name in shapes}
            if any(arrays[name].shape != shape for name, shape in shapes.items()):
                raise ValueError("capital of another shape")
            self.capital[str(column), label] = Capital(**arrays, share=float(each["share"]))


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
