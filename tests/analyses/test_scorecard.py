"""The scorecard: right numbers, mergeable, readable."""

from __future__ import annotations

import inspect
import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, log_loss

import verax as vx
from cases import forecasts, scoringrules
from verax.scores.metrics import METRICS

NAMES = ["none", "mild", "moderate", "severe"]


def test_against_scikit_learn_and_scoringrules():
    y, p = forecasts(3000, 4, ties=False)
    w = np.random.default_rng(1).exponential(size=3000)
    card = vx.evaluate(y, p, ordered=True, weights=w)
    labels = range(4)
    if "labels" in inspect.signature(brier_score_loss).parameters:
        # Older versions of scikit-learn have the Brier score of two classes only.
        brier = brier_score_loss(y, p, labels=labels, sample_weight=w)
        assert card["brier"] == pytest.approx(brier, rel=1e-12)
    assert card["log_score"] == pytest.approx(log_loss(y, p, labels=labels, sample_weight=w), rel=1e-12)
    rps = scoringrules().rps_score(y + 1, p) / 3
    assert card["rps"] == pytest.approx(np.average(rps, weights=w), rel=1e-12)
    ranked = scoringrules().rls_score(y + 1, p) / 3
    assert card["ranked_log"] == pytest.approx(np.average(ranked, weights=w), rel=1e-12)
    assert card.accuracy == pytest.approx(accuracy_score(y, p.argmax(axis=1), sample_weight=w), rel=1e-12)
    expected = confusion_matrix(y, p.argmax(axis=1), labels=labels, sample_weight=w)
    np.testing.assert_allclose(card.confusion, expected, rtol=1e-12)
    np.testing.assert_allclose(card.class_counts, expected.sum(axis=1), rtol=1e-12)


def test_the_rules_that_fit():
    y, p = forecasts(20, 3)
    nominal = {"brier", "log_score", "spherical", "zero_one", "pbs", "pll"}
    assert set(vx.evaluate(y, p).scores) == nominal
    assert set(vx.evaluate(y, p, ordered=True).scores) == set(vx.rules.RULES)
    chosen = vx.evaluate(y, p, rules=["rps", vx.rules.Brier("half"), "rps", "penalized(spherical)"])
    assert list(chosen.scores) == ["rps", "brier(scale='half')", "penalized(spherical)"]
    assert list(vx.evaluate(y, p, rules="rps").scores) == ["rps"]
    with pytest.raises(vx.InputError, match="at least one rule"):
        vx.evaluate(y, p, rules=[])
    with pytest.raises(KeyError, match="it has rps, accuracy"):
        vx.evaluate(y, p, rules=["rps"])["brier"]


@pytest.mark.long
@given(cut=st.integers(1, 39), weighted=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_cards_of_parts_merge_to_the_card_of_the_whole(cut, weighted, seed):
    y, p = forecasts(40, 4, seed)
    w = np.random.default_rng(seed).exponential(size=40) if weighted else np.ones(40)
    options = {"ordered": True, "classes": NAMES}
    card = vx.evaluate(y, p, weights=w, **options)
    whole = card.to_dict(stored=False)
    parts = [
        vx.evaluate(y[part], p[part], weights=w[part], **options) for part in (slice(0, cut), slice(cut, 40))
    ]
    both = parts[0].merge(parts[1])
    merged = both.to_dict(stored=False)
    for name, score in card.scores.items():
        assert both.scores[name].mean == pytest.approx(score.mean, rel=1e-13)
        assert both.scores[name].interval == pytest.approx(score.interval, rel=1e-9, nan_ok=True)
    for name, score in card.metrics.items():
        assert both.metrics[name].mean == pytest.approx(score.mean, rel=1e-13, nan_ok=True)
    np.testing.assert_allclose(merged["confusion"], whole["confusion"], rtol=1e-13)
    for key in ("n_rows", "n_classes", "classes", "ordered"):
        assert merged[key] == whole[key]
    assert merged["zero_probability"]["count"] == whole["zero_probability"]["count"]
    assert json.dumps(merged) == json.dumps(parts[1].merge(parts[0]).to_dict(stored=False))


def test_cards_of_different_problems_do_not_merge():
    y, p = forecasts(10, 4)
    with pytest.raises(vx.VeraxError, match="different classes"):
        vx.evaluate(y, p, classes=NAMES).merge(vx.evaluate(y, p))


def test_zero_probability_outcomes_are_counted_and_located():
    p = [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]
    card = vx.evaluate([0, 1, 1], p)
    assert card["log_score"] == math.inf
    assert card.scores["log_score"].finite_mean == pytest.approx((math.log(2) - math.log(0.75)) / 2)
    assert card.scores["log_score"].infinite_weight == 1
    assert (card.n_zero_probability, card.zero_probability_rows) == (1, (1,))
    assert "Probability zero was given to 1 outcome (row 1)." in str(card)
    assert "Without rows of infinite loss: log_score 0.4904" in str(card)


def test_the_table():
    p = [[0.7, 0.2, 0.1, 0.0], [0.1, 0.6, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]
    card = vx.evaluate(
        ["none", "mild", "moderate"], p, classes=NAMES, rules=["brier", "rps", "sa_rps"], ordered=True
    )
    line = "-" * 98
    assert str(card) == (
        "verax scorecard: 3 rows, 4 ordered classes\n"
        "score       mean       95% interval  range    proper    what it is\n"
        f"{line}\n"
        "brier     0.3533   0.0050 to 2.0000  0 to 2   strictly  squared error over the classes\n"
        "rps       0.0522   0.0058 to 0.1941  0 to 1   strictly  squared error of the cumulative forecast\n"
        "sa_rps    0.0389   0.0016 to 0.1947  0 to 1   no        squared expected distance from the outcome\n"
        "accuracy  0.6667   0.1320 to 0.9833  0 to 1             share of right decisions\n"
        "qwk       0.8571  -0.8167 to 0.9984  -1 to 1            quadratic kappa\n"
        "ec        0.3333   0.0085 to 5.7397  0 to 9             expected cost, quadratic costs\n"
        f"{line}\n"
        "Lower is better, except for accuracy and qwk.\n"
        "Caution for the interval of brier: only 3 rows. The intervals of 3 other lines have cautions too."
    )
    assert repr(card) == str(card)


@pytest.mark.parametrize("kind", ["ordered", "two", "lists", "merged"])
def test_cards_are_read_like_mappings(kind):
    y, p = [0, 1, 2, 1], [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.4, 0.3, 0.3]]
    if kind == "two":
        card = vx.evaluate([0, 1, 1], [0.2, 0.7, 0.4])
    elif kind == "lists":
        card = vx.evaluate(y, vx.TopLists.from_probabilities(p, 2))
    else:
        card = vx.evaluate(y, p, ordered=True)
        card = card if kind == "ordered" else card + card
    assert list(card) == card.keys() == [*card.scores, *card.metrics]
    assert len(card) == len(card.keys())
    assert dict(card) == dict(card.items()) == {name: card[name] for name in card}
    assert list(dict(card).values()) == card.values()
    assert all(name in card for name in card)
    assert "accuracy" in card
    assert "nonsense" not in card
    assert 0 not in card
    assert (card.get("accuracy"), card.get("nonsense"), card.get("nonsense", 7)) == (
        card["accuracy"],
        None,
        7,
    )
    # Known beyond what is shown, where the card refers to its rows.
    assert ("ece" in card) == (kind in ("ordered", "two"))
    assert bool(card)


def test_weights_show():
    y, p = forecasts(10, 3, ties=False)
    assert "10 rows, 3 classes, total weight 5" in str(vx.evaluate(y, p, weights=np.full(10, 0.5)))


def test_the_notebook_view_escapes_what_it_shows():
    y, p = forecasts(10, 3)
    page = vx.evaluate(y, p, classes=["<b>", "a", "c"])._repr_html_()
    assert page.startswith("<table>")
    assert "brier" in page
    assert "<b>" not in page


def test_the_dictionary_is_plain_and_complete():
    y, p = forecasts(30, 4, ties=False)
    card = vx.evaluate(y, p, ordered=True, classes=NAMES)
    again = json.loads(json.dumps(card.to_dict()))
    assert again["verax"] == vx.__version__
    assert again["classes"] == NAMES
    assert set(again["scores"]) == set(card.scores)
    for name, score in again["scores"].items():
        assert score["mean"] == card[name]
        assert score["orientation"] == "lower is better"
        assert vx.parse(score["rule"]) == card.scores[name].rule
    assert {name: score["mean"] for name, score in again["metrics"].items()} == {
        "accuracy": card.accuracy,
        "qwk": vx.kappa(y, vx.decide(p), n_classes=4),
        "ec": vx.expected_cost(y, vx.decide(p), n_classes=4),
    }
    assert again["intervals"]["seed"] == 0


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames(kind):
    y, p = forecasts(30, 4)
    frame = vx.evaluate(y, p).to_frame(kind)
    assert type(frame).__module__.startswith(kind)
    assert str(frame["score"][0]) == "brier"
    assert len(frame["score"]) == 7
    assert float(str(frame["low"][0])) < float(str(frame["mean"][0])) < float(str(frame["high"][0]))


def test_decisions_take_the_lowest_index_and_the_rule_shares_ties():
    card = vx.evaluate([1, 0], [[0.5, 0.5], [0.5, 0.5]])
    assert card.accuracy == 0.5
    assert card["zero_one"] == 0.5
    assert card.confusion.tolist() == [[1, 0], [1, 0]]


def test_evaluate_on_torch(torch):
    y, p = forecasts(100, 3, ties=False)
    card = vx.evaluate(torch.tensor(y), torch.tensor(p), ordered=True)
    expected = vx.evaluate(y, p, ordered=True).to_dict()["scores"]
    for name, score in card.to_dict()["scores"].items():
        assert score["mean"] == pytest.approx(expected[name]["mean"], rel=1e-13)


def test_intervals_of_means_are_those_of_the_losses():
    y, p = forecasts(400, 3, ties=False)
    losses = vx.brier.samples(y, p)
    low, high = vx.evaluate(y, p).scores["brier"].interval
    # Gamma limits of so many effective losses; 1.965927 is the quantile of t with 399 degrees of freedom.
    n = losses.mean() ** 2 / losses.var(ddof=1) * 400 * (1.959964 / 1.965927) ** 2
    ends = stats.gamma.ppf(0.025, n) / n, stats.gamma.ppf(0.975, n + 1) / n
    assert (low, high) == pytest.approx([losses.mean() * end for end in ends], rel=1e-6)
    wide = vx.evaluate(y, p, confidence=0.99).scores["brier"].interval
    assert wide[0] < low < high < wide[1]


def test_resampling_counts_is_resampling_rows():
    y, p = forecasts(150, 4, ties=False)
    decisions = vx.decide(p)
    card = vx.evaluate(y, p, ordered=True, bootstrap=4000)
    rng = np.random.default_rng(1)
    qwk = [
        vx.kappa(y[rows], decisions[rows], n_classes=4)
        for rows in (rng.integers(0, 150, 150) for _ in range(1500))
    ]
    assert card.metrics["qwk"].interval == pytest.approx(np.percentile(qwk, [2.5, 97.5]), abs=0.02)


def test_groups_are_resampled_together():
    y, p = forecasts(300, 3, ties=False)
    groups = np.repeat([f"site {i}" for i in range(60)], 5)
    card = vx.evaluate(y, p, groups=groups, ordered=True, bootstrap=3000)
    assert card.n_groups == 60
    losses = vx.rps.samples(y, p).reshape(60, 5).mean(axis=1)
    rng = np.random.default_rng(2)
    means = losses[rng.integers(0, 60, (3000, 60))].mean(axis=1)
    assert card.scores["rps"].interval == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=0.004)
    assert "300 rows, 60 groups, 3 ordered classes" in str(card)
    # Five copies of each row are no new information, and the clustered interval knows.
    copies = np.repeat(np.arange(300), 5)
    alone = vx.evaluate(y, p).scores["brier"].interval
    clustered = vx.evaluate(y[copies], p[copies], groups=copies, bootstrap=3000).scores["brier"].interval
    naive = vx.evaluate(y[copies], p[copies]).scores["brier"].interval
    assert clustered == pytest.approx(alone, abs=0.01)
    assert naive[1] - naive[0] < 0.5 * (alone[1] - alone[0])


@pytest.mark.long
@given(cut=st.integers(1, 39), seed=st.integers(0, 2**32 - 1))
def test_clustered_cards_merge(cut, seed):
    y, p = forecasts(40, 3, seed, ties=False)
    groups = np.random.default_rng(seed).integers(0, 6, 40)
    options = {"ordered": True, "bootstrap": 50}
    whole = vx.evaluate(y, p, groups=np.append(groups[:-1], 6), **options)
    groups = np.append(groups[:-1], 6)
    parts = []
    for part in (slice(0, cut), slice(cut, 40)):
        if len(set(groups[part])) < 2:
            return
        parts.append(vx.evaluate(y[part], p[part], groups=groups[part], **options))
    merged = parts[0].merge(parts[1])
    assert merged.n_groups == whole.n_groups
    for name in ("rps", "log_score"):
        assert merged.scores[name].interval == pytest.approx(whole.scores[name].interval, rel=1e-9)
    for name in ("qwk", "ec"):
        assert merged.metrics[name].interval == pytest.approx(whole.metrics[name].interval, nan_ok=True)


def test_groups_and_infinite_losses():
    p = np.array([[0.5, 0.5]] * 7 + [[1.0, 0.0]])
    card = vx.evaluate([0, 1] * 4, p, groups=[0, 0, 1, 1, 2, 2, 3, 3])
    assert card["log_score"] == math.inf
    assert card.scores["log_score"].interval.caution == "the mean is infinite"
    assert 0.6875 < card.scores["brier"].interval.high <= 2


def test_costs():
    y, p = forecasts(60, 3)
    matrix = [[0, 1, 9], [1, 0, 4], [5, 1, 0]]
    card = vx.evaluate(y, p, costs=matrix)
    assert card["ec"] == pytest.approx(vx.expected_cost(y, vx.decide(p), n_classes=3, costs=matrix))
    assert card.metrics["ec"].bounds == (0, 9)
    assert "expected cost, given costs" in str(card)


def test_many_classes_have_an_accuracy_interval_too():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(1100), 40)
    card = vx.evaluate(p.argmax(axis=1) * rng.integers(0, 2, 40), p)
    assert card.confusion is None
    low, high = card.metrics["accuracy"].interval
    assert low < card.accuracy < high


@pytest.mark.parametrize(
    ("options", "argument", "kind", "rows"),
    [
        ({"groups": [1, 2]}, "groups", "length", ()),
        ({"groups": [[1]] * 20}, "groups", "type", ()),
        ({"groups": [1] * 20}, "groups", "value", ()),
        ({"groups": [1.0] * 19 + [math.nan]}, "groups", "missing", (19,)),
        ({"groups": ["a"] * 19 + [None]}, "groups", "missing", (19,)),
        ({"confidence": 95}, "confidence", "value", ()),
        ({"confidence": "high"}, "confidence", "type", ()),
        ({"bootstrap": 0}, "bootstrap", "value", ()),
        ({"bootstrap": 10**9}, "bootstrap", "value", ()),
        ({"seed": -1}, "seed", "value", ()),
        ({"costs": "cubic"}, "costs", "value", ()),
    ],
)
def test_refusals(options, argument, kind, rows):
    y, p = forecasts(20, 3)
    with pytest.raises(vx.InputError) as caught:
        vx.evaluate(y, p, **options)
    assert (caught.value.argument, caught.value.kind, caught.value.rows) == (argument, kind, rows)


def missing_groups():
    """Groups of every kind whose third label is missing."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    dates = np.array(["2024-01-01", "2024-01-02", "NaT", "2024-01-01"], "datetime64[D]")
    yield "NaT", dates
    yield "timedelta", dates - dates[0]
    yield "object", np.array(["a", "b", pd.NaT, "a"], object)
    yield "pandas NaT", pd.Series(dates)
    for dtype in ("string", "object", "str", "category"):
        for missing in (None, pd.NA, math.nan):
            yield f"pandas {dtype} {missing}", pd.Series(["a", "b", missing, "a"], dtype=dtype)
    yield "pandas Int64", pd.Series([1, 2, None, 1], dtype="Int64")
    yield "pandas arrow", pd.Series(["a", "b", None, "a"], dtype=pd.ArrowDtype(pa.string()))
    yield "polars text", pl.Series(["a", "b", None, "a"])
    yield "polars int", pl.Series([1, 2, None, 1])
    yield "polars date", pl.Series(dates)
    yield "polars enum", pl.Series(["a", "b", None, "a"], dtype=pl.Categorical)
    yield "pyarrow text", pa.chunked_array([["a", "b", None, "a"]])
    yield "pyarrow int", pa.array([1, 2, None, 1])
    yield "list", ["a", "b", None, "a"]


@pytest.mark.parametrize("groups", [pytest.param(g, id=name) for name, g in missing_groups()])
def test_missing_groups_of_every_kind_are_refused(groups):
    y, p = forecasts(4, 3)
    with pytest.raises(vx.InputError) as caught:
        vx.evaluate(y, p, groups=groups)
    assert (caught.value.argument, caught.value.kind, caught.value.rows) == ("groups", "missing", (2,))


@pytest.mark.parametrize("groups", [["1", 1, "a", "a"], [[1], [2], [1], [2]], [1, 1.0, 2, "b"]])
def test_groups_that_differ_in_type_only_are_refused(groups):
    y, p = forecasts(4, 3)
    labels = np.empty(4, object)
    labels[:] = groups
    with pytest.raises(vx.InputError) as caught:
        vx.evaluate(y, p, groups=labels)
    assert (caught.value.argument, caught.value.kind) == ("groups", "type")


def test_a_tally_has_groups_or_none():
    y, p = forecasts(20, 3)
    with pytest.raises(vx.VeraxError, match="Either all rows"):
        vx.evaluate(y, p).merge(vx.evaluate(y, p, groups=y))


def test_cards_survive_pickling():
    import pickle

    y, p = forecasts(20, 3)
    card = vx.evaluate(y, p, ordered=True, groups=y)
    assert repr(pickle.loads(pickle.dumps(card))) == repr(card)


# ---- intervals and memory ----------------------------------------------------------------------


def test_intervals_say_how_they_were_made_and_what_is_wrong_with_them():
    y, p = forecasts(60, 3, ties=False)
    p[0], y[0] = [0.0, 0.5, 0.5], 0
    card = vx.evaluate(y, p, ordered=True, confidence=0.9)
    lines = {**card.scores, **card.metrics}
    assert {line.interval.confidence for line in lines.values()} == {0.9}
    assert lines["brier"].interval.method == "gamma"
    assert lines["accuracy"].interval.method == "mid-P"
    assert lines["qwk"].interval.method == "bootstrap of confusion counts"
    assert lines["brier"].interval.caution == ""
    assert (lines["log_score"].interval.defined, lines["log_score"].interval.caution) == (
        False,
        "the mean is infinite",
    )
    assert card.to_dict()["scores"]["log_score"]["caution"] == "the mean is infinite"
    few = vx.evaluate(y[1:], p[1:], groups=np.arange(59) % 4)
    assert few.scores["brier"].interval.caution == "only 4 groups"
    how = "mid-P over 4 groups (of one kind; errors of a group alike up to 0.68)"
    assert few.metrics["accuracy"].interval.method == how
    assert "only 4 groups" in str(few)
    assert vx.evaluate(y[1:9], p[1:9]).scores["brier"].interval.caution == "only 8 rows"
    single = vx.evaluate(y, p, weights=np.eye(60)[1])
    assert not any(line.interval.defined for line in {**single.scores, **single.metrics}.values())
    assert "There are no intervals" in str(single)


def test_a_confidence_next_to_one_is_possible():
    y, p = forecasts(60, 3, ties=False)
    card = vx.evaluate(y, p, confidence=0.999999999999999)
    assert card.scores["brier"].interval.low < vx.evaluate(y, p).scores["brier"].interval.low


@pytest.mark.parametrize("total", [2.0**40, 2.0**70, 1e300])
def test_huge_counts_have_narrow_intervals(total):
    y, p = forecasts(60, 3, ties=False)
    counts = {"weights": np.full(60, total / 60), "weights_are": "counts"}
    card = vx.evaluate(y, p, ordered=True, bootstrap=50, **counts)
    plain = vx.evaluate(y, p, ordered=True, bootstrap=50)
    for name, line in {**card.scores, **card.metrics}.items():
        low, high = line.interval
        assert low == pytest.approx(high, rel=1e-4, abs=1e-6)
        assert low <= line.mean * (1 + 1e-12)
        assert line.mean == pytest.approx(plain[name], rel=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_many_classes_take_little_memory(grouped):
    rng = np.random.default_rng(0)
    k, n = 900, 60
    p, y = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)
    options = {"ordered": True, "rules": ["brier"], "bootstrap": 40}
    tracemalloc.start()
    try:
        card = vx.evaluate(y, p, groups=np.arange(n) % 30 if grouped else None, **options)
        assert card.metrics["qwk"].interval.defined
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All 40 replicates of the table at once would take 260 MB.
    assert peak < 200e6


def test_groups_beyond_many_classes_have_an_accuracy_interval_and_no_table():
    rng = np.random.default_rng(0)
    k, n = 2000, 40
    p = rng.dirichlet(np.ones(k), n)
    y = p.argmax(axis=1) * rng.integers(0, 2, n)
    tracemalloc.start()
    try:
        card = vx.evaluate(y, p, ordered=True, groups=np.arange(n) % 20, rules=["rps"])
        low, high = card.metrics["accuracy"].interval
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64e6
    assert low < card.accuracy < high
    assert list(card.metrics) == ["accuracy"]
    assert "qwk and ec are left out" in str(card)


# ---- metrics that are not on the card ------------------------------------------------------------


def test_every_registered_metric_can_be_asked_for():
    y, p = forecasts(300, 4, ties=False)
    card = vx.evaluate(y, p, ordered=True)
    two = vx.evaluate(*forecasts(300, 2, ties=False), ordered=True)
    for name, metric in METRICS.items():
        own = two if metric.for_two else card
        line = own.metric(name)
        assert own[name] == line.mean == pytest.approx(float(metric.of(own.confusion)), rel=1e-14)
        assert line.interval.low < line.mean < line.interval.high
    assert set(card.metrics) == {"accuracy", "qwk", "ec"}
    assert card.metric("qwk") is card.metrics["qwk"]


def test_their_intervals_over_groups_come_from_the_jackknife():
    y, p = forecasts(200, 3, ties=False)
    groups = np.arange(200) // 5
    card = vx.evaluate(y, p, groups=groups)
    found = card.metric("balanced_accuracy")
    assert found.interval.method == "jackknife over 40 groups"
    without = [vx.evaluate(y[groups != g], p[groups != g])["balanced_accuracy"] for g in range(40)]
    variance = 39 / 40 * np.sum((np.array(without) - found.mean) ** 2)
    assert found.interval.high - found.interval.low == pytest.approx(4 * variance**0.5, rel=0.05)


def test_metrics_of_ordered_classes_need_the_order():
    y, p = forecasts(50, 3)
    with pytest.raises(vx.InputError) as refused:
        vx.evaluate(y, p).metric("macro_mae")
    assert (refused.value.argument, refused.value.kind) == ("ordered", "order")
    with pytest.raises(vx.InputError) as refused:
        vx.evaluate(y, p).metric("macro_mea")
    assert refused.value.argument == "metric"
