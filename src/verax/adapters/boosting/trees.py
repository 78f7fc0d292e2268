"""XGBoost and LightGBM: any rule as an evaluation metric, and as a training objective."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from verax.common.checks import check_flag, check_n_classes, check_number
from verax.errors import InputError, passing
from verax.inputs.arrays import Array, Floats, kind_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.lists.rows import check_weights
from verax.inputs.lists.vocabulary import positions
from verax.inputs.outcomes import check_classes
from verax.inputs.validity import Unity
from verax.scores.base import Rule
from verax.scores.gradients.logits import Scaling, check_trainable, derivatives
from verax.scores.registry import log_score, name_of, parse
from verax.wings.select.refinement.epochs import RefinementLoss

Names = Sequence[Hashable]


@dataclass(frozen=True)
class Order:
    """The map from a library's class positions to positions in the caller's order, and back.

    Attributes
    ----------
    positions : tuple of int
        For each position of the library, that of the same class in the caller's order.
    """

    positions: tuple[int, ...]

    @classmethod
    def of(cls, order: Names | None, coded: Names | None = None) -> Order | None:
        """The order that a caller lists, lowest class first; `coded` is that of the library."""
        if order is None:
            return None
        names = _checked(order, "order")
        listed = _sorted(names) if coded is None else _checked(coded, "class_names")
        if set(listed) != set(names):
            raise InputError(
                "must name the same classes as `order`",
                argument="class_names",
                kind="label",
                values=sorted(set(listed) ^ set(names), key=str),
            )
        # Rules that know an order are the same for the reversed one, so two classes are left as they are.
        return cls((0, 1) if len(names) == 2 else tuple(map(names.index, listed)))

    @property
    def as_it_is(self) -> bool:
        """Whether the library has the classes in the caller's order already."""
        return self.positions == tuple(range(len(self.positions)))

    def outcomes(self, y: Array) -> Array:
        """Positions of the library as positions of the order; wrong ones are left for others to name."""
        y = np.asarray(y)
        if self.as_it_is or not np.isin(y, np.arange(len(self.positions))).all():
            return y
        return np.asarray(self.positions)[y.astype(np.int64)]

    def columns(self, scores: Array) -> Array:
        """Columns of the library in the order; a single one is that of class 1 of two."""
        given = 2 if scores.ndim == 1 else scores.shape[1]
        if given != len(self.positions):
            raise InputError(
                "must list the classes of the training data, all of them",
                argument="order",
                kind="length",
                found=f"it lists {len(self.positions)}, and the model has {given}",
            )
        return scores if self.as_it_is else scores[:, np.argsort(self.positions)]

    def back(self, values: Array) -> Array:
        """Results for columns in the caller's order, in the columns of the library."""
        return values if self.as_it_is else values[:, list(self.positions)]


def require_order(rule: Rule, n_classes: int, passes: str) -> None:
    """Refuse an ordinal rule without a known order, which two classes do not need."""
    if rule.ordinal and n_classes > 2:
        raise InputError(
            f"must list the classes, lowest first: {name_of(rule)} is ordinal, and {passes} passes the "
            "positions of labels, by which texts may be in the order of the alphabet",
            argument="order",
            kind="order",
            remedies=[passing("for labels 0, 1, 2, or the names of the classes", order=[0, 1, 2])],
        )


def _checked(names: Names, argument: str) -> tuple[Hashable, ...]:
    try:
        n = len(names)
    except TypeError:
        # What has no length is refused as what it is.
        n = 0
    try:
        listed = check_classes(names, n)
    except InputError as error:
        raise error.replace(argument=argument) from None
    assert listed is not None
    return listed


def _sorted(names: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    try:
        return tuple(sorted(names))  # type: ignore[type-var]
    except TypeError:
        raise InputError(
            "must hold labels of one type, which the library can sort", argument="order", kind="type"
        ) from None


# XGBoost maximises metrics whose names begin with these, and splits its lines at blanks.
_MAXIMISED = ("auc", "pre", "map", "ndcg")
# The least second derivative of a row, as in XGBoost, which divides by their sum.
FLAT = 1e-16

Library = Literal["xgboost", "lightgbm"]


@dataclass(frozen=True)
class Metric:
    """A rule that XGBoost or LightGBM can evaluate; made by `xgboost_metric` and `lightgbm_metric`.

    Parameters
    ----------
    rule : Rule
        The scoring rule.
    library : {"xgboost", "lightgbm"}
        Which of the two calls it.
    logits : bool, default False
        Whether the library passes raw scores instead of probabilities.
    order : Order, optional
        How positions of labels become those of ordered classes.
    refinement : bool, default False
        Whether the loss is that after temperature scaling, cross-validated.
    """

    rule: Rule
    library: Library
    logits: bool = False
    order: Order | None = None
    refinement: bool = False

    @property
    def __name__(self) -> str:
        name = name_of(self.rule).replace(" ", "").replace(":", "_")
        name = f"{name}_refinement" if self.refinement else name
        return f"loss_{name}" if self.library == "xgboost" and name.startswith(_MAXIMISED) else name

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> Any:
        """Compute the mean loss in the form that the library expects.

        Parameters
        ----------
        first : array_like
            First argument from the library: predictions, or outcomes if it has no data set.
        second : array_like or data set
            Second argument from the library: the data set, or predictions.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows.

        Returns
        -------
        float or tuple
            The value, with its name where the library asks for it.
        """
        y, scores, weights = _arguments(first, second, sample_weight)
        p = _rows(scores, len(y))
        if self.logits:
            _refuse_probabilities(p)
        y, p = _in_order(self, y, p, hidden=not _is_data(second))
        loss = RefinementLoss(self.rule) if self.refinement else self.rule
        value = loss(y, p, weights=weights, logits=self.logits)
        if self.library == "lightgbm":
            return self.__name__, value, False
        return (self.__name__, value) if _is_data(second) else value


@dataclass(frozen=True)
class Objective:
    """A rule that XGBoost or LightGBM can minimise; made by `xgboost_objective`, `lightgbm_objective`.

    Parameters
    ----------
    rule : Rule
        A strictly proper rule.
    library : {"xgboost", "lightgbm"}
        Which of the two calls it.
    scale : float, optional
        The factor of the rule.
    floor : float, default 0.1
        The least curvature, as a share of the log score's.
    order : Order, optional
        How positions of labels become those of ordered classes.
    """

    rule: Rule
    library: Library
    scale: float | None = None
    floor: float = 0.1
    order: Order | None = None

    @property
    def __name__(self) -> str:
        return name_of(self.rule)

    def metric(self, rule: Rule | str | None = None) -> Metric:
        """Create a metric for models trained with this objective.

        Parameters
        ----------
        rule : Rule or str, optional
            The scoring rule, or its name; by default that of this objective.

        Returns
        -------
        Metric
            For the library.
        """
        chosen = self.rule if rule is None else parse(rule)
        return Metric(chosen, self.library, logits=True, order=self.order)

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Array, Array]:
        """Compute gradient and expected Hessian in the form that the library expects.

        Parameters
        ----------
        first : array_like
            First argument from the library: raw scores, or outcomes if it has no data set.
        second : array_like or data set
            Second argument from the library: the data set, or raw scores.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows.

        Returns
        -------
        tuple of two arrays
            Gradient and Hessian.
        """
        y, given, weights = _arguments(first, second, sample_weight)
        y, scores = _in_order(self, y, _rows(given, len(y)), hidden=not _is_data(second))
        n_classes = 2 if scores.ndim == 1 else scores.shape[1]
        scale = matching_scale(self.rule, n_classes) if self.scale is None else self.scale
        by_row = None if weights is None else check_weights(weights, len(y))
        scaling = Scaling(scale, scale * self._curvature(scores), FLAT, by_row)
        g, h = derivatives(self.rule, y, scores, floor=self.floor / scale, scaling=scaling)
        if self.order is not None:
            g, h = self.order.back(g), self.order.back(h)
        flat = np.ndim(given) < g.ndim
        return (g.ravel(order="F"), h.ravel(order="F")) if flat else (g, h)

    def _curvature(self, scores: Array) -> float:
        # The trees of several classes are fitted at once; each library corrects for it in its own way.
        if scores.ndim == 1:
            return 1.0
        n_classes = scores.shape[1]
        return 2.0 if self.library == "xgboost" else n_classes / (n_classes - 1)


def xgboost_metric(rule: Rule | str, *, logits: bool = False, refinement: bool = False) -> Metric:
    """A rule as `custom_metric` of xgboost.train, or `eval_metric` of XGBClassifier; minimised.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    logits : bool, default False
        Whether the objective is one of yours: then XGBoost passes raw margins instead of probabilities.
        `xgboost_objective(...).metric()` sets it.
    refinement : bool, default False
        Whether to measure the loss after temperature scaling, cross-validated: stop by it if the model will
        be recalibrated.

    Returns
    -------
    Metric
        For XGBoost.

    Examples
    --------
    >>> xgboost_metric("rps")([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]).__round__(4)
    0.05
    """
    flags = check_flag("logits", logits), None, check_flag("refinement", refinement)
    return Metric(parse(rule), "xgboost", *flags)


def lightgbm_metric(
    rule: Rule | str, *, logits: bool = False, order: Names | None = None, refinement: bool = False
) -> Metric:
    """Create a `feval` for lightgbm.train, or `eval_metric` for LGBMClassifier.fit, from a rule.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    logits : bool, default False
        Whether the objective is custom: LightGBM then passes raw scores instead of probabilities.
        `lightgbm_objective(...).metric()` sets it.
    order : sequence of labels, optional
        All classes, lowest first. LGBMClassifier sorts labels and passes positions only, so ordinal rules
        for more than two classes need it there; `lightgbm.train` has positions only.
    refinement : bool, default False
        Whether to measure the loss after temperature scaling, cross-validated: stop by it if the model will
        be recalibrated.

    Returns
    -------
    Metric
        For LightGBM.

    Examples
    --------
    >>> p = [[0.0, 0.9, 0.1]]  # of the sorted labels: high, low, mid
    >>> lightgbm_metric("rps", order=["low", "mid", "high"])([1], p)[1].__round__(4)
    0.005
    """
    flags = check_flag("logits", logits), Order.of(order), check_flag("refinement", refinement)
    return Metric(parse(rule), "lightgbm", *flags)


def xgboost_objective(rule: Rule | str, *, scale: float | None = None, floor: float = 0.1) -> Objective:
    """Create an `obj` for xgboost.train, or `objective` for XGBClassifier, from a strictly proper rule.

    XGBoost receives the gradient and the expected Hessian. With `objective="multi:softprob"` (or
    "binary:logistic") in the parameters as well, `predict` returns probabilities.

    Parameters
    ----------
    rule : Rule or str
        A strictly proper rule, or its name. A penalty has no gradient: pbs trains as brier.
    scale : float, optional
        Factor of the rule. By default the curvature at equal probabilities equals that of the log score, so
        that `lambda`, `gamma` and `min_child_weight` keep their meaning.
    floor : float, default 0.1
        Minimum curvature, relative to the log score's. If a forecast is confidently wrong, the curvature of
        a bounded rule vanishes faster than its gradient, and steps would explode.

    Returns
    -------
    Objective
        For XGBoost; its `metric()` is the metric of the same rule.

    Examples
    --------
    >>> gradient, hessian = xgboost_objective("brier")([0, 1], [[0.0, 0.0], [1.0, 0.0]])
    >>> gradient.round(3).tolist()
    [[-0.5, 0.5], [0.575, -0.575]]
    """
    return check_objective(rule, "xgboost", scale, floor)


def lightgbm_objective(
    rule: Rule | str, *, scale: float | None = None, floor: float = 0.1, order: Names | None = None
) -> Objective:
    """Create an `objective` for lightgbm.train or LGBMClassifier from a strictly proper rule.

    LightGBM then predicts raw scores, even from `predict_proba`: pass them to `probabilities`, or use
    `LightGBMClassifier`.

    Parameters
    ----------
    rule : Rule or str
        A strictly proper rule, or its name. A penalty has no gradient: pbs trains as brier.
    scale : float, optional
        Factor of the rule. By default the curvature at equal probabilities equals that of the log score, so
        that regularisation options keep their meaning.
    floor : float, default 0.1
        Minimum curvature, relative to the log score's. If a forecast is confidently wrong, the curvature of
        a bounded rule vanishes faster than its gradient, and steps would explode.
    order : sequence of labels, optional
        All classes, lowest first, as for `lightgbm_metric`.

    Returns
    -------
    Objective
        For LightGBM; its `metric()` is the metric of the same rule.

    Examples
    --------
    >>> gradient, hessian = lightgbm_objective("brier")([0, 1], [[0.0, 0.0], [1.0, 0.0]])
    >>> gradient.round(3).tolist()
    [[-0.5, 0.5], [0.575, -0.575]]
    """
    return replace(check_objective(rule, "lightgbm", scale, floor), order=Order.of(order))


def check_objective(rule: Rule | str, library: Library, scale: float | None, floor: float) -> Objective:
    """An objective with checked parameters."""
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
def matching_scale(rule: Rule, n_classes: int) -> float:
    """The factor by which a rule has the curvature of the log score at equal probabilities."""
    equal = np.zeros((1, n_classes))
    of_rule, of_log = (derivatives(r, [0], equal)[1].sum() for r in (rule, log_score))
    return float(of_log / of_rule)


def _in_order(of: Metric | Objective, y: Array, scores: Array, *, hidden: bool) -> tuple[Array, Array]:
    """Outcomes and columns in the caller's order; refused where it is needed and labels are hidden."""
    if of.order is not None:
        return of.order.outcomes(y), of.order.columns(scores)
    if hidden and of.library == "lightgbm":
        require_order(of.rule, 2 if scores.ndim == 1 else scores.shape[1], "LGBMClassifier")
    return y, scores


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
