"""CatBoost: any rule as an evaluation metric, and as a training objective.

With more than two classes CatBoost requests derivatives row by row, in Python. A compiled loop makes the
answer nearly as cheap as the call; without one a row takes a hundred times as long.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from verax._settings import settings
from verax.adapters.boosting.trees import (
    FLAT,
    Names,
    Order,
    check_objective,
    matching_scale,
    probabilities,
    require_order,
)
from verax.common.checks import check_flag
from verax.engines.slopes import fuse_slopes
from verax.errors import InputError, Remedy, passing
from verax.inputs.arrays import Floats
from verax.kernels.ledger import kernels
from verax.scores.base import Rule
from verax.scores.gradients.logits import check_trainable, derivatives, losses_with_gradient
from verax.scores.registry import name_of, parse
from verax.wings.select.refinement.epochs import RefinementLoss


@dataclass(frozen=True)
class CatBoostMetric:
    """A CatBoost evaluation metric; created by `catboost_metric`.

    Parameters
    ----------
    rule : Rule
        The scoring rule.
    order : Order, optional
        Mapping from label positions to ordered classes.
    refinement : bool, default False
        Whether to measure the loss after temperature scaling.
    """

    rule: Rule
    order: Order | None = None
    refinement: bool = False

    # Otherwise CatBoost tries to compile the methods, fails and warns.
    no_jit = True

    def __reduce__(self) -> tuple[object, ...]:
        return _named_metric, (self.rule, self.order, self.refinement)

    def is_max_optimal(self) -> bool:
        """Whether larger values are better, which they are not."""
        return False

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """The sum of the losses and of the weights; of the loss after recalibration its mean times these.

        Parameters
        ----------
        approxes : sequence of arrays
            Raw scores, one array per class; of two classes a single one.
        target : array_like of shape (N,)
            Positions of the outcomes.
        weight : array_like of shape (N,) or None
            Weights of the rows.

        Returns
        -------
        tuple of two floats
            The sums.
        """
        z = np.stack(approxes, axis=1) if len(approxes) > 1 else np.asarray(approxes[0])
        y = np.asarray(target)
        if self.order is not None:
            y, z = self.order.outcomes(y), self.order.columns(z)
        else:
            require_order(self.rule, len(approxes), "CatBoost")
        weights = None if weight is None else np.asarray(weight, np.float64)
        if self.refinement:
            total = float(len(y) if weights is None else weights.sum())
            return RefinementLoss(self.rule)(y, z, weights=weights, logits=True) * total, total
        losses = self.rule.samples(y, z, logits=True)
        if weights is None:
            return float(losses.sum()), float(len(losses))
        some = weights > 0
        return float(losses[some] @ weights[some]), float(weights.sum())

    def get_final_error(self, error: float, weight: float) -> float:
        """The mean loss.

        Parameters
        ----------
        error : float
            The sum of the losses.
        weight : float
            The sum of the weights.

        Returns
        -------
        float
            Their ratio.
        """
        return error / weight if weight else 0.0


@dataclass(frozen=True)
class CatBoostObjective:
    """A CatBoost training objective; created by `catboost_objective`.

    Parameters
    ----------
    rule : Rule
        A strictly proper rule.
    scale : float, optional
        Factor of the rule.
    floor : float, default 0.1
        Minimum curvature, relative to the log score's.
    order : Order, optional
        Mapping from label positions to ordered classes.
    """

    rule: Rule
    scale: float | None = None
    floor: float = 0.1
    order: Order | None = None

    no_jit = True

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> list[tuple[float, float]]:
        """Derivatives for two classes of minus the loss, which CatBoost maximises.

        Parameters
        ----------
        approxes : sequence of float
            Raw scores.
        targets : sequence of float
            Positions of the outcomes, 0 or 1.
        weights : sequence of float or None
            Weights of the rows.

        Returns
        -------
        list of tuples of two floats
            First and second derivative of each row.
        """
        y = np.asarray(targets)
        scale = matching_scale(self.rule, 2) if self.scale is None else self.scale
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
        """The derivatives of one row, and its expected Hessian.

        Parameters
        ----------
        approxes : sequence of K floats
            Raw scores of the classes.
        target : float
            The position of the outcome.
        weight : float
            The weight of the row.

        Returns
        -------
        tuple
            The first derivatives, and the matrix of the second ones.
        """
        # Called for every row: what is looked up is kept in the object.
        fast = self.__dict__.get("_fast")
        if fast is not None and len(approxes) == fast[0]:
            fine, gradient, matrix = fast[1](approxes, target, -weight, fast[2])
            if fine:
                return gradient, matrix
        z = np.asarray(approxes, np.float64)
        row = _row_of(self, len(z))
        if row.loop is not None:
            self.__dict__["_fast"] = (len(z), *row.loop)
        return row.derivatives(z, int(target), -weight)

    def __getstate__(self) -> dict[str, Any]:
        """The state to copy, without the compiled loop."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


@lru_cache(maxsize=16)
def _row_of(objective: CatBoostObjective, n_classes: int) -> _Row:
    return _Row(objective, n_classes)


class _Row:
    """Derivatives of single rows: by array calls at first, then by compiled loops, if there are any."""

    def __init__(self, objective: CatBoostObjective, n_classes: int) -> None:
        self.rule, self.n_classes = objective.rule, n_classes
        check_trainable(self.rule, n_classes)
        self.back: list[int] | None = None
        if objective.order is None:
            require_order(self.rule, n_classes, "CatBoost")
        else:
            objective.order.columns(np.empty((0, n_classes)))
            self.back = None if objective.order.as_it_is else list(objective.order.positions)
        given = objective.scale
        self.scale = matching_scale(self.rule, n_classes) if given is None else given
        self.floor = objective.floor
        self.outcomes = np.arange(n_classes)
        self.n_seen = 0
        self.loop: tuple[Any, Floats] | None = None

    def derivatives(self, z: Floats, target: int, factor: float) -> tuple[Floats, Floats]:
        """The gradient of the loss and the expected Hessian, times a factor, in the columns of CatBoost."""
        self.n_seen += 1
        if self.n_seen == settings.catboost_compiled_from:
            self._compile()
        if self.back is None:
            return self._in_order(z, target, factor)
        slopes, matrix = self._in_order(z[np.argsort(self.back)], self.back[target], factor)
        return slopes[self.back], matrix[np.ix_(self.back, self.back)]

    def _in_order(self, z: Floats, target: int, factor: float) -> tuple[Floats, Floats]:
        rows = np.empty((self.n_classes, self.n_classes))
        rows[:] = z
        by_outcome = losses_with_gradient(self.rule, rows.T, self.outcomes)[1].T * self.scale
        p = probabilities(rows[:1])[0]
        matrix = -by_outcome * p[:, None]
        lowest = np.maximum(self.floor * p * (1 - p), FLAT)
        matrix[self.outcomes, self.outcomes] = np.maximum(matrix.diagonal(), lowest)
        return by_outcome[target] * factor, matrix * factor

    def _compile(self) -> None:
        fused = None
        if kernels() is not None:
            fused = fuse_slopes(self.rule, self.n_classes, binary=False, weighted=False)
        if fused is not None:
            from verax.kernels.curvature import row_kernel

            slopes, constants = fused
            places = range(self.n_classes) if self.back is None else self.back
            floor = self.floor / self.scale
            self.loop = row_kernel(slopes, self.n_classes, places, floor, self.scale, FLAT), constants
            return
        warnings.warn(
            f"CatBoost asks for the derivatives of {name_of(self.rule)} row by row, and there is no compiled "
            "loop for them: training takes some hundred times as long as with CatBoost's own objective. "
            "Compiled loops need numba and at most 10 classes.",
            RuntimeWarning,
            stacklevel=2,
        )


def catboost_metric(
    rule: Rule | str,
    *,
    order: Names | None = None,
    class_names: Names | None = None,
    refinement: bool = False,
) -> CatBoostMetric:
    """Create an `eval_metric` for CatBoostClassifier from a rule; it is minimised.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    order : sequence of labels, optional
        All classes, lowest first. CatBoost passes label positions only, so ordinal rules for more than two
        classes need it.
    class_names : sequence of labels, optional
        The `class_names` of the CatBoostClassifier, which define its positions. Without them, positions are
        those of the sorted labels: pass `sorted(order)`. Needed if `order` is not sorted.
    refinement : bool, default False
        Whether to measure the loss after temperature scaling, cross-validated: stop by it if the model will
        be recalibrated.

    Returns
    -------
    CatBoostMetric
        For CatBoost.

    Examples
    --------
    >>> metric = catboost_metric("brier")
    >>> metric.evaluate([[0.0, 0.0], [0.0, 0.0]], [0, 1], None)
    (1.0, 2.0)
    """
    return _named_metric(parse(rule), _order(order, class_names), check_flag("refinement", refinement))


def _named_metric(rule: Rule, order: Order | None, refinement: bool = False) -> CatBoostMetric:
    # CatBoost shows a metric under the name of its class.
    name = f"{name_of(rule)}_refinement" if refinement else name_of(rule)
    named: type[CatBoostMetric] = type(name, (CatBoostMetric,), {})
    return named(rule, order, refinement)


def catboost_objective(
    rule: Rule | str,
    *,
    scale: float | None = None,
    floor: float = 0.1,
    order: Names | None = None,
    class_names: Names | None = None,
) -> CatBoostObjective:
    """Create a `loss_function` for CatBoostClassifier from a strictly proper rule.

    Also pass `class_names` to CatBoost, or it treats the problem as binary. With more than two classes it
    calls the objective row by row. After 4,096 rows a compiled loop takes over, with numba and up to 10
    classes; otherwise a warning notes that training is slow.

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
        All classes, lowest first, as for `catboost_metric`.
    class_names : sequence of labels, optional
        The `class_names` of the CatBoostClassifier, as for `catboost_metric`.

    Returns
    -------
    CatBoostObjective
        For CatBoost.

    Examples
    --------
    >>> objective = catboost_objective("brier")
    >>> objective.calc_ders_range([0.0, 0.0], [0, 1], None)
    [(-0.5, -0.25), (0.5, -0.25)]
    """
    objective = check_objective(rule, "xgboost", scale, floor)
    return CatBoostObjective(objective.rule, objective.scale, objective.floor, _order(order, class_names))


def _order(order: Names | None, class_names: Names | None) -> Order | None:
    if order is None and class_names is not None:
        raise InputError(
            "must be given with `class_names`",
            argument="order",
            kind="missing",
            remedies=[passing(order=...)],
        )
    given_order = Order.of(order, class_names)
    if given_order is not None and class_names is None and not given_order.as_it_is:
        raise InputError(
            "must be what CatBoostClassifier gets as class_names, or sorted(order) if it gets none: "
            "positions of classes come from there, and `order` is not sorted",
            argument="class_names",
            kind="order",
            remedies=[passing(class_names=...)],
        )
    return given_order
