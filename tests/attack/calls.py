"""Valid calls of all that is public: functions, classes, and the methods of what these give.

What there is to call is found in the modules. Arguments are found by the names of parameters; where a name
means something else in one call, `SPECIAL` has it. A test holds every call to be valid as it is, so that
one with an odd argument gets far.
"""

from __future__ import annotations

import copy
import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import verax as vx
from attack.odd import SITE, N, P, Y, frame, frame_of, lists, table_of

Make = Callable[[], Any]


# Arguments by the names of parameters.
PLAUSIBLE: dict[str, Make] = {
    "y": lambda: Y,
    "p": lambda: P,
    "q": lambda: P,
    "a": lambda: "a",
    "b": lambda: "b",
    "c": lambda: np.cumsum(P, axis=1)[:, :2],
    "rule": lambda: vx.brier,
    "rules": lambda: ["brier", "rps"],
    "text": lambda: "penalized(brier)",
    "n_classes": lambda: 3,
    "lists": lists,
    "k": lambda: 2,
    "forecasts": lambda: {"a": P, "b": P[::-1]},
    "models": lambda: {"a": P, "b": P[::-1]},
    "decisions": lambda: np.tile([0, 1, 1, 2], N // 4),
    "defer": lambda: [0.1, 0.5],
    "by": lambda: SITE,
    "groups": lambda: np.arange(N) // 2,
    "classes": lambda: [0, 1, 2],
    "confidences": lambda: P,
    "confidence": lambda: 0.9,
    "offsets": lambda: np.arange(N + 1) * 3,
    "sets": lambda: P > 0.2,
    "labels": lambda: [0, 1, 2],
    "position": lambda: 1,
    "differences": lambda: np.array([0.1, -0.2, 0.0]),
    "value": lambda: 0.5,
    "to": lambda: "scikit-learn",
    "scores": lambda: np.log(P),
    "logits": lambda: False,
    "invalid": lambda: "skip",
    "weights": lambda: np.tile([1.0, 0.5, 2.0, 0.5], N // 4),
    "source": frame,
    "target": lambda: "y",
    "probs": lambda: "p_*",
    "X": lambda: P,
    "length": lambda: 2,
    "records": lambda: [{"val_loss": 0.3}, {"val_loss": 0.2}],
    "columns": lambda: {"val_loss": [0.3, 0.2], "qwk": [0.1, 0.2]},
    "history": lambda: {"val_loss": [0.3, 0.2], "qwk": [0.1, 0.2]},
    "grades": lambda: {"a": [1, 0, 1, 0] * (N // 4), "b": [0, 0, 1, 1] * (N // 4)},
    "time": lambda: np.arange(N) // 4,
    "task": lambda: SITE,
    "ids": lambda: np.array([f"r{i}" for i in range(N)]),
    "epochs": lambda: {1: (Y, P), 2: (Y, P[::-1])},
    "difference": lambda: 0.01,
    "path": lambda: "saved.verax",
    "state": lambda: [{"epoch": 1, "eval_loss": 0.5}, {"epoch": 2, "eval_loss": 0.3}],
    "bootstrap": lambda: 4,
    "folds": lambda: 2,
    "seed": lambda: 3,
    "event": lambda: 1,
    "margin": lambda: 0.1,
    "level": lambda: 0.8,
    "threshold": lambda: [0.2, 0.5],
    "thresholds": lambda: [0.2, 0.5],
    "stored": lambda: True,
    "coverage": lambda: 0.5,
    "risk": lambda: 0.5,
    "model": lambda: "a",
    "prefix": lambda: "x",
    "costs": lambda: "linear",
    "ordered": lambda: True,
}

# What names mean in some calls, which are made with them also if they are optional; None is not given.
SPECIAL: dict[tuple[str, str], Make] = {
    ("compare", "bootstrap"): lambda: 100,
    ("compare", "y"): lambda: Y,
    ("RepeatScores.score", "name"): lambda: "pass@1",
    ("sites", "y"): lambda: Y % 2,
    ("sites", "p"): lambda: P[:, 0],
    ("sites", "sites"): lambda: np.array(list("abcd"))[np.arange(N) // 6],
    ("compare_folds", "forecasts"): lambda: None,
    ("compare_folds", "p"): lambda: None,
    ("compare_grades", "p"): lambda: None,
    ("evaluate_sets", "sets"): lambda: P > 0.2,
    ("sliding_windows", "rows"): lambda: None,
    ("DatasetComparison.difference", "a"): lambda: "0",
    ("DatasetComparison.difference", "b"): lambda: "1",
    ("FoldComparison.best", "rule"): lambda: None,
    ("FoldComparison.better", "rule"): lambda: "score",
    ("FoldComparison.leader", "rule"): lambda: None,
    ("LengthComparison.__getitem__", "name"): lambda: "brier",
    ("LengthComparison.excess", "name"): lambda: "top-1",
    ("LengthComparison.length_within", "name"): lambda: "brier",
    ("ListReliability.__getitem__", "name"): lambda: "place 1",
    ("Reliability.__getitem__", "name"): lambda: 0,
    ("ScoreMap.__getitem__", "name"): lambda: "a",
    ("RankScores.__getitem__", "name"): lambda: "a",
    ("OperatingPoints.__getitem__", "name"): lambda: "sensitivity",
    ("Best.at", "metric"): lambda: "val_loss",
    ("Stop.at", "metric"): lambda: "val_loss",
    ("EarlyStopping.step", "value"): lambda: 0.5,
    ("Interval.from_dict", "facts"): lambda: example("Interval").to_dict(),
    ("History.from_dict", "values"): lambda: example("History").to_dict(),
    ("compare_grades", "bootstrap"): lambda: 100,
    ("compare_datasets", "better"): lambda: "lower",
    ("compare_folds", "folds"): lambda: None,
    ("compare_folds", "better"): lambda: "lower",
    ("evaluate_sets", "p"): lambda: None,
    ("top_k_error", "lists"): lambda: vx.TopLists.from_probabilities(P, 2),
    ("sliding_windows", "x"): lambda: np.arange(8.0),
    ("training.probabilities_of", "head"): lambda: "coral",
    ("Head.__call__", "outputs"): lambda: P[:, :2],
    ("Head.logits", "outputs"): lambda: P[:, :2],
    ("Sets.from_probabilities", "level"): lambda: 0.8,
    ("Sets.taken", "rows"): lambda: [0, 2],
    ("TopLists.from_probabilities", "k"): lambda: 2,
    ("Tally.from_bytes", "data"): lambda: example("Tally").to_bytes(),
    ("Scorecard.from_bytes", "data"): lambda: example("Scorecard").to_bytes(),
    ("ListCard.from_bytes", "data"): lambda: example("ListCard").to_bytes(),
    ("Monitor.from_bytes", "data"): lambda: example("Monitor").to_bytes(),
    ("Monitor.load", "path"): lambda: saved("Monitor"),
    ("Conformal.load", "path"): lambda: saved("Conformal"),
    ("Recalibration.load", "path"): lambda: saved("Recalibration"),
    ("ListRecalibration.load", "path"): lambda: saved("Recalibration"),
    ("Combination.load", "path"): lambda: saved("Combination"),
    ("History.from_csv", "path"): lambda: written("h.csv", "epoch,qwk\n1,0.5\n2,0.6\n"),
    ("History.read", "path"): lambda: written("h.csv", "epoch,qwk\n1,0.5\n2,0.6\n"),
    ("History.from_jsonl", "path"): lambda: written("h.jsonl", '{"epoch": 1, "qwk": 0.5}\n'),
    ("History", "epochs"): lambda: np.array([1.0, 2.0]),
    ("History", "values"): lambda: {"qwk": np.array([0.5, 0.6])},
    ("History.select", "rules"): lambda: ["val_loss"],
    ("History.direction_of", "column"): lambda: "qwk",
    ("History.known_direction", "column"): lambda: "qwk",
    ("History.epoch_at", "i"): lambda: 0,
    ("Selection.correlation", "rule"): lambda: "val_loss",
    ("EarlyStopping", "mode"): lambda: "min",
    ("EarlyStopping", "rule"): lambda: None,
    ("EarlyStopping.step", "y"): lambda: None,
    ("EarlyStopping.step", "p"): lambda: None,
    ("EarlyStopping.load_state_dict", "saved"): lambda: example("EarlyStopping").state_dict(),
    ("EarlyStopping, step", "mode"): lambda: "min",
    ("EarlyStopping, step", "rule"): lambda: None,
    ("scan columns", "p_0"): lambda: P[:, 0],
    ("scan arrow", "p_0"): lambda: P[:, 0],
    ("scan columns", "by"): lambda: None,
    ("scan arrow", "by"): lambda: None,
    ("Reading.from_toml", "path"): lambda: written("r.toml", 'target = "y"\n'),
    ("Reading.models", "default"): lambda: "a",
    ("Reading.of", "reading"): lambda: None,
    ("CalibrationSlopes.__getitem__", "name"): lambda: 0,
    ("Comparison.better", "rule"): lambda: "brier",
    ("Comparison.best", "rule"): lambda: "brier",
    ("Comparison.leader", "rule"): lambda: "brier",
    ("Comparison.difference", "rule"): lambda: "brier",
    ("Combination.against", "name"): lambda: "a",
    ("LengthComparison.difference", "a"): lambda: "hard",
    ("LengthComparison.difference", "b"): lambda: "as given",
    ("LengthComparison.difference", "rule"): lambda: "brier",
    ("OperatingPoint.__getitem__", "name"): lambda: "sensitivity",
    ("OperatingPoint.rate", "name"): lambda: "sensitivity",
    ("OperatingPoints.difference", "rate"): lambda: "sensitivity",
    ("OperatingPoints.verdict_by", "rate"): lambda: "sensitivity",
    ("RateCurve.at", "threshold"): lambda: 0.3,
    ("DecisionCurve.at", "threshold"): lambda: 0.2,
    ("Interval.scaled", "by"): lambda: 2.0,
    ("Interval.shifted", "by"): lambda: 2.0,
    ("Interval.by", "method"): lambda: "t",
    ("Interval.doubted", "why"): lambda: "few rows",
    ("Interval.undefined", "caution"): lambda: "few rows",
    ("Interval.within", "bounds"): lambda: (0.0, 1.0),
    ("Recalibration.trial", "method"): lambda: "temperature",
    ("ListRecalibration.trial", "method"): lambda: "temperature",
    ("RetentionCurves.__getitem__", "key"): lambda: ("brier", "accuracy"),
    ("RetentionCurves.difference", "a"): lambda: ("brier", "accuracy"),
    ("RetentionCurves.difference", "b"): lambda: ("brier", "macro_f1"),
    ("RiskCoverage.band", "coverages"): lambda: [0.2, 0.5],
    ("SamplePlan.half_width_at", "rows"): lambda: 100,
    ("SamplePlan.power_at", "rows"): lambda: 100,
    ("Scorecard.__contains__", "name"): lambda: "brier",
    ("Scorecard.__getitem__", "name"): lambda: "brier",
    ("Scorecard.error_of", "line"): lambda: "brier",
    ("Scorecard.metric", "name"): lambda: "accuracy",
    ("Scorecard.get", "name"): lambda: "brier",
    ("ListCard.__contains__", "name"): lambda: "brier",
    ("ListCard.__getitem__", "name"): lambda: "brier",
    ("ListCard.metric", "name"): lambda: "accuracy",
    ("ListCard.get", "name"): lambda: "brier",
    ("Scorecard.__add__", "other"): lambda: example("Scorecard"),
    ("Scorecard.merge", "other"): lambda: example("Scorecard"),
    ("ListCard.__add__", "other"): lambda: example("ListCard"),
    ("ListCard.merge", "other"): lambda: example("ListCard"),
    ("GradeCard.__add__", "other"): lambda: example("GradeCard"),
    ("GradeCard.merge", "other"): lambda: example("GradeCard"),
    ("Tally.merge", "other"): lambda: example("Tally"),
    ("Tally.__add__", "other"): lambda: example("Tally"),
    ("Subgroups.__getitem__", "key"): lambda: "u",
    ("Subgroups.tested_at", "level"): lambda: 0.05,
    ("Subgroups.tested_at", "column"): lambda: "p_value",
    ("Verdict.about", "claim"): lambda: "better",
    ("Worst.__getitem__", "i"): lambda: 0,
    ("Sets.__getitem__", "row"): lambda: 0,
    ("TopLists.__getitem__", "rows"): lambda: [0, 1],
    ("ReliabilityCurve.title_of", "curve"): lambda: 0,
    ("Components.text", "name"): lambda: "miscalibration",
    ("Refinement.of", "recalibration"): lambda: example("Recalibration"),
    ("FoldComparison.difference", "rule"): lambda: "score",
    ("Holds.at", "n_classes"): lambda: 2,
    ("Windows.__getitem__", "which"): lambda: 0,
    ("pass_at_k", "grades"): lambda: np.eye(6)[:, :4],
    ("pass_at_k", "ids"): lambda: None,
    ("plan_repeats", "grades"): lambda: np.eye(6)[:, :4],
    ("plan_repeats", "ids"): lambda: None,
    ("evaluate_grades", "grades"): lambda: [1, 0, 1, 0] * (N // 4),
    ("evaluate_grades", "p"): lambda: [0.9, 0.2, 0.7, 0.4] * (N // 4),
    ("compare_folds", "scores"): lambda: {"a": [0.1, 0.2, 0.3], "b": [0.2, 0.1, 0.4]},
    ("compare_datasets", "table"): lambda: np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.4]]),
    ("at_horizon", "time"): lambda: np.arange(N) + 1.0,
    ("at_horizon", "event"): lambda: np.arange(N) % 2,
    ("at_horizon", "horizon"): lambda: 5.0,
    ("combine", "lists"): lambda: [lists(), lists()],
    ("raters", "y"): lambda: np.c_[Y, np.where(np.arange(N) % 5, Y, 0)],
    ("raters", "raters"): lambda: "columns",
    ("instance_f1", "y"): lambda: [{0, 1}, {2}],
    ("instance_f1", "sets"): lambda: [{0, 1}, {2}],
    ("expected_hessian", "logits"): lambda: np.log(P),
    ("gradient", "logits"): lambda: np.log(P),
    ("compare", "p"): lambda: {"a": P, "b": P[::-1]},
    ("recalibrate", "method"): lambda: ["temperature", "isotonic"],
    ("refinement", "method"): lambda: "temperature",
    ("subgroups", "least"): lambda: 1,
    ("plan", "difference"): lambda: 0.01,
    ("plan", "y"): lambda: Y,
    ("sliding_windows", "length"): lambda: 2,
    ("TopLists.from_dicts", "n_classes"): lambda: 3,
    ("load", "path"): lambda: saved("Scorecard"),
    ("compare_lengths", "p"): lists,
    ("top_k_error", "p"): lambda: P,
    ("risk_coverage", "by"): lambda: "entropy",
    ("retention", "metric"): lambda: ["accuracy", "macro_f1"],
    ("selective", "metric"): lambda: ["ec", "macro_f1"],
    ("selective", "by"): lambda: "entropy",
    ("kappa", "costs"): lambda: None,
    ("decide", "costs"): lambda: None,
    ("plan", "models"): lambda: ("a", "b"),
    ("worst", "n"): lambda: 3,
    ("score_map", "rule"): lambda: "brier",
    ("select_over_folds", "histories"): lambda: [example("History")] * 3,
    ("select_over_folds", "metric"): lambda: "qwk",
    ("select_over_folds", "rules"): lambda: ["val_loss", "qwk"],
    ("Forecasts", "classes"): lambda: [0, 1, 2],
    ("Sets", "members"): lambda: [0, 1, 2],
    ("Sets", "offsets"): lambda: [0, 2, 3],
    ("Sets.from_mask", "mask"): lambda: P > 0.2,
    ("Sets.from_labels", "rows"): lambda: [{0, 1}, {2}],
    ("Sets.with_outcomes", "y"): lambda: Y,
    ("TopLists.from_arrays", "classes"): lambda: np.tile([2, 0, 1], (N, 1)),
    ("TopLists.from_arrays", "offsets"): lambda: None,
    ("TopLists", "classes"): lambda: np.tile([2, 0, 1], N),
    ("TopLists", "confidences"): lambda: P.ravel(),
    ("TopLists.from_dicts", "rows"): lambda: [{0: 0.5, 1: 0.25}, {2: 0.75}],
    ("TopLists.from_label_sets", "sets"): lambda: [[{0, 1}, {0}], [{2}]],
    ("TopLists.from_label_sets", "confidences"): lambda: [[0.5, 0.25], [0.9]],
    ("TopLists.from_logprobs", "rows"): lambda: [{"a": -0.5, "b": -1.5}, [{"token": "a", "logprob": -1}]],
    ("Tally.with_skipped", "skipped"): lambda: None,
    ("Monitor.update", "by"): lambda: None,
    ("Monitor.update", "time"): lambda: 9,
    ("Monitor.observe", "time"): lambda: 9,
    ("Monitor.observe", "by"): lambda: None,
    ("Monitor.predict", "time"): lambda: 9,
    ("Monitor.predict", "by"): lambda: None,
    ("Monitor.predict", "ids"): lambda: [f"new{i}" for i in range(N)],
    ("Monitor.outcomes", "ids"): lambda: [f"late{i}" for i in range(N)],
    ("Monitor.outcomes", "time"): lambda: 9,
    ("Monitor.acknowledge", "reference"): lambda: None,
    ("Monitor.add", "steps"): lambda: example("Monitor").observe(Y, P, time=9),
    ("Monitor.note_file", "digest"): lambda: "0" * 32,
    ("Monitor.note_file", "name"): lambda: "a.csv",
    ("Monitor.knows_file", "digest"): lambda: "0" * 32,
    ("Combination.apply", "forecasts"): lambda: [P, P],
    ("ListRecalibration.apply", "p"): lists,
    ("ConfidenceSequence", "rule"): lambda: "brier",
    ("ConfidenceSequence.update", "a"): lambda: P,
    ("ConfidenceSequence.update", "b"): lambda: P[::-1],
    ("ConfidenceSequence.update", "classes"): lambda: [0, 1, 2],
    ("History.best", "metric"): lambda: "qwk",
    ("History.find", "metric"): lambda: "qwk",
    ("History.direction", "metric"): lambda: "qwk",
    ("Selection.correlation", "metric"): lambda: "qwk",
    ("Reading.of", "keywords"): dict,
}
# Optional arguments that calls have by their names.
ROWS = frozenset({"p", "forecasts", "rule", "target", "probs"})
# Simulations and plots that take seconds are kept short.
SHORT = frozenset({"bootstrap", "folds"})


_ADAPTED = ("boosting", "sklearn", "training")
# Estimators of other libraries, and what takes their place.
_ESTIMATORS = {"LightGBMClassifier", "Recalibrated", "RuleScorer", "RuleScores", "MetricScorer"}


def public_modules() -> Iterator[tuple[str, ModuleType]]:
    """The modules of public names, each with what is written before a name."""
    yield "", vx
    for name in vx.__all__:
        module = getattr(vx, name)
        if isinstance(module, ModuleType) and name not in ("adapters", "errors"):
            yield f"{name}.", module
    # The other adapters need frameworks, and have tests of their own.
    for name in _ADAPTED:
        yield f"{name}.", getattr(vx.adapters, name)


def _names(module: ModuleType) -> list[str]:
    own = [
        n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__ and n[0] != "_"
    ]
    return list(getattr(module, "__all__", own))


@cache
def classes() -> dict[str, type]:
    """The public classes by name, but exceptions."""
    found = {}
    for _, module in public_modules():
        for name in _names(module):
            value = getattr(module, name)
            if isinstance(value, type) and not issubclass(value, Exception) and name not in _ESTIMATORS:
                found[name] = value
    return found


# Made by functions of verax, not by callers.
_MADE = set(vx.results.__all__) | {
    "Tally",
    "Report",
    "Best",
    "Selection",
    "Stop",
    "Windows",
    "Parts",
    "Verdict",
}
_MADE |= {"Correlation", "Rule", "Head", "SetRule", "Properties", "Holds"}
# Methods that verax calls of its own classes, which no caller needs.
_INNER = {
    *("set_split_request", "get_metadata_routing"),
    *(
        "formula",
        "loss",
        "by_set",
        "elicited",
        "batch",
        "batch_of",
        "batches",
        "check",
        "numbers",
        "offenders",
    ),
    *("probabilities_of", "shares", "unread", "text", "claim", "title_of", "error_of", "changed", "called"),
    *("by", "doubted", "scaled", "shifted", "undefined", "within", "holding", "given", "tested_at", "__eq__"),
}
_PYTHON = ("__getitem__", "__add__", "__call__", "__contains__")


@cache
def targets() -> dict[str, Callable[..., Any]]:
    """All that is called, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for prefix, module in public_modules():
        for name in _names(module):
            value = getattr(module, name)
            if inspect.isfunction(value):
                found[name if not prefix or prefix[:-1] not in ("compat", *_ADAPTED) else prefix + name] = (
                    value
                )
            elif isinstance(value, vx.rules.Rule):
                found |= _methods(name, lambda rule=value: rule, type(value))
    for name, cls in classes().items():
        if name not in _MADE:
            found[name] = cls
        found |= _methods(name, lambda name=name: example(name), cls)
    return found | _TOGETHER


def _methods(name: str, make: Make, cls: type) -> dict[str, Callable[..., Any]]:
    """The public methods of a class, each called on a new object, because some calls change it."""
    found: dict[str, Callable[..., Any]] = {}
    for method, value in inspect.getmembers(cls):
        own = any(method in vars(base) for base in cls.__mro__ if base.__module__.startswith("verax"))
        public = not method.startswith(("_", "with_")) or method in (*_PYTHON, "with_outcomes", "with_class")
        if own and public and _is_outer(name, method) and callable(value) and not isinstance(value, type):
            found[f"{name}.{method}"] = _Method(make, method, value)
    return found


def _is_outer(name: str, method: str) -> bool:
    return method not in _INNER and (method != "of" or name in ("Tally", "Report"))


class _Method:
    """A method of an object that is made when the method is called."""

    def __init__(self, make: Make, name: str, value: Any) -> None:
        self.make, self.name = make, name
        signature = inspect.signature(value)
        bound = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        self.__signature__ = signature.replace(parameters=bound)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.make(), self.name)(*args, **kwargs)


def example(name: str) -> Any:
    """An object of a public class, a new one each time."""
    made = _example(name)
    # Some hold modules, which have no copies.
    return made if isinstance(made, vx.Forecasts) else copy.deepcopy(made)


@cache
def _example(name: str) -> Any:
    if name in _EXAMPLES:
        return _EXAMPLES[name]()
    cls = classes()[name]
    for target, call in _functions().items():
        annotation = str(inspect.signature(call).return_annotation)
        if name in annotation.replace("|", " ").split():
            found = call(**arguments(target, call))
            if isinstance(found, cls):
                return found
    if issubclass(cls, vx.rules.Rule):
        return cls(**arguments(name, cls))
    return cls(**arguments(name, cls))


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    return {
        name: getattr(module, name)
        for _, module in public_modules()
        for name in _names(module)
        if inspect.isfunction(getattr(module, name))
    }


def _monitor() -> vx.Monitor:
    monitor = vx.Monitor(0.3)
    for day in range(3):
        monitor.update(Y, P, time=day, ids=[f"{day}-{i}" for i in range(N)])
    monitor.predict(P, [f"late{i}" for i in range(N)], time=3)
    return monitor


def _alarmed() -> vx.Monitor:
    monitor = vx.Monitor(0.1)
    for day in range(30):
        monitor.update(Y, P[::-1], time=day)
    return monitor


def _two(call: Callable[..., Any], **more: Any) -> Any:
    return call(Y, {"a": P, "b": P[::-1]}, **more)


def _acknowledged() -> Any:
    monitor = _alarmed()
    monitor.acknowledge(why="a sensor was replaced", who="ann")
    return monitor.acknowledged[0]


def _judged() -> Any:
    grades = np.where(np.arange(N) % 2, 1.0, np.nan) * (np.arange(N) % 3 > 0)
    return vx.evaluate_grades(grades, judge=(np.arange(N) % 5 > 0).astype(float), checks="random")


_EXAMPLES: dict[str, Make] = {
    "Acknowledgement": _acknowledged,
    "JudgedGrades": _judged,
    "CheckPlan": lambda: vx.plan(_judged(), human_labels=0.3),
    "Monitor": _monitor,
    "MonitorHistory": lambda: _monitor().history,
    "Alarm": lambda: _alarmed().alarm,
    "Tally": lambda: vx.Tally.of(Y, P),
    "TopLists": lambda: vx.TopLists.from_dicts([{0: 0.5, 1: 0.25}] * N, n_classes=3),
    "Sets": lambda: vx.Sets.from_probabilities(P, level=0.8),
    "ListCard": lambda: vx.evaluate(Y, lists()),
    "ListReliability": lambda: vx.reliability(Y, lists()),
    "ListDecomposition": lambda: vx.decompose(Y, lists()),
    "ListRecalibration": lambda: vx.recalibrate(Y, lists(), method="temperature", folds=2),
    "RankScores": lambda: _two(vx.roc_auc),
    "RankScore": lambda: vx.roc_auc(Y, P),
    "RetentionCurves": lambda: vx.retention(Y, P, rule="brier", metric=["accuracy", "macro_f1"], bootstrap=4),
    "RetentionCurve": lambda: vx.retention(Y, P, rule="brier", metric="accuracy", bootstrap=4),
    "RateCurve": lambda: _two(vx.roc_curve).curve(1, "a"),
    "DecisionCurves": lambda: _two(vx.net_benefit),
    "DecisionCurve": lambda: _two(vx.net_benefit).curve(1, "a"),
    "OperatingPoints": lambda: vx.operating_points([0, 1] * (N // 2), P[:, 0], threshold=[0.2, 0.5]),
    "OperatingPoint": lambda: example("OperatingPoints").points[0],
    "ReliabilityCurve": lambda: vx.reliability(Y, P)[0],
    "CalibrationLine": lambda: vx.calibration_slope(Y, P)[0],
    "Components": lambda: vx.decompose(Y, P).whole,
    "Difference": lambda: _two(vx.compare).difference("a", "b"),
    "Interval": lambda: vx.evaluate(Y, P).scores["brier"].interval,
    "Verdict": lambda: vx.evaluate(Y, P).verdict,
    "Murphy": lambda: _two(vx.diagrams.murphy),
    "Scorecard": lambda: vx.evaluate(Y, P, groups=SITE, ordered=True, bootstrap=4),
    "Comparison": lambda: _two(vx.compare),
    "History": lambda: vx.selection.History.from_columns(
        {"val_loss": [0.3, 0.2, 0.4], "qwk": [0.1, 0.5, 0.4]}
    ),
    "Selection": lambda: example("History").select(["val_loss"], ["qwk"]),
    "Best": lambda: example("History").best("qwk"),
    "Correlation": lambda: example("Selection").correlations[0],
    "Stop": lambda: vx.selection.Stop.of(example("History"), "qwk", 1),
    "Windows": lambda: vx.selection.sliding_windows(8, length=2),
    "Parts": lambda: next(iter(vx.selection.HBlockSplit(4).split_three(P, Y))),
    "Report": lambda: vx.report.Report.of(Y, P),
    "Reading": lambda: vx.Reading(target="y"),
    "Rule": lambda: vx.brier,
    "SetRule": lambda: vx.rules.LevelSet(0.2),
    "Properties": lambda: vx.brier.properties,
    "Holds": lambda: vx.rules.Holds(3),
    "Penalized": lambda: vx.penalized(vx.rps),
    "Padded": lambda: vx.padded(vx.pbs),
    "Forecasts": lambda: vx.Forecasts(Y, P),
    "Head": lambda: vx.adapters.training.probabilities_of("coral"),
    "FoldComparison": lambda: vx.compare_folds(scores={"a": [0.1, 0.2, 0.3], "b": [0.2, 0.1, 0.4]}),
    "Certificate": lambda: vx.certify("zero_one", n_classes=2),
}


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="verax-attack-"))


def saved(name: str) -> str:
    """The file of an example that is saved."""
    path = _folder() / f"{name}.saved"
    if not path.exists():
        example(name).save(path)
    return str(path)


def written(name: str, text: str) -> str:
    """A file with some text."""
    path = _folder() / name
    path.write_text(text)
    return str(path)


def _scanned(source: Any, **options: Any) -> Any:
    return vx.evaluate(vx.scan(source, **options))


def _framed(y: Any, p_0: Any, weights: Any = None, groups: Any = None, by: Any = None) -> Any:
    return _of_columns(lambda columns: frame_of(columns), y, p_0, weights, groups, by)


def _tabled(y: Any, p_0: Any, weights: Any = None, groups: Any = None, by: Any = None) -> Any:
    return _of_columns(lambda columns: table_of(columns), y, p_0, weights, groups, by)


def _of_columns(make: Any, y: Any, p_0: Any, weights: Any, groups: Any, by: Any) -> Any:
    given = {"y": y, "weights": weights, "groups": groups, "by": by}
    columns = {name: values for name, values in given.items() if values is not None}
    try:
        table = make(columns | {"p_0": p_0} | {f"p_{i}": P[:, i] for i in (1, 2)})
    except Exception:
        # The table itself refuses such a column.
        return None
    named = {name: name for name in columns if name != "y"}
    if by is not None:
        return vx.subgroups(vx.scan(table, target="y", **named), by="by", least=1)
    return vx.evaluate(vx.scan(table, target="y", **named))


def _split(
    X: Any,
    y: Any = None,
    groups: Any = None,
    n_blocks: Any = 2,
    n_test: Any = 1,
    n_validation: Any = 0,
    gap: Any = 0,
    gap_blocks: Any = 0,
    step: Any = 1,
    per_class: Any = False,
) -> Any:
    options = {"n_validation": n_validation, "gap": gap, "gap_blocks": gap_blocks, "step": step}
    split = vx.selection.HBlockSplit(n_blocks, n_test=n_test, per_class=per_class, **options)
    return list(split.split_three(X, y, groups))


def _stop(
    value: Any,
    rule: Any = None,
    mode: Any = "min",
    patience: Any = 2,
    min_delta: Any = 0.0,
    warmup: Any = 0,
    restore: Any = False,
) -> Any:
    options = {"patience": patience, "min_delta": min_delta, "warmup": warmup, "restore": restore}
    return vx.selection.EarlyStopping(rule, mode=mode, **options).step(value)


_scanned.__signature__ = inspect.signature(vx.scan)  # type: ignore[attr-defined]


# Calls of several functions in turn.
_TOGETHER: dict[str, Callable[..., Any]] = {
    "scan and evaluate": _scanned,
    "scan columns": _framed,
    "scan arrow": _tabled,
    "HBlockSplit, split": _split,
    "EarlyStopping, step": _stop,
}


def arguments(name: str, call: Callable[..., Any]) -> dict[str, Any]:
    """Valid arguments of a call by name: those that it must have, and rows."""
    values: dict[str, Any] = {}
    for parameter in parameters(call):
        special = _special(name, parameter.name)
        needed = parameter.default is parameter.empty or parameter.name in ROWS | SHORT
        make = special or (PLAUSIBLE.get(parameter.name) if needed else None)
        value = None if make is None else make()
        if value is not None or parameter.default is parameter.empty:
            values[parameter.name] = value
    return values


def parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a call that have names."""
    every = inspect.signature(call).parameters.values()
    return [p for p in every if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def plausible(name: str, parameter: str) -> Make | None:
    """What makes a valid argument."""
    return _special(name, parameter) or PLAUSIBLE.get(parameter)


def _special(name: str, parameter: str) -> Make | None:
    cls, _, method = name.partition(".")
    if method == "from_dict" and (name, parameter) not in SPECIAL:
        return lambda: example(cls).to_dict()
    if cls == "ThresholdBrier" and method in (
        "__call__",
        "samples",
        "by_outcome",
        "expected",
        "entropy",
        "divergence",
    ):
        return {"y": lambda: Y % 2, "p": lambda: P[:, 0], "q": lambda: P[:, 0]}.get(parameter)
    return SPECIAL.get((name, parameter))


def called(call: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call with arguments by name, some of which are given by their places."""
    places = [p.name for p in parameters(call) if p.kind is p.POSITIONAL_ONLY and p.name in values]
    return call(*(values[n] for n in places), **{n: v for n, v in values.items() if n not in places})
