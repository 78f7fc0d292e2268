"""Evidence of a monitor: the capital of bets that the loss has risen or that probabilities are wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.inference.sequences import adjusted
from verax.inputs.arrays import Floats
from verax.wings.monitor.bets import DIRECTIONS, TOO_HIGH, TOO_LOW, UnitBets
from verax.wings.monitor.stepbets import StepBets
from verax.wings.monitor.steps import LOSS, OF_EVENT, PER_EVENT, SHIFT, TILT, Scope, Step, Unit

# The name of the claim about the loss, in place of an event.
OF_LOSS = "loss"
# A shift explains a change if its bets gained at least this share of the best ones, in logarithms.
_SIMPLER = 0.5

Target = tuple[str, Any, str]

# The least numbers of differences of neighbouring steps, and of degrees of freedom within steps, for a test.
_LEAST, _FREEDOM = 8, 8
# Weight of the spread within earlier steps one step later: it may change with the forecasts.
_FADING = 0.9
# A squared difference counts at most this multiple of its expectation: a change is one large difference.
_MOST = 4.0
# The mean and variance of a chi-square variable (1 degree of freedom) that is capped there. Neighbouring
# differences share a step, which makes the variance of their sum half as large again.
_MEAN, _VARIANCE = 0.9205, 1.2325 * 1.5
# Dependence is reported if the sum of the differences lies this many standard errors above its expectation.
_CERTAIN = 4.0


@dataclass
class Dependence:
    """Whether rows of a time step depend on each other, for the loss and each event.

    If rows are independent, means of neighbouring steps differ no more than the spread within steps allows.
    Only neighbours are compared: a lasting change makes one such difference large, dependence all of them.
    """

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
    def certain(self) -> Floats:
        """(1 + E,) intraclass correlations, 0 unless certain; empty until there are steps enough.

        They are shares of the variance that is between steps; the first is that of the loss.
        """
        if self.count < _LEAST:
            return np.zeros(0)
        over = (np.asarray(self.capped) - _MEAN * self.count) / math.sqrt(_VARIANCE * self.count)
        excess = np.maximum(np.asarray(self.plain) / self.count - 1, 0.0)
        correlation = excess / (excess + self.units / self.steps)
        return np.where(_by_claim(over) > _CERTAIN, _by_claim(correlation), 0.0)


def _by_claim(columns: Floats) -> Floats:
    """The larger number for each event, which has two; the loss has one."""
    e = len(columns) // 2
    return np.append(columns[:1], np.maximum(columns[1 : 1 + e], columns[1 + e :]))


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
    unit : str
        What bets are made on: rows, groups, or whole time steps.
    """

    events: tuple[str, ...]
    with_loss: bool
    columns: tuple[str, ...]
    restarts: bool
    unit: Unit = "time"
    capital: dict[Scope, UnitBets | StepBets] = field(default_factory=dict)

    @property
    def _bets(self) -> type[UnitBets | StepBets]:
        return StepBets if self.unit == "time" else UnitBets

    def bet(self, steps: Mapping[Scope, Step], *, opens: bool) -> None:
        """Take in the steps of all rows and of subgroups; new subgroups share a reserve of capital."""
        for scope in steps:
            if scope not in self.capital:
                share = self._share(scope)
                self.capital[scope] = self._bets.fresh(len(self.events), share, restarts=self.restarts)
        for scope, bets in self.capital.items():
            if scope in steps:
                bets.bet(steps[scope], opens=opens)
            elif opens:
                bets.wait()

    def _share(self, scope: Scope) -> float:
        if not scope[0]:
            return 0.5 if self.columns else 1.0
        # Any number of subgroups may come: 1/2 + 1/6 + 1/12 + ... is 1.
        i = 1 + sum(known[0] == scope[0] for known in self.capital)
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
        return np.concatenate([np.zeros(0), *(self._by_claim(*item) for item in self.capital.items())])

    def _by_claim(self, scope: Scope, bets: UnitBets | StepBets) -> Floats:
        """The logarithms of the evidence against the loss, if that is claimed, and each event."""
        logs = bets.logs
        of_events = np.logaddexp.reduce(logs[1:], axis=1) - math.log(len(DIRECTIONS))
        return np.append(logs[0, :1] if self._has_loss(scope) else [], of_events)

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
        gains = [self._by_direction(*item) for item in self.capital.items()]
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

    def _by_direction(self, scope: Scope, bets: UnitBets | StepBets) -> Floats:
        """(claims, 5) logarithms of the evidence by direction; those of the loss are all equal."""
        logs = bets.logs
        logs[0] = logs[0, 0]
        return logs if self._has_loss(scope) else logs[1:]

    def doubts(self, target: Target) -> tuple[int | None, float]:
        """The number of steps that were bet on against a claim, and the correlation of neighbouring ones.

        The number is None where the unit is not the step; the correlation is 0 unless it is certain.
        """
        bets, name = self.capital[target[:2]], target[2]
        if isinstance(bets, UnitBets):
            return None, 0.0
        claim = 0 if name == OF_LOSS else 1 + self.events.index(name)
        return bets.n_bets(claim), bets.correlation(claim)

    def _adjusted(self, logs: Floats, weights: Floats) -> Floats:
        evidence = np.exp(np.minimum(logs, 600.0))
        return evidence if self.restarts else adjusted(evidence, weights, max(0.0, 1 - float(weights.sum())))

    # ---- storing ---------------------------------------------------------------------------------

    def to_values(self) -> list[dict[str, Any]]:
        """The capital, for storing."""
        return [{"scope": list(scope), **bets.to_values()} for scope, bets in self.capital.items()]

    def restore(self, stored: Sequence[Mapping[str, Any]]) -> None:
        """Restore the stored capital."""
        for values in stored:
            column, label = values["scope"]
            bets = self._bets.from_values(values, len(self.events), restarts=self.restarts)
            self.capital[str(column), label] = bets
