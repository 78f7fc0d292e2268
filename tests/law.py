"""One table of all public functions that take outcomes: how each is asked, and where rows may be."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import verax as vx
from scattered import Cut, problem
from verax.common.idkeys import saving_ids
from verax.report import Report

N, M = 150, 12
CLASSES = ["low", "middle", "high"]
LISTED = [f"c{j:02}" for j in range(M)]
# How `scan` is told what the columns are.
COLUMNS = {"target": "truth", "weights": "w", "groups": "who", "id": "number", "by": "site"}
RATERS = ["ann", "bob", "cy"]
PROBS = {"a": "a_*", "b": "b_*"}


@dataclass(frozen=True)
class Given:
    """Rows of two models, as arguments and as a table."""

    y: list[str]
    models: dict[str, Any]
    per_row: dict[str, Any]
    columns: dict[str, Any]
    classes: list[str]
    # How the probabilities are found in the table.
    read: dict[str, Any]

    @cached_property
    def table(self) -> pa.Table:
        truth = (
            {"truth": self.y}
            if np.ndim(self.y) == 1
            else dict(zip(RATERS, np.transpose(self.y), strict=True))
        )
        own = {COLUMNS[{"ids": "id"}.get(name, name)]: v for name, v in self.per_row.items()}
        return pa.table({**truth, **self.columns, **own})

    def changed(self, **changes: Any) -> Given:
        """The same rows with something wrong."""
        return replace(self, **changes)


def per_row(rng: Any, n: int) -> dict[str, Any]:
    return {
        "weights": rng.integers(0, 4, n) * 0.5,
        "groups": rng.integers(0, 25, n),
        "ids": np.array([f"case {i}" for i in range(n)]),
        "by": pd.Series(np.array(["north", "south"])[rng.integers(0, 2, n)], name="site"),
    }


@cache
def dense(n: int = N) -> Given:
    """Full distributions of three ordered classes."""
    rng, y, p = problem(n, 3, 0)
    models = {"a": p, "b": 0.6 * p + 0.4 * problem(n, 3, 1)[2]}
    return of_arrays([CLASSES[k] for k in y], models, per_row(rng, n))


def of_arrays(y: list[str], models: dict[str, Any], own: dict[str, Any]) -> Given:
    columns = {f"{name}_{c}": p[:, i] for name, p in models.items() for i, c in enumerate(CLASSES)}
    return Given(y, models, own, columns, CLASSES, {"probs": PROBS})


@cache
def two_classes(n: int = N) -> Given:
    """Probabilities of an event and of the rest."""
    rng, y, p = problem(n, 2, 0)
    columns = {f"a_{c}": p[:, i] for i, c in enumerate(CLASSES[:2])}
    labels = [CLASSES[k] for k in y]
    return Given(labels, {"a": p}, per_row(rng, n), columns, CLASSES[:2], {"probs": {"a": PROBS["a"]}})


@cache
def plain_rows() -> Given:
    """Full distributions without weights and groups."""
    given = dense()
    own = {name: given.per_row[name] for name in ("ids", "by")}
    return given.changed(per_row=own)


@cache
def rated(n: int = N) -> Given:
    """Full distributions of cases that three raters labelled, some of them not all."""
    rng, _, p = problem(n, 3, 0)
    y = np.array([[CLASSES[rng.choice(3, p=row)] for _ in RATERS] for row in p], object)
    y[::7, 1] = None
    y[3, :2] = None
    return of_arrays(y, {"a": p, "b": 0.6 * p + 0.4 * problem(n, 3, 1)[2]}, per_row(rng, n))


@cache
def lists(n: int = N) -> Given:
    """Top lists of different lengths, some empty, some invalid, some with ties."""
    rng = np.random.default_rng(3)
    p = np.round(np.stack([rng.dirichlet(np.full(M, 0.3), n) for _ in range(2)]), 2)
    y = (rng.random(n)[:, None] > np.cumsum(p[0], axis=1)).sum(axis=1).clip(0, M - 1)
    order = np.argsort(-p, axis=2, kind="stable")
    rows = []
    for k in range(2):
        chosen = [order[k, i, : rng.integers(0, 5)].tolist() for i in range(n)]
        for i in range(0, n, 10):
            # An unlikely class instead of a likely one makes some lists invalid.
            chosen[i][-1:] = order[k, i, -1:].tolist() if chosen[i] else []
        rows.append([{LISTED[j]: float(p[k, i, j]) for j in own} for i, own in enumerate(chosen)])
    maps = pa.map_(pa.string(), pa.float64())
    columns = {name: pa.array([list(r.items()) for r in rows[k]], maps) for k, name in enumerate("ab")}
    models = {name: vx.TopLists.from_dicts(rows[k], n_classes=M) for k, name in enumerate("ab")}
    read = {"probs": {"a": "a", "b": "b"}, "lists": True}
    return Given([LISTED[k] for k in y], models, per_row(rng, n), columns, LISTED, read)


# ---- how functions are asked -----------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A function with what it is asked, and the kinds of rows that it takes."""

    function: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    models: int = 1
    takes: tuple[str, ...] = ("dense", "lists")
    # What is given per row in memory, and how a handle is told of it.
    named: Mapping[str, Any] = field(default_factory=dict)
    # Under which other names these are passed in memory.
    called: Mapping[str, str] = field(default_factory=dict)

    def in_memory(self, given: Given, **options: Any) -> Any:
        """What it says of the rows as arguments."""
        known = inspect.signature(self.function).parameters
        own = {name: v for name, v in given.per_row.items() if name in known}
        own = {name: v for name, v in own.items() if name not in ("by", "ids") or name in self.named}
        own |= {name: given.per_row[column] for name, column in self.called.items()}
        if isinstance(given.models["a"], np.ndarray):
            own["classes"] = given.classes
        if np.ndim(given.y) == 2:
            own["raters"] = "columns"
        p = given.models if self.models > 1 else given.models["a"]
        y = given.y if np.ndim(given.y) == 1 else pd.DataFrame(given.y, columns=RATERS)
        return plain(self.function(y, p, **{**self.options, **own, **options}))

    def of_handle(self, handle: Any, **options: Any) -> Any:
        """What it says of rows that `scan` has opened."""
        told = {name: v for name, v in self.named.items() if v is not None}
        return plain(self.function(handle, **{**self.options, **told, **options}))

    def open(self, source: Any, given: Given, **options: Any) -> Any:
        """The rows of a source as this function needs them."""
        columns = {name: v for name, v in COLUMNS.items() if v in given.table.column_names}
        read = {**columns, **given.read, "classes": given.classes, **options}
        if np.ndim(given.y) == 2:
            read["raters"] = RATERS
        if self.models == 1:
            read["probs"] = given.read["probs"]["a"]
        return vx.scan(source, **read)


def plain(result: Any) -> Any:
    """What a result says."""
    if isinstance(result, vx.Tally):
        result = result.card()
    if isinstance(result, Report):
        return result.to_dict()
    return result.to_dict(stored=False) if hasattr(result, "to_dict") else result


DENSE, LISTS, RATED = ("dense",), ("lists",), ("rated",)
# By the name of the function, with what else is asked of it.
TABLE = {
    "Report.of": Asked(Report.of, {"ordered": True}, takes=DENSE, named={"ids": None, "by": None}),
    "Rule.__call__": Asked(vx.brier),
    "Tally.of": Asked(vx.Tally.of),
    "average_precision": Asked(vx.average_precision, models=2, takes=DENSE),
    "c_index": Asked(vx.c_index, models=2, takes=DENSE),
    "calibration_slope": Asked(vx.calibration_slope),
    "calibration_slope of thresholds": Asked(vx.calibration_slope, {"ordered": True}, takes=DENSE),
    "choose_thresholds": Asked(vx.choose_thresholds, {"bootstrap": 10}, takes=DENSE),
    "compare": Asked(vx.compare, {"reference": "uniform"}, models=2),
    "compare with class frequencies": Asked(
        vx.compare, {"reference": "frequencies", "ordered": True}, models=2, takes=DENSE
    ),
    "compare with a margin": Asked(vx.compare, {"rule": "brier", "margin": 0.05}, models=2),
    "compare_folds": Asked(vx.compare_folds, models=2, named={"folds": "site"}, called={"folds": "by"}),
    "compare_lengths": Asked(vx.compare_lengths, {"k": [1, 2]}),
    "conformal": Asked(vx.conformal, {"level": 0.8, "score": "aps"}, takes=DENSE),
    "conformal of ordered classes": Asked(vx.conformal, {"level": 0.8, "score": "rps"}, takes=DENSE),
    "decompose": Asked(vx.decompose),
    "decompose with intervals": Asked(vx.decompose, {"bootstrap": 20, "ordered": True}, takes=DENSE),
    "confidence_curve": Asked(vx.confidence_curve, models=2, takes=DENSE),
    "deferral": Asked(vx.deferral, {"defer": [0.2, 0.4]}, takes=DENSE),
    "ece": Asked(vx.ece),
    "evaluate": Asked(vx.evaluate),
    "fit_combination": Asked(vx.fit_combination, {"folds": 3}, models=2, takes=DENSE),
    "murphy": Asked(vx.diagrams.murphy, {"thresholds": [0.2, 0.5]}, models=2, takes=DENSE),
    "net_benefit": Asked(vx.net_benefit, {"thresholds": [0.2, 0.5]}, models=2, takes=DENSE),
    "net_benefit of thresholds": Asked(
        vx.net_benefit, {"thresholds": [0.2], "ordered": True, "standardized": True}, models=2, takes=DENSE
    ),
    "operating_points": Asked(vx.operating_points, {"threshold": [0.2, 0.5]}, models=2, takes=DENSE),
    "operating_points of thresholds": Asked(
        vx.operating_points, {"threshold": "youden", "ordered": True}, models=2, takes=DENSE
    ),
    "operating_points that promise a rate": Asked(
        vx.operating_points, {"threshold": "sensitivity>=0.6"}, models=2, takes=DENSE
    ),
    "plan_validation": Asked(vx.plan_validation, {"threshold": 0.4}, takes=("two classes",)),
    "precision_recall_curve": Asked(vx.precision_recall_curve, {"points": 20}, models=2, takes=DENSE),
    "over_time": Asked(vx.over_time, named={"time": "site"}, called={"time": "by"}),
    "plan": Asked(vx.plan, {"difference": 0.01}, models=2),
    "raters": Asked(vx.raters, {"n": 5}, takes=RATED, named={"ids": None}),
    "recalibrate": Asked(vx.recalibrate, {"method": "temperature"}),
    "refinement": Asked(vx.refinement, {"method": "temperature"}),
    "reliability": Asked(vx.reliability, {"resamples": 20}),
    "retention": Asked(vx.retention, {"rule": "brier", "metric": "accuracy", "bootstrap": 20}),
    "risk_coverage": Asked(vx.risk_coverage, {"bootstrap": 20}),
    "roc_auc": Asked(vx.roc_auc, models=2, takes=DENSE),
    "roc_curve": Asked(vx.roc_curve, {"points": 20, "ordered": True}, models=2, takes=DENSE),
    "roc_auc of thresholds": Asked(
        vx.roc_auc, {"ordered": True, "average": "weighted"}, models=2, takes=DENSE
    ),
    "selective": Asked(vx.selective, {"metric": "accuracy", "bootstrap": 20}),
    "evaluate_sets": Asked(vx.evaluate_sets, named={"by": "site"}, takes=LISTS),
    "evaluate_sets of probabilities": Asked(
        vx.evaluate_sets, {"level": 0.8, "ordered": True}, named={"by": "site"}, takes=DENSE
    ),
    "sites": Asked(vx.sites, {"rule": "brier"}, named={"sites": "site"}, called={"sites": "by"}, takes=DENSE),
    "score_map": Asked(vx.diagrams.score_map, {"ordered": True}, models=2, takes=DENSE),
    "smooth_ece": Asked(vx.smooth_ece),
    "smooth_ece of classes": Asked(vx.smooth_ece, {"kind": "classwise"}, takes=DENSE),
    "subgroups": Asked(vx.subgroups, {"least": 1}, named={"by": "site"}),
    "top_k_error": Asked(vx.top_k_error, {"k": 2}, takes=LISTS),
    "worst": Asked(vx.worst, {"n": 7}, named={"ids": None}),
}


def weighing(given: Given, weights: Any) -> Given:
    """The same rows with other weights, or none, and without groups."""
    own = {name: v for name, v in given.per_row.items() if name not in ("weights", "groups")}
    return given.changed(per_row=own if weights is None else {"weights": weights, **own})


def taken(given: Given, rows: Any) -> Given:
    """Some of the rows, as arguments."""

    def column(values: Any) -> Any:
        return values.iloc[rows] if isinstance(values, pd.Series) else values[rows]

    y = np.asarray(given.y, object)[rows]
    models = {name: column(p) for name, p in given.models.items()}
    own = {name: column(values) for name, values in given.per_row.items()}
    return given.changed(y=list(y) if y.ndim == 1 else y, models=models, per_row=own)


# What is a sum of weights, in their own unit.
WEIGHTS = ("weight", "class_counts", "confusion")


def equal(
    found: Any, exact: Any, where: str = "", ignored: Collection[str] = (), within: float = 1e-12
) -> list[str]:
    """Where two results differ by more than 1e-12."""
    if isinstance(exact, dict):
        keys = [key for key in exact if key not in ignored]
        if not isinstance(found, dict) or [key for key in found if key not in ignored] != keys:
            return [f"{where}: {found} and {exact}"[:200]]
        pairs = ((key, (found[key], exact[key])) for key in keys)
        return [text for key, pair in pairs for text in equal(*pair, f"{where}.{key}", ignored, within)]
    if isinstance(exact, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(exact):
            return [f"{where}: {found} and {exact}"[:200]]
        pairs = zip(found, exact, strict=True)
        return [
            text for i, pair in enumerate(pairs) for text in equal(*pair, f"{where}[{i}]", ignored, within)
        ]
    if isinstance(exact, float) and isinstance(found, float) and math.isfinite(exact):
        near = abs(found - exact) <= within * max(1.0, abs(exact))
        return [] if near else [f"{where}: {found} and {exact}"]
    return [] if found == exact else [f"{where}: {found!r} and {exact!r}"]


_ROWS = ("y", "p", "forecasts", "target")


def refusal(ask: Callable[[], Any]) -> tuple[Any, Any]:
    """What comes of asking: the result, or the kind and the argument of the refusal."""
    try:
        return ask(), None
    except vx.InputError as error:
        # A handle takes the place of `y` and of the forecasts, and has its own name for outcomes.
        return None, (error.kind, "rows" if error.argument in _ROWS else error.argument)
    except vx.VeraxError as error:
        return None, type(error).__name__


# ---- where rows are ------------------------------------------------------------------------------


def one_part(asked: Asked, given: Given, folder: Path) -> Any:
    return asked.of_handle(asked.open(given.table, given))


def many_parts(asked: Asked, given: Given, folder: Path) -> Any:
    """Random parts, whose summaries travel as bytes and merge in random order."""
    return asked.of_handle(asked.open(Cut(given.table, 1, 3), given))


def saved(asked: Asked, given: Given, folder: Path) -> Any:
    """Two shards that are analysed one by one, with their summaries saved and merged."""
    table, half = given.table, len(given.y) // 2
    for i, part in enumerate((table.slice(0, half), table.slice(half))):
        shard = vx.scan(asked.open(part, given), record="a" if asked.models == 1 else True)
        asked.of_handle(shard)
        with saving_ids("plain"):
            shard.save(folder / f"{i}.verax")
    return asked.of_handle(vx.scan([folder / "0.verax", folder / "1.verax"]))


# ---- graded answers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class AskedOfGrades(Asked):
    """A function of graded answers, of which some were not graded."""

    def in_memory(self, given: Given, **options: Any) -> Any:
        own = {name: given.per_row.get(name) for name in ("weights", "groups", "ids")}
        if "task" in self.named:
            own["task"] = given.per_row["by"].to_numpy()
        grades = given.models if self.models > 1 else given.models["a"]
        return plain(self.function(grades=grades, **{**self.options, **own, **options}))

    def open(self, source: Any, given: Given, **options: Any) -> Any:
        columns = {name: v for name, v in COLUMNS.items() if name != "target"}
        own = given.read["grades"] if self.models > 1 else given.read["grades"]["a"]
        return vx.scan(source, **{**columns, "grades": own, **options})


@cache
def graded(n: int = N) -> Given:
    """Grades of two models, in a column each."""
    rng = np.random.default_rng(5)
    models = {name: (rng.random(n) < share).astype(float) for name, share in (("a", 0.7), ("b", 0.6))}
    models["a"][::11] = models["b"][::7] = np.nan
    columns = {f"grade_{name}": own for name, own in models.items()}
    read = {"grades": {name: f"grade_{name}" for name in models}}
    return Given([""] * n, models, per_row(rng, n), columns, [], read)


GRADED = {
    "evaluate_grades": AskedOfGrades(vx.evaluate_grades, named={"task": "site"}),
    "compare_grades": AskedOfGrades(vx.compare_grades, models=2, named={"task": "site"}),
    "compare pairs": AskedOfGrades(vx.compare_grades, {"missing": "pairwise"}, models=2),
    "compare jointly": AskedOfGrades(vx.compare_grades, {"missing": "joint"}, models=2),
}


WAYS = {"one part": one_part, "many parts": many_parts, "saved and merged": saved}
ROWS = {"dense": dense, "plain": plain_rows, "rated": rated, "lists": lists, "two classes": two_classes}
