"""The card of two classes: rates of its decisions, and measures that need the rows."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import verax as vx
from verax.analyses.calibration.summary import summarize
from verax.analyses.measures import FOR_TWO, MEASURES, OF_ALL
from verax.analyses.rates import RATES

RNG = np.random.default_rng(2)
N = 200
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
WEIGHTS, GROUPS = RNG.uniform(0.5, 2, N), RNG.integers(0, 30, N)
THREE = RNG.dirichlet(np.ones(3), N)
GRADES = RNG.integers(0, 3, N)


@pytest.mark.parametrize("own", [{}, {"weights": WEIGHTS}, {"weights": WEIGHTS, "groups": GROUPS}])
def test_rates_on_the_card_are_those_at_one_half(own):
    card, point = vx.evaluate(Y, P, **own), vx.operating_points(Y, P, **own).points[0]
    for name in ("sensitivity", "specificity", "ppv", "npv", "f1", "youden", "lr_positive", "lr_negative"):
        line, rate = card.metric(name), point.rate(name)
        assert card[name] == line.mean == pytest.approx(rate.value)
        assert tuple(line.interval) == pytest.approx(tuple(rate.interval))
    assert {"sensitivity", "f1"} <= set(card.metrics) <= {"accuracy", *RATES}
    assert card.flat()["ppv_low"] == card.metric("ppv").interval.low


def test_rates_need_no_rows_and_are_of_two_classes():
    both = vx.evaluate(Y[:90], P[:90]) + vx.evaluate(Y[90:], P[90:])
    assert both["f1"] == pytest.approx(vx.evaluate(Y, P)["f1"])
    assert vx.results.Scorecard.from_dict(both.to_dict())["npv"] == both["npv"]
    assert "sensitivity" not in vx.evaluate(GRADES, THREE).metrics
    two_ways = vx.evaluate(Y, P, groups=(GROUPS, np.arange(N) % 7)).metric("ppv")
    assert not two_ways.interval.defined
    assert "two kinds of groups" in two_ways.interval.caution


def test_measures_are_those_of_the_functions():
    card = vx.evaluate(Y, P, weights=WEIGHTS)
    assert set(card.measures) == {*OF_ALL, *FOR_TWO}
    line = vx.calibration_slope(Y, P, weights=WEIGHTS).lines[0]
    auc = vx.roc_auc(Y, P, weights=WEIGHTS)
    wanted = {
        "auc": auc.value,
        "average_precision": vx.average_precision(Y, P, weights=WEIGHTS).value,
        "slope": line.slope,
        "intercept": line.intercept,
        "in_the_large": line.in_the_large,
        "ece": vx.ece(Y, P, weights=WEIGHTS),
        "miscalibration": vx.decompose(Y, P, rule="brier", weights=WEIGHTS).miscalibration,
        "skill": summarize(Y, P, weights=WEIGHTS)["skill"],
    }
    assert {name: card[name] for name in wanted} == pytest.approx(wanted)
    assert tuple(card.metric("auc").interval) == tuple(auc.interval)
    shown = repr(card)
    assert "calibration slope" in shown
    assert f"brier_score_loss is {card['brier'] / 2:.4f}" in shown


def test_cards_of_more_classes_have_measures_where_they_have_a_meaning():
    card = vx.evaluate(GRADES, THREE, ordered=True)
    assert card["c_index"] == vx.c_index(GRADES, THREE).value
    assert card["auc"] == vx.roc_auc(GRADES, THREE, ordered=True).value
    assert card["skill"] == summarize(GRADES, THREE, ordered=True)["skill"]
    with pytest.raises(vx.InputError, match="must have two classes for slope"):
        card["slope"]


def test_cards_without_rows_name_the_line_to_type(tmp_path):
    card = vx.evaluate(Y, P)
    card.save(tmp_path / "card.verax")
    saved = vx.load(tmp_path / "card.verax")
    assert saved["auc"] == card["auc"]
    for other in (card + card, pickle.loads(pickle.dumps(card)), saved + saved):
        with pytest.raises(vx.InputError, match=r"vx\.roc_auc\(y, p\)"):
            other["auc"]
        assert "brier_score_loss" in repr(other)


def test_measures_come_from_files_too(tmp_path):
    import pandas as pd

    pd.DataFrame({"y": Y, "p": P}).to_parquet(tmp_path / "rows.parquet")
    card = vx.evaluate(vx.scan(tmp_path / "rows.parquet", target="y", probs="p"))
    assert {name: card[name] for name in MEASURES} == pytest.approx(
        {name: vx.evaluate(Y, P)[name] for name in MEASURES}
    )


def test_rows_left_out_are_left_out_of_measures():
    p = P.copy()
    p[5] = 2.0
    card = vx.evaluate(Y, p, invalid="skip")
    assert card["auc"] == vx.roc_auc(np.delete(Y, 5), np.delete(P, 5)).value


def test_measures_go_with_the_card_into_json_and_back():
    card = vx.evaluate(Y, P, groups=GROUPS)
    known = card.to_dict(stored=False)["measures"]
    assert known["auc"]["interval"] == list(card.metric("auc").interval)
    back = vx.results.Scorecard.from_dict(json.loads(json.dumps(card.to_dict())))
    assert back == card
    for name in (*OF_ALL, *FOR_TWO, "f1", "sensitivity"):
        assert back[name] == pytest.approx(card[name], nan_ok=True)
    assert back.flat() == pytest.approx(card.flat(), nan_ok=True)
    assert {"auc", "auc_low", "skill", "slope_high", "f1"} <= set(card.flat())
    assert "ece_low" not in card.flat()
    with pytest.raises(vx.InputError, match="without rows it knows skill"):
        back["c_index"]
    three = vx.evaluate(GRADES, THREE).to_dict(stored=False)["measures"]
    assert list(three) == list(OF_ALL)
    assert "measures" not in (card + card).to_dict(stored=False)


@pytest.mark.parametrize(
    ("name", "near"), [("recall", "sensitivity"), ("roc_auc", "auc"), ("briar", "brier")]
)
def test_unknown_names_are_answered_with_the_nearest_and_all(name, near):
    with pytest.raises(
        KeyError, match=f"Did you mean '{near}'.* Valid names are brier, log_score"
    ) as refused:
        vx.evaluate(Y, P)[name]
    assert "youden" in str(refused.value)
