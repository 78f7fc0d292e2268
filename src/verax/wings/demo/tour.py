"""A tour: models trained on the spot on data that come with scikit-learn, and their evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.decomposition import decompose
from verax.analyses.cards.evaluation import evaluate
from verax.analyses.comparison.compare import compare
from verax.analyses.worst import worst as worst_rows
from verax.wings.recalibrate.analysis import recalibrate

Probabilities = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Example:
    """Rows whose outcomes are known, and the probabilities of two models.

    Attributes
    ----------
    name, question : str
        Its name in file names, and the question that the models answer.
    classes : tuple[str, ...]
        The names of the classes.
    ordered : bool
        Whether the classes have an order, that of `classes`.
    outcomes : tuple[str, ...]
        The class of every row, by name.
    models : Mapping[str, Probabilities]
        The probabilities of each model.
    columns : Mapping[str, tuple[str, ...]]
        Further columns: an id, and subgroups.
    rule : str
        The rule that the models are compared by.
    """

    name: str
    question: str
    classes: tuple[str, ...]
    ordered: bool
    outcomes: tuple[str, ...]
    models: Mapping[str, Probabilities]
    columns: Mapping[str, tuple[str, ...]]
    rule: str


def progression() -> Example:
    """Disease progression after one year, cut into four ordered stages: ten measurements, 442 patients."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, value = load_diabetes(return_X_y=True)
    stage = np.searchsorted(np.quantile(value, [0.25, 0.5, 0.75]), value)
    models = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "random forest": RandomForestClassifier(n_estimators=50, random_state=0),
    }
    test, probabilities = _held_out(models, x, stage)
    classes = ("low", "moderate", "high", "severe")
    return Example(
        name="progression",
        question="How far has the disease progressed after a year?",
        classes=classes,
        ordered=True,
        outcomes=tuple(classes[i] for i in stage[test]),
        models=probabilities,
        columns={
            "patient": tuple(f"patient {i}" for i in test),
            "sex": tuple("sex 2" if sex > 0 else "sex 1" for sex in x[test, 1]),
        },
        rule="rps",
    )


def digits() -> Example:
    """Ten handwritten digits of 8 by 8 pixels, 1,797 images."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    x, digit = load_digits(return_X_y=True)
    models = {
        "logistic regression": make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=500)),
        "naive Bayes": GaussianNB(var_smoothing=1e-3),
    }
    test, probabilities = _held_out(models, x, digit)
    ink = x.sum(axis=1)
    return Example(
        name="digits",
        question="Which digit was written?",
        classes=tuple("0123456789"),
        ordered=False,
        outcomes=tuple(str(i) for i in digit[test]),
        models=probabilities,
        columns={
            "image": tuple(f"image {i}" for i in test),
            "ink": tuple("much ink" if i > np.median(ink) else "little ink" for i in ink[test]),
        },
        rule="brier",
    )


def _held_out(models: Mapping[str, Any], x: Any, y: Any) -> tuple[Any, dict[str, Probabilities]]:
    """Two fifths of the rows, and what models fitted to the others say of them."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(y)), test_size=0.4, random_state=0, stratify=y)
    fitted = {name: model.fit(x[train], y[train]) for name, model in models.items()}
    return test, {name: model.predict_proba(x[test]) for name, model in fitted.items()}


def tour(problem: Example) -> Iterator[str]:
    """The tour of a problem, a paragraph at a time."""
    y, classes = problem.outcomes, problem.classes
    known: dict[str, Any] = {"classes": classes, "ordered": problem.ordered}
    for name, p in problem.models.items():
        yield f"{name}\n{evaluate(y, p, **known)}"
    rules = [problem.rule, "log_score"]
    comparison = compare(y, problem.models, rule=rules, reference="frequencies", **known)
    yield f"Is the difference real?\n{comparison}"
    best = comparison.best()
    ids = next(iter(problem.columns.values()))
    worst = worst_rows(y, problem.models[best], rule=problem.rule, n=3, ids=ids, classes=classes)
    yield f"What to look at first, {best}: {worst}"
    parts = decompose(y, problem.models[best], rule=problem.rule, classes=classes)
    yield f"Where the loss comes from, {best}\n{parts}"
    better = recalibrate(y, problem.models[best], **known)
    yield f"Recalibration gain, {best}\n{better}"
