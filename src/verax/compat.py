"""Scores in the conventions of other packages, for comparison with published results.

Use verax's own rules for everything else; each function documents the flaws of its original.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from verax.common.checks import check_choice, check_n_classes
from verax.errors import InputError, RuleError, show
from verax.inputs.arrays import kind_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.scores.base import Rule
from verax.scores.rules import RPS, Brier, Log, RankedLog

_KERAS_EPSILON = np.float32(1e-7)


def pbs(y: object, p: object, *, classes: Sequence[Hashable] | None = None) -> float:
    """Penalized Brier score as superior-scoring-rules 1.0.6 computes it.

    The Brier score is divided by K, but the penalty is (K-1)/K undivided: K times as heavy as in
    the paper. A tie with the true class counts as correct, which makes the score improper: at
    K = 2 a forecaster who believes (0.6, 0.4) does better by reporting (0.5, 0.5). Everything is
    computed in float32. `verax.pbs` has none of these flaws.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K)
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows.
    p : array_like of shape (N, K) or (N,)
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough.
    classes : sequence of K labels, optional
        Names of the columns of `p`, in order; for ordered classes lowest first.

    Returns
    -------
    float
        The mean.

    Examples
    --------
    >>> from verax import compat
    >>> y, p = [0, 1, 3], [[0.9, 0.05, 0.05, 0], [0.1, 0.8, 0.05, 0.05], [0.1, 0.1, 0.1, 0.7]]
    >>> round(compat.pbs(y, p), 6)
    0.015833
    """
    truth, q = _float32(y, p, classes)
    n_classes = q.shape[1]
    brier = np.mean((truth - q) ** 2, axis=1, dtype=np.float32)
    return float(np.mean(brier + _beaten(truth, q) * np.float32((n_classes - 1) / n_classes)))


def pll(y: object, p: object, *, classes: Sequence[Hashable] | None = None) -> float:
    """Penalized log loss as superior-scoring-rules 1.0.6 computes it, through Keras.

    Probabilities are divided by their sum and clipped to [1e-7, 1 - 1e-7], so a certain error
    costs 16.1 instead of infinity and a perfect forecast costs 1e-7; ties with the true class
    count as correct. Both make the score improper. `verax.pll` has neither flaw.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K)
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows.
    p : array_like of shape (N, K) or (N,)
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough.
    classes : sequence of K labels, optional
        Names of the columns of `p`, in order; for ordered classes lowest first.

    Returns
    -------
    float
        The mean.

    Examples
    --------
    >>> from verax import compat
    >>> y, p = [0, 1, 3], [[0.9, 0.05, 0.05, 0], [0.1, 0.8, 0.05, 0.05], [0.1, 0.1, 0.1, 0.7]]
    >>> round(compat.pll(y, p), 6)
    0.228393
    """
    truth, q = _float32(y, p, classes)
    scaled = q / q.sum(axis=1, keepdims=True, dtype=np.float32)
    clipped = np.clip(scaled, _KERAS_EPSILON, np.float32(1) - _KERAS_EPSILON)
    log_loss = -np.sum(truth * np.log(clipped), axis=1, dtype=np.float32)
    return float(np.mean(log_loss + _beaten(truth, q) * np.float32(np.log(q.shape[1]))))


def _float32(y: object, p: object, classes: Sequence[Hashable] | None) -> tuple[Any, Any]:
    """One-hot outcomes and probabilities in float32, after verax's own checks."""
    forecasts = Forecasts(y, p, classes=classes)
    forecasts.check()
    batch = forecasts.batch(0, forecasts.n_rows)
    truth = np.eye(forecasts.n_classes, dtype=np.float32)[to_host(batch.y)]
    return truth, to_host(batch.p).astype(np.float32)


def _beaten(truth: Any, q: Any) -> Any:
    """1 where some class is strictly more likely than the outcome, else 0."""
    return (q.max(axis=1) > (truth * q).sum(axis=1)).astype(np.float32)


Peer = Literal["scikit-learn", "scoringrules"]


def convert(value: Any, rule: Rule, *, to: Peer, n_classes: int) -> Any:
    """Convert a verax loss to the convention of another package.

    scikit-learn: `brier_score_loss` halves the sum over classes for two classes only; `log_loss` is
    in nats and clips at the smallest float. scoringrules: `rps_score` and `rls_score` are sums over
    thresholds, and their outcomes count from 1; `brier_score` and `log_score` are binary.

    Parameters
    ----------
    value : float or array
        Mean loss, or loss of each row, by `rule`.
    rule : Rule
        The verax rule that computed `value`, including its scale.
    to : {"scikit-learn", "scoringrules"}
        The other package.
    n_classes : int
        The number of classes, K.

    Returns
    -------
    float or array
        The converted loss.

    Raises
    ------
    RuleError
        If the other package has no such score.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1], [[0.8, 0.2], [0.3, 0.7]]
    >>> round(vx.compat.convert(vx.brier(y, p), vx.brier, to="scikit-learn", n_classes=2), 3)
    0.065
    """
    check_choice("to", to, get_args(Peer))
    if not isinstance(rule, Rule):
        raise InputError(f"must be a rule, not {show(rule)}", argument="rule", kind="type")
    factor = _factor(rule, to, check_n_classes(n_classes))
    given, _ = to_array(value, "value")
    if kind_of(given) not in ("real", "integer"):
        raise InputError(f"must hold real numbers, not {show(value)}", argument="value", kind="type")
    return given * factor if given.ndim else float(given * factor)


def _factor(rule: Rule, to: Peer, n_classes: int) -> float:
    binary = n_classes == 2
    ours = rule.bounds(n_classes)[1]
    if isinstance(rule, Brier) and (to == "scikit-learn" or binary):
        return (1.0 if binary else 2.0) / ours
    if isinstance(rule, Log) and (to == "scikit-learn" or binary):
        return float(np.log(rule.base))
    if isinstance(rule, RPS) and to == "scoringrules":
        return (n_classes - 1) / ours
    if isinstance(rule, RankedLog) and to == "scoringrules":
        return float(n_classes - 1)
    raise RuleError(f"{to} has no score for {n_classes} classes that {rule} converts to.")
