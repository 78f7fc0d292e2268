"""Rules as scikit-learn scorers, for GridSearchCV, cross_val_score and cross_validate."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.arrays import to_array, to_host
from verax.inputs.outcomes import check_classes
from verax.scores.base import Rule
from verax.scores.registry import name_of, parse


class MissingClassWarning(UserWarning):
    """An estimator has not been trained on all classes, so that some have probability zero."""


def scorer(rule: Rule | str, *, classes: Sequence[Hashable] | None = None) -> RuleScorer:
    """A scorer that returns minus the mean loss of a rule: greater is better, as scikit-learn wants it.

    Parameters
    ----------
    rule : Rule or str
        A rule, or a text for `parse`.
    classes : sequence of hashable, optional
        All classes; for ordered classes lowest first. Ordinal rules need it for labels that are texts,
        because scikit-learn sorts them by the alphabet; integers are an order of their own. Without it,
        the classes are those of the estimator and of the rows scored, so rules that depend on the
        number of classes may differ between folds that lack a class.

    Notes
    -----
    The columns of `predict_proba` are matched by `estimator.classes_`, whatever their order. Classes that
    the estimator has not seen in training have probability zero: the warning `MissingClassWarning` names
    them and counts the rows whose outcome they are. Such a row has the largest loss the rule gives, and
    a score of -inf if that is infinite, as it is for the log score.

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
    return RuleScorer(parse(rule), classes)


class RuleScorer:
    """Minus the mean loss of a rule on an estimator's probabilities; see `scorer`."""

    def __init__(self, rule: Rule, classes: Sequence[Hashable] | None = None) -> None:
        self.rule = rule
        self.classes = None if classes is None else _names(classes)
        self._weighted: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the weighted mean loss of the estimator's forecasts for `X` when `y` happened."""
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
        score = -self.rule(outcomes, p, classes=classes, weights=sample_weight)
        if missing := [c for c in classes if c not in trained]:
            _report(missing, outcomes, score)
        return score

    def _all_classes(self, trained: list[Any], outcomes: np.ndarray[Any, Any]) -> tuple[Any, ...]:
        """The classes of the estimator and of the rows scored; in order, if the rule needs one."""
        found = tuple(dict.fromkeys([*trained, *np.unique(outcomes).tolist()]))
        if not self.rule.ordinal:
            return found
        if not all(isinstance(label, int) for label in found):
            raise InputError(
                "must list the classes in order, lowest first, unless they are integers: "
                f"{name_of(self.rule)} is ordinal, and an order is never guessed",
                argument="classes",
                kind="order",
                found=f"the classes are {join(map(show, found))}",
                values=found,
                remedies=[passing(classes=...)],
            )
        return tuple(sorted(found))

    # ---- scikit-learn's routing of metadata --------------------------------------------------

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> RuleScorer:
        """Ask for `sample_weight` (True), or for weights passed under another name; changes this scorer."""
        self._weighted = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """What this scorer asks for, in scikit-learn's terms."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=self._weighted)
        return request

    def __repr__(self) -> str:
        classes = "" if self.classes is None else f", classes={list(self.classes)!r}"
        return f"scorer({name_of(self.rule)!r}{classes})"


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
