"""Landscapes of rules: the loss over all forecasts of two or three classes, and its minimum.

For each outcome a rule is a surface over the probability simplex. Under a truth the expected loss is one
surface; a proper rule has its lowest place at the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from verax.common.checks import check_n_classes
from verax.display.tables import Tabled
from verax.errors import InputError, passing
from verax.inputs.arrays import Floats, to_host
from verax.scores.base import Rule, distributions
from verax.wings.theory.certificates.probes import (
    DENOMINATORS,
    apart,
    doubts,
    equal,
    expected,
    losses_function,
    magnitude,
    to_counts,
)

# The points are all forecasts with this denominator, so that ties between two or three classes are exact.
_UNITS = {2: 1200, 3: 180}
# The search starts at _STARTS points, _BETWEEN apart, and halves its steps down to _SMALLEST_STEP.
_STARTS, _BETWEEN, _SMALLEST_STEP = 8, 0.1, 1e-10
_MOST_ROUNDS = 400
# Smaller probabilities are what rounding leaves where a class gave all it had.
_NOTHING = 1e-15
# What it finds is replaced by a simpler forecast this close to it, if that loses no more up to rounding.
_NEAR, _ROUNDING = 1e-6, 1e-13


def landscape(
    rule: Rule | str | Callable[[int, Floats], float], truth: Any = None, n_classes: int = 3
) -> Landscape:
    """Compute the loss of a rule over all forecasts, for each outcome or expected under a truth.

    With a truth, the forecast with the smallest expected loss is found by search. For a proper rule it is
    the truth itself.

    Parameters
    ----------
    rule : Rule, str or callable
        A rule, its text, or a function f(y, p) that takes a class position and a vector of
        `n_classes` probabilities and returns the loss: lower is better.
    truth : array_like of shape (K,), optional
        True distribution of the outcome.
    n_classes : int, default 3
        The number of classes, 2 or 3.

    Returns
    -------
    Landscape
        Forecasts and losses, with a figure (`plot`): a curve for two classes, triangles for three.

    Examples
    --------
    >>> import verax as vx
    >>> vx.diagrams.landscape("sa_rps", truth=[0.5, 0.2, 0.3])
    Landscape of sa_rps over 3 classes, truth (0.5, 0.2, 0.3).
    (0.2, 0.8, 0) has the lowest expected loss, 0.19. The truth has an expected loss of 0.22.
    >>> vx.diagrams.landscape("rps", truth=[0.5, 0.2, 0.3]).minimiser.tolist()
    [0.5, 0.2, 0.3]
    """
    name, losses = losses_function(rule)
    k = check_n_classes(n_classes)
    if k not in _UNITS:
        raise InputError(
            f"must be 2 or 3, not {k}: forecasts of more classes do not fit into a plane",
            argument="n_classes",
            values=[k],
        )
    q = None if truth is None else _checked(truth, k)
    points = _lattice(k)
    with np.errstate(all="ignore"):
        loss = losses(points)
        lowest = None if q is None else _lowest(losses, points, loss, q)
    return Landscape(name, k, points, loss, q, lowest)


@dataclass(frozen=True)
class Lowest:
    """The minimum of the expected loss.

    Attributes
    ----------
    forecast : array of shape (K,)
        The forecast with the smallest expected loss found; the truth itself if none is smaller.
    loss : float
        Its expected loss.
    alone : bool
        Whether the minimum is unique on the landscape.
    of_truth : float
        Expected loss of the truth.
    """

    forecast: Floats
    loss: float
    alone: bool
    of_truth: float


@dataclass(frozen=True, repr=False, eq=False)
class Landscape(Tabled):
    """The losses of a rule at many forecasts.

    Attributes
    ----------
    rule : str
        The name of the rule or function.
    n_classes : int
        The number of classes.
    points : array of shape (G, K)
        The forecasts: all whose probabilities are multiples of 1/180, or of 1/1200 for two classes.
    losses : array of shape (G, K)
        The loss of each for each outcome.
    truth : array of shape (K,) or None
        The distribution of the outcome.
    lowest : Lowest or None
        The minimum of the expected loss; None without a truth.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.diagrams.landscape(vx.rps, truth=[0.2, 0.3, 0.5])
    >>> found.points.shape
    (16471, 3)
    """

    rule: str
    n_classes: int
    points: Floats
    losses: Floats
    truth: Floats | None = None
    lowest: Lowest | None = None

    @property
    def expected(self) -> Floats | None:
        """The expected loss at each point; None without a truth."""
        if self.truth is None:
            return None
        with np.errstate(invalid="ignore"):
            return expected(self.losses, self.truth)

    @property
    def minimiser(self) -> Floats | None:
        """The forecast with the smallest expected loss; None without a truth."""
        return None if self.lowest is None else self.lowest.forecast

    @property
    def truth_is_best(self) -> bool | None:
        """Whether no forecast has a lower expected loss than the truth; None without a truth."""
        if self.lowest is None or self.truth is None:
            return None
        return np.array_equal(self.lowest.forecast, self.truth)

    @property
    def sentence(self) -> str:
        """The minimum, in words."""
        if self.lowest is None:
            return f"The loss lies between {_number(self.losses.min())} and {_number(self.losses.max())}."
        loss, of_truth = _number(self.lowest.loss), _number(self.lowest.of_truth)
        others = "" if self.lowest.alone else "; other forecasts are expected to lose as little"
        if self.truth_is_best:
            return f"No forecast has a lower expected loss than the truth, {loss}{others}."
        best = f"{in_words(self.lowest.forecast)} has the lowest expected loss, {loss}{others}."
        return f"{best} The truth has an expected loss of {of_truth}."

    def _frame(self) -> dict[str, list[Any]]:
        """One row per forecast: its probabilities, the loss for each outcome, and the expected loss."""
        columns = {f"p_{j}": self.points[:, j].tolist() for j in range(self.n_classes)}
        columns |= {f"loss_{j}": self.losses[:, j].tolist() for j in range(self.n_classes)}
        return columns if self.expected is None else columns | {"expected": self.expected.tolist()}

    def plot(self, ax: Any = None) -> Any:
        """Draw a panel for each outcome, or one for the expected loss.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; for three classes without a truth, a list of three.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw
        from verax.wings.theory.figures import landscape_sheet

        return draw(landscape_sheet(self), ax)

    def _heading(self) -> str:
        truth = "" if self.truth is None else f", truth {in_words(self.truth)}"
        return f"Landscape of {self.rule} over {self.n_classes} classes{truth}."

    def _notes(self) -> list[str]:
        return [self.sentence]


def in_words(p: Floats) -> str:
    """A forecast as a text."""
    return f"({', '.join(_number(x) for x in p)})"


def _number(x: float) -> str:
    return f"{x + 0.0:.4g}"


def _checked(truth: Any, n_classes: int) -> Floats:
    try:
        rows, single = distributions(truth, "truth")
    except InputError as error:
        # A truth is not rescaled, so there is no option to advise.
        raise error.replace(remedies=()) from None
    q = to_host(rows)
    if not single or q.shape[1] != n_classes:
        fits = single and q.shape[1] in _UNITS
        raise InputError(
            f"must have shape ({n_classes},), a probability for each class",
            argument="truth",
            kind="length",
            found=f"its shape is {q.shape[1:] if single else q.shape}",
            remedies=[passing("for a truth of this length", n_classes=q.shape[1])] if fits else [],
        )
    return np.asarray(q[0], np.float64)


def _lattice(n_classes: int) -> Floats:
    """All forecasts with the denominator of this number of classes."""
    units = _UNITS[n_classes]
    axes = np.meshgrid(*[np.arange(units + 1)] * (n_classes - 1), indexing="ij")
    counts = np.stack([a.ravel() for a in axes], axis=1)
    rest = units - counts.sum(axis=1)
    return np.asarray(np.column_stack([counts, rest])[rest >= 0] / units)


# ---- the search ----------------------------------------------------------------------------------


def _lowest(losses: Callable[[Floats], Floats], points: Floats, loss: Floats, truth: Floats) -> Lowest:
    """The lowest place of the expected loss, by steps from several starts."""

    def objective(p: Floats) -> Floats:
        return np.nan_to_num(expected(losses(p), truth), nan=np.inf, posinf=np.inf, neginf=-np.inf)

    losses_of_truth = losses(truth[None, :])
    of_truth = float(expected(losses_of_truth, truth)[0])
    values = np.nan_to_num(expected(loss, truth), nan=np.inf, posinf=np.inf, neginf=-np.inf)
    starts = np.concatenate([truth[None, :], _spread(points, values)])
    forecast = _simplest(objective, *_descend(objective, starts, 1 / _UNITS[len(truth)]))
    best = float(objective(forecast[None, :])[0])
    scale = np.maximum(magnitude(losses_of_truth).max(), abs(best) if np.isfinite(best) else 0.0)
    if not best < of_truth - doubts(magnitude(np.asarray(of_truth)), scale):
        forecast, best = truth, of_truth
    others = apart(points, forecast) & equal(values, np.asarray(best), scale)
    return Lowest(forecast, best, not bool(others.any()), of_truth)


def _spread(points: Floats, values: Floats) -> Floats:
    """The best points that are not too near to each other."""
    chosen: list[Floats] = []
    left = np.argsort(values, kind="stable")
    while len(left) and len(chosen) < _STARTS:
        chosen.append(points[left[0]])
        left = left[np.abs(points[left] - chosen[-1]).sum(axis=1) >= _BETWEEN]
    return np.array(chosen)


def _descend(objective: Callable[[Floats], Floats], x: Floats, step: float) -> tuple[Floats, Floats]:
    """Move mass between classes from each row as long as that helps; return the rows and values reached.

    Moves are tried in both directions between each two classes, and between one class and all others alike,
    so that classes that tie stay tied. A class gives at most what it has, which reaches the faces exactly.
    The rule may jump: nothing is assumed about it.
    """
    values, steps = objective(x), np.full(len(x), step)
    moves = _moves(x.shape[1])
    for _ in range(_MOST_ROUNDS):
        if not (steps > _SMALLEST_STEP).any():
            break
        size = np.broadcast_to(steps[:, None, None], (*x.shape[:1], len(moves), 1))
        room = np.where(moves < 0, x[:, None, :] / np.where(moves < 0, -moves, 1.0), np.inf)
        tried = x[:, None, :] + np.minimum(size, room.min(axis=2, keepdims=True)) * moves
        tried = np.where(tried < _NOTHING, 0.0, tried)
        values_tried = objective(tried.reshape(-1, x.shape[1])).reshape(len(x), -1)
        best = values_tried.argmin(axis=1)
        rows = np.arange(len(x))
        better = values_tried[rows, best] < values
        x = np.where(better[:, None], tried[rows, best], x)
        values = np.where(better, values_tried[rows, best], values)
        steps = np.where(better, steps, steps / 2)
    return x, values


def _moves(n_classes: int) -> Floats:
    """Directions that leave the sum as it is."""
    unit = np.eye(n_classes)
    pairs = [unit[i] - unit[j] for i, j in permutations(range(n_classes), 2)]
    shared = [(1 - unit[i]) / (n_classes - 1) - unit[i] for i in range(n_classes)]
    return np.array([*pairs, *shared, *(-move for move in shared)])


def _simplest(objective: Callable[[Floats], Floats], x: Floats, values: Floats) -> Floats:
    """The best row, or one with a small denominator next to one that is as good up to rounding."""
    limit = values.min() + _ROUNDING * abs(values.min())
    best = x[values <= limit]
    for total in (1, *DENOMINATORS):
        simple = np.array([to_counts(p, total) for p in best]) / total
        fine = (np.abs(simple - best).sum(axis=1) <= _NEAR) & (objective(simple) <= limit)
        if fine.any():
            return np.asarray(simple[fine.argmax()])
    return np.asarray(best[0])
