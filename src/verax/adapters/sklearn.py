"""Rules as scikit-learn scorers, and a classifier with recalibrated probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils.metadata_routing import MetadataRequest

from verax.analyses.cards.evaluation import card_value
from verax.analyses.measures import ORIENTATIONS, as_loss, is_ordinal
from verax.engines.tally import RuleSums
from verax.errors import InputError, ParseError, Remedy, RuleError, join, passing, show
from verax.inputs.arrays import to_array, to_host
from verax.inputs.forecasts import Forecasts, softmax
from verax.inputs.outcomes import check_classes
from verax.scores.base import Rule
from verax.scores.metrics import METRICS
from verax.scores.naming import METRICS_ELSEWHERE, suggestions
from verax.scores.registry import RULES, as_rules, name_of, parse
from verax.wings.recalibrate.analysis import recalibrate
from verax.wings.recalibrate.result import Recalibration

if TYPE_CHECKING:
    from verax.common.packages import Untyped as _Classifier
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin

    class _Classifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
        """A classifier around another, as scikit-learn knows it."""


class MissingClassWarning(UserWarning):
    """An estimator was not trained on all classes, so some have probability zero.

    Examples
    --------
    >>> import warnings
    >>> from verax.adapters.sklearn import MissingClassWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", MissingClassWarning)  # from here on it is raised
    """


def scorer(rule: Rule | str, *, classes: Sequence[Hashable] | None = None) -> RuleScorer | MetricScorer:
    """Create a scikit-learn scorer from a rule: minus the mean loss, so that greater is better.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name. Or the name of anything else that a card knows, such as "qwk",
        "balanced_accuracy", "auc" (also "roc_auc"), "skill" or "ece", with its sign changed if lower is
        better. The calibration slope, which is best near 1, is scored by minus its distance from 1.
    classes : sequence of labels, optional
        All classes; for ordered classes lowest first. Ordinal rules need it for text labels, because
        scikit-learn sorts them alphabetically; numbers are already ordered. Without it, the classes are
        those of the estimator and of the scored rows, so rules that depend on the number of classes may
        differ between folds that lack a class.

    Returns
    -------
    RuleScorer or MetricScorer
        A scorer for `scoring=`.

    Notes
    -----
    The columns of `predict_proba` are matched by `estimator.classes_`, whatever their order. Classes that
    the estimator has not seen in training have probability zero: the warning `MissingClassWarning` names
    them and counts the rows whose outcome they are. Such a row has the largest loss the rule gives, and
    a score of -inf if that is infinite, as it is for the log score.

    `TunedThresholdClassifierCV` judges thresholds by their decisions. It takes scorers of decisions, such as
    "balanced_accuracy", "f1" or "zero_one"; rules of probabilities do not depend on a threshold.

    `sample_weight` is routed as in scikit-learn's own scorers: with
    ``sklearn.set_config(enable_metadata_routing=True)``, call `set_score_request(sample_weight=True)`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from verax.adapters.sklearn import scorer
    >>> x, y = load_iris(return_X_y=True)
    >>> scores = cross_val_score(LogisticRegression(max_iter=1000), x, y, scoring=scorer("pbs"))
    >>> bool((scores < 0).all()), scores.shape
    (True, (5,))
    >>> model = LogisticRegression(max_iter=1000).fit(x, y)
    >>> scorer("rps")(model, x, y) == scorer("rps", classes=[0, 1, 2])(model, x, y)
    True
    """
    name = METRICS_ELSEWHERE.get(rule, rule) if isinstance(rule, str) else ""
    if name in ORIENTATIONS:
        return MetricScorer(name, classes)
    try:
        return RuleScorer(parse(rule), classes)
    except ParseError:
        if not isinstance(rule, str) or "(" in rule:
            raise
        raise ParseError(
            " ".join([f"There is no score called {show(rule)}.", *suggestions(rule, [*RULES, *ORIENTATIONS])])
        ) from None


def scores(rules: Sequence[Rule | str], *, classes: Sequence[Hashable] | None = None) -> RuleScores:
    """Create a scorer for several rules that calls `predict_proba` once: minus the mean loss of each.

    Pass it as `scoring` where scikit-learn accepts several metrics (`cross_validate`, `GridSearchCV` with
    `refit="brier"`); the result columns are named `test_brier` and so on.

    Parameters
    ----------
    rules : sequence of Rule or str
        The rules.
    classes : sequence of labels, optional
        All classes, as for `scorer`.

    Returns
    -------
    RuleScores
        A scorer for `scoring=`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from verax.adapters.sklearn import scores
    >>> x, y = load_iris(return_X_y=True)
    >>> found = cross_validate(LogisticRegression(max_iter=1000), x, y, scoring=scores(["brier", "rps"]))
    >>> sorted(name for name in found if name.startswith("test"))
    ['test_brier', 'test_rps']
    """
    return RuleScores(as_rules(rules, "rules"), classes)


class _Scorer:
    """A base of the scorers of one rule and of several."""

    def __init__(self, rules: Sequence[Rule], classes: Sequence[Hashable] | None = None) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)
        self.classes: tuple[Hashable, ...] | None = None if classes is None else _names(classes)
        self._weighted: bool | str | None = None

    def _means(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> list[float]:
        """Minus the weighted mean loss by each rule of the forecasts for `X` when `y` happened."""
        outcomes, p, classes, missing = self._aligned(estimator, X, y)
        ordered = self._ordinal is not None
        rows = Forecasts(outcomes, p, classes=classes, weights=sample_weight, ordered=ordered)
        tally = RuleSums(self.rules, rows.n_classes, counts=False).update(rows)
        scores = [-float(mean) for mean in tally.moments.mean]
        if missing:
            _report(missing, outcomes, min(scores))
        return scores

    def _aligned(self, estimator: Any, X: Any, y: Any) -> tuple[Any, Any, tuple[Any, ...], list[Any]]:
        """Outcomes, probabilities of all classes, the classes, and those the estimator has not seen."""
        p, trained = _forecasts(estimator, X)
        outcomes = to_host(to_array(y, "y")[0])
        classes = self.classes or self._all_classes(trained, outcomes)
        if strange := [c for c in trained if c not in classes]:
            raise InputError(
                "must hold all classes of the estimator",
                argument="classes",
                kind="label",
                found=f"{join(map(show, strange))} {'is' if len(strange) == 1 else 'are'} missing",
                values=strange,
            )
        if list(classes) != trained:
            aligned = np.zeros((len(p), len(classes)), p.dtype)
            aligned[:, [classes.index(c) for c in trained]] = p
            p = aligned
        return outcomes, p, classes, [c for c in classes if c not in trained]

    @property
    def _ordinal(self) -> str | None:
        """The name of a rule or metric that needs an order of the classes, if there is one."""
        return next((name_of(rule) for rule in self.rules if rule.ordinal), None)

    def _all_classes(self, trained: list[Any], outcomes: np.ndarray[Any, Any]) -> tuple[Any, ...]:
        """The classes of the estimator and of the rows scored; in order, if a rule needs one."""
        labels = tuple(dict.fromkeys([*trained, *np.unique(outcomes).tolist()]))
        ordinal = self._ordinal
        if ordinal is None:
            return labels
        if not all(isinstance(label, (int, float)) for label in labels):
            raise InputError(
                "must list the classes in order, lowest first, unless they are numbers: "
                f"{ordinal} is ordinal, and an order is never guessed",
                argument="classes",
                kind="order",
                found=f"the classes are {join(map(show, labels))}",
                values=labels,
                remedies=[passing(classes=...)],
            )
        return tuple(sorted(labels))

    # ---- scikit-learn's routing of metadata --------------------------------------------------

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Ask scikit-learn for weights; changes this scorer.

        Parameters
        ----------
        sample_weight : bool, str or None, default None
            Whether to ask for `sample_weight`, or the name that weights are passed under.

        Returns
        -------
        Self
            The scorer itself.
        """
        self._weighted = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """What this scorer asks for, in scikit-learn's terms."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=self._weighted)
        return request

    # ---- scikit-learn's search for a threshold, which reads these -------------------------------

    _sign, _kwargs = 1, MappingProxyType[str, Any]({})

    def _get_metadata_request(self) -> Any:
        # What versions before 1.6 read.
        return self.get_metadata_routing()

    @property
    def _score_func(self) -> Callable[..., float]:
        raise RuleError(
            f"{self!r} scores probabilities, which no threshold changes. Choose a threshold by a metric of "
            'decisions, such as scorer("balanced_accuracy"), scorer("f1") or scorer("zero_one").'
        )

    def _of_classes(self) -> str:
        return "" if self.classes is None else f", classes={list(self.classes)!r}"


class RuleScorer(_Scorer):
    """Minus the mean loss of a rule on an estimator's probabilities; see `scorer`.

    Parameters
    ----------
    rule : Rule
        The scoring rule.
    classes : sequence of labels, optional
        All classes, as for `scorer`.

    Examples
    --------
    >>> from verax.adapters.sklearn import scorer
    >>> type(scorer("brier")).__name__
    'RuleScorer'
    """

    def __init__(self, rule: Rule, classes: Sequence[Hashable] | None = None) -> None:
        super().__init__([rule], classes)

    @property
    def rule(self) -> Rule:
        """The rule."""
        return self.rules[0]

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the weighted mean loss of the estimator's forecasts for `X` when `y` happened.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X : array_like of N rows
            The features.
        y : array_like of shape (N,)
            Outcomes: labels of the classes.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows.

        Returns
        -------
        float
            Minus the mean loss; greater is better.
        """
        return self._means(estimator, X, y, sample_weight)[0]

    @property
    def _score_func(self) -> Callable[..., float]:
        if not self.rule.answer_alone:
            return super()._score_func
        return lambda y, decisions, sample_weight=None: (
            -float(np.average(np.asarray(y) != decisions, weights=sample_weight))
        )

    def __repr__(self) -> str:
        return f"scorer({name_of(self.rule)!r}{self._of_classes()})"


class MetricScorer(_Scorer):
    """A number of the card of an estimator's probabilities, so that greater is better; see `scorer`.

    Parameters
    ----------
    name : str
        What the card calls it.
    classes : sequence of labels, optional
        All classes, as for `scorer`.

    Examples
    --------
    >>> from verax.adapters.sklearn import scorer
    >>> scorer("qwk")
    scorer('qwk')
    """

    def __init__(self, name: str, classes: Sequence[Hashable] | None = None) -> None:
        super().__init__([], classes)
        self.name: str = name

    @property
    def _ordinal(self) -> str | None:
        return self.name if is_ordinal(self.name) else None

    @property
    def _score_func(self) -> Callable[..., float]:
        if self.name not in METRICS:
            return super()._score_func

        def score(y: Any, decisions: Any, sample_weight: Any = None) -> float:
            classes, codes = np.unique(np.concatenate([y, decisions]), return_inverse=True)
            if self.classes is not None:
                codes = np.array([self.classes.index(label) for label in classes.tolist()])[codes]
            k = len(classes if self.classes is None else self.classes)
            cells = codes[: len(y)] * k + codes[len(y) :]
            counts = np.bincount(cells, sample_weight, k * k).reshape(k, k).astype(float)
            with np.errstate(invalid="ignore", divide="ignore"):
                return -as_loss(self.name, float(METRICS[self.name].of(counts)))

        return score

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The number of the estimator's forecasts for `X` when `y` happened.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X : array_like of N rows
            The features.
        y : array_like of shape (N,)
            Outcomes: labels of the classes.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows.

        Returns
        -------
        float
            The number, with its sign changed if lower is better; minus its distance from a best value.
        """
        outcomes, p, classes, missing = self._aligned(estimator, X, y)
        value = card_value(self.name, outcomes, p, classes=classes, weights=sample_weight)
        score = -as_loss(self.name, value)
        if missing:
            _report(missing, outcomes, score)
        return score

    def __repr__(self) -> str:
        return f"scorer({self.name!r}{self._of_classes()})"


class RuleScores(_Scorer):
    """Minus the mean losses of several rules on an estimator's probabilities; see `scores`.

    Parameters
    ----------
    rules : sequence of Rule
        The scoring rules.
    classes : sequence of labels, optional
        All classes, as for `scorer`.

    Examples
    --------
    >>> from verax.adapters.sklearn import scores
    >>> type(scores(["brier", "rps"])).__name__
    'RuleScores'
    """

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> dict[str, float]:
        """Minus the weighted mean loss by each rule, by its name.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X : array_like of N rows
            The features.
        y : array_like of shape (N,)
            Outcomes: labels of the classes.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows.

        Returns
        -------
        dict of str to float
            Minus the mean losses; greater is better.
        """
        means = self._means(estimator, X, y, sample_weight)
        return {name_of(rule): mean for rule, mean in zip(self.rules, means, strict=True)}

    def __repr__(self) -> str:
        return f"scores({[name_of(rule) for rule in self.rules]!r}{self._of_classes()})"


def _names(classes: Sequence[Hashable]) -> tuple[Hashable, ...] | None:
    """`classes` as a tuple of different names, however many."""
    listed = to_array(classes, "classes")[0]
    return check_classes(classes, int(listed.shape[0]) if listed.ndim else 0)


def _forecasts(estimator: Any, X: Any) -> tuple[np.ndarray[Any, Any], list[Any]]:
    """The probabilities, and the class of each column."""
    if not hasattr(estimator, "predict_proba"):
        advice = Remedy("Wrap it in sklearn.calibration.CalibratedClassifierCV.", python_only=True)
        raise _refusal("must have predict_proba, for rules score probabilities", estimator, advice)
    if not hasattr(estimator, "classes_"):
        raise _refusal("must have classes_, the names of its columns", estimator, Remedy("Fit it first."))
    p = estimator.predict_proba(X)
    if isinstance(p, list):
        raise _refusal("must have one output", estimator, Remedy("Score each output on its own."))
    return to_host(to_array(p, "p")[0]), np.asarray(estimator.classes_).tolist()


def _response_of(estimator: Any, method: str | Sequence[str]) -> str:
    """The method of an estimator that is recalibrated: `predict_proba` if it has one."""
    for name in ("predict_proba", "decision_function"):
        if hasattr(estimator, name):
            break
    else:
        advice = Remedy("Wrap a classifier, such as LogisticRegression or LinearSVC.", python_only=True)
        raise _refusal("must have predict_proba or decision_function", estimator, advice)
    if name == "decision_function" and method == "none":
        raise _refusal(
            "must have predict_proba for method 'none', because decision values are no probabilities",
            estimator,
            passing(method="temperature"),
        )
    return name


def _refusal(requirement: str, estimator: Any, remedy: Remedy) -> InputError:
    found = f"{type(estimator).__name__} does not"
    return InputError(requirement, argument="estimator", kind="type", found=found, remedies=[remedy])


def _report(missing: list[Any], outcomes: np.ndarray[Any, Any], score: float) -> None:
    one = len(missing) == 1
    struck = int(np.isin(outcomes, missing).sum())
    text = (
        f"The estimator was not trained on {'class' if one else 'classes'} {join(map(show, missing))}, "
        f"which {'has' if one else 'have'} probability 0 and happened in {struck} of the {len(outcomes)} "
        "rows scored."
    )
    if np.isneginf(score):
        text += " The rule gives probability 0 an infinite loss, so the score is -inf."
    warnings.warn(text, MissingClassWarning, stacklevel=3)


def _given(**metadata: Any) -> dict[str, Any]:
    """The metadata that a caller has passed."""
    return {name: value for name, value in metadata.items() if value is not None}


class Recalibrated(_Classifier):
    """A classifier with recalibrated probabilities; the method is chosen by cross-validation.

    `fit` predicts every training row with a copy of the estimator that has not seen it, learns the
    recalibration from these predictions (see `verax.recalibrate`), and fits the estimator to all rows.

    Parameters
    ----------
    estimator : classifier
        A classifier with `predict_proba`, or with `decision_function` alone, such as `LinearSVC`. Decision
        values are read as logits: "temperature" divides them by one number, "bcts" is Platt scaling of two
        classes, and "isotonic" depends on their order alone. Pass a fitted classifier as
        `sklearn.frozen.FrozenEstimator(model)`, with rows it was not trained on.
    method : str or sequence of str, default "best"
        The method, as for `verax.recalibrate`. "best" may leave forecasts unchanged.
    rule : Rule or str, optional
        The proper rule that is minimised and measured, as for `verax.recalibrate`.
    cv : int or splitter, default 5
        Split of the training rows for the predictions. `groups` need a splitter that supports them, such as
        `GroupKFold`.
    ordered : bool, default False
        Whether the classes have an order.
    classes : sequence of labels, optional
        For ordered text labels: all classes, lowest first. Numbers are already ordered.
    folds : int, default 5
        Number of folds of the recalibration.
    seed : int, default 0
        Random seed of the folds.

    Attributes
    ----------
    estimator_ : classifier
        The estimator fitted to all rows.
    recalibration_ : Recalibration
        The fitted recalibration, with its cross-validated gain.
    classes_ : array of shape (K,)
        The classes, sorted, as in all scikit-learn classifiers.

    Notes
    -----
    Weights are importance weights: twice the weights give the same classifier. So a row of weight two is not
    the same as two rows, which say more about what a method gains, and may be in different folds. A row of
    weight zero is as if absent from the recalibration.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from verax.adapters.sklearn import Recalibrated
    >>> x, y = load_digits(return_X_y=True)
    >>> model = Recalibrated(GaussianNB(var_smoothing=1e-3), method="temperature", rule="brier").fit(x, y)
    >>> model.recalibration_.helps, model.predict_proba(x[:2]).shape
    (True, (2, 10))
    """

    # Rows that belong together stay together wherever groups are known.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self,
        estimator: Any,
        *,
        method: str | Sequence[str] = "best",
        rule: Rule | str | None = None,
        cv: Any = 5,
        ordered: bool = False,
        classes: Sequence[Hashable] | None = None,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.rule = rule
        self.cv = cv
        self.ordered = ordered
        self.classes = classes
        self.folds = folds
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Recalibrated:
        """Fit the estimator and its recalibration.

        Parameters
        ----------
        X : array_like of N rows
            The features.
        y : array_like of shape (N,)
            Outcomes: labels of the classes.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows, for the estimator and for the recalibration.
        groups : array_like of shape (N,), optional
            Rows that belong together: for a splitter that heeds them, and for the folds of the recalibration.

        Returns
        -------
        Recalibrated
            The fitted classifier itself.
        """
        from sklearn.model_selection import check_cv, cross_val_predict
        from sklearn.utils import column_or_1d
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(y)
        outcomes = column_or_1d(y, warn=True)
        of_fit, of_split = self._routed(sample_weight, groups)
        self.estimator_: Any = clone(self.estimator).fit(X, outcomes, **of_fit)
        self.classes_: Any = np.unique(outcomes)
        if len(self.classes_) < 2:
            raise InputError("must hold at least two classes", argument="y", found="there is only one class")
        order = self._order()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        response = _response_of(self.estimator_, self.method)
        splitter = check_cv(self.cv, outcomes, classifier=True)
        splits, weighted = list(splitter.split(X, outcomes, **of_split)), _given(sample_weight=sample_weight)
        held_out = cross_val_predict(self.estimator, X, outcomes, cv=splits, method=response, params=weighted)
        self.recalibration_: Recalibration = recalibrate(
            outcomes,
            self._probabilities(held_out, response)[:, order],
            method=self.method,
            rule=self.rule,
            ordered=self.ordered,
            folds=self.folds,
            seed=self.seed,
            classes=self.classes_[order].tolist(),
            weights=sample_weight,
            groups=groups,
        )
        return self

    def _routed(self, sample_weight: Any, groups: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the estimator is fitted with, and what the rows are split by."""
        from sklearn.utils.metadata_routing import process_routing

        given = _given(sample_weight=sample_weight, groups=groups)
        if not get_config()["enable_metadata_routing"]:
            return _given(sample_weight=sample_weight), _given(groups=groups)
        routed = process_routing(self, "fit", **given)
        return dict(routed.estimator.fit), dict(routed.splitter.split)

    def get_metadata_routing(self) -> Any:
        """Return who gets which metadata, where metadata routing is enabled.

        This classifier takes `groups` unless told otherwise (`set_fit_request(groups=False)`), and
        `sample_weight` where it is requested. The estimator gets the weights that it requests, the splitter
        the groups.

        Returns
        -------
        MetadataRouter
            The routing of `fit`.
        """
        from sklearn.model_selection import check_cv
        from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

        of_fit, of_split = (MethodMapping().add(caller="fit", callee=callee) for callee in ("fit", "split"))
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=of_fit)
        return router.add(splitter=check_cv(self.cv, classifier=True), method_mapping=of_split)

    def _order(self) -> np.ndarray[Any, Any]:
        """The positions of the sorted classes in the requested order."""
        if self.classes is None:
            if self.ordered and self.classes_.dtype.kind not in "biuf":
                raise InputError(
                    "must list the classes in order, lowest first: an order is never guessed",
                    argument="classes",
                    kind="order",
                    remedies=[passing(classes=...)],
                )
            return np.arange(len(self.classes_))
        names, outcome_classes = list(_names(self.classes) or ()), self.classes_.tolist()
        if sorted(map(str, names)) != sorted(map(str, outcome_classes)) or set(names) != set(outcome_classes):
            raise InputError(
                "must hold the classes of the outcomes, each once",
                argument="classes",
                kind="label",
                found=f"the outcomes have {join(map(show, outcome_classes))}",
                values=names,
            )
        return np.array([outcome_classes.index(name) for name in names])

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """Recalibrated probabilities, a column for each of `classes_`.

        Parameters
        ----------
        X : array_like of N rows
            The features.

        Returns
        -------
        array of shape (N, K)
            The probabilities.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        order, response = self._order(), _response_of(self.estimator_, self.method)
        p = self._probabilities(getattr(self.estimator_, response)(X), response)[:, order]
        better = np.empty(p.shape)
        better[:, order] = self.recalibration_.apply(p)
        return better

    def _probabilities(self, values: Any, response: str) -> np.ndarray[Any, Any]:
        """The estimator's predictions, as probabilities in the order of `classes_`."""
        p, k = np.asarray(values, float), len(self.classes_)
        if response == "predict_proba":
            return p
        z = np.column_stack([np.zeros(len(p)), p]) if p.ndim == 1 else p
        if z.shape[1] != k:
            raise InputError(
                f"must have a decision value for each of the {k} classes",
                argument="estimator",
                kind="length",
                found=f"there are {z.shape[1]}",
                remedies=[Remedy('Pass decision_function_shape="ovr" to it.', python_only=True)],
            )
        return np.asarray(softmax(z, np))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most likely class by the recalibrated probabilities.

        Parameters
        ----------
        X : array_like of N rows
            The features.

        Returns
        -------
        array of shape (N,)
            The labels.
        """
        p = self.predict_proba(X)
        return np.asarray(self.classes_[p.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
