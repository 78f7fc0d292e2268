"""The scorecard: right numbers, mergeable, readable."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scoringrules
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, log_loss

import verax as vx
from cases import forecasts

NAMES = ["none", "mild", "moderate", "severe"]


def test_against_scikit_learn_and_scoringrules():
    y, p = forecasts(3000, 4, ties=False)
    w = np.random.default_rng(1).exponential(size=3000)
    card = vx.evaluate(y, p, ordered=True, weights=w)
    labels = range(4)
    assert card["brier"] == pytest.approx(brier_score_loss(y, p, labels=labels, sample_weight=w), rel=1e-12)
    assert card["log"] == pytest.approx(log_loss(y, p, labels=labels, sample_weight=w), rel=1e-12)
    rps = scoringrules.rps_score(y + 1, p) / 3
    assert card["rps"] == pytest.approx(np.average(rps, weights=w), rel=1e-12)
    ranked = scoringrules.rls_score(y + 1, p) / 3
    assert card["ranked_log"] == pytest.approx(np.average(ranked, weights=w), rel=1e-12)
    assert card.accuracy == pytest.approx(accuracy_score(y, p.argmax(axis=1), sample_weight=w), rel=1e-12)
    expected = confusion_matrix(y, p.argmax(axis=1), labels=labels, sample_weight=w)
    np.testing.assert_allclose(card.confusion, expected, rtol=1e-12)
    np.testing.assert_allclose(card.class_counts, expected.sum(axis=1), rtol=1e-12)


def test_the_rules_that_fit():
    y, p = forecasts(20, 3)
    nominal = {"brier", "log_score", "spherical", "zero_one", "pbs", "pll"}
    assert set(vx.evaluate(y, p).scores) == nominal
    assert set(vx.evaluate(y, p, ordered=True).scores) == set(vx.RULES)
    chosen = vx.evaluate(y, p, rules=["rps", vx.Brier("half"), "rps", "penalized(spherical)"])
    assert list(chosen.scores) == ["rps", "brier(scale='half')", "penalized(spherical)"]
    assert list(vx.evaluate(y, p, rules="rps").scores) == ["rps"]
    with pytest.raises(vx.VeraxError, match="at least one rule"):
        vx.evaluate(y, p, rules=[])
    with pytest.raises(KeyError, match="it has rps"):
        vx.evaluate(y, p, rules=["rps"])["brier"]


@given(cut=st.integers(1, 39), weighted=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_cards_of_parts_merge_to_the_card_of_the_whole(cut, weighted, seed):
    y, p = forecasts(40, 4, seed)
    w = np.random.default_rng(seed).exponential(size=40) if weighted else np.ones(40)
    options = {"ordered": True, "classes": NAMES}
    whole = vx.evaluate(y, p, weights=w, **options).to_dict()
    parts = [
        vx.evaluate(y[part], p[part], weights=w[part], **options) for part in (slice(0, cut), slice(cut, 40))
    ]
    merged = parts[0].merge(parts[1]).to_dict()
    for name, score in whole["scores"].items():
        assert merged["scores"][name]["mean"] == pytest.approx(score["mean"], rel=1e-13)
    assert merged["accuracy"]["mean"] == pytest.approx(whole["accuracy"]["mean"], rel=1e-13)
    np.testing.assert_allclose(merged["confusion"], whole["confusion"], rtol=1e-13)
    for key in ("n_rows", "n_classes", "classes", "ordered", "zero_probability"):
        assert merged[key] == whole[key]


def test_cards_of_different_problems_do_not_merge():
    y, p = forecasts(10, 4)
    with pytest.raises(vx.VeraxError, match="different classes"):
        vx.evaluate(y, p, classes=NAMES).merge(vx.evaluate(y, p))


def test_zero_probability_outcomes_are_counted_and_located():
    p = [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]
    card = vx.evaluate([0, 1, 1], p)
    assert card["log"] == math.inf
    assert card.scores["log_score"].finite_mean == pytest.approx((math.log(2) - math.log(0.75)) / 2)
    assert card.scores["log_score"].infinite_weight == 1
    assert (card.n_zero_probability, card.zero_probability_rows) == (1, (1,))
    assert "Probability zero had been given to 1 outcome (row 1)." in str(card)
    assert "Without the rows of infinite loss: log_score 0.49041" in str(card)


def test_the_table():
    p = [[0.7, 0.2, 0.1, 0.0], [0.1, 0.6, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]
    card = vx.evaluate(
        ["none", "mild", "moderate"], p, classes=NAMES, rules=["brier", "rps", "sa_rps"], ordered=True
    )
    assert str(card) == (
        "verax scorecard: 3 rows, 4 ordered classes\n"
        "score        mean       sd  range   proper    what it is\n"
        f"{'-' * 88}\n"
        "brier     0.35333  0.24730  0 to 2  strictly  squared error over the classes\n"
        "rps       0.05222  0.02439  0 to 1  strictly  squared error of the cumulative forecast\n"
        "sa_rps    0.03889  0.02315  0 to 1  no        squared expected distance from the outcome\n"
        "accuracy  0.66667  0.47140  0 to 1            share of right decisions\n"
        f"{'-' * 88}\n"
        "Lower is better, except for accuracy."
    )
    assert repr(card) == str(card)


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


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames(kind):
    y, p = forecasts(30, 4)
    frame = vx.evaluate(y, p).to_frame(kind)
    assert type(frame).__module__.startswith(kind)
    assert str(frame["score"][0]) == "brier"
    assert len(frame["score"]) == 7


def test_decisions_take_the_lowest_index_and_the_rule_shares_ties():
    card = vx.evaluate([1, 0], [[0.5, 0.5], [0.5, 0.5]])
    assert card.accuracy == 0.5
    assert card["zero_one"] == 0.5
    assert card.confusion.tolist() == [[1, 0], [1, 0]]


def test_evaluate_on_torch():
    import torch

    y, p = forecasts(100, 3, ties=False)
    card = vx.evaluate(torch.tensor(y), torch.tensor(p), ordered=True)
    expected = vx.evaluate(y, p, ordered=True).to_dict()["scores"]
    for name, score in card.to_dict()["scores"].items():
        assert score["mean"] == pytest.approx(expected[name]["mean"], rel=1e-13)
