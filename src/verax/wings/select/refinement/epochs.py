"""The refinement of one epoch after another: the same rows, new forecasts, a number each time.

The fit to all rows takes some Newton steps. A fit without a fold is one more step away, with the slopes and
curvatures of the other folds, which are known from the last pass. So cross-validation costs a single pass:
the loss of each row at the temperature of its fold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self, Unpack

import numpy as np

from verax.analyses.dealing import dealt
from verax.analyses.units import sums_at
from verax.common.checks import check_count
from verax.inference.intervals import check_seed
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle
from verax.inputs.memory import holds_lists
from verax.inputs.options import RowOptions, reads
from verax.inputs.rows import with_single_classes
from verax.scores.base import Rule, losses_of
from verax.scores.gradients.logits import check_trainable, losses_with_gradient
from verax.scores.registry import RULES, name_of, parse
from verax.scores.rules import Log
from verax.wings.recalibrate.analysis import rows_of
from verax.wings.recalibrate.choosing import mean_loss
from verax.wings.recalibrate.rows import floors_of, relative
from verax.wings.recalibrate.searching import FIRST, RIDGE, WIDEST
from verax.wings.select.refinement.refinement import refinement

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
        curve = self.at(t)
        for _ in range(_ITERATIONS):
            step = self.step(t, float(self.weights @ curve.slopes), float(self.weights @ curve.bends))
            if abs(step) <= enough:
                break
            value = self._value(t, curve)
            for _ in range(_HALVINGS):
                moved = float(np.clip(t + step, -WIDEST, WIDEST))
                there = self.at(moved)
                if self._value(moved, there) <= value:
                    break
                step /= 2
            else:
                break
            t, curve = moved, there
        return t, curve

    def fitted(self, near: float) -> float:
        """The t where the sum of losses is smallest, about."""
        t, curve = self.near_smallest(near, _STEP)
        return t + self.step(t, float(self.weights @ curve.slopes), float(self.weights @ curve.bends))

    def _value(self, t: float, curve: _Curve) -> float:
        return float(self.weights @ curve.losses) + RIDGE * t * t

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
    t, curve = rows.near_smallest(rows.first() if start is None else start, _STEP)
    n_folds = int(folds.max()) + 1
    slopes, bends = (sums_at(folds, weights * part, n_folds) for part in (curve.slopes, curve.bends))
    others = zip(slopes.sum() - slopes, bends.sum() - bends, strict=True)
    without = t + np.array([rows.step(t, slope, bend) for slope, bend in others])
    if z.size <= _SMALL:
        parts = [rows.some(folds != v) for v in range(n_folds)]
        without = np.array([part.fitted(near) for part, near in zip(parts, without.tolist(), strict=True)])
    without = np.clip(without, -WIDEST, WIDEST)
    return rows.losses(without[folds]), t + rows.step(t, float(slopes.sum()), float(bends.sum()))


QUICK = "temperature"
_PASS = RULES["log_score"]


class RefinementLoss:
    """The cross-validated loss after recalibration, as a number to monitor while a model trains.

    With temperature scaling, the default, a call takes a few passes over the rows: milliseconds for 5,000
    rows of 10 classes. The search begins where that of the last call ended. Other methods take as long as
    `vx.refinement` does.

    Parameters
    ----------
    rule : Rule or str, default "log_score"
        The proper rule that is minimised and measured.
    method : str or sequence of str, default "temperature"
        How to recalibrate, as in `vx.recalibrate`.
    folds : int, default 5
        Number of folds.
    seed : int, default 0
        Random seed of the folds.

    Examples
    --------
    >>> from verax.selection import RefinementLoss
    >>> loss = RefinementLoss("brier")
    >>> y, p = [0, 1, 0, 1, 1, 0] * 30, [0.02, 0.9, 0.6, 0.3, 0.99, 0.1] * 30
    >>> round(loss(y, p), 3)
    0.268
    """

    def __init__(
        self,
        rule: Rule | str = "log_score",
        *,
        method: str | Sequence[str] = QUICK,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.rule: Rule = parse(rule)
        self.method: str | Sequence[str] = method
        check_count("folds", folds, least=2)
        check_seed(seed)
        self.folds: int = folds
        self.seed: int = seed
        self._start: float | None = None

    @reads
    def __call__(self, y: object, p: object = None, **read: Unpack[RowOptions]) -> float:
        """The mean loss of the rows, each recalibrated by a fit that has not seen its fold.

        Parameters
        ----------
        y
        p
        **read

        Returns
        -------
        float
            The refinement. Lower is better.
        """
        if self.method != QUICK or isinstance(y, Handle) or holds_lists(y, p):
            how: dict[str, Any] = {"method": self.method, "folds": self.folds, "seed": self.seed}
            return float(refinement(y, p, rule=self.rule, ordered=self.rule.ordinal, **how, **read))
        forecasts = with_single_classes(Forecasts(y, p, ordered=self.rule.ordinal, **_given(read)))
        check_trainable(self.rule, forecasts.n_classes)
        # One pass that checks the rows on the way, at a third of the price of `check`.
        losses_of([_PASS], forecasts)
        outcomes, rows, weights = rows_of(forecasts)
        folds = dealt(len(outcomes), forecasts.groups, self.folds, self.seed, weights)
        w = relative(weights, len(outcomes))
        losses_and_places = []
        for floor in floors_of(rows):
            z = np.ascontiguousarray(np.log(np.maximum(rows, floor)).T)
            losses, t = held_out_losses(self.rule, z, outcomes, w, folds, self._start)
            losses_and_places.append((mean_loss(losses, weights), t))
        loss, self._start = min(losses_and_places)
        return loss

    def __repr__(self) -> str:
        return f"RefinementLoss({name_of(self.rule)!r}, method={self.method!r})"


def _given(read: RowOptions) -> dict[str, Any]:
    return {name: value for name, value in read.items() if name not in ("invalid", "positive")}
