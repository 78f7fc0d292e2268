"""Retained-samples curves: exact vectors, brute force, and what they must refuse."""

from __future__ import annotations

import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score, f1_score

import references
import verax as vx
from cases import forecasts, number
from scattered import Scattered
from verax import Forecasts
from verax.analyses.uncertainty_scores import doubt, expected_of_itself
from verax.engines.histograms import Histogram
from verax.inference.bootstrap import multiplicities
from verax.inputs.handles import Part, collectors_for
from verax.scores.metrics import METRICS as METRICS_OF_COUNTS
from verax.wings.retain import summaries
from verax.wings.retain.bins import Bins

VECTORS = [
    pytest.param(entry, id=entry["id"]) for entry in references.entries() if entry["rule"] == "retention"
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
        "ties": params.get("ties", "order"),
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


@pytest.mark.long
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
    # Replicates of twelve groups are spread as Student's t distribution with 11 degrees of freedom.
    factor = np.sqrt(12 / 11) * stats.t.ppf(0.975, 11) / stats.norm.ppf(0.975)
    assert curve.areas == pytest.approx(curve.area + factor * (np.array(areas) - curve.area), rel=1e-12)


@pytest.mark.long
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
    rules = ["brier", "log_score", "rps", "sa_rps"]
    curves = vx.retention(y, p, rule=rules, metric=["qwk", "ec"], bootstrap=30)
    assert len(curves) == 8
    alone = vx.retention(y, p, rule="rps", metric="ec", bootstrap=30)
    assert curves["rps", "ec"].areas.tolist() == alone.areas.tolist()
    gap, (low, high) = curves.difference(("rps", "ec"), ("brier", "ec"))
    assert gap == curves["rps", "ec"].area - curves["brier", "ec"].area
    assert low <= gap <= high
    # A header, a line per curve, which way is better for each metric, and a caution.
    assert len(repr(curves).splitlines()) == 1 + 8 + 2 + 1
    assert json.loads(json.dumps(curves.to_dict()))["curves"][0]["sees_outcome"] is True
    assert set(vx.retention(y, p, rule=rules)) == {"brier", "log_score", "rps", "sa_rps"}


def test_rules_that_rank_rows_alike_have_the_curves_that_each_has_alone():
    rng = np.random.default_rng(5)
    p = rng.integers(1, 20, 300) / 20
    y = (rng.random(300) < p).astype(int)
    options = {"metric": ["accuracy", vx.log_score], "bootstrap": 20}
    rules = ["brier", "zero_one", "log_score", "penalized(brier)"]
    together = vx.retention(y, p, rule=rules, **options)
    for rule in rules:
        for key, alone in vx.retention(y, p, rule=rule, **options).items():
            np.testing.assert_array_equal(together[key].values, alone.values)
            np.testing.assert_array_equal(together[key].areas, alone.areas)
    brier, zero_one, log_score = (together[rule, "log_score"].values for rule in rules[:3])
    np.testing.assert_array_equal(brier, log_score)
    assert not np.array_equal(zero_one, brier)


def test_removing_the_worst_rows_lowers_the_mean_loss_of_the_rule():
    y, p = forecasts(300, 3)
    curve = vx.retention(y, p, rule=vx.brier, metric=vx.brier)
    assert (np.diff(curve.values) <= 0).all()
    assert not curve.higher_is_better


@pytest.mark.parametrize(
    "rule",
    [vx.brier, vx.rules.Brier(scale="mean"), vx.log_score, vx.rules.Log(base=2), vx.rules.Log(clip=0.1)],
)
def test_doubt_is_the_loss_that_a_forecast_expects_of_itself(rule):
    p = np.vstack([np.random.default_rng(0).dirichlet(np.ones(5) / 3, 200), np.eye(5)])
    p /= p.sum(axis=1, keepdims=True)
    assert doubt(rule).of(p) == pytest.approx(rule.entropy(p), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("ties", ["share", "order"])
@pytest.mark.parametrize("infinite", [False, True])
def test_a_cut_reaches_as_many_rows_as_its_weight_takes(ties, infinite):
    """The worst half of the rows have a hundredth of the weight, and an infinite loss may have none."""
    n = 400
    top = np.linspace(0.05, 0.95, n)
    y, p = np.zeros(n, int), np.stack([top, 1 - top], axis=1)
    weights = np.where(np.arange(n) < n // 2, 1.0, 100.0)
    if infinite:
        p[0], weights[0] = [0, 1], 0.0
    removed = [0, 0.004, 0.3]
    curve = vx.retention(y, p, rule="brier", metric=vx.log_score, removed=removed, ties=ties, weights=weights)
    loss = np.where(weights > 0, -np.log(np.maximum(p[:, 0], 1e-300)), 0.0)
    gone = np.floor(np.array(removed) * weights.sum())
    before = np.cumsum(weights) - weights
    for value, taken in zip(curve.values, gone, strict=True):
        kept = weights - np.clip(taken - before, 0.0, weights)
        assert value == pytest.approx((kept @ loss) / kept.sum(), rel=1e-12)


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
    by_entropy = vx.selective(y, p, by="log_score", metric="accuracy")
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
    ("argument", "options"),
    [
        *(
            ("removed", {"removed": r})
            for r in (
                [0],
                [0.2, 0.1],
                [0, 1],
                [-0.1, 0.1],
                0.2,
                "ab",
                [0, math.nan],
                [0, math.inf],
                [0, None],
            )
        ),
        *(("area", {"area": a}) for a in ("sum", None, ["mean"])),
        ("undefined", {"undefined": "two"}),
        ("ties", {"ties": "first"}),
        *(("bootstrap", {"bootstrap": n}) for n in (-1, 1, 2.5)),
        ("confidence", {"confidence": 2}),
        *(("metric", {"metric": m}) for m in ("auc", 3, [], ["qwk", 3])),
        ("costs", {"metric": "ec", "costs": [[0, 1]]}),
        ("costs", {"metric": "ec", "costs": "cubic"}),
        ("normalize", {"metric": "ec", "cost_scale": "min"}),
        ("weights", {"metric": qwk, "weights": np.linspace(1, 2**0.5, 30)}),
        ("groups", {"groups": [1, 2]}),
    ],
)
def test_refusals(argument, options):
    y, p = forecasts(30, 3)
    with pytest.raises(vx.InputError) as refused:
        vx.retention(y, p, **{"rule": vx.rps, **options})
    assert refused.value.argument == argument


@pytest.mark.parametrize("rule", [vx.rules.RPS, "brayer"])
def test_what_is_no_rule(rule):
    y, p = forecasts(30, 3)
    with pytest.raises(vx.VeraxError):
        vx.retention(y, p, rule=rule)


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
    with pytest.raises(vx.InputError) as refused:
        vx.retention(y, p, rule=["rps", "brier"]).difference("rps", "brier")
    assert refused.value.argument == "bootstrap"


def test_text_labels_need_an_order():
    y, p = forecasts(30, 3)
    names = np.array(["low", "mid", "high"])
    with pytest.raises(vx.InputError, match="lowest first"):
        vx.retention(names[y], p, rule=vx.rps)
    curve = vx.retention(names[y], p, rule=vx.rps, classes=names)
    assert curve.values.tolist() == vx.retention(y, p, rule=vx.rps).values.tolist()


@pytest.mark.parametrize("rules", [["rps"], ["brier", "log_score", "rps", "sa_rps"]])
def test_figures(rules, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    y, p = forecasts(200, 4, ties=False)
    (ax,) = vx.retention(y, p, rule=rules, bootstrap=50).plot().axes
    assert len(ax.lines) == (1 if len(rules) == 1 else 3 * len(rules))
    assert len(ax.collections) == len(rules)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    named = [label.partition(":")[0] for label in labels if not label.startswith("95%")]
    assert named == [f"by {rule}" for rule in rules]
    ax.figure.savefig(tmp_path / "curve.png")
    mpl.pyplot.close(ax.figure)
    (single,) = vx.retention(y, p, rule="rps").plot().axes
    assert single.get_xlabel() == "worst rows removed (%)"
    mpl.pyplot.close(single.figure)
    both = vx.retention(y, p, rule=rules, metric=["qwk", "ec"])
    panels = both.plot().axes
    assert [panel.get_ylabel().split()[0] for panel in panels] == ["qwk", "ec"]
    with pytest.raises(vx.InputError, match="ax"):
        both.plot(panels[0])
    mpl.pyplot.close(panels[0].figure)


@pytest.mark.parametrize("extra", [{}, {"weights": True}, {"groups": True}], ids=str)
def test_rows_in_parts_make_the_curves_of_all(extra):
    y, p = forecasts(300, 3)
    rng = np.random.default_rng(1)
    columns = {"weights": rng.integers(1, 4, 300), "groups": rng.integers(0, 40, 300)}
    columns = {name: columns[name] for name in extra}
    whole = vx.retention(y, p, rule=["rps", "brier"], metric=["qwk", vx.brier], bootstrap=20, **columns)
    for n_parts in (2, 5):
        parts = Scattered(y, p, n_parts=n_parts, seed=n_parts, **columns)
        found = vx.retention(parts, rule=["rps", "brier"], metric=["qwk", vx.brier], bootstrap=20)
        assert found.to_dict() == whole.to_dict()
    shared = {"by": "entropy", "ties": "order", "metric": "ec", "cost_scale": "naive"}
    doubtful = vx.selective(Scattered(y, p, **columns), **shared)
    assert doubtful.to_dict() == vx.selective(y, p, **shared, **columns).to_dict()


UNITS = {
    "even": lambda rng: 2.0 * rng.integers(0, 4, 2000),
    "halves": lambda rng: rng.integers(0, 4, 2000) / 2,
    "thirds": lambda rng: rng.integers(1, 4, 2000) / 3,
    "the same": lambda _: np.full(2000, 0.3),
    "too many": lambda rng: 7.0 * rng.permutation(2000),
    "no unit": lambda rng: rng.exponential(size=2000),
}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("counts", [False, True])
def test_rows_in_bins_are_cut_where_rows_in_memory_are(name, counts, change):
    change(exact_up_to=0)
    rng = np.random.default_rng(3)
    # Rows of a bin tie, so that bins are exact.
    y, p = rng.integers(0, 3, 2000), rng.dirichlet(np.ones(3), 5)[rng.integers(0, 5, 2000)]
    w = UNITS[name](rng)
    asked = {"by": "entropy", "metric": ["accuracy", vx.brier], "removed": [0, 0.0707, 0.3, 0.3333]}
    asked["weights_are"] = "counts" if counts else "importance"
    exact = vx.selective(y, p, weights=w, **asked)
    for n_parts in (1, 4):
        found = vx.selective(Scattered(y, p, n_parts=n_parts, seed=n_parts, weights=w), **asked)
        for key in exact:
            assert not found[key].within.any()
            assert found[key].values == pytest.approx(exact[key].values, rel=1e-12)


def test_histograms_of_earlier_versions_have_the_unit_that_they_had():
    ranks = np.arange(6.0)
    for weights, unit in ((None, 1.0), (np.array([2.0, 4, 2, 4, 2, 4]), 1.0), (np.full(6, 0.5), 0.5)):
        values = summaries.Histograms({"a": Histogram.of(ranks, [ranks], weights)}, {"a": ()}).to_values()
        old = summaries.Histograms.from_values({k: v for k, v in values.items() if k != "weights"})
        assert old.unit == old.merge(old).unit == unit


@pytest.mark.parametrize(("kind", "off"), [(np.float32, 2e-5), (np.float16, 2e-3)])
def test_doubts_of_rows_within_the_tolerance_of_their_precision(kind, off):
    rng = np.random.default_rng(5)
    y, p = rng.integers(0, 3, 60), (rng.dirichlet(np.ones(3), 60) * (1 + off)).astype(kind)
    curves = vx.selective(y, p, by=["entropy", "brier"])
    exact = vx.selective(y, p.astype(float), by=["entropy", "brier"], normalize=True)
    for name, curve in curves.items():
        assert curve.values == pytest.approx(exact[name].values)


# ---- ties --------------------------------------------------------------------------------------


def shared(y, p, key, metric, removed, weights):
    """The curve by exact fractions: of rows that tie at a cut, each counts in part."""
    key = np.round(key, 12)
    total, values = int(weights.sum()), []
    for r in removed:
        to_keep = total - total * round(100 * r) // 100
        kept = np.zeros(len(y))
        for level in np.unique(key):
            run = key == level
            weight = weights[run].sum()
            share = min(1.0, max(0.0, to_keep) / weight) if weight else 0.0
            kept[run] = share * weights[run]
            to_keep -= weight
        counts = np.zeros((p.shape[1], p.shape[1]))
        np.add.at(counts, (y, p.argmax(axis=1)), kept)
        values.append(float(METRICS_OF_COUNTS[metric].of(counts)))
    return values


@pytest.mark.long
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.sampled_from(["zero_one", "brier", "rps"]))
def test_tied_rows_count_in_part(seed, k, rule):
    rng = np.random.default_rng(seed)
    y, p = rng.integers(0, k, 40), rng.dirichlet(np.ones(k), 4)[rng.integers(0, 4, 40)]
    w = rng.integers(0, 3, 40).astype(float)
    w[0] += 1
    removed = [0, 0.07, 0.3, 0.31, 0.9]
    key = vx.parse(rule).samples(y, p)
    for metric in ("accuracy", "macro_f1", "mae"):
        curve = vx.retention(y, p, rule=rule, metric=metric, removed=removed, weights=w)
        expected = shared(y, p, key, metric, removed, w)
        assert curve.values == pytest.approx(expected, rel=1e-11, abs=1e-12, nan_ok=True)
    losses = vx.retention(y, p, rule=rule, metric=vx.zero_one, removed=removed, weights=w)
    assert 1 - losses.values == pytest.approx(shared(y, p, key, "accuracy", removed, w), rel=1e-11, abs=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    y, p = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 5)[rng.integers(0, 5, 60)]
    shuffled = rng.permutation(60)
    for draw_curve in (vx.retention, vx.selective):
        options = {"metric": ["qwk", vx.brier, "accuracy", wrong_share], "removed": [0, 0.11, 0.5]}
        options |= {"rule": "zero_one"} if draw_curve is vx.retention else {"by": "max_probability"}
        first, second = (draw_curve(y[r], p[r], **options) for r in (np.arange(60), shuffled))
        for key in first:
            assert first[key].values == pytest.approx(second[key].values, rel=1e-12, nan_ok=True)


def wrong_share(y, p):
    return np.mean(y != p.argmax(axis=1))


def test_a_function_of_rows_sees_tied_rows_in_part():
    y, p = np.array([0] * 5 + [1] * 5), np.full(10, 0.3)
    curve = vx.selective(y, p, metric=[wrong_share, "accuracy"], removed=[0, 0.1, 0.7])
    assert curve["max_probability", "wrong_share"].values == pytest.approx([0.5] * 3)
    assert curve["max_probability", "accuracy"].values == pytest.approx([0.5] * 3)


def test_a_constant_forecast_selects_nothing():
    y = [0] * 50 + [1] * 50
    assert vx.selective(y, [0.3] * 100).values == pytest.approx([0.5] * 21)
    by_order = vx.selective(y, [0.3] * 100, ties="order")
    assert by_order.values[-1] == 0.625
    assert by_order.ties == by_order.to_dict()["ties"] == "order"
    drawn = vx.selective(y, [0.3] * 100, bootstrap=20)
    for band in drawn.band:
        assert band == pytest.approx([band[0]] * 21)


def test_replicates_share_ties_too():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 4)[rng.integers(0, 4, 50)]
    removed = [0, 0.1, 0.45]
    curve = vx.retention(y, p, rule="rps", metric="accuracy", removed=removed, bootstrap=20)
    key = vx.rps.samples(y, p)
    areas = [
        np.trapezoid(shared(y, p, key, "accuracy", removed, w.astype(float)), removed) / 0.45
        for w in multiplicities(50, None, 20, 0)
    ]
    assert curve.areas == pytest.approx(areas, rel=1e-11)


# ---- many classes ------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [100, 900])
def test_many_classes_take_little_memory(k):
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, k, 80), rng.dirichlet(np.ones(k), 80)
    tracemalloc.start()
    curves = vx.retention(
        y, p, rule=["brier", "rps"], metric=["qwk", "accuracy", "ec"], bootstrap=2, removed=[0, 0.1, 0.2, 0.3]
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 2**20
    order = np.argsort(np.round(vx.rps.samples(y, p), 12), kind="stable")[:56]
    d = p.argmax(axis=1)
    assert curves["rps", "ec"].values[-1] == pytest.approx(np.mean((y - d)[order] ** 2.0))
    assert curves["rps", "qwk"].values[-1] == pytest.approx(
        cohen_kappa_score(y[order], d[order], labels=range(k), weights="quadratic")
    )


def test_beyond_the_limit_means_stay_and_tables_are_refused():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 1100, 30), rng.dirichlet(np.ones(1100), 30)
    curve = vx.selective(y, p, metric=["accuracy", "mae"], removed=[0, 0.5])
    assert curve["max_probability", "accuracy"].values[0] == np.mean(y == p.argmax(axis=1))
    with pytest.raises(vx.InputError) as refused:
        vx.selective(y, p, metric="qwk")
    assert refused.value.argument == "metric"
    assert refused.value.values == ("qwk",)


@pytest.mark.parametrize("k", [2, 4, 70])
@pytest.mark.parametrize(
    "rule", [vx.brier, vx.rps, vx.rules.RPS(normalized=False), vx.log_score, vx.rules.Log(base=2)]
)
def test_formulas_of_what_forecasts_expect_of_themselves(rule, k):
    """Against the entropy of the rule, with few classes, which are summed one by one, and with many."""
    p = np.vstack([np.random.default_rng(0).dirichlet([0.3] * k, 50), np.eye(k)])
    for array in (p, np.asfortranarray(p)):
        np.testing.assert_allclose(expected_of_itself(rule, array), rule.entropy(p), atol=1e-14)


def test_replicates_of_bins_vary_as_those_of_rows():
    rng = np.random.default_rng(0)
    rank = np.sort(rng.integers(0, 4, 300))
    values = rng.exponential(size=300) + 5 * rank
    bins = object.__new__(Bins)
    bins.weights = bins.squares = np.bincount(rank).astype(float)
    bins.sums = bins.crossed = np.bincount(rank, values)[:, None]
    bins.second = bins.crossed_second = np.bincount(rank, values**2)[:, None]
    bins.infinite = np.zeros((4, 1))
    bins.rank, bins.counts, bins.n_cells = np.arange(4), bins.weights, 0
    drawn = np.array([own.sums[:, 0] for own in bins.drawn(4000, 0, copies=True)])
    # Rows drawn with replacement: the sum of a bin is a sum of 300 values that are zero elsewhere.
    spread = 300 * np.array([np.where(rank == b, values, 0.0).var() for b in range(4)])
    np.testing.assert_allclose(drawn.var(axis=0), spread, rtol=0.1)
    assert drawn.sum(axis=1).var() == pytest.approx(300 * values.var(), rel=0.1)


def test_rows_are_counted_once_all_collectors_have_seen_too_many(change):
    change(exact_up_to=100)
    y, p = forecasts(120, 3, seed=4)
    recipe = summaries.CurveRecipe("m", (vx.brier,), summaries.Measures.of([vx.brier], 3), None, 0, 0)

    def part(start, stop):
        return Part({"m": Forecasts(y[start:stop], p[start:stop])}, start)

    first, second = collectors_for({"curves": recipe}, 2)
    first.add(part(0, 60))
    second.add(part(60, 100))
    assert first.summaries()["curves"].rows is not None
    second.add(part(100, 120))
    counted = second.summaries()["curves"]
    assert counted.rows is None
    both = first.summaries()["curves"].merge(counted).orders["brier"].bins.total
    alone = recipe.binned(recipe.rows(part(0, 120))).orders["brier"].bins.total
    assert both.keys.tolist() == alone.keys.tolist()
    assert both.sums.high == pytest.approx(alone.sums.high, abs=1e-14)
