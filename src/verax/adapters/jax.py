"""JAX: any rule as a loss of logits (`Loss`), for `jax.jit`, `jax.grad` and `jax.vmap`, on every device.

Logits come first and classes last, as in Optax: (..., K) with targets (...) or (..., K).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from verax.adapters.rows import (
    ArgumentNames,
    NumpyCalls,
    TrainingRows,
    check_label_smoothing,
    refuse_invalid,
    warn_of_no_rows,
)
from verax.adapters.training import trainable
from verax.common.checks import check_choice, check_flag, check_integer
from verax.errors import InputError, Remedy
from verax.inputs.arrays import Array, is_traced
from verax.inputs.validity import Unity
from verax.scores.base import Rule
from verax.scores.registry import name_of

Reduction = Literal["mean", "sum", "none"]
_NAMES = ArgumentNames("logits", "target", "weights", "logits", "ignore_index")
_LIMIT = Unity.at(16).limit


class _JaxCalls:
    """`jax.numpy`, with the calls of training rows that it lacks."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)

    def softmax(self, z: Array) -> Array:
        return jax.nn.softmax(z, axis=1)

    def log_softmax(self, z: Array) -> Array:
        return jax.nn.log_softmax(z, axis=1)

    def positions(self, n: int, _: Array) -> Array:
        return jnp.arange(n)

    def cumulative_sum(self, x: Array, axis: int) -> Array:
        return jnp.cumsum(x, axis=axis)


_xp: Any = _JaxCalls()


class Loss:
    """A scoring rule as a training loss of logits.

    Rules that depend on the most likely class alone have no gradient and are refused; a penalized rule has
    the gradient of the rule inside. A row of logits with NaN or inf has the loss NaN. Where values can be
    looked at, invalid targets and weights raise an `InputError`; inside `jax.jit` the loss of such rows is
    NaN.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    reduction : {"mean", "sum", "none"}, default "mean"
        "mean" divides by the sum of the weights; "none" gives a loss for each target, times its weight.
    class_weights : sequence of K floats, optional
        Weights of the outcome classes.
    ignore_index : int, optional
        Target of rows to ignore. The mean of no rows is NaN.
    label_smoothing : float, default 0.0
        Share of every target that is divided evenly among all classes.
    labels : bool, default False
        Whether each of the (..., L) logits belongs to a label that a row has or has not, with targets of the
        same shape: 0 and 1, or probabilities. The loss is the mean over the labels of the rule for two
        classes.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from verax.adapters.jax import Loss
    >>> logits = jnp.asarray([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    >>> loss = Loss("rps")
    >>> round(float(loss(logits, jnp.asarray([0, 2]))), 4)
    0.1689
    >>> jax.jit(jax.grad(loss))(logits, jnp.asarray([0, 2])).shape
    (2, 3)
    """

    def __init__(
        self,
        rule: Rule | str,
        *,
        reduction: Reduction = "mean",
        class_weights: Sequence[float] | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        labels: bool = False,
    ) -> None:
        self.rule: Rule = trainable(rule)
        check_choice("reduction", reduction, get_args(Reduction))
        self.reduction: Reduction = reduction
        self.class_weights: Any = None if class_weights is None else np.asarray(class_weights, np.float64)
        self.ignore_index: int | None = (
            None if ignore_index is None else check_integer("ignore_index", ignore_index)
        )
        self.label_smoothing: float = check_label_smoothing(label_smoothing)
        self.labels: bool = check_flag("labels", labels)

    def __call__(self, logits: Any, target: Any, weights: Any = None) -> Array:
        """Compute the loss of logits for the targets.

        Parameters
        ----------
        logits : array of shape (..., K)
            The logits.
        target : array of shape (...) or (..., K)
            Class positions, which are integers, or distributions, which are floats.
        weights : array of shape (...), optional
            Weights of the targets.

        Returns
        -------
        array
            A single loss, or one per target, according to `reduction`.
        """
        batch, shape = self._read(jnp.asarray(logits), jnp.asarray(target), weights)
        given = jnp.asarray(logits).dtype
        class_weights = None
        if self.class_weights is not None:
            class_weights = jnp.asarray(self.class_weights, batch.rows.dtype)
        scored, factor, divisor = batch.for_training(class_weights, self.label_smoothing)
        losses = jnp.where(batch.invalid, jnp.nan, scored.losses(self.rule))
        losses = losses if factor is None else losses * factor
        if self.reduction == "none":
            return losses.reshape(shape).astype(given)
        total, whole = losses.sum(), losses.size if divisor is None else divisor.sum()
        if self.reduction == "sum":
            return total.astype(given)
        if not is_traced(whole) and not float(whole):
            warn_of_no_rows()
        return (total / whole).astype(given)

    def _read(self, logits: Array, target: Array, weights: Any) -> tuple[TrainingRows, tuple[int, ...]]:
        """The rows of a batch, and the shape of their losses."""
        soft = jnp.issubdtype(target.dtype, jnp.floating)
        dtype = jnp.promote_types(logits.dtype, jnp.float32)
        dtype = jnp.promote_types(dtype, target.dtype) if soft else dtype
        z, shape = logits.astype(dtype), tuple(logits.shape) if self.labels else tuple(logits.shape[:-1])
        self._check_shapes(logits, target, shape, soft=soft)
        kept = None
        if self.labels:
            z, y = z.reshape(-1), target.reshape(-1).astype(dtype)
            kept = None if self.ignore_index is None else y != self.ignore_index
            z, y = jnp.stack([jnp.zeros_like(z), z], axis=1), jnp.stack([1 - y, y], axis=1)
        else:
            z = z.reshape(-1, z.shape[-1])
            y = target.reshape(z.shape).astype(dtype) if soft else target.reshape(-1)
            if self.ignore_index is not None and not soft:
                kept = y != self.ignore_index
        w = None if weights is None else self._weights(jnp.asarray(weights, dtype), shape)
        batch = TrainingRows(_xp, z, y, w, True, 0.0, _LIMIT)
        batch = batch if kept is None else batch.without(kept)
        if not is_traced(batch.target) and (w is None or not is_traced(w)):
            _refuse_invalid(batch)
        return batch, shape

    def _weights(self, weights: Array, shape: tuple[int, ...]) -> Array:
        # Labels have weights of their own, or those of their rows.
        if self.labels and weights.shape == shape[:-1]:
            weights = jnp.broadcast_to(weights[..., None], shape)
        if weights.shape != shape:
            raise InputError(
                f"must have the shape {shape}",
                argument="weights",
                kind="length",
                found=f"the shape is {tuple(weights.shape)}",
            )
        return weights.reshape(-1)

    def _check_shapes(self, logits: Array, target: Array, shape: tuple[int, ...], *, soft: bool) -> None:
        if not jnp.issubdtype(logits.dtype, jnp.floating) or logits.ndim < 1 + (not self.labels):
            raise InputError(
                "must be floating-point rows of classes, (..., K)",
                argument="logits",
                kind="type",
                found=f"they are {logits.dtype} of shape {tuple(logits.shape)}",
            )
        if not self.labels and logits.shape[-1] < 2:
            raise InputError(
                "must have at least two classes",
                argument="logits",
                kind="type",
                found=f"the shape is {tuple(logits.shape)}",
                remedies=[
                    Remedy("For two classes by one sigmoid logit each pass labels=True.", python_only=True),
                    Remedy("Or pass two columns, one for each class.", python_only=True),
                ],
            )
        expected = tuple(logits.shape) if soft or self.labels else shape
        if tuple(target.shape) != expected:
            raise InputError(
                f"must have the shape {expected}, for logits of shape {tuple(logits.shape)}",
                argument="target",
                kind="length",
                found=f"the shape is {tuple(target.shape)}",
            )

    def __repr__(self) -> str:
        return f"Loss({name_of(self.rule)}, reduction={self.reduction!r})"


def _refuse_invalid(batch: TrainingRows) -> None:
    """Raise the error that the first invalid target or weight calls for."""
    target, weights = (None if x is None else np.asarray(x) for x in (batch.target, batch.weights))
    assert target is not None
    target = target if target.ndim == 2 else target.astype(np.int64)
    # Logits are not looked at: of them the classes alone are needed.
    rows = np.zeros((1, batch.n_classes))
    refuse_invalid(TrainingRows(NumpyCalls(), rows, target, weights, True, 0.0, batch.target_limit), _NAMES)
