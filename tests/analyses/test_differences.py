"""A difference "a - b" is a minus b of the values shown: in Python, text and JSON, whatever is better."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy import stats

import verax as vx

SHOWN = re.compile(r"^(?P<a>\w+) - (?P<b>\w+) .*?(?P<difference>[+-]\d+\.\d+)", re.MULTILINE)


def forecasts(n=120):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-1.5 * x))).astype(int)
    flags = {"a": x + 0.8, "b": x + rng.normal(size=n), "c": 0.4 * x}
    return y, {name: 1 / (1 + np.exp(-1.5 * z)) for name, z in flags.items()}


def grades(n=120):
    rng = np.random.default_rng(1)
    ease = rng.random(n)
    return {
        name: (rng.random(n) < ease + step).astype(float) for name, step in (("a", 0), ("b", 0.1), ("c", 0.2))
    }


def some_missing():
    given = grades()
    given["a"][:20] = np.nan
    return given


def means(found):
    return {model.name: model.mean for model in next(iter(found.models.values()))}


def first_rule(found):
    return next(iter(found.differences.values()))


def folds(better):
    rng = np.random.default_rng(2)
    scores = {
        name: 0.8 + step + 0.02 * rng.normal(size=10) for name, step in (("a", 0), ("b", 0.03), ("c", 0.1))
    }
    return vx.compare_folds(scores=scores, better=better)


COMPARISONS = {
    "losses": lambda: vx.compare(*forecasts(), rule="brier"),
    "log losses": lambda: vx.compare(*forecasts(), rule="log_score", groups=np.arange(120) // 4),
    "grades": lambda: vx.compare_grades(grades()),
    "grades of a range": lambda: vx.compare_grades(
        {name: 1 + 4 * own for name, own in grades().items()}, grade_range=(1, 5)
    ),
    "jointly graded": lambda: vx.compare_grades(some_missing(), missing="joint"),
    "lower scores": lambda: folds("lower"),
    "higher scores": lambda: folds("higher"),
}


def agree(differences, values):
    """Every difference has the values' own, and one that its interval holds."""
    assert differences
    for gap in differences:
        assert gap.difference == pytest.approx(values[gap.a] - values[gap.b], abs=1e-9)
        assert gap.interval.low <= gap.difference <= gap.interval.high


@pytest.mark.parametrize("which", COMPARISONS)
def test_differences_of_models_are_those_of_their_means(which):
    found = COMPARISONS[which]()
    values, gaps = means(found), first_rule(found)
    agree(gaps, values)
    agree([found.difference(b, a) for a in values for b in values if a != b], values)
    stored = json.loads(json.dumps(found.to_dict()))
    rule = next(iter(found.models))
    told = {model["name"]: model["mean"] for model in stored["models"][rule]}
    assert told == pytest.approx(values)
    for gap in stored["differences"][rule]:
        assert gap["difference"] == pytest.approx(told[gap["a"]] - told[gap["b"]], abs=1e-9)
    frame = found.to_frame(of="differences")
    shown = dict(found.to_frame()[["model", "mean"]].values.tolist())
    for a, b, gap in frame[["a", "b", "difference"]].values.tolist():
        assert gap == pytest.approx(shown[a] - shown[b], abs=1e-9)
    flat = found.flat()
    for gap in gaps:
        a, b = (flat[f"{rule}/{name}"] for name in (gap.a, gap.b))
        assert flat[f"{rule}/{gap.a} - {gap.b}"] == pytest.approx(a - b, abs=1e-9)


@pytest.mark.parametrize("which", COMPARISONS)
def test_tables_of_models_print_the_difference_of_the_means_they_print(which):
    found = COMPARISONS[which]()
    text = repr(found)
    printed = {}
    for table in found._tables():
        head, *lines = table.cells()
        if "model" in head and any(name.startswith("mean") for name in head) and not printed:
            at = next(i for i, name in enumerate(head) if name.startswith("mean"))
            printed = {line[head.index("model")]: float(line[at]) for line in lines}
    lines = SHOWN.findall(text)
    assert len(lines) >= 3
    for a, b, gap in lines:
        assert float(gap) == pytest.approx(printed[a] - printed[b], abs=2e-5), (a, b, text)


@pytest.mark.parametrize("threshold", [0.4, "youden", "sensitivity>=0.8"])
def test_differences_of_rates_are_those_of_the_rates_shown(threshold):
    found = vx.operating_points(*forecasts(), threshold=threshold)
    points = {point.model: point for point in found.points}
    assert found.differences
    for gap in found.differences:
        a, b = points[gap.a], points[gap.b]
        if np.isnan(gap.difference):
            continue
        assert gap.difference == pytest.approx(a[gap.rate] - b[gap.rate], abs=1e-9)
        turned = found.difference(gap.b, gap.a, gap.rate)
        assert turned.difference == -gap.difference
        assert list(turned.interval) == list(-gap.interval)


def test_differences_of_ranks_and_curves_are_those_of_the_values_shown():
    y, p = forecasts()
    scores = vx.roc_auc(y, p)
    agree(scores.differences, {name: score.value for name, score in scores.items()})
    assert all(gap.higher_is_better for gap in scores.differences)
    curves = vx.net_benefit(y, p)
    own = {curve.model: curve.values for curve in curves}
    assert curves.differences
    for gap in curves.differences:
        assert gap.values == pytest.approx(own[gap.a] - own[gap.b], nan_ok=True, abs=1e-12)


def test_not_worse_follows_what_is_better():
    """A grade that does not fall short by a margin is as a loss that does not exceed it; so are scores."""
    rng = np.random.default_rng(3)
    own = {"a": rng.uniform(0.4, 0.9, 60), "b": rng.uniform(0.4, 0.9, 60) - 0.05}
    gap = vx.compare_grades(own).difference("b", "a")
    short = own["a"] - own["b"]
    assert gap.difference == pytest.approx(-short.mean())
    for margin in (0.0, 0.05, 0.2):
        wanted = stats.ttest_1samp(short, margin, alternative="less").pvalue
        assert gap.not_worse(margin) == pytest.approx(wanted, rel=0.1)
    assert gap.alike(0.2) == pytest.approx(max(gap.not_worse(0.2), gap.turned.not_worse(0.2)))
    scores = folds("higher").values["score"]
    losses = vx.compare_folds(scores=dict(zip("abc", -scores.T, strict=True)), better="lower")
    for a, b in ("ab", "ba"):
        higher, lower = folds("higher").difference(a, b), losses.difference(a, b)
        assert higher.not_worse(0.05) == pytest.approx(lower.not_worse(0.05))
