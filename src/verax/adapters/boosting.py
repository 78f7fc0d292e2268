"""Rules inside XGBoost, LightGBM and CatBoost: evaluation metrics and training objectives.

The libraries are not imported here. What they call is a small object that knows how each of them
hands over predictions: as probabilities after an objective of its own, as raw scores after one of
yours (CatBoost: always). Labels are class positions 0..K-1, for ordinal rules lowest class first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from verax.arrays import Array, to_array
from verax.errors import InputError, VeraxError
from verax.forecasts import Forecasts
from verax.gradients import check_trainable, derivatives, gradient
from verax.registry import log_score, name_of, parse
from verax.rule import Rule
from verax.validity import Unity

# XGBoost takes metrics whose names begin so for scores to be maximised, and splits its lines at blanks.
_MAXIMISED = ("auc", "pre", "map", "ndcg")
# No curvature below this, as in XGBoost: a row without any would divide by zero.
_FLAT = 1e-16


# ---- probabilities ---------------------------------------------------------------------------


def probabilities(scores: object, start: object = 0.0) -> np.ndarray[Any, Any]:
    """The probabilities that raw scores stand for: softmax of rows, logistic function of a column.

    Parameters
    ----------
    scores : (N, K) raw scores (margins, approxes), or (N,) of a binary problem.
    start : what was given as `init_score` and is not part of the model; see `start_scores`.

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
    z = np.asarray(scores, np.float64) + np.asarray(start, np.float64)
    forecasts = Forecasts(np.zeros(len(z), np.int64), z, logits=True)
    return np.asarray(forecasts.batch(0, len(z)).p)


def start_scores(y: object, n_classes: int, weights: object | None = None) -> np.ndarray[Any, Any]:
    """Raw scores that stand for the class frequencies: where to begin instead of at equal ones.

    XGBoost and LightGBM begin there with their own objectives and at zero with yours. Half a case is
    added to every class, so that one that does not occur has a finite score.

    Parameters
    ----------
    y : (N,) class positions.
    n_classes : how many classes there are.
    weights : (N,) weights of the rows.

    Returns
    -------
    (K,) scores, of a binary problem one: the log odds of class 1.

    Examples
    --------
    >>> start_scores([0, 0, 0, 1], 2).round(3).tolist()
    -0.847
    """
    equal = np.zeros((len(to_array(y, "y")[0]), n_classes))
    rows = Forecasts(y, equal, weights=weights, logits=True)
    rows.check()
    batch = rows.batch(0, rows.n_rows)
    counts = np.bincount(batch.y, batch.weights, minlength=n_classes)
    logs = np.log(counts + 0.5)
    return np.asarray(logs[1] - logs[0] if n_classes == 2 else logs - logs.mean())


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
        """A rule (this objective's own, unless another is named) as a metric to go with this objective."""
        return Metric(self.rule if rule is None else parse(rule), self.library, logits=True)

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Array, Array]:
        y, given, weights = _arguments(first, second, sample_weight)
        scores = _rows(given, len(y))
        n_classes = 2 if scores.ndim == 1 else scores.shape[1]
        scale = _matching_scale(self.rule, n_classes) if self.scale is None else self.scale
        g, h = derivatives(self.rule, y, scores, floor=self.floor / scale)
        g *= scale
        h *= scale * self._curvature(scores)
        np.maximum(h, _FLAT, out=h)
        if weights is not None:
            by_row = np.asarray(weights, np.float64).reshape(-1, *[1] * (g.ndim - 1))
            g *= by_row
            h *= by_row
        flat = np.ndim(given) < g.ndim
        return (g.ravel(order="F"), h.ravel(order="F")) if flat else (g, h)

    def _curvature(self, scores: Array) -> float:
        # The trees of several classes move together, and each library allows for that in its own way.
        if scores.ndim == 1:
            return 1.0
        n_classes = scores.shape[1]
        return 2.0 if self.library == "xgboost" else n_classes / (n_classes - 1)


def xgboost_metric(rule: Rule | str, *, logits: bool = False) -> Metric:
    """A rule as `custom_metric` of xgboost.train, or `eval_metric` of XGBClassifier; minimised.

    Parameters
    ----------
    rule : a rule or its name.
    logits : whether the objective is one of yours, for then XGBoost passes raw margins instead of
        probabilities; `xgboost_objective(...).metric()` knows.

    Examples
    --------
    >>> xgboost_metric("rps")([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]).__round__(4)
    0.05
    """
    return Metric(parse(rule), "xgboost", logits)


def lightgbm_metric(rule: Rule | str, *, logits: bool = False) -> Metric:
    """A rule as `feval` of lightgbm.train, or `eval_metric` of LGBMClassifier.fit; minimised.

    Parameters
    ----------
    rule : a rule or its name.
    logits : whether the objective is one of yours, for then LightGBM passes raw scores instead of
        probabilities; `lightgbm_objective(...).metric()` knows.
    """
    return Metric(parse(rule), "lightgbm", logits)


def xgboost_objective(rule: Rule | str, *, scale: float | None = None, floor: float = 0.1) -> Objective:
    """A strictly proper rule as `obj` of xgboost.train, or `objective` of XGBClassifier.

    XGBoost gets the gradient and the expected Hessian. With `objective="multi:softprob"` (or
    "binary:logistic") among the parameters as well, `predict` returns probabilities.

    Parameters
    ----------
    rule : a strictly proper rule, or its name. A penalty has no gradient: pbs trains as brier.
    scale : what the rule is multiplied by. Unless given, it makes the curvature at equal probabilities
        that of the log score, so `lambda`, `gamma` and `min_child_weight` keep their meaning.
    floor : the least curvature, as a share of the log score's. Where a forecast is sure and wrong,
        that of a bounded rule vanishes faster than its gradient, and steps would explode.
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
    for name, value in (("scale", scale), ("floor", floor)):
        if value is not None and not (np.isfinite(value) and value >= 0 and (value > 0 or name == "floor")):
            raise VeraxError(f"`{name}` must be a positive finite number, not {value!r}.")
    return Objective(chosen, library, scale, floor)


def _trainable(rule: Rule | str) -> Rule:
    """The rule, if it can train two classes; with more it is asked again when they are known."""
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
    """Predictions a row each: LightGBM before 4.0 passes one class after the other, in one line."""
    if scores.ndim == 1 and n and scores.size != n and scores.size % n == 0:
        return scores.reshape(-1, n).T
    return scores


def _refuse_probabilities(scores: Array) -> None:
    """Refuse what is plainly no raw score: rows that differ and are all distributions."""
    if scores.ndim == 1 or (scores == scores[:1]).all() or scores.min() < 0:
        return
    if Unity.of(scores).holds(scores).all():
        raise InputError(
            "The metric was told to expect raw scores (logits=True) and got probabilities: "
            "the objective is one of the library's own. Pass logits=False.",
            argument="logits",
        )


# ---- CatBoost --------------------------------------------------------------------------------


@dataclass(frozen=True)
class CatBoostMetric:
    """A rule that CatBoost can evaluate; made by `catboost_metric`."""

    rule: Rule

    # CatBoost would try, in vain and with a warning, to compile the methods.
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
                f"`y` has class {y.max():.0f}, and CatBoost asked for two classes. Tell it all of them: "
                "class_names=[0, 1, ..., K-1].",
                argument="y",
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

    Say `class_names=[0, ..., K-1]` as well, or CatBoost takes the problem for binary. With more than two
    classes it asks row by row, a few thousand rows a second: for small data only. The parameters
    are those of `xgboost_objective`.
    """
    objective = _objective(rule, "xgboost", scale, floor)
    return CatBoostObjective(objective.rule, scale, floor)
