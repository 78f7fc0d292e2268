"""Retained-samples curves: exact vectors, brute force, and what they must refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, f1_score

import verax as vx
from cases import forecasts, number
from verax.curves import doubt, draw
from verax.cuts import Options
from verax.resample import multiplicities

VECTORS = [
    pytest.param(entry, id=entry["id"])
    for entry in json.loads((Path(__file__).parent / "vectors.json").read_text())
    if entry["rule"] == "retention"
]


@pytest.mark.parametrize("entry", VECTORS)
def test_vectors(entry):
    params, expected = entry["params"], entry["expected"]
    name, _, costs = params["metric"].partition(":")
    options = {
        "rule": params["score"],
        "metric": {"ecmax": "ec"}.get(name, name),
        "costs": costs or "quadratic",
        "cost_scale": "max" if name == "ecmax" else None,
        "removed": [number(r) for r in params["removed"]],
        "undefined": params["undefined"],
        "weights": params["weights"],
    }
    p = [[number(x) for x in row] for row in entry["p"]]
    curve = vx.retention(entry["y"], p, **options)
    close = {"rel": 1e-12, "abs": 1e-13, "nan_ok": True}
    assert curve.values == pytest.approx([number(x) for x in expected["curve"]], **close)
    assert curve.area == pytest.approx(number(expected["area_mean"]), **close)
    steps = vx.retention(entry["y"], p, area="steps", **options)
    assert steps.area == pytest.approx(number(expected["area_steps"]), **close)


def explicit(y, p, rule, metric, removed, rows):
    """Resample, score, sort and measure the slow way."""
    y, p = y[rows], p[rows]
    order = np.argsort(rule.samples(y, p), kind="stable")
    values = []
    for r in removed:
        kept = order[: len(order) - math.floor(round(r * 100) * len(order) / 100)]
        values.append(metric(y[kept], p[kept]))
    return values


def qwk(y, p):
    return cohen_kappa_score(y, p.argmax(axis=1), weights="quadratic", labels=range(p.shape[1]))


METRICS = {
    "qwk": qwk,
    "accuracy": lambda y, p: np.mean(y == p.argmax(axis=1)),
    "macro_f1": lambda y, p: f1_score(y, p.argmax(axis=1), average="macro"),
    "ec": lambda y, p: np.mean((y - p.argmax(axis=1)) ** 2.0),
}


@pytest.mark.parametrize("metric", METRICS)
def test_the_bootstrap_is_explicit_resampling(metric):
    y, p = forecasts(80, 3, ties=False)
    removed = [0, 0.05, 0.29, 0.5]
    curve = vx.retention(y, p, rule=vx.rps, metric=metric, removed=removed, bootstrap=20, seed=3)
    areas = []
    for drawn in multiplicities(80, None, 20, 3):
        values = explicit(y, p, vx.rps, METRICS[metric], removed, np.repeat(np.arange(80), drawn))
        areas.append(np.trapezoid(values, removed) / 0.5)
    assert curve.areas == pytest.approx(areas, rel=1e-12)
    assert curve.interval == pytest.approx(np.percentile(areas, [2.5, 97.5]), rel=1e-12)
    assert curve.values == pytest.approx(explicit(y, p, vx.rps, METRICS[metric], removed, np.arange(80)))


def test_groups_are_drawn_together():
    y, p = forecasts(60, 3, ties=False)
    groups = np.repeat(np.arange(12), 5)
    curve = vx.retention(
        y, p, rule=vx.brier, metric="accuracy", groups=groups, bootstrap=15, removed=[0, 0.25, 0.5]
    )
    rng = np.random.default_rng(0)
    areas = []
    for _ in range(15):
        drawn = np.bincount(rng.integers(0, 12, 12), minlength=12)[groups]
        values = explicit(
            y, p, vx.brier, METRICS["accuracy"], [0, 0.25, 0.5], np.repeat(np.arange(60), drawn)
        )
        areas.append(np.trapezoid(values, [0, 0.25, 0.5]) / 0.5)
    assert curve.areas == pytest.approx(areas, rel=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_whole_weights_are_copies(seed, k):
    y, p = forecasts(25, k, seed)
    w = np.random.default_rng(seed).integers(0, 4, 25)
    w[0] += 1
    copies = np.repeat(np.arange(25), w)
    removed = [0, 0.1, 0.3, 0.75]
    options = {"rule": vx.brier, "metric": [vx.rps, "accuracy"], "removed": removed}
    weighted = vx.retention(y, p, weights=w, **options)
    repeated = vx.retention(y[copies], p[copies], **options)
    for key in weighted:
        assert weighted[key].values == pytest.approx(repeated[key].values, rel=1e-10)


def test_weights_need_not_be_whole():
    y, p = forecasts(50, 3, ties=False)
    w = np.random.default_rng(0).exponential(size=50)
    curve = vx.retention(y, p, rule=vx.rps, metric=vx.rps, weights=w, removed=[0, 0.3])
    losses = vx.rps.samples(y, p)
    assert curve.values[0] == pytest.approx(np.average(losses, weights=w))
    order = np.argsort(losses)
    kept, total = 0.7 * w.sum(), 0.0
    for i in order:
        part = min(w[i], kept)
        total, kept = total + part * losses[i], kept - part
    assert curve.values[1] == pytest.approx(total / (0.7 * w.sum()))


def test_a_metric_of_ones_own():
    y, p = forecasts(40, 3, ties=False)
    own = vx.retention(y, p, rule=vx.rps, metric=qwk, bootstrap=5)
    assert own.metric == "qwk"
    known = vx.retention(y, p, rule=vx.rps, metric="qwk", bootstrap=5)
    assert own.values == pytest.approx(known.values, rel=1e-12)
    assert own.areas == pytest.approx(known.areas, rel=1e-12)


def test_several_rules_and_metrics_at_once():
    y, p = forecasts(120, 4, ties=False)
    rules = ["brier", "log", "rps", "sa_rps"]
    curves = vx.retention(y, p, rule=rules, metric=["qwk", "ec"], bootstrap=30)
    assert len(curves) == 8
    alone = vx.retention(y, p, rule="rps", metric="ec", bootstrap=30)
    assert curves["rps", "ec"].areas.tolist() == alone.areas.tolist()
    gap, (low, high) = curves.difference(("rps", "ec"), ("brier", "ec"))
    assert gap == curves["rps", "ec"].area - curves["brier", "ec"].area
    assert low <= gap <= high
    assert len(repr(curves).splitlines()) == 8
    assert json.loads(json.dumps(curves.to_dict()))[0]["sees_outcome"] is True
    assert set(vx.retention(y, p, rule=rules)) == {"brier", "log_score", "rps", "sa_rps"}


def test_removing_the_worst_rows_lowers_the_mean_loss_of_the_rule():
    y, p = forecasts(300, 3)
    curve = vx.retention(y, p, rule=vx.brier, metric=vx.brier)
    assert (np.diff(curve.values) <= 0).all()
    assert not curve.higher_is_better


def test_infinite_losses_go_first():
    y, p = np.array([0, 0, 1, 1]), np.array([[0.0, 1.0], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    curve = vx.retention(y, p, rule=vx.log_score, metric=vx.log_score, removed=[0, 0.25])
    assert curve.values[0] == math.inf
    assert curve.values[1] == pytest.approx(-np.log([0.9, 0.8, 0.6]).mean())


def test_the_label_free_sibling_does_not_look_at_the_outcome():
    y, p = forecasts(200, 4, ties=False)
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4) * 0.3, 2000)
    y = np.array([rng.choice(4, p=row) for row in p])
    curves = vx.selective(y, p, by=["max_probability", "entropy", vx.brier])
    assert set(curves) == {"max_probability", "entropy", "expected brier"}
    for curve in curves.values():
        assert not curve.sees_outcome
        assert curve.values[-1] > curve.values[0]
    order = np.argsort(1 - p.max(axis=1), kind="stable")
    kept = order[: 2000 - 400]
    assert curves["max_probability"].values[-1] == np.mean(y[kept] == p[kept].argmax(axis=1))
    by_entropy = vx.selective(y, p, by="log", metric="accuracy")
    assert by_entropy.values.tolist() == curves["entropy"].values.tolist()


def test_decisions_by_cost():
    y, p = forecasts(100, 4, ties=False)
    argmax = vx.retention(y, p, rule=vx.rps, metric="ec", removed=[0, 0.1])
    bayes = vx.retention(y, p, rule=vx.rps, metric="ec", removed=[0, 0.1], decision_costs="quadratic")
    assert argmax.values[0] == vx.expected_cost(y, vx.decide(p), n_classes=4)
    assert bayes.values[0] == vx.expected_cost(y, vx.decide(p, costs="quadratic"), n_classes=4)


@pytest.mark.parametrize(
    ("undefined", "expected"), [("nan", math.nan), ("one", 0.875), ("zero", 0.625), ("omit", 0.75)]
)
def test_undefined_values(undefined, expected):
    # Four rows; two of one class are left at the last cut, where kappa is 0/0.
    y, p = [0, 0, 1, 1], [[1.0, 0.0], [1.0, 0.0], [0.4, 0.6], [0.6, 0.4]]
    curve = vx.retention(y, p, rule=vx.brier, removed=[0, 0.25, 0.5], undefined=undefined)
    assert curve.values[:2].tolist() == [0.5, 1.0]
    assert curve.area == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"removed": [0]}, "at least two increasing shares"),
        ({"removed": [0.2, 0.1]}, "increasing shares"),
        ({"removed": [0, 1]}, "below 1"),
        ({"removed": [-0.1, 0.1]}, "from 0"),
        ({"area": "sum"}, "`area` must be"),
        ({"undefined": "two"}, "`undefined` must be"),
        ({"bootstrap": -1}, "`bootstrap` must be"),
        ({"bootstrap": 1}, "0 or at least 2"),
        ({"removed": 0.2}, "at least two increasing shares"),
        ({"rule": vx.RPS}, "RPS is a class of rules"),
        ({"bootstrap": 2.5}, "`bootstrap` must be"),
        ({"confidence": 2}, "`confidence` must lie"),
        ({"metric": "auc"}, "no metric called 'auc'"),
        ({"metric": 3}, "`metric` must be a name, a rule or a function"),
        ({"metric": qwk, "weights": np.full(30, 0.5)}, "whole numbers"),
        ({"rule": "brayer"}, "Did you mean 'brier'"),
        ({"groups": [1, 2]}, "`groups` must be 30 labels"),
    ],
)
def test_refusals(options, message):
    y, p = forecasts(30, 3)
    with pytest.raises(vx.VeraxError, match=message):
        vx.retention(y, p, **{"rule": vx.rps, **options})


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_few_rows(n):
    y, p = forecasts(5, 3, ties=False)
    assert len(vx.retention(y[:n], p[:n], rule="rps", metric="accuracy").values) == 21


def test_logits_and_rows_to_rescale():
    y, p = forecasts(40, 3, ties=False)
    plain = vx.retention(y, p, rule="rps").values
    assert vx.retention(y, np.log(p), rule="rps", logits=True).values == pytest.approx(plain)
    assert vx.retention(y, 3 * p, rule="rps", normalize=True).values == pytest.approx(plain)
    assert vx.decide(3 * p, normalize=True).tolist() == vx.decide(p).tolist()


def test_difference_needs_replicates():
    y, p = forecasts(30, 3)
    with pytest.raises(vx.RuleError, match="pass bootstrap"):
        vx.retention(y, p, rule=["rps", "brier"]).difference("rps", "brier")


def test_text_labels_need_an_order():
    y, p = forecasts(30, 3)
    names = np.array(["low", "mid", "high"])
    with pytest.raises(vx.InputError, match="lowest first"):
        vx.retention(names[y], p, rule=vx.rps)
    curve = vx.retention(names[y], p, rule=vx.rps, classes=names)
    assert curve.values.tolist() == vx.retention(y, p, rule=vx.rps).values.tolist()


@pytest.mark.parametrize("rules", [["rps"], ["brier", "log", "rps", "sa_rps"]])
def test_figures(rules, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    y, p = forecasts(200, 4, ties=False)
    ax = vx.retention(y, p, rule=rules, bootstrap=50).plot()
    assert len(ax.lines) == (1 if len(rules) == 1 else 3 * len(rules))
    assert len(ax.collections) == len(rules)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[-1].startswith(rules[-1])
    ax.figure.savefig(tmp_path / "curve.png")
    mpl.pyplot.close(ax.figure)
    single = vx.retention(y, p, rule="rps").plot()
    assert single.get_xlabel() == "worst rows removed (%)"
    mpl.pyplot.close(single.figure)
    both = vx.retention(y, p, rule=rules, metric=["qwk", "ec"])
    panels = both.plot()
    assert [panel.get_ylabel().split()[0] for panel in panels] == ["qwk", "ec"]
    with pytest.raises(vx.RuleError, match="Several metrics need several axes"):
        both.plot(panels[0])
    mpl.pyplot.close(panels[0].figure)


@pytest.mark.parametrize("extra", [{}, {"weights": True}, {"groups": True}], ids=str)
def test_rows_in_parts_make_the_curves_of_all(extra):
    y, p = forecasts(300, 3)
    rng = np.random.default_rng(1)
    columns = {"weights": rng.integers(1, 4, 300), "groups": rng.integers(0, 40, 300)}
    columns = {name: columns[name] for name in extra}
    whole = vx.retention(y, p, rule=["rps", "brier"], metric=["qwk", vx.brier], bootstrap=20, **columns)
    parts = [
        vx.Forecasts(y[a:b], p[a:b], **{name: column[a:b] for name, column in columns.items()})
        for a, b in ((0, 11), (11, 200), (200, 300))
    ]
    options = Options(None, "mean", "nan", 20, 0, 0.95, sees_outcome=True)
    curves = draw(parts, [vx.rps, vx.brier], ["qwk", vx.brier], options)
    assert curves.to_dict() == whole.to_dict()
    options = Options(None, "mean", "nan", 0, 0, 0.95, sees_outcome=False)
    doubtful = draw(parts, [doubt("entropy")], ["accuracy"], options)["entropy"]
    assert doubtful.to_dict() == vx.selective(y, p, by="entropy", weights=columns.get("weights")).to_dict()


@pytest.mark.parametrize(("kind", "off"), [(np.float32, 2e-5), (np.float16, 2e-3)])
def test_doubts_of_rows_within_the_tolerance_of_their_precision(kind, off):
    rng = np.random.default_rng(5)
    y, p = rng.integers(0, 3, 60), (rng.dirichlet(np.ones(3), 60) * (1 + off)).astype(kind)
    curves = vx.selective(y, p, by=["entropy", "brier"])
    exact = vx.selective(y, p.astype(float), by=["entropy", "brier"], normalize=True)
    for name, curve in curves.items():
        assert curve.values == pytest.approx(exact[name].values)
