"""Rules inside XGBoost, LightGBM and CatBoost: evaluation metrics and training objectives.

The libraries are not imported here. They call small objects that know how each library passes
predictions: as probabilities if the objective is the library's own, as raw scores if it is yours
(CatBoost: always). Labels are class positions 0..K-1, for ordinal rules lowest class first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from verax.common.checks import check_flag, check_n_classes, check_number
from verax.errors import InputError, Remedy, passing
from verax.inputs.arrays import Array, Floats, kind_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.lists.rows import check_weights
from verax.inputs.lists.vocabulary import positions
from verax.inputs.validity import Unity
from verax.scores.base import Rule
from verax.scores.gradients.compiled import Scaling
from verax.scores.gradients.logits import check_trainable, derivatives, gradient
from verax.scores.registry import log_score, name_of, parse

# XGBoost maximises metrics whose names begin with these, and splits its lines at blanks.
_MAXIMISED = ("auc", "pre", "map", "ndcg")
# The least second derivative of a row, as in XGBoost, which divides by their sum.
_FLAT = 1e-16
# The libraries train one tree per class and round; more classes than this are a mistake.
_MOST_CLASSES = 10**6


# ---- probabilities ---------------------------------------------------------------------------


def probabilities(scores: object, start: object = 0.0) -> Floats:
    """The probabilities of raw scores: softmax of rows, logistic function of a column.

    Parameters
    ----------
    scores : array_like
        (N, K) raw scores (margins, approxes), or (N,) of a binary problem.
    start : array_like
        What was passed as `init_score` and is not part of the model; see `start_scores`.

    Returns
    -------
    (N, K) probabilities, K = 2 in a binary problem.

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
    y : array_like
        (N,) class positions.
    n_classes : int
        The number of classes.
    weights : array_like, optional
        (N,) weights of the rows.

    Returns
    -------
    (K,) scores, of a binary problem one: the log odds of class 1.

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


# ---- XGBoost and LightGBM --------------------------------------------------------------------

Library = Literal["xgboost", "lightgbm"]


@dataclass(frozen=True)
class Metric:
    """A rule that XGBoost or LightGBM can evaluate; made by `xgboost_metric` and `lightgbm_metric`."""

    rule: Rule
    library: Library
    logits: bool = False

    @property
    def __name__(self) -> str:
        name = name_of(self.rule).replace(" ", "").replace(":", "_")
        return f"loss_{name}" if self.library == "xgboost" and name.startswith(_MAXIMISED) else name

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> Any:
        y, scores, weights = _arguments(first, second, sample_weight)
        p = _rows(scores, len(y))
        if self.logits:
            _refuse_probabilities(p)
        value = self.rule(y, p, weights=weights, logits=self.logits)
        if self.library == "lightgbm":
            return self.__name__, value, False
        return (self.__name__, value) if _is_data(second) else value


@dataclass(frozen=True)
class Objective:
    """A rule that XGBoost or LightGBM can minimise; made by `xgboost_objective`, `lightgbm_objective`."""

    rule: Rule
    library: Library
    scale: float | None = None
    floor: float = 0.1

    @property
    def __name__(self) -> str:
        return name_of(self.rule)

    def metric(self, rule: Rule | str | None = None) -> Metric:
        """A rule, by default that of this objective, as a metric for models trained by this objective."""
        return Metric(self.rule if rule is None else parse(rule), self.library, logits=True)

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Array, Array]:
        y, given, weights = _arguments(first, second, sample_weight)
        scores = _rows(given, len(y))
        n_classes = 2 if scores.ndim == 1 else scores.shape[1]
        scale = _matching_scale(self.rule, n_classes) if self.scale is None else self.scale
        by_row = None if weights is None else check_weights(weights, len(y))
        scaling = Scaling(scale, scale * self._curvature(scores), _FLAT, by_row)
        g, h = derivatives(self.rule, y, scores, floor=self.floor / scale, scaling=scaling)
        flat = np.ndim(given) < g.ndim
        return (g.ravel(order="F"), h.ravel(order="F")) if flat else (g, h)

    def _curvature(self, scores: Array) -> float:
        # The trees of several classes are fitted at once; each library corrects for it in its own way.
        if scores.ndim == 1:
            return 1.0
        n_classes = scores.shape[1]
        return 2.0 if self.library == "xgboost" else n_classes / (n_classes - 1)


def xgboost_metric(rule: Rule | str, *, logits: bool = False) -> Metric:
    """A rule as `custom_metric` of xgboost.train, or `eval_metric` of XGBClassifier; minimised.

    Parameters
    ----------
    rule : Rule or str
        A rule or its name.
    logits : bool
        Whether the objective is one of yours: then XGBoost passes raw margins instead of probabilities.
        `xgboost_objective(...).metric()` sets it.

    Examples
    --------
    >>> xgboost_metric("rps")([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]).__round__(4)
    0.05
    """
    return Metric(parse(rule), "xgboost", check_flag("logits", logits))


def lightgbm_metric(rule: Rule | str, *, logits: bool = False) -> Metric:
    """A rule as `feval` of lightgbm.train, or `eval_metric` of LGBMClassifier.fit; minimised.

    Parameters
    ----------
    rule : Rule or str
        A rule or its name.
    logits : bool
        Whether the objective is one of yours: then LightGBM passes raw scores instead of probabilities.
        `lightgbm_objective(...).metric()` sets it.
    """
    return Metric(parse(rule), "lightgbm", check_flag("logits", logits))


def xgboost_objective(rule: Rule | str, *, scale: float | None = None, floor: float = 0.1) -> Objective:
    """A strictly proper rule as `obj` of xgboost.train, or `objective` of XGBClassifier.

    XGBoost gets the gradient and the expected Hessian. With `objective="multi:softprob"` (or
    "binary:logistic") among the parameters as well, `predict` returns probabilities.

    Parameters
    ----------
    rule : Rule or str
        A strictly proper rule, or its name. A penalty has no gradient: pbs trains as brier.
    scale : float, optional
        The factor of the rule. By default the curvature at equal probabilities becomes that of the log
        score, so that `lambda`, `gamma` and `min_child_weight` keep their meaning.
    floor : float
        The least curvature, as a share of the log score's. Where a forecast is sure and wrong, the
        curvature of a bounded rule vanishes faster than its gradient, and steps would explode.
    """
    return _objective(rule, "xgboost", scale, floor)


def lightgbm_objective(rule: Rule | str, *, scale: float | None = None, floor: float = 0.1) -> Objective:
    """A strictly proper rule as `objective` of lightgbm.train or LGBMClassifier.

    LightGBM then predicts raw scores (`predict_proba`, too): pass them to `probabilities`. The
    parameters are those of `xgboost_objective`.
    """
    return _objective(rule, "lightgbm", scale, floor)


def _objective(rule: Rule | str, library: Library, scale: float | None, floor: float) -> Objective:
    chosen = _trainable(rule)
    if scale is not None:
        scale = check_number("scale", scale, "must be a positive finite number", lambda s: s > 0)
    floor = check_number("floor", floor, "must be a finite number that is not negative", lambda f: f >= 0)
    return Objective(chosen, library, scale, floor)


def _trainable(rule: Rule | str) -> Rule:
    """The rule, if it can train two classes; for more it is checked again when their number is known."""
    chosen = parse(rule)
    check_trainable(chosen, 2)
    return chosen


@cache
def _matching_scale(rule: Rule, n_classes: int) -> float:
    equal = np.zeros((1, n_classes))
    own, of_log = (derivatives(r, [0], equal)[1].sum() for r in (rule, log_score))
    return float(of_log / own)


def _is_data(x: object) -> bool:
    """Whether this is the data set that the native interfaces pass, instead of an array."""
    return hasattr(x, "get_label")


def _arguments(first: Any, second: Any, weights: Any) -> tuple[Array, Array, Array | None]:
    """Outcomes, predictions and weights, from (predictions, data) or (outcomes, predictions, weights)."""
    if not _is_data(second):
        return np.asarray(first), np.asarray(second), weights
    weights = second.get_weight()
    return second.get_label(), np.asarray(first), None if weights is None or not len(weights) else weights


def _rows(scores: Array, n: int) -> Array:
    """Predictions with one row per case; LightGBM before 4.0 passes one class after the other."""
    if scores.ndim == 1 and n and scores.size != n and scores.size % n == 0:
        return scores.reshape(-1, n).T
    return scores


def _refuse_probabilities(scores: Array) -> None:
    """Refuse scores that are clearly probabilities: rows that differ and are all distributions."""
    if scores.ndim == 1 or (scores == scores[:1]).all() or scores.min() < 0:
        return
    if Unity.of(scores).holds(scores).all():
        raise InputError(
            "must be False for an objective of the library's own, which passes probabilities",
            argument="logits",
            values=[True],
            remedies=[passing(logits=False)],
        )


# ---- CatBoost --------------------------------------------------------------------------------


@dataclass(frozen=True)
class CatBoostMetric:
    """A rule that CatBoost can evaluate; made by `catboost_metric`."""

    rule: Rule

    # Otherwise CatBoost tries to compile the methods, fails and warns.
    no_jit = True

    def __reduce__(self) -> tuple[object, ...]:
        return catboost_metric, (self.rule,)

    def is_max_optimal(self) -> bool:
        return False

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        z = np.stack(approxes, axis=1) if len(approxes) > 1 else np.asarray(approxes[0])
        losses = self.rule.samples(np.asarray(target), z, logits=True)
        if weight is None:
            return float(losses.sum()), float(len(losses))
        weights = np.asarray(weight, np.float64)
        some = weights > 0
        return float(losses[some] @ weights[some]), float(weights.sum())

    def get_final_error(self, error: float, weight: float) -> float:
        return error / weight if weight else 0.0


@dataclass(frozen=True)
class CatBoostObjective:
    """A rule that CatBoost can minimise; made by `catboost_objective`."""

    rule: Rule
    scale: float | None = None
    floor: float = 0.1

    no_jit = True

    def _scale(self, n_classes: int) -> float:
        return _matching_scale(self.rule, n_classes) if self.scale is None else self.scale

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> list[tuple[float, float]]:
        """Of two classes: derivatives of minus the loss, which CatBoost maximises."""
        scale, y = self._scale(2), np.asarray(targets)
        if y.max() > 1:
            raise InputError(
                "must hold classes 0 and 1, for CatBoost takes the problem for binary",
                argument="y",
                kind="label",
                found=f"it holds {y.max():.0f}",
                values=[float(y.max())],
                remedies=[Remedy("Pass class_names=[0, ..., K-1] to CatBoost.", python_only=True)],
            )
        g, h = derivatives(self.rule, y, np.asarray(approxes, np.float64), floor=self.floor / scale)
        factor = -scale if weights is None else -scale * np.asarray(weights, np.float64)
        return list(zip((factor * g).tolist(), (factor * h).tolist(), strict=True))

    def calc_ders_multi(self, approxes: Any, target: float, weight: float) -> tuple[Any, Any]:
        """Of one row: the derivatives, and the matrix of the expected second ones."""
        k = len(approxes)
        z = np.broadcast_to(np.asarray(approxes, np.float64), (k, k))
        by_outcome = gradient(self.rule, np.arange(k), z)
        p = probabilities(z[:1])[0]
        scale = self._scale(k)
        hessian = -by_outcome * p[:, None] * scale
        lowest = self.floor * p * (1 - p)
        hessian[np.diag_indices(k)] = np.maximum(hessian.diagonal(), np.maximum(lowest, _FLAT))
        return -scale * weight * by_outcome[int(target)], -weight * hessian


def catboost_metric(rule: Rule | str) -> CatBoostMetric:
    """A rule as `eval_metric` of CatBoostClassifier; minimised, whatever the objective is."""
    chosen = parse(rule)
    # CatBoost shows a metric under the name of its class.
    named: type[CatBoostMetric] = type(name_of(chosen), (CatBoostMetric,), {})
    return named(chosen)


def catboost_objective(
    rule: Rule | str, *, scale: float | None = None, floor: float = 0.1
) -> CatBoostObjective:
    """A strictly proper rule as `loss_function` of CatBoostClassifier.

    Pass `class_names=[0, ..., K-1]` to CatBoost, too, or it takes the problem for binary. With more than
    two classes it calls the objective row by row, a few thousand rows per second: use it for small data
    only. The parameters are those of `xgboost_objective`.
    """
    objective = _objective(rule, "xgboost", scale, floor)
    return CatBoostObjective(objective.rule, objective.scale, objective.floor)
