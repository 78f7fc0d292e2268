"""Cross-validated temperature scaling in a few passes over the rows, for use after every epoch.

The fit to all rows takes some Newton steps. A fit without a fold is one more step away, with the slopes and
curvatures of the other folds, which are known from the last pass. So cross-validation costs a single pass:
the loss of each row at the temperature of its fold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from verax.analyses.recalibration.searching import FIRST, RIDGE, WIDEST
from verax.analyses.units import sums_at
from verax.inputs.arrays import Floats, Ints
from verax.scores.base import Rule
from verax.scores.gradients.logits import losses_with_gradient
from verax.scores.rules import Log

# Rows among which the first temperature is looked for.
_FEW = 512
# Up to this many numbers, every fold has a search of its own: with few rows one step is not enough.
_SMALL = 2**14
# The search ends when the next step is smaller than this; the one after it would be about its square.
_STEP, _ITERATIONS, _HALVINGS = 1e-3, 50, 20
# For curvature by differences.
_APART = 1e-4


class _Curve(NamedTuple):
    """The loss of each row, and its first and second derivative in t; logits are multiplied by exp(t)."""

    losses: Floats
    slopes: Floats
    bends: Floats


class _Rows(ABC):
    """Logarithms of probabilities, (K, N), with outcomes and weights of mean one, by one rule."""

    def __init__(self, rule: Rule, z: Floats, y: Ints, weights: Floats) -> None:
        self.rule, self.z, self.y, self.weights = rule, z, y, weights

    @abstractmethod
    def at(self, t: float) -> _Curve:
        """Losses and derivatives with all logits multiplied by exp(t)."""

    @abstractmethod
    def losses(self, t: Floats | float) -> Floats:
        """Losses alone; t may differ between rows."""

    def some(self, which: Any) -> Self:
        """A part of the rows."""
        return type(self)(self.rule, self.z[:, which], self.y[which], self.weights[which])

    def first(self) -> float:
        """The best of a few values of t, on a part of the rows."""
        few = self.some(slice(None, None, -(-len(self.y) // _FEW)))
        return min(FIRST, key=lambda t: float(few.weights @ few.losses(t)))

    def near_smallest(self, start: float, enough: float) -> tuple[float, _Curve]:
        """A t within `enough` of where the sum of losses is smallest, held to 0 as fits are; Newton's method.

        The curve is that of this t, so the last step is left to the caller.
        """
        t = float(np.clip(start, -WIDEST, WIDEST))
        found = self.at(t)
        for _ in range(_ITERATIONS):
            step = self.step(t, float(self.weights @ found.slopes), float(self.weights @ found.bends))
            if abs(step) <= enough:
                break
            value = self._value(t, found)
            for _ in range(_HALVINGS):
                moved = float(np.clip(t + step, -WIDEST, WIDEST))
                there = self.at(moved)
                if self._value(moved, there) <= value:
                    break
                step /= 2
            else:
                break
            t, found = moved, there
        return t, found

    def fitted(self, near: float) -> float:
        """The t where the sum of losses is smallest, about."""
        t, found = self.near_smallest(near, _STEP)
        return t + self.step(t, float(self.weights @ found.slopes), float(self.weights @ found.bends))

    def _value(self, t: float, found: _Curve) -> float:
        return float(self.weights @ found.losses) + RIDGE * t * t

    @staticmethod
    def step(t: float, slope: float, bend: float) -> float:
        """The step of Newton's method, at most 1, and downhill where the curve is not convex."""
        slope, bend = slope + 2 * RIDGE * t, bend + 2 * RIDGE
        return float(np.clip(-slope / bend, -1.0, 1.0)) if bend > 0 else -float(np.sign(slope)) / 2


class _LogRows(_Rows):
    """The log score in closed form: its derivatives are moments of the logits under the forecast."""

    def __init__(self, rule: Rule, z: Floats, y: Ints, weights: Floats) -> None:
        super().__init__(rule, z, y, weights)
        assert isinstance(rule, Log)
        self.unit = 1 / np.log(rule.base)
        self.happened, self.top = z[y, np.arange(len(y))], z.max(axis=0)
        self.below = z - self.top

    def at(self, t: float) -> _Curve:
        slope = np.exp(t)
        q = np.exp(slope * self.below)
        total = q.sum(axis=0)
        q *= self.z
        mean = q.sum(axis=0) / total
        square = np.einsum("kn,kn->n", q, self.z) / total
        slopes = slope * (mean - self.happened)
        bends = slope**2 * (square - mean**2) + slopes
        losses = np.log(total) - slope * (self.happened - self.top)
        return _Curve(losses * self.unit, slopes * self.unit, bends * self.unit)

    def losses(self, t: Floats | float) -> Floats:
        slope = np.exp(t)
        total = np.exp(slope * self.below).sum(axis=0)
        return np.asarray((np.log(total) - slope * (self.happened - self.top)) * self.unit)


class _AnyRows(_Rows):
    """Any rule with a gradient; the curvature is a difference of slopes."""

    def at(self, t: float) -> _Curve:
        losses, slopes = self._slopes(t)
        return _Curve(losses, slopes, (self._slopes(t + _APART)[1] - slopes) / _APART)

    def losses(self, t: Floats | float) -> Floats:
        return self._slopes(t)[0]

    def _slopes(self, t: Floats | float) -> tuple[Floats, Floats]:
        slope = np.exp(t)
        losses, g = losses_with_gradient(self.rule, slope * self.z, self.y)
        return losses, slope * np.einsum("kn,kn->n", g, self.z)


def held_out_losses(
    rule: Rule, z: Floats, y: Ints, weights: Floats, folds: Ints, start: float | None = None
) -> tuple[Floats, float]:
    """The loss of each row after temperature scaling without its fold, and the t of all rows.

    Parameters
    ----------
    rule : Rule
        The rule that is minimised and measured.
    z : array of shape (K, N)
        Finite logarithms of probabilities, a row for each class.
    y : array of shape (N,)
        Positions of the outcomes.
    weights : array of shape (N,)
        Weights of mean one.
    folds : array of shape (N,)
        The fold of each row.
    start : float, optional
        Where the search begins: the t of the epoch before.
    """
    closed = isinstance(rule, Log) and rule.clip is None
    rows: _Rows = (_LogRows if closed else _AnyRows)(rule, z, y, weights)
    t, found = rows.near_smallest(rows.first() if start is None else start, _STEP)
    n_folds = int(folds.max()) + 1
    slopes, bends = (sums_at(folds, weights * part, n_folds) for part in (found.slopes, found.bends))
    others = zip(slopes.sum() - slopes, bends.sum() - bends, strict=True)
    without = t + np.array([rows.step(t, slope, bend) for slope, bend in others])
    if z.size <= _SMALL:
        parts = [rows.some(folds != v) for v in range(n_folds)]
        without = np.array([part.fitted(near) for part, near in zip(parts, without.tolist(), strict=True)])
    without = np.clip(without, -WIDEST, WIDEST)
    return rows.losses(without[folds]), t + rows.step(t, float(slopes.sum()), float(bends.sum()))
