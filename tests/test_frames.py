"""Every result of verax is a data frame, too: tidy columns, the same in pandas, polars and pyarrow."""

from __future__ import annotations

import importlib
import inspect
import typing

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import verax as vx
from cases import forecasts
from verax.analyses.calibration import summary
from verax.selection import History

Y, P = forecasts(120, 3, seed=4, ties=False)
OTHER = np.full((120, 3), 1 / 3)
BY = np.array(["north", "south", "west"])[np.arange(120) % 3]
LOG = {"epoch": [1, 2, 3], "val_pbs": [0.5, 0.3, 0.4], "val_f1": [0.2, 0.4, 0.5]}


def monitored():
    monitor = vx.Monitor(0.5)
    monitor.update(Y, P, time=np.arange(120) // 40)
    return monitor.history


# A result of every class, by its name, and how many rows its frame has.
def judged():
    judge = (Y + np.arange(120) % 5 == 1).astype(float)
    return vx.evaluate_grades(np.where(np.arange(120) < 60, Y == 1, np.nan), judge=judge, checks="random")


RESULTS = {
    "Scorecard": (lambda: vx.evaluate(Y, P, rules=["brier", "log_score"]), 3),
    "ListCard": (lambda: vx.evaluate(Y, vx.TopLists.from_probabilities(P, 2)), None),
    "GradeCard": (lambda: vx.evaluate_grades(Y % 2, task=Y), None),
    "JudgedGrades": (judged, None),
    "CheckPlan": (lambda: vx.plan(judged(), human_labels=0.1), None),
    "RepeatScores": (lambda: vx.pass_at_k(np.eye(4)[:, :3], k=[1, 2]), None),
    "RepeatPlan": (lambda: vx.plan_repeats(np.eye(4)[:, :3]), None),
    "Comparison": (lambda: vx.compare(Y, {"a": P, "b": OTHER}, rule=["brier", "log_score"]), 4),
    "FoldComparison": (lambda: vx.compare_folds(scores={"a": [1, 2, 4], "b": [2, 4, 5]}, better="lower"), 2),
    "DatasetComparison": (lambda: vx.compare_datasets(np.eye(3), better="lower", draws=100), 3),
    "ScoreMap": (lambda: vx.diagrams.score_map(Y, {"a": P, "b": OTHER}), 2),
    "Combination": (lambda: vx.fit_combination(Y, {"a": P, "b": OTHER}, folds=2), 4),
    "LengthComparison": (lambda: vx.compare_lengths(Y, P, k=[1, 2], rule=["brier"]), 4),
    "Decomposition": (lambda: vx.decompose(Y, P, rule="brier", bootstrap=20), 4),
    "ListDecomposition": (lambda: vx.decompose(Y, vx.TopLists.from_probabilities(P, 2), rule="brier"), 3),
    "ListReliability": (lambda: vx.reliability(Y, vx.TopLists.from_probabilities(P, 1), resamples=5), 360),
    "Components": (lambda: vx.decompose(Y, P, rule="rps").whole, 1),
    "Reliability": (lambda: vx.reliability(Y, P, resamples=20), 360),
    "ReliabilityCurve": (lambda: vx.reliability(Y, P, resamples=0)["1"], 120),
    "CalibrationSummary": (lambda: summary.summarize(Y, P), 4),
    "CalibrationLine": (lambda: vx.calibration_slope(Y, P)["1"], 1),
    "CalibrationSlopes": (lambda: vx.calibration_slope(Y, P), 3),
    "RiskCoverage": (lambda: vx.risk_coverage(Y, P), None),
    "RetentionCurve": (lambda: vx.retention(Y, P, rule="rps", metric="accuracy", bootstrap=20), 21),
    "RetentionCurves": (lambda: vx.retention(Y, P, rule=["rps", "brier"], metric="accuracy"), 42),
    "Subgroups": (lambda: vx.subgroups(Y, P, by=BY), 3),
    "Worst": (lambda: vx.worst(Y, P, rule="rps", n=7), 7),
    "Certificate": (lambda: vx.certify("brier", n_classes=3), 7),
    "Landscape": (lambda: vx.diagrams.landscape("sa_rps", truth=[0.5, 0.2, 0.3]), 16471),
    "SiteStudy": (lambda: vx.sites(Y, P, sites=BY), 3),
    "OutcomesAtHorizon": (lambda: vx.at_horizon([1, 2, 6], [1, 0, 0], horizon=5), 1),
    "RankScore": (lambda: vx.roc_auc(Y, P), None),
    "RankScores": (lambda: vx.roc_auc(Y, {"a": P, "b": OTHER}), 2),
    "OperatingPoints": (lambda: vx.operating_points(Y, P), 30),
    "RateCurves": (lambda: vx.confidence_curve(Y, P), 100),
    "DecisionCurves": (lambda: vx.net_benefit(Y == 1, P[:, 1]), None),
    "Murphy": (lambda: vx.diagrams.murphy(Y, {"a": P, "b": OTHER}), None),
    "Thresholds": (lambda: vx.choose_thresholds(Y, P, metric="qwk"), 2),
    "Deferral": (lambda: vx.deferral(Y, P, defer=[0.2, 0.3]), 2),
    "RaterStudy": (lambda: vx.raters(np.eye(3, dtype=int)[Y] + 1, P, raters="counts"), 4),
    "ListRecalibration": (
        lambda: vx.recalibrate(Y, vx.TopLists.from_probabilities(P, 1), method="temperature"),
        None,
    ),
    "Recalibration": (lambda: vx.recalibrate(Y, P, method="temperature"), None),
    "Refinement": (lambda: vx.refinement(Y, P, method="temperature"), 3),
    "SetEvaluation": (lambda: vx.evaluate_sets(Y, P > 0.2), None),
    "Conformal": (lambda: vx.conformal(Y, P, level=0.8), None),
    "SamplePlan": (lambda: vx.plan(Y, {"a": P, "b": OTHER}, difference=0.01), 5),
    "ValidationPlan": (lambda: vx.plan_validation(normal=(-2, 1)), 3),
    "OverTime": (lambda: vx.over_time(Y, P, time=np.arange(120) // 40), 3),
    "MonitorHistory": (monitored, 3),
    "History": (lambda: History.from_columns(LOG), 3),
    "Selection": (lambda: History.from_columns(LOG).select(), 2),
}
# Parts of results, which the frame of the whole has, and what is to become a result.
PARTS = {
    "Acknowledgement",
    "Alarm",
    "Counterexample",
    "DecisionCurve",
    "Interval",
    "Monitor",
    "OperatingPoint",
    "RateCurve",
    "Tally",
    "Verdict",
}


def classes():
    """The public classes that say what they are as plain values."""
    for face in (vx, vx.results, vx.selection):
        for name in face.__all__:
            cls = getattr(face, name)
            if inspect.isclass(cls) and hasattr(cls, "to_dict"):
                yield cls


def returned():
    """The classes of verax that public functions return, from their annotations."""
    for name in vx.__all__:
        function = getattr(vx, name)
        if inspect.isfunction(function):
            module = vars(importlib.import_module(function.__module__))
            annotation = inspect.unwrap(function).__annotations__["return"]
            kinds = eval(annotation, module) if isinstance(annotation, str) else annotation
            for kind in typing.get_args(kinds) or (kinds,):
                if inspect.isclass(kind) and kind.__module__.startswith("verax.analyses"):
                    yield kind


def test_every_result_has_a_frame():
    found = {cls for cls in (*classes(), *returned()) if cls.__name__ not in PARTS}
    assert {cls.__name__ for cls in found if not hasattr(cls, "to_frame")} == set()
    assert {cls.__name__ for cls in found} <= set(RESULTS), "a result that this page does not try"


def rows_of(frame):
    table = (
        frame
        if isinstance(frame, pa.Table)
        else pa.Table.from_pandas(frame)
        if isinstance(frame, pd.DataFrame)
        else frame.to_arrow()
    )
    return [
        {name: None if value is None or value != value else value for name, value in row.items()}
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize("name", RESULTS)
def test_frames_are_tidy_and_the_same_in_every_library(name):
    make, n_rows = RESULTS[name]
    result = make()
    assert type(result).__name__ == name
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert n_rows in (None, len(frame))
    assert len(frame)
    assert all(isinstance(column, str) and column.isidentifier() for column in frame.columns)
    # One value per cell, and columns of one type.
    for column in frame.columns:
        values = [value for value in frame[column].tolist() if value is not None]
        assert not any(isinstance(value, (list, tuple, dict, np.ndarray)) for value in values)
        kinds = {type(value) for value in values}
        assert len(kinds) <= 1 or kinds <= {int, float}, column
    others = result.to_frame("polars"), result.to_frame("pyarrow")
    assert isinstance(others[0], pl.DataFrame)
    assert isinstance(others[1], pa.Table)
    for other in others:
        assert rows_of(other) == rows_of(frame)
    with pytest.raises(vx.InputError):
        result.to_frame("excel")


@pytest.mark.parametrize("name", RESULTS)
def test_tables_for_papers_have_the_cells_that_readers_see(name):
    result = RESULTS[name][0]()
    tables = [table.cells() for table in result._tables()] if hasattr(result, "_tables") else []
    rows = [line for line in result.to_markdown().splitlines() if line.startswith("| ")]
    assert len(rows) == sum(len(cells) + 1 for cells in tables)
    found = result.to_latex()
    assert found.count(r"\begin{tabular}") == found.count(r"\end{tabular}") == len(tables)
    assert found.count(r" \\" + "\n") == sum(map(len, tables))


def test_marks_of_markdown_and_latex_are_escaped():
    found = vx.compare(Y, {"a_1|$": P, "b": P[::-1]}, rule="brier")
    assert r"| a\_1\|$ |" in found.to_markdown()
    assert r" & a\_1|\$ & " in found.to_latex()


def test_frames_hold_the_numbers_of_the_results():
    comparison = RESULTS["Comparison"][0]()
    models = comparison.to_frame()
    first = comparison.models["brier"][0]
    row = models[(models.rule == "brier") & (models.model == first.name)].iloc[0]
    assert (row["mean"], row["low"], row["high"], row["rank"]) == (first.mean, *first.interval, 1)
    pairs = comparison.to_frame(of="differences")
    gap = comparison.difference("a", "b", "log_score")
    row = pairs[pairs.rule == "log_score"].iloc[0]
    assert abs(row["difference"]) == abs(gap.difference)
    assert row["p_adjusted"] == gap.p_adjusted
    alone = vx.compare(Y, {"a": P}, rule="brier", reference="uniform")
    assert list(alone.to_frame(of="differences").columns) == list(pairs.columns)
    with pytest.raises(vx.InputError, match="`of` must be one of"):
        comparison.to_frame(of="pairs")

    parts = RESULTS["Decomposition"][0]()
    frame = parts.to_frame().set_index("event")
    assert frame.loc["1", "miscalibration"] == parts.parts[1].miscalibration
    low, high = parts.whole.intervals["discrimination"]
    assert frame.loc["brier", ["discrimination_low", "discrimination_high"]].tolist() == [low, high]
    assert frame.loc["brier", "p_value"] == parts.p_value

    curve = RESULTS["RetentionCurve"][0]()
    frame = curve.to_frame()
    np.testing.assert_array_equal(frame[["removed", "value"]], np.stack([curve.removed, curve.values], 1))
    np.testing.assert_array_equal(frame[["low", "high"]].T, curve.band)

    cases = RESULTS["Worst"][0]()
    frame = cases.to_frame()
    np.testing.assert_array_equal(frame[["p_0", "p_1", "p_2"]], P[frame["row"]])
    assert frame["loss"].tolist() == [case.loss for case in cases]


def test_labels_of_several_types_become_texts():
    found = vx.worst(
        ["a", 1, 1, "a"], P[:4, :2] / P[:4, :2].sum(1, keepdims=True), rule="brier", classes=["a", 1]
    )
    for kind in ("pandas", "polars", "pyarrow"):
        column = found.to_frame(kind)["outcome"]
        assert set(map(str, column.to_pylist() if kind == "pyarrow" else column.to_list())) == {"a", "1"}


def test_results_declare_their_table_once():
    """`repr`, `to_frame` and notebooks are made from the table; the exceptions have none, or ask for more."""
    methods = ("__repr__", "to_frame", "_repr_html_")
    own = {f"{cls.__name__}.{method}" for cls in classes() for method in methods if method in vars(cls)}
    # Some have two frames, and the notebook shows the selection of a history. Others are no tables.
    more = {
        "DatasetComparison.to_frame",
        "History._repr_html_",
        "MonitorHistory.to_frame",
        "OverTime.to_frame",
    }
    assert own == {
        "Acknowledgement.__repr__",
        "Alarm.__repr__",
        "Interval.__repr__",
        "Monitor.__repr__",
        "Tally.__repr__",
        *more,
    }
