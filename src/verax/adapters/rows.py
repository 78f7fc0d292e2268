"""Rows of a training loop, in any array namespace: their losses, and the sums that metrics keep.

Targets are classes or distributions. No value is looked at, so compiled code can be traced and no device has
to wait: what is invalid is flagged.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from verax.common.checks import check_number
from verax.engines.counts import CONFUSION_UP_TO, n_cells
from verax.engines.stats import RowStats, ShareStats, reduce_outcomes, reduce_rows
from verax.errors import InputError, passing
from verax.inputs.arrays import Array
from verax.inputs.forecasts import log_softmax, softmax
from verax.kernels.statistics import LOGARITHMS
from verax.scores.base import Rule


class NumpyCalls:
    """NumPy by its quickest calls, with those that it lacks; namespaces of frameworks have the same."""

    concat: Any = staticmethod(np.concatenate)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def softmax(self, z: Array) -> Array:
        return softmax(z, self)

    def log_softmax(self, z: Array) -> Array:
        return log_softmax(z, self)

    def positions(self, n: int, _: Array) -> Array:
        """The numbers 0..n-1, on the device of an array."""
        return np.arange(n)

    def add_up(self, n: int, places: Array, values: Array) -> Array:
        """The sums of the values by their places in 0..n-1."""
        return np.bincount(places, values, n)

    def sum(self, x: Array, axis: int | None = None, keepdims: Any = False) -> Array:
        return np.add.reduce(x, axis, keepdims=keepdims)

    def all(self, x: Array, axis: int | None = None) -> Array:
        return np.logical_and.reduce(x, axis)

    def any(self, x: Array, axis: int | None = None) -> Array:
        return np.logical_or.reduce(x, axis)

    def max(self, x: Array, axis: int, keepdims: Any = False) -> Array:
        return np.maximum.reduce(x, axis, keepdims=keepdims)

    def min(self, x: Array, axis: int) -> Array:
        return np.minimum.reduce(x, axis)

    def cumulative_sum(self, x: Array, axis: int) -> Array:
        return np.add.accumulate(x, axis)

    def flip(self, x: Array, axis: int) -> Array:
        return x[:, ::-1] if axis == 1 else x[::-1]

    def stack(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        return np.array(arrays).T if axis == 1 else np.array(arrays)

    def take_along_axis(self, x: Array, places: Array, axis: int) -> Array:
        return x[np.arange(len(x))[:, None], places] if axis == 1 else x[places]

    def clip(self, x: Array, low: int, high: int) -> Array:
        return np.minimum(np.maximum(x, low), high)

    def astype(self, x: Array, dtype: Any) -> Array:
        return x.astype(dtype)


@dataclass(frozen=True)
class TrainingRows:
    """Predictions as (N, K) rows with their targets.

    Attributes
    ----------
    xp : namespace
        What computes with them.
    rows : array of shape (N, K)
        Logits if `logits` is true, else probabilities.
    target : array of shape (N,) or (N, K)
        Positions of classes, or distributions. Invalid ones stay as they are: see `bad_targets`.
    weights : array of shape (N,), optional
        Weights of the rows.
    logits : bool
        What `rows` are.
    limit, target_limit : float
        How far sums of probabilities, and of targets that are distributions, may be from 1.
    kept : array of shape (N,), optional
        Which rows count. Rows that do not are uniform forecasts of class 0 with weight 0.
    """

    xp: Any
    rows: Array
    target: Array
    weights: Array | None
    logits: bool
    limit: float
    target_limit: float
    kept: Array | None = None

    @property
    def n_classes(self) -> int:
        return int(self.rows.shape[1])

    @property
    def shared(self) -> bool:
        """Whether targets are distributions."""
        return len(self.target.shape) == 2

    @property
    def y(self) -> Array:
        """The positions of targets that are classes; the nearest class for others."""
        return self.xp.clip(self.target, 0, self.n_classes - 1)

    def statistics(self, needs: Collection[str]) -> RowStats:
        """The row statistics `needs`, in the precision of the rows."""
        xp = self.xp
        p = xp.softmax(self.rows) if self.logits else self.rows
        log_p = xp.log_softmax(self.rows) if self.logits and LOGARITHMS & set(needs) else None
        columns = xp.positions(self.n_classes, p)
        if not self.shared:
            return reduce_rows(xp, p, self.y, columns, needs, log_p=log_p)
        stats = reduce_outcomes(xp, p, columns, needs, log_p=log_p)
        return ShareStats(xp, self.n_classes, int(p.shape[0]), (None, self.target, stats))

    def losses(self, rule: Rule) -> Array:
        """The loss of each row: by a distribution, the mean over its classes; NaN of logits that are none."""
        stats = self.statistics(rule.needs)
        loss = stats.loss(rule)
        # A formula may lose what it is given in a comparison.
        return loss + 0 * stats.p_true if self.logits else loss

    def without(self, kept: Array) -> TrainingRows:
        """The rows with fewer that count; shapes stay, so no device has to wait."""
        xp = self.xp
        ones = xp.ones_like(self.rows[:, 0]) if self.weights is None else self.weights
        blank = 0.0 if self.logits else 1 / self.n_classes
        return replace(
            self,
            # Not a product with the mask: NaN logits of ignored rows must not reach the gradient.
            rows=xp.where(kept[:, None], self.rows, blank),
            target=xp.where(kept[:, None], self.target, 1 / self.n_classes)
            if self.shared
            else xp.where(kept, self.target, 0),
            weights=xp.where(kept, ones, 0.0),
            kept=kept if self.kept is None else self.kept & kept,
        )

    def smoothed(self, smoothing: float) -> TrainingRows:
        """The rows with targets that are distributions, mixed with equal shares of all classes."""
        shares = self.target
        if not self.shared:
            columns = self.xp.positions(self.n_classes, self.rows)
            shares = self.xp.astype(columns[None, :] == self.target[:, None], self.rows.dtype)
        return replace(self, target=(1 - smoothing) * shares + smoothing / self.n_classes)

    def for_training(
        self, class_weights: Array | None, smoothing: float
    ) -> tuple[TrainingRows, Array | None, Array | None]:
        """The rows to score, the factor of each loss, and what their mean divides by; None where all are 1.

        As in cross entropy, a class counts in a distribution by its weight, and the mean over distributions
        does not divide by these weights.
        """
        scored, factor, divisor = self, self.weights, self.weights
        if class_weights is not None and not self.shared:
            divisor = self._times(self._of_classes(class_weights))
        if not self.shared and not smoothing:
            return self, divisor, divisor
        scored = self.smoothed(smoothing)
        if class_weights is not None:
            scored = replace(scored, target=scored.target * class_weights[None, :])
        return scored, factor, divisor

    def _of_classes(self, class_weights: Array) -> Array:
        """The weight of each row's target; of a distribution, the mean over its classes."""
        if self.shared:
            return self.xp.sum(self.target * class_weights[None, :], axis=1)
        return self.xp.take_along_axis(class_weights, self.y, axis=0)

    def _times(self, weights: Array) -> Array:
        return weights if self.weights is None else weights * self.weights

    def weighted_by(self, class_weights: Array) -> TrainingRows:
        """The rows weighted by their targets; the classes of a distribution each have their weight."""
        of_targets, target = self._of_classes(class_weights), self.target
        if self.shared:
            shares = target * class_weights[None, :] / self.xp.where(of_targets > 0, of_targets, 1.0)[:, None]
            # Rows without weight keep their targets, and those of invalid rows stay invalid.
            changed = (of_targets > 0) & ~self.bad_targets
            target = self.xp.where(changed[:, None], shares, target)
        return replace(self, target=target, weights=self._times(of_targets))

    # ---- what must not be there ----------------------------------------------------------------

    @property
    def bad_values(self) -> Array:
        """Rows with values that neither probabilities nor logits have."""
        finite = self.rows < math.inf
        if self.logits:
            return ~(self.xp.all(finite, axis=1) & self.xp.any(self.rows > -math.inf, axis=1))
        return ~self.xp.all(finite & (self.rows >= 0), axis=1)

    @property
    def bad_sums(self) -> Array:
        """Rows of probabilities that do not sum to 1."""
        return ~(self.xp.abs(self.xp.sum(self.rows, axis=1) - 1) <= self.limit)

    @property
    def bad_targets(self) -> Array:
        """Rows with invalid targets: outside the classes, or not a distribution."""
        if not self.shared:
            return (self.target < 0) | (self.target >= self.n_classes)
        whole = self.xp.abs(self.xp.sum(self.target, axis=1) - 1) <= self.target_limit
        return ~(self.xp.all(self.target >= 0, axis=1) & whole)

    @property
    def bad_weights(self) -> Array | None:
        """Rows with a weight that is negative or not finite."""
        return None if self.weights is None else ~((self.weights >= 0) & (self.weights < math.inf))

    @property
    def invalid(self) -> Array:
        """Rows whose loss means nothing; logits that are broken have none anyway."""
        bad = self.bad_targets if self.weights is None else self.bad_targets | self.bad_weights
        return bad if self.logits else bad | self.bad_values | self.bad_sums


class ArgumentNames(NamedTuple):
    """A framework's names of its arguments: predictions, targets, weights, and the ignored target."""

    preds: str
    target: str
    weights: str
    logits: str
    ignore: str


def refuse_invalid(batch: TrainingRows, names: ArgumentNames) -> None:
    """Raise the error that the first invalid row of a loss calls for; rows are NumPy's."""
    y, plain = batch.target, batch.logits and batch.weights is None and not batch.shared
    # What nearly all calls come to, in one step.
    if plain and _are_positions(y, batch.n_classes):
        return
    checks = [(batch.bad_targets, _bad_target), (batch.bad_weights, _bad_weight)]
    if not batch.logits:
        checks += [(batch.bad_values | batch.bad_sums, _bad_forecast)]
    for bad, error in checks:
        if bad is not None and bool(batch.xp.any(bad)):
            row = int(batch.xp.argmax(batch.xp.astype(bad, batch.rows.dtype)))
            raise error(batch, row, names).replace(rows=[row], count=int(batch.xp.sum(bad)))


def _bad_target(batch: TrainingRows, row: int, names: ArgumentNames) -> InputError:
    target = batch.target[row]
    if batch.shared:
        least = float(batch.xp.min(target, 0))
        found = f"row {row} sums to {float(batch.xp.sum(target)):g}"
        found = found if least >= 0 else f"row {row} holds {least:g}"
        return InputError(
            "rows must be distributions: not negative, with the sum 1",
            argument=names.target,
            kind="sum",
            found=found,
        )
    value = int(target)
    return InputError(
        f"must hold class positions from 0 to {batch.n_classes - 1}",
        argument=names.target,
        kind="label",
        found=f"row {row} holds {value}",
        values=[value],
        remedies=[passing("to leave such rows out", **{names.ignore: value})],
    )


def _bad_weight(batch: TrainingRows, row: int, names: ArgumentNames) -> InputError:
    assert batch.weights is not None
    value = float(batch.weights[row])
    return InputError(
        "must be finite and not negative",
        argument=names.weights,
        kind="sign",
        found=f"row {row} has {value:g}",
        values=[value],
    )


def _bad_forecast(batch: TrainingRows, row: int, names: ArgumentNames) -> InputError:
    return InputError(
        "rows must be probabilities: not negative, with the sum 1",
        argument=names.preds,
        kind="sum",
        found=f"row {row} sums to {float(batch.xp.sum(batch.rows[row])):g}",
        remedies=[passing("if these are logits", **{names.logits: True})],
    )


# ---- sums --------------------------------------------------------------------------------------


# The counts from this one on are of rows that must not be there.
INVALID = 2


@dataclass(frozen=True)
class BatchSums:
    """The sums of a metric.

    Attributes
    ----------
    sums : array
        The weight; for each rule the sums of w, w * loss and w * loss^2 over the rows with a finite loss, and
        of w over the rows with an infinite one.
    counts : array
        How many rows there are, had given their outcome probability zero, and hold invalid values, sums,
        targets and weights.
    squares : array, optional
        The number of rows with weight, the sum of w^2, and for each rule the sums with w^2.
    cells, squared_cells : array, optional
        Weights and squared weights as `verax.engines.counts.Counts` keeps them.
    first : array, optional
        Of what is counted, the number of the first such row; 0 also where there is none. None from NumPy if
        no row is invalid.
    """

    sums: Array
    counts: Array
    squares: Array | None = None
    cells: Array | None = None
    squared_cells: Array | None = None
    first: Array | None = None

    @property
    def arrays(self) -> tuple[Array, Array, Array | None, Array | None, Array | None]:
        """All of them, in this order."""
        return self.sums, self.counts, self.squares, self.cells, self.squared_cells


def batch_sums(rules: Sequence[Rule], batch: TrainingRows, *, decisions: bool) -> BatchSums:
    """The sums of a batch; with `decisions` those of a card."""
    xp = batch.xp
    needs = {name for rule in rules for name in rule.needs}
    stats = batch.statistics(needs | {"decision"} if decisions else needs)
    losses = xp.stack([stats.loss(rule) for rule in rules])
    plain = None if decisions else _plain_sums(batch, losses, stats.impossible)
    if plain is not None:
        return plain
    w = xp.ones_like(batch.rows[:, 0]) if batch.weights is None else batch.weights
    infinite = losses == math.inf
    finite = xp.where(infinite, 0.0, losses)
    sums = [*_moments(xp, xp.where(infinite, 0.0, w), finite), xp.sum(xp.where(infinite, w, 0.0), axis=1)]
    total = xp.concat([xp.sum(w)[None], xp.reshape(xp.stack(sums, axis=1), (-1,))])
    counts, first = _counts(batch, stats.impossible, w)
    if not decisions:
        return BatchSums(total, counts, first=first)
    square = w * w
    squares = xp.stack(_moments(xp, xp.where(infinite, 0.0, square), finite), axis=1)
    head = xp.stack([xp.sum(xp.astype(w > 0, w.dtype)), xp.sum(square)])
    cells = _cell_sums(batch, stats.decision)
    whole = xp.concat([head, xp.reshape(squares, (-1,))])
    return BatchSums(total, counts, whole, cells(w), cells(square), first)


def _plain_sums(batch: TrainingRows, losses: Array, impossible: Array) -> BatchSums | None:
    """The sums of valid rows without weights, by NumPy, in few calls; None of others and infinite losses."""
    n = len(batch.rows)
    if not (isinstance(losses, np.ndarray) and batch.weights is None and n and _is_plainly_valid(batch)):
        return None
    first = np.add.reduce(losses, 1)
    if not np.isfinite(first).all():
        return None
    sums = np.zeros(1 + 4 * len(losses), losses.dtype)
    sums[:2], sums[5::4], sums[2::4] = n, n, first
    sums[3::4] = np.add.reduce(losses * losses, 1)
    return BatchSums(sums, np.array([n, np.count_nonzero(impossible), 0, 0, 0, 0]))


def _is_plainly_valid(batch: TrainingRows) -> bool:
    """Whether a glance at rows of NumPy shows that they are valid, with classes and finite numbers."""
    if batch.shared or not _are_positions(batch.target, batch.n_classes):
        return False
    least = np.minimum.reduce(batch.rows, None)
    if batch.logits:
        return bool(least > -math.inf and np.maximum.reduce(batch.rows, None) < math.inf)
    return bool(least >= 0 and np.maximum.reduce(np.abs(np.add.reduce(batch.rows, 1) - 1)) <= batch.limit)


def _are_positions(y: Array, n_classes: int) -> bool:
    """Whether all targets are classes: without a sign negative numbers are large ones."""
    return not y.size or bool(y.view(np.uint64).max() < n_classes)


def _moments(xp: Any, w: Array, loss: Array) -> list[Array]:
    total = w * loss
    return [xp.sum(w, axis=1), xp.sum(total, axis=1), xp.sum(total * loss, axis=1)]


def _counts(batch: TrainingRows, impossible: Array, w: Array) -> tuple[Array, Array | None]:
    """The number of rows of each kind, and the first of each, as `BatchSums` has them."""
    xp, values = batch.xp, batch.bad_values
    none = values ^ values
    kinds = [
        ~none if batch.kept is None else batch.kept,
        impossible & (w > 0),
        values,
        none if batch.logits else batch.bad_sums & ~values,
        batch.bad_targets,
        none if batch.weights is None else batch.bad_weights,
    ]
    flags = xp.stack(kinds)
    counts = xp.sum(flags, axis=1)
    if isinstance(counts, np.ndarray) and not counts[INVALID:].any():
        return counts, None
    return counts, xp.argmax(xp.astype(flags, batch.rows.dtype), axis=1)


def _cell_sums(batch: TrainingRows, decision: Array) -> Callable[[Array], Array]:
    """Sums of weights by outcome and decision; of too many classes by outcome, then of correct decisions."""
    xp, k = batch.xp, batch.n_classes
    table = k <= CONFUSION_UP_TO
    # The place after the last is for what no cell has: decisions of invalid rows, and wrong ones.
    if not batch.shared:
        y = batch.y
        places = y * k + decision if table else xp.concat([y, xp.where(y == decision, k, k + 1)])
        return lambda w: xp.add_up(n_cells(k) + 1, places, w if table else xp.concat([w, w]))[: n_cells(k)]
    columns = xp.positions(k, batch.rows)[None, :]
    right = xp.sum(xp.where(columns == decision[:, None], batch.target, 0.0), axis=1)

    def of_shares(w: Array) -> Array:
        weights = w[:, None] * batch.target
        if table:
            places = xp.reshape(columns * k + decision[:, None], (-1,))
            return xp.add_up(n_cells(k) + 1, places, xp.reshape(weights, (-1,)))[: n_cells(k)]
        return xp.concat([xp.sum(weights, axis=0), xp.sum(w * right)[None]])

    return of_shares


def warn_of_no_rows() -> None:
    """Warn that a mean is NaN because no row counts."""
    warnings.warn(
        "There is no row to score, because all are ignored or have the weight 0: the mean loss is NaN.",
        RuntimeWarning,
        stacklevel=3,
    )


def check_label_smoothing(value: float) -> float:
    """`value` as a share that every target gives to all classes; everything else is refused."""
    return check_number("label_smoothing", value, "must lie between 0 and 1", lambda share: 0 <= share <= 1)
