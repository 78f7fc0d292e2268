"""A rate of one side never leads alone: its partner stands in the same sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax
from verax.analyses.comparison.sides import SIDES
from verax.inference.findings import Claim


def flagging(n=3000, more=0.9):
    """One model that flags more than the other, by the same knowledge."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-1.2 * x))).astype(int)
    seen = x + 0.5 * rng.normal(size=n)
    return y, {"old": 1 / (1 + np.exp(-seen - more)), "new": 1 / (1 + np.exp(-seen))}


def finding(y, p, rate):
    (told,) = vx.operating_points(y, p, threshold=0.5).verdict_by(rate).findings
    return told


@pytest.mark.parametrize("rate", SIDES)
def test_flagging_more_or_less_is_a_trade(rate):
    """Each rate of one side is higher for one of the models, whose partner is lower."""
    y, p = flagging()
    points = {point.model: point for point in vx.operating_points(y, p)}
    told, partner = finding(y, p, rate), SIDES[rate].partners[0]
    best = "old" if rate in ("sensitivity", "npv") else "new"
    (other,) = points.keys() - {best}
    assert told.claim is Claim.TRADE
    assert told.claim.asserts
    assert told.about == (best, other)
    assert told.text.startswith(f"{best} {SIDES[rate].ahead} (")
    assert told.text.endswith(": a trade, not a lead.")
    for name in (rate, partner):
        assert f"{name} {points[best][name]:.4g} against {points[other][name]:.4g}" in told.text
    assert points[best][partner] < points[other][partner]
    assert told.p_value <= told.level


def test_a_lead_that_costs_nothing_is_a_lead_with_its_partner():
    y, p = flagging()
    rng = np.random.default_rng(1)
    worse = {"new": p["new"], "noisy": np.clip(p["new"] + 0.5 * rng.normal(size=len(y)), 0, 1)}
    points = {point.model: point for point in vx.operating_points(y, worse)}
    told = finding(y, worse, "sensitivity")
    assert told.claim is Claim.BEST
    assert "new is significantly better than noisy: sensitivity" in told.text
    values = " against ".join(f"{points[name]['specificity']:.4g}" for name in ("new", "noisy"))
    assert told.text.endswith(f"with specificity {values}.")
    # What both sides have in one number leads as before.
    assert "specificity" not in finding(y, worse, "balanced_accuracy").text


def test_a_lead_whose_price_is_open_is_no_lead():
    """The partner is behind by less than noise: neither a lead nor a trade."""
    y, p = flagging(4000)
    shifted = p["new"].copy()
    # More events are found, and four more of the others are flagged.
    shifted[np.flatnonzero((y == 1) & (p["new"] < 0.5))[:60]] = 0.9
    shifted[np.flatnonzero((y == 0) & (p["new"] < 0.5))[:4]] = 0.9
    back = np.flatnonzero((y == 0) & (p["new"] >= 0.5))[:2]
    shifted[back] = 0.1
    told = finding(y, {"more": shifted, "new": p["new"]}, "sensitivity")
    assert told.claim is Claim.LEAD_OPEN
    assert "it is open whether it raises more false alarms (specificity" in told.text
    assert not told.claim.asserts


def test_what_is_open_and_several_models_have_the_partner():
    y, p = flagging()
    alike = finding(y[:100], {"a": p["new"][:100], "b": p["new"][:100]}, "sensitivity")
    assert alike.claim is Claim.LEAD_OPEN
    assert ", with specificity " in alike.text
    three = finding(y, {**p, "third": p["new"] ** 1.3}, "sensitivity")
    assert three.about == ("old", "new", "third")
    assert "of new and" in three.text
    assert "of third): a trade, not a lead." in three.text


def test_scores_of_folds_and_data_sets_need_the_partner():
    """With recall and precision a trade is told; recall alone is no lead."""
    rng = np.random.default_rng(2)

    def report(**means):
        return {f"test_{name}": mean + 0.01 * rng.normal(size=10) for name, mean in means.items()}

    both = {"old": report(recall=0.9, precision=0.5), "new": report(recall=0.7, precision=0.8)}
    told = vx.compare_folds(scores=both, better="higher").verdict
    assert told.findings[0].claim is Claim.TRADE
    assert "old finds more (recall 0.8999 against 0.6987;" in told
    assert "and flags wrongly more often (precision 0.4991 against 0.8024;" in told
    alone = {"old": report(recall=0.9), "new": report(recall=0.7)}
    table = {"old": 0.9 + 0.01 * rng.normal(size=9), "new": 0.7 + 0.01 * rng.normal(size=9)}
    long = {"data": [*range(9)] * 2, "model": ["old"] * 9 + ["new"] * 9}
    long["recall"] = np.r_[table["old"], table["new"]]
    columns = {"datasets": "data", "models": "model", "scores": "recall"}
    for found in (
        vx.compare_folds(scores=alone, better="higher"),
        vx.compare_datasets(pd.DataFrame(long), **columns, better="higher"),
    ):
        assert found.verdict.findings[0].claim is Claim.LEAD_OPEN
        assert "old has a significantly higher recall than new" in found.verdict
        assert "Compare specificity as well: recall alone is no lead" in found.verdict


def test_the_command_says_trade(tmp_path):
    y, p = flagging()
    files = []
    for name, values in p.items():
        files.append(str(tmp_path / f"{name}.csv"))
        pd.DataFrame({"id": np.arange(len(y)), "y": y, "p": values}).to_csv(files[-1], index=False)
    how = ("--id", "id", "--target", "y", "--probs", "p", "--rule", "sensitivity", "--threshold", "0.5")
    text = " ".join(verax("compare", *files, *how).stdout.split())
    assert "a trade, not a lead" in text
    assert "significantly better" not in text
    # Paired differences of both rates stand below.
    assert "old - new 1 sensitivity" in text
    assert "old - new 1 specificity" in text
