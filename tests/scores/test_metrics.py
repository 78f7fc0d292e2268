"""The registry of decision metrics: against scikit-learn, at the edges, and the order it must be given."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
import sklearn.metrics as skl

import verax as vx
from cases import forecasts
from verax.report import Report
from verax.rules import RULES
from verax.scores.decisions import count_decisions
from verax.scores.metrics import (
    METRICS,
    DecisionMetric,
    cost_matrix,
    find_metric,
    fitting_metrics,
    needs_order,
)

K = 5


def kappa(weights):
    return lambda y, d, w: skl.cohen_kappa_score(y, d, labels=range(K), weights=weights, sample_weight=w)


# What each metric must be, by somebody else's code.
REFERENCES = {
    "accuracy": lambda y, d, w: skl.accuracy_score(y, d, sample_weight=w),
    "balanced_accuracy": lambda y, d, w: skl.balanced_accuracy_score(y, d, sample_weight=w),
    "macro_f1": lambda y, d, w: skl.f1_score(y, d, average="macro", sample_weight=w),
    "qwk": kappa("quadratic"),
    "linear_kappa": kappa("linear"),
    "kappa": kappa(None),
    "ec": lambda y, d, w: skl.mean_squared_error(y, d, sample_weight=w),
    "mae": lambda y, d, w: skl.mean_absolute_error(y, d, sample_weight=w),
    "macro_mae": lambda y, d, w: np.mean(
        [skl.mean_absolute_error(y[y == k], d[y == k], sample_weight=w[y == k]) for k in np.unique(y)]
    ),
    "off_by_one": lambda y, d, w: np.average(np.abs(y - d) <= 1, weights=w),
    "macro_ppv": lambda y, d, w: skl.precision_score(y, d, average="macro", sample_weight=w),
    "sensitivity": lambda y, d, w: skl.recall_score(y, d, sample_weight=w),
    "specificity": lambda y, d, w: skl.recall_score(y, d, pos_label=0, sample_weight=w),
    "ppv": lambda y, d, w: skl.precision_score(y, d, sample_weight=w),
    "npv": lambda y, d, w: skl.precision_score(y, d, pos_label=0, sample_weight=w),
    "f1": lambda y, d, w: skl.f1_score(y, d, sample_weight=w),
    "youden": lambda y, d, w: skl.balanced_accuracy_score(y, d, sample_weight=w, adjusted=True),
    "lr_positive": lambda y, d, w: skl.class_likelihood_ratios(y, d, sample_weight=w)[0],
    "lr_negative": lambda y, d, w: skl.class_likelihood_ratios(y, d, sample_weight=w)[1],
}


def test_every_metric_has_a_reference():
    assert set(REFERENCES) == set(METRICS)


@pytest.fixture(scope="module")
def decided():
    """Outcomes, decisions and weights of as many classes as a metric is for, and their number."""
    found = {}
    for k in (2, K):
        y, p = forecasts(400, k)
        found[k] = y, p.argmax(axis=1), np.random.default_rng(0).exponential(size=400), k
    return lambda name: found[2 if METRICS[name].for_two else K]


@pytest.mark.parametrize("name", METRICS)
def test_against_scikit_learn(name, decided):
    y, d, w, k = decided(name)
    expected = REFERENCES[name](y, d, w)
    counts = count_decisions(y, d, n_classes=k, weights=w)
    assert float(METRICS[name].of(counts)) == pytest.approx(expected, rel=1e-12)


def test_against_dlordinal_and_torchmetrics():
    torch, tm = pytest.importorskip("torch"), pytest.importorskip("torchmetrics.functional.classification")
    y = np.array([0, 0, 1, 2, 3, 0, 0, 2, 2])
    d = np.array([0, 1, 1, 2, 0, 0, 1, 0, 3])
    counts = count_decisions(y, d, n_classes=4)
    # amae and accuracy_off1 of dlordinal 2.7.0.
    assert METRICS["macro_mae"].of(counts) == pytest.approx(1.125, rel=1e-12)
    assert METRICS["off_by_one"].of(counts) == pytest.approx(0.7777777777777778, rel=1e-12)
    theirs = {"num_classes": 4}
    tensors = torch.tensor(d), torch.tensor(y)
    for name, weights in (("kappa", None), ("linear_kappa", "linear"), ("qwk", "quadratic")):
        kappa = tm.multiclass_cohen_kappa(*tensors, weights=weights, **theirs)
        assert METRICS[name].of(counts) == pytest.approx(float(kappa), rel=1e-6)
    balanced = tm.multiclass_accuracy(*tensors, average="macro", **theirs)
    assert METRICS["balanced_accuracy"].of(counts) == pytest.approx(float(balanced), rel=1e-6)


def test_classes_that_never_happen_are_left_out_of_macro_averages():
    y, d = np.array([0, 0, 4, 4]), np.array([0, 4, 4, 1])
    counts = count_decisions(y, d, n_classes=5)
    assert METRICS["macro_mae"].of(counts) == (2.0 + 1.5) / 2
    assert METRICS["balanced_accuracy"].of(counts) == 0.5


@pytest.mark.parametrize("name", METRICS)
def test_declarations(name, decided):
    metric, (y, d, w, k) = METRICS[name], decided(name)
    assert metric.name == name
    assert metric.title
    assert metric.summary
    assert metric.description.endswith(".")
    assert metric.reference.startswith("doi:")
    low, high = metric.bounds(k)
    assert low <= float(metric.of(count_decisions(y, d, n_classes=k))) <= high
    perfect, worst = np.eye(k), np.fliplr(np.eye(k))
    assert float(metric.of(perfect)) == (high if metric.higher_is_better else low)
    assert (metric.of(worst) < metric.of(perfect)) == metric.higher_is_better
    if metric.of_row is not None:
        assert np.average(metric.of_row(y, d), weights=w) == pytest.approx(REFERENCES[name](y, d, w))


@pytest.mark.parametrize("name", METRICS)
def test_ordinal_metrics_and_no_others_change_when_classes_are_shuffled(name, decided):
    y, d, _, k = decided(name)
    if k == 2:
        pytest.skip("a rate is about one of two classes")
    place = np.array([3, 0, 4, 1, 2])
    before = METRICS[name].of(count_decisions(y, d, n_classes=K))
    after = METRICS[name].of(count_decisions(place[y], place[d], n_classes=K))
    assert (after != pytest.approx(before, rel=1e-12)) == METRICS[name].ordinal


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("scale", [2.0**-900, 1e-200, 1e200, 2.0**1000])
def test_the_scale_of_the_counts_does_not_matter(name, scale, decided):
    y, d, w, k = decided(name)
    counts = count_decisions(y, d, n_classes=k, weights=w)
    assert METRICS[name].of(scale * counts) == pytest.approx(METRICS[name].of(counts), rel=1e-12)


def test_kappa_with_huge_weights():
    y, d = [0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0]
    assert vx.kappa(y, d, n_classes=3, weights=[1e200] * 6) == vx.kappa(y, d, n_classes=3)
    assert vx.kappa(y, d, n_classes=3, kind="unweighted") == skl.cohen_kappa_score(y, d)


@pytest.mark.parametrize("name", METRICS)
def test_many_tables_at_once(name):
    k = 2 if METRICS[name].for_two else 4
    tables = np.random.default_rng(0).integers(1, 9, (2, 7, k, k)).astype(float)
    tables[0, 3] = 0
    tables[0, 3, 1, 1] = 5
    tables[1, 2] = 0
    together = METRICS[name].of(tables)
    one_by_one = [[float(METRICS[name].of(table)) for table in some] for some in tables]
    np.testing.assert_allclose(together, one_by_one, rtol=1e-13)
    assert np.isnan(together[1, 2])


@pytest.mark.frameworks
@pytest.mark.parametrize("costs", ["quadratic", "linear", "zero_one", "table"])
def test_metrics_of_a_card_where_tables_are_tensors(costs):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    counts = rng.exponential(size=(4, 4))
    given = rng.random((4, 4)) if costs == "table" else costs
    one_sided = np.diag([0.0, 3.0, 0.0, 0.0])
    for metric in fitting_metrics(True, given, 4):
        for table in (counts, one_sided):
            found = metric.of(torch.tensor(table))
            assert isinstance(found, torch.Tensor)
            assert found.item() == pytest.approx(float(metric.of(table)), rel=1e-14, nan_ok=True)


def test_a_metric_travels():
    for metric in (*METRICS.values(), find_metric("ec", costs=[[0, 1], [2, 0]], normalize="max")):
        counts = np.array([[3.0, 1.0], [2.0, 4.0]])
        assert pickle.loads(pickle.dumps(metric)).of(counts) == metric.of(counts)


def test_looking_a_metric_up():
    assert find_metric("qwk") is METRICS["qwk"]
    with pytest.raises(vx.InputError, match="'macro_f1'") as refused:
        find_metric("macrof1")
    assert refused.value.argument == "metric"
    assert refused.value.values == ("macrof1",)


def test_costs_and_their_range():
    for costs in ("quadratic", "linear", "zero_one"):
        low, high = find_metric("ec", costs=costs).bounds(7)
        assert (low, high) == (0.0, cost_matrix(costs, 7).max())
        assert find_metric("ec", costs=costs, normalize="max").bounds(7) == (0.0, 1.0)
    gains = find_metric("ec", costs=[[-1, 2], [3, 0]])
    assert gains.bounds(2) == (-1.0, 3.0)
    assert not gains.ordinal
    assert not find_metric("ec", costs="zero_one").ordinal


def test_the_range_of_costs_takes_no_matrix():
    tracemalloc.start()
    (accuracy, qwk, ec) = fitting_metrics(True, None, 20_000)
    assert (accuracy.name, qwk.name, ec.bounds(20_000)) == ("accuracy", "qwk", (0.0, 19_999.0**2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_deciding_among_very_many_classes_takes_no_matrix():
    p = np.full((2, 6000), 1 / 6000)
    tracemalloc.start()
    decisions = vx.decide(p, costs="linear")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert decisions.tolist() == [2999, 2999]
    assert peak < 150 * 2**20


# ---- an order is never guessed -----------------------------------------------------------------

LABELS = np.array(["high", "low", "medium"])


def problem():
    """Text labels, forecasts in a frame whose columns are named in alphabetical order."""
    import pandas as pd

    rng = np.random.default_rng(0)
    p = pd.DataFrame(rng.dirichlet(np.ones(3), 60), columns=LABELS)
    return LABELS[rng.integers(0, 3, 60)], p, np.repeat(["a", "b"], 30)


ORDINAL_METRICS = [name for name, metric in METRICS.items() if metric.ordinal]
ORDINAL_RULES = [name for name, rule in RULES.items() if rule.ordinal]

CALLS = {
    **{
        f"retention metric {m}": lambda y, p, _, m=m: vx.retention(y, p, rule="brier", metric=m)
        for m in ORDINAL_METRICS
    },
    **{f"selective metric {m}": lambda y, p, _, m=m: vx.selective(y, p, metric=m) for m in ORDINAL_METRICS},
    **{
        f"retention rule {r}": lambda y, p, _, r=r: vx.retention(y, p, rule=r, metric="accuracy")
        for r in ORDINAL_RULES
    },
    **{
        f"retention metric {r}": lambda y, p, _, r=r: vx.retention(y, p, rule="brier", metric=RULES[r])
        for r in ORDINAL_RULES
    },
    **{f"selective by {r}": lambda y, p, _, r=r: vx.selective(y, p, by=r) for r in ORDINAL_RULES},
    **{f"rule {r}": lambda y, p, _, r=r: RULES[r](y, p) for r in ORDINAL_RULES},
    **{f"samples {r}": lambda y, p, _, r=r: RULES[r].samples(y, p) for r in ORDINAL_RULES},
    **{f"evaluate {r}": lambda y, p, _, r=r: vx.evaluate(y, p, rules=[r]) for r in ORDINAL_RULES},
    **{f"worst {r}": lambda y, p, _, r=r: vx.worst(y, p, rule=r) for r in ORDINAL_RULES},
    **{
        f"worst others {r}": lambda y, p, _, r=r: vx.worst(y, p, rule="brier", others=[r])
        for r in ORDINAL_RULES
    },
    **{f"compare {r}": lambda y, p, _, r=r: vx.compare(y, {"a": p, "b": p}, rule=r) for r in ORDINAL_RULES},
    **{f"report {r}": lambda y, p, _, r=r: Report.of(y, p, rules=["brier", r]) for r in ORDINAL_RULES},
    **{
        f"subgroups {r}": lambda y, p, by, r=r: vx.subgroups(y, p, by=by, rule=r)
        for r in ("rps", "ranked_log")
    },
    **{f"decompose {r}": lambda y, p, _, r=r: vx.decompose(y, p, rule=r) for r in ("rps", "ranked_log")},
    **{
        f"evaluate costs {c}": lambda y, p, _, c=c: vx.evaluate(y, p, costs=c)
        for c in ("linear", "quadratic")
    },
    **{f"report costs {c}": lambda y, p, _, c=c: Report.of(y, p, costs=c) for c in ("linear", "quadratic")},
    **{
        f"subgroups costs {c}": lambda y, p, by, c=c: vx.subgroups(y, p, by=by, costs=c)
        for c in ("linear", "quadratic")
    },
    **{
        f"retention decisions {c}": lambda y, p, _, c=c: vx.retention(
            y, p, rule="brier", metric="accuracy", decision_costs=c
        )
        for c in ("linear", "quadratic")
    },
    **{
        f"selective costs {c}": lambda y, p, _, c=c: vx.selective(y, p, metric="ec", costs=c)
        for c in ("linear", "quadratic")
    },
    **{
        f"kappa {k}": lambda y, p, _, k=k: vx.kappa(y, y, n_classes=3, kind=k)
        for k in ("linear", "quadratic")
    },
    "expected_cost": lambda y, p, _: vx.expected_cost(y, y, n_classes=3, costs="linear"),
    "evaluate ordered": lambda y, p, _: vx.evaluate(y, p, ordered=True),
    "report ordered": lambda y, p, _: Report.of(y, p, ordered=True),
    "reliability ordered": lambda y, p, _: vx.reliability(y, p, ordered=True),
    "subgroups ordered": lambda y, p, by: vx.subgroups(y, p, by=by, ordered=True),
}


@pytest.mark.parametrize("call", CALLS)
def test_whatever_depends_on_the_order_refuses_labels_without_one(call):
    with pytest.raises(vx.InputError) as refused:
        CALLS[call](*problem())
    assert refused.value.kind == "order"
    assert "lowest first" in str(refused.value)


MATRIX = [[0, 1, 2], [1, 0, 1], [3, 1, 0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda y, p, _: vx.evaluate(y, p, costs="zero_one"),
        lambda y, p, _: vx.evaluate(y, p, costs=MATRIX),
        lambda y, p, _: vx.retention(y, p, rule="brier", metric="ec", costs=MATRIX),
        lambda y, p, _: vx.retention(y, p, rule="brier", metric="ec", costs="zero_one"),
        lambda y, p, _: vx.retention(y, p, rule="brier", metric=["accuracy", "macro_f1", "kappa"]),
        lambda y, p, _: vx.selective(y, p, metric="accuracy", decision_costs=MATRIX),
        lambda y, p, by: vx.subgroups(y, p, by=by, costs=MATRIX),
    ],
)
def test_what_does_not_depend_on_the_order_needs_none(call):
    assert call(*problem()) is not None


def test_the_order_is_needed_where_it_matters():
    assert not needs_order(RULES["brier"] for _ in range(1))
    assert needs_order(metrics=["ec"])
    assert not needs_order(metrics=[find_metric("ec", costs="zero_one"), np.mean])
    assert not needs_order(costs=MATRIX)
    own = DecisionMetric("own", "Own", "own", "Own.", np.sum, ordinal=True)
    assert needs_order(metrics=[own])


@pytest.mark.parametrize("name", METRICS)
def test_slopes_are_the_derivatives_by_the_weights_of_cells(name):
    # Against differences of the metric itself; at cells that are empty, too.
    rng = np.random.default_rng(3)
    metric, k = METRICS[name], 2 if METRICS[name].for_two else 4
    counts = rng.exponential(size=(k, k)) * (rng.random((k, k)) < 0.7) + np.eye(k)
    y, decisions = np.divmod(np.arange(k * k), k)
    found = metric.slopes_at(counts, y, decisions)
    step = 1e-6
    moved = [
        metric.of(counts + sign * step * np.eye(k * k)[i].reshape(k, k))
        for i in range(k * k)
        for sign in (1, -1)
    ]
    expected = np.subtract(moved[::2], moved[1::2]) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    assert counts.ravel() @ found == pytest.approx(0, abs=1e-12)


def test_rates_of_two_classes_refuse_others_and_name_what_fits():
    y, p = forecasts(30, 3)
    for asked in (
        lambda: METRICS["f1"].bounds(3),
        lambda: METRICS["f1"].of(np.eye(3)),
        lambda: vx.retention(y, p, rule="brier", metric="f1"),
        lambda: vx.evaluate(y, p)["f1"],
    ):
        with pytest.raises(vx.InputError, match=r"f1 is a rate of two classes\. macro_f1 averages"):
            asked()


@pytest.mark.parametrize(
    ("name", "near"), [("recall", "sensitivity"), ("precison", None), ("f1_score", "f1")]
)
def test_unknown_names_have_the_nearest_and_all_valid_ones(name, near):
    with pytest.raises(vx.InputError, match=r"Valid names are accuracy, .*, lr_negative\.") as refused:
        find_metric(name)
    assert near is None or f"Did you mean {near!r}?" in str(refused.value)
