"""Raw scores of boosting: their probabilities, and where training starts."""

from __future__ import annotations

import numpy as np

from verax.common.checks import check_n_classes
from verax.errors import InputError
from verax.inputs.arrays import Floats, kind_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.lists.rows import check_weights
from verax.inputs.lists.vocabulary import positions

# The libraries train one tree per class and round; more classes than this are a mistake.
_MOST_CLASSES = 10**6


def probabilities(scores: object, start: object = 0.0) -> Floats:
    """The probabilities of raw scores: softmax of rows, logistic function of a column.

    Parameters
    ----------
    scores : array_like of shape (N, K) or (N,)
        Raw scores (margins, approxes); a single column of a binary problem.
    start : array_like, default 0.0
        What was passed as `init_score` and is not part of the model; see `start_scores`.

    Returns
    -------
    array of shape (N, K)
        The probabilities; K = 2 in a binary problem.

    Examples
    --------
    >>> probabilities([[0.0, 0.0, 0.0]]).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    >>> probabilities([0.0, 2.0]).round(3).tolist()
    [[0.5, 0.5], [0.119, 0.881]]
    """
    z, first = _to_floats(scores, "scores"), _to_floats(start, "start")
    try:
        z = z + first
    except ValueError:
        raise InputError(
            "must be one number, or one per class, or have the shape of the scores",
            argument="start",
            kind="length",
            found=f"the shapes are {first.shape} and {z.shape}",
        ) from None
    n = len(z) if z.ndim else 0
    try:
        forecasts = Forecasts(np.zeros(n, np.int64), z, logits=True)
        forecasts.check()
    except InputError as error:
        raise error.replace(argument="scores") from None
    return np.asarray(forecasts.batch(0, n).p)


def _to_floats(x: object, argument: str) -> Floats:
    array = to_host(to_array(x, argument)[0])
    if kind_of(array) not in ("real", "integer", "bool"):
        raise InputError(
            "must hold real numbers", argument=argument, kind="type", found=f"its type is {array.dtype}"
        )
    return array.astype(np.float64)


def start_scores(y: object, n_classes: int, weights: object | None = None) -> Floats:
    """Raw scores of the class frequencies, as a starting point of training.

    XGBoost and LightGBM start there with their own objectives, and at zero with yours. Half a case is
    added to every class, so that a class that does not occur has a finite score.

    Parameters
    ----------
    y : array_like of shape (N,)
        Outcomes: class positions 0..K-1.
    n_classes : int
        The number of classes, K.
    weights : array_like of shape (N,), optional
        Importance weights of the rows, not negative, not all zero. Only their ratios matter.

    Returns
    -------
    array of shape (K,) or ()
        The scores; of a binary problem one, the log odds of class 1.

    Examples
    --------
    >>> start_scores([0, 0, 0, 1], 2).round(3).tolist()
    -0.847
    """
    k = check_n_classes(n_classes, most=_MOST_CLASSES)
    try:
        outcomes = positions(y, k)
    except InputError as error:
        raise error.replace(remedies=()) from None
    counts = np.bincount(
        outcomes, None if weights is None else check_weights(weights, outcomes.size), minlength=k
    )
    logs = np.log(counts + 0.5)
    return np.asarray(logs[1] - logs[0] if k == 2 else logs - logs.mean())
