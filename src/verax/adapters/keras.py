"""Keras 3: any rule as a metric (`Score`) or as a loss (`Loss`), on every backend, through `keras.ops`.

`RefinementScore` logs the loss after recalibration at the end of every epoch.

Targets come first, as everywhere in Keras: class positions or one-hot rows, (N,), (N, 1) or (N, K),
with predictions (N, K); sequences have more dimensions before the last. Predictions of one column
are for class 1 of two.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verax.adapters.training import trainable
from verax.analyses.refinement.epochs import RefinementLoss
from verax.engines.arrays import reduce_rows
from verax.engines.stats import RowStats
from verax.errors import InputError, MissingPackageError
from verax.inputs.arrays import Array
from verax.inputs.validity import Unity
from verax.kernels.compensation import two_sum
from verax.scores.base import Rule
from verax.scores.registry import name_of, parse

try:
    import keras
    from keras import ops
except ImportError as _error:
    _missing: str = str(_error.name).partition(".")[0]
    raise MissingPackageError(
        f"verax.adapters.keras needs {'Keras 3' if _missing == 'keras' else f'the backend {_missing}'}: "
        "pip install 'verax-scores[keras]' and a backend (torch, jax or tensorflow), named in KERAS_BACKEND."
    ) from None


class _Namespace:
    """`keras.ops` under the names of the array API, as far as they differ."""

    inf: float = math.inf
    nan: float = math.nan
    pi: float = math.pi
    e: float = math.e
    _elsewhere = {  # noqa: RUF012
        "astype": "cast",
        "concat": "concatenate",
        "cumulative_prod": "cumprod",
        "cumulative_sum": "cumsum",
        "permute_dims": "transpose",
        "pow": "power",
    }

    def __getattr__(self, name: str) -> Any:
        return getattr(ops, self._elsewhere.get(name, name))


xp: _Namespace = _Namespace()


@dataclass(frozen=True)
class _KerasRows:
    """Predictions as (N, K) rows with their outcomes; `fits` tells which outcomes are classes."""

    rows: Array
    y: Array
    fits: Array
    logits: bool

    def statistics(self, needs: Collection[str]) -> RowStats:
        p = ops.softmax(self.rows, axis=1) if self.logits else self.rows
        columns = ops.arange(p.shape[1], dtype="int32")
        return reduce_rows(xp, p, self.y, columns, needs, logits=self.rows if self.logits else None)

    def valid(self, tolerance: float) -> Array:
        """Which rows are forecasts of a class that can happen."""
        finite = self.rows < math.inf
        if self.logits:
            return self.fits & ops.all(finite, axis=1) & ops.any(self.rows > -math.inf, axis=1)
        whole = ops.abs(ops.sum(self.rows, axis=1) - 1) <= tolerance
        return self.fits & ops.all(finite & (self.rows >= 0), axis=1) & whole


def _read(y_true: Array, y_pred: Array, *, from_logits: bool) -> _KerasRows:
    """Rows of Keras's forms of targets and predictions, in float32 or what is wider."""
    rows = ops.cast(y_pred, _wide(y_pred))
    rows = ops.expand_dims(rows, -1) if len(rows.shape) == 1 else rows
    if rows.shape[-1] == 1:
        rows = ops.concatenate([ops.zeros_like(rows) if from_logits else 1 - rows, rows], axis=-1)
    k = int(rows.shape[-1])
    y, fits = _outcomes(ops.cast(y_true, rows.dtype), k, len(rows.shape) - 1)
    return _KerasRows(
        ops.reshape(rows, (-1, k)), ops.reshape(y, (-1,)), ops.reshape(fits, (-1,)), from_logits
    )


def _outcomes(y_true: Array, k: int, n_dimensions: int) -> tuple[Array, Array]:
    """Positions, with those outside brought to the nearest class, and which of them are classes."""
    last = y_true.shape[-1] if len(y_true.shape) == n_dimensions + 1 else None
    if last == k:
        right = (ops.max(y_true, axis=-1) == 1) & (ops.sum(ops.abs(y_true), axis=-1) == 1)
        return ops.cast(ops.argmax(y_true, axis=-1), "int32"), right
    if last == 1:
        y_true = ops.squeeze(y_true, axis=-1)
    elif len(y_true.shape) != n_dimensions:
        raise InputError(
            f"must be class positions or one-hot rows of {k} classes",
            argument="y_true",
            kind="type",
            found=f"its shape is {tuple(y_true.shape)}",
        )
    y = ops.cast(ops.clip(y_true, 0, k - 1), "int32")
    return y, ops.cast(y, y_true.dtype) == y_true


def _wide(x: Array) -> str:
    return str(keras.backend.result_type(keras.backend.standardize_dtype(x.dtype), "float32"))


@keras.saving.register_keras_serializable(package="verax")
class Score(keras.metrics.Metric):  # type: ignore[misc]
    """The weighted mean loss of a rule, as a Keras metric. Lower is better.

    It has the name of its rule, so that callbacks watch "val_pbs". It is NaN if any row is invalid
    (negative, not summing to one, an unknown class), because compiled code cannot raise errors. Infinite
    losses are not clipped; they make it infinite. Sums are compensated for rounding errors.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    from_logits : bool, default False
        Whether predictions are logits. This is never guessed.
    name : str, optional
        The name of the metric; by default that of the rule.
    dtype : str or dtype policy, optional
        Data type, as for every Keras metric.

    Examples
    --------
    >>> from verax.adapters.keras import Score
    >>> metric = Score("pbs")
    >>> metric.update_state([0, 1], [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    >>> round(float(metric.result()), 4)
    0.8333
    """

    def __init__(
        self, rule: Rule | str, *, from_logits: bool = False, name: str | None = None, dtype: Any = None
    ) -> None:
        self.rule = parse(rule)
        self.from_logits = from_logits
        super().__init__(name=name or name_of(self.rule), dtype=dtype)
        self._direction = "down"  # which way is better, where Keras asks in mode="auto"
        # The sums of w and w * loss over the rows with a finite loss, and of w over the rows with an
        # infinite one; below each the sum of its rounding errors.
        self._sums = self.add_variable((2, 3), "zeros", dtype=self.dtype, name="sums")
        self._n_invalid = self.add_variable((), "zeros", dtype="int32", name="n_invalid")

    def update_state(self, y_true: Array, y_pred: Array, sample_weight: Array | None = None) -> None:
        """Add targets, predictions and weights.

        Parameters
        ----------
        y_true : tensor of shape (N,), (N, 1) or (N, K)
            Targets: class positions or one-hot rows.
        y_pred : tensor of shape (N, K), (N, 1) or (N,)
            Predictions: probabilities, or logits if the metric takes these.
        sample_weight : tensor of shape (N,), optional
            Weights of the rows.
        """
        y_pred, y_true = ops.convert_to_tensor(y_pred), ops.convert_to_tensor(y_true)
        batch = _read(y_true, y_pred, from_logits=self.from_logits)
        loss = ops.cast(batch.statistics(self.rule.needs).loss(self.rule), self.dtype)
        w, seen = self._weights(loss, y_pred, sample_weight)
        infinite = loss == math.inf
        zero = ops.zeros_like(loss)
        finite = ops.where(infinite | ~seen, zero, loss)
        counted = ops.where(infinite, zero, w)
        self._plus(ops.stack([ops.sum(counted), ops.sum(counted * finite), ops.sum(w - counted)]))
        bits = int(keras.backend.standardize_dtype(y_pred.dtype)[-2:])
        invalid = seen & ~(batch.valid(Unity.at(bits).limit) & (w >= 0) & (w < math.inf))
        self._n_invalid.assign(self._n_invalid + ops.sum(ops.cast(invalid, "int32")))

    def _weights(self, loss: Array, y_pred: Array, sample_weight: Array | None) -> tuple[Array, Array]:
        """A weight for each loss, and which rows a mask leaves in."""
        shape = y_pred.shape if len(y_pred.shape) == 1 else y_pred.shape[:-1]
        like = ops.reshape(loss, (-1, *shape[1:]))
        w = ops.ones_like(like)
        if sample_weight is not None:
            w = w * _spread(ops.cast(sample_weight, self.dtype), len(shape))
        seen = ops.ones_like(like, dtype="bool")
        mask = getattr(y_pred, "_keras_mask", None)
        if mask is not None:
            seen = seen & _spread(ops.cast(mask, "bool"), len(shape))
            w = ops.where(seen, w, ops.zeros_like(w))
        return ops.reshape(w, (-1,)), ops.reshape(seen, (-1,))

    def _plus(self, terms: Array) -> None:
        total, error = two_sum(self._sums[0], terms)
        self._sums.assign(ops.stack([total, self._sums[1] + error]))

    def result(self) -> Array:
        """The mean loss so far."""
        weight, total, infinite = ops.unstack(self._sums[0] + self._sums[1])
        some = weight > 0
        mean = ops.where(some, total / ops.where(some, weight, 1.0), math.nan)
        mean = ops.where(infinite > 0, math.inf, mean)
        return ops.where(self._n_invalid > 0, math.nan, mean)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration for `from_config`; the rule is stored as text."""
        return {**super().get_config(), "rule": name_of(self.rule), "from_logits": self.from_logits}


def _spread(x: Array, n_dimensions: int) -> Array:
    """Broadcast weights or a mask to the dimensions of the outcomes."""
    while len(x.shape) > n_dimensions and x.shape[-1] == 1:
        x = ops.squeeze(x, axis=-1)
    while len(x.shape) < n_dimensions:
        x = ops.expand_dims(x, -1)
    return x


@keras.saving.register_keras_serializable(package="verax")
class Loss(keras.losses.Loss):  # type: ignore[misc]
    """A scoring rule as a Keras loss. Prefer logits, which cannot underflow.

    Rules that depend on the most likely class alone (zero-one) have no gradient and are refused. A
    penalized rule has the value of its name, penalty included, and the gradient of the rule inside.
    Probabilities are not clipped: for the log score of a class with probability zero the loss is infinite.
    A target outside the classes makes the loss NaN.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    from_logits : bool, default False
        Whether predictions are logits. This is never guessed.
    reduction : str, default "sum_over_batch_size"
        Reduction of the losses, as for every Keras loss.
    name : str, optional
        The name of the loss; by default that of the rule.
    dtype : str or dtype policy, optional
        Data type, as for every Keras loss.

    Examples
    --------
    >>> import numpy as np
    >>> from verax.adapters.keras import Loss
    >>> loss = Loss("rps", from_logits=True)
    >>> round(float(loss(np.array([0, 2]), np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))), 4)
    0.1689
    """

    def __init__(
        self,
        rule: Rule | str,
        *,
        from_logits: bool = False,
        reduction: str = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.rule = trainable(rule)
        self.from_logits = from_logits
        super().__init__(name=name or name_of(self.rule), reduction=reduction, dtype=dtype)

    def call(self, y_true: Array, y_pred: Array) -> Array:
        """Compute the loss of every outcome.

        Parameters
        ----------
        y_true : tensor of shape (N,), (N, 1) or (N, K)
            Targets: class positions or one-hot rows.
        y_pred : tensor of shape (N, K), (N, 1) or (N,)
            Predictions: logits, or probabilities if the loss takes these.

        Returns
        -------
        tensor of shape (N,)
            The losses.
        """
        batch = _read(y_true, y_pred, from_logits=self.from_logits)
        losses = batch.statistics(self.rule.needs).loss(self.rule)
        losses = ops.where(batch.fits, losses, math.nan)
        shape = y_pred.shape if len(y_pred.shape) == 1 else y_pred.shape[:-1]
        return ops.reshape(losses, (-1, *shape[1:]))

    def get_config(self) -> dict[str, Any]:
        """Return the configuration for `from_config`; the rule is stored as text."""
        return {**super().get_config(), "rule": name_of(self.rule), "from_logits": self.from_logits}


if TYPE_CHECKING:

    class _Callback:
        """What Keras calls at the end of every epoch; type checkers do not see through its decorator."""

        model: Any

else:
    _Callback = keras.callbacks.Callback


class RefinementScore(_Callback):
    """The loss after recalibration, cross-validated, added to the log of every epoch. Lower is better.

    Place it before callbacks that monitor its name: `EarlyStopping("val_refinement", mode="min")`,
    `ModelCheckpoint(..., monitor="val_refinement", mode="min")`. It predicts the validation rows once more
    after each epoch; the fit itself takes milliseconds for 5,000 rows of 10 classes.

    Parameters
    ----------
    x : array, tensor or data set
        Inputs of the validation rows, as `model.predict` takes them.
    y : array_like of shape (N,) or (N, K)
        Outcomes: class positions 0..K-1, or one-hot rows.
    rule : Rule or str, default "log_score"
        The proper rule that is minimised and measured.
    method : str or sequence of str, default "temperature"
        How to recalibrate, as in `vx.recalibrate`.
    from_logits : bool, default False
        Whether predictions are logits. This is never guessed.
    weights : array_like of shape (N,), optional
        Weights of the rows.
    groups : array_like of shape (N,), optional
        Labels of rows that belong together and stay in one fold.
    batch_size : int, optional
        The batch size of the prediction.
    name : str, default "val_refinement"
        The name in the log.

    Examples
    --------
    >>> import keras, numpy as np
    >>> from verax.adapters.keras import RefinementScore
    >>> x, y = np.linspace(-1, 1, 60)[:, None], np.arange(60) % 2
    >>> model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, activation="sigmoid")])
    >>> model.compile(loss="binary_crossentropy")
    >>> history = model.fit(x, y, epochs=2, verbose=0, callbacks=[RefinementScore(x, y)])
    >>> list(history.history)
    ['loss', 'val_refinement']
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        *,
        rule: Rule | str = "log_score",
        method: str | Sequence[str] = "temperature",
        from_logits: bool = False,
        weights: Any = None,
        groups: Any = None,
        batch_size: int | None = None,
        name: str = "val_refinement",
    ) -> None:
        super().__init__()
        self.x: Any = x
        self.y: Any = y
        self.loss: RefinementLoss = RefinementLoss(rule, method=method)
        self.from_logits: bool = from_logits
        self.weights: Any = weights
        self.groups: Any = groups
        self.batch_size: int | None = batch_size
        self.name: str = name

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Predict the validation rows and log the refinement.

        Parameters
        ----------
        epoch : int
            The number of the epoch.
        logs : dict, optional
            The log of the epoch, which gets the value.
        """
        p = ops.convert_to_numpy(self.model.predict(self.x, batch_size=self.batch_size, verbose=0))
        p = p.astype("float32") if p.dtype.itemsize < 4 else p
        if p.ndim == 2 and p.shape[1] == 1:
            p = p[:, 0]
        read = {"logits": self.from_logits, "weights": self.weights, "groups": self.groups}
        value = self.loss(self.y, p, **read)
        if logs is not None:
            logs[self.name] = value
