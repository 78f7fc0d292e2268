"""Verdicts: the documented set of claims, order, storing, and levels."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from verax.inference.estimates import weighted_holm
from verax.inference.findings import LICENCES, Claim, Finding, Level, NextStep, Verdict
from verax.inference.intervals import Interval

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "verdict.md"


def test_every_claim_is_documented_with_its_licence():
    text = GUIDE.read_text(encoding="utf-8")
    for claim in Claim:
        says, licence = LICENCES[claim]
        assert claim.asserts == (licence != "states")
        shown = licence if claim.asserts else "(asserts nothing)"
        assert f"| `{claim}` | {says} | {shown} |" in text


def test_a_verdict_is_its_text_and_comes_back_from_json():
    better = Finding(
        Claim.BETTER, "A is better.", ("A",), {"skill": (0.1, Interval(0.05, 0.2)), "brier": 0.2}, 0.01, 0.05
    )
    helps = Finding(Claim.HELPS, "Scaling helps.", step=NextStep("recalibrate", "vx.f()", "verax f {source}"))
    few = Finding(Claim.TOO_FEW, "Too few rows.", step=NextStep("collect 100 rows"))
    verdict = Verdict([better, few, helps], "Tested.")
    # The most urgent step, not the first.
    assert verdict == "A is better. Too few rows. Scaling helps. Next: recalibrate."
    assert verdict.next_step.with_source("a.csv").command == "verax f a.csv"
    again = Verdict.from_dict(json.loads(json.dumps(verdict.to_dict(), allow_nan=False)))
    assert (again, again.findings, again.tested) == (verdict, verdict.findings, "Tested.")
    assert pickle.loads(pickle.dumps(verdict)).findings == verdict.findings
    assert verdict.about("best_model") == ()
    assert verdict.about("better_than_reference") == ("A",)


def test_what_was_found_about_recalibration_says_what_to_do_about_calibration():
    off = Finding(Claim.TOO_HIGH, "Too high.", step=NextStep("try recalibration"))
    verdict = Verdict([off])
    assert verdict.endswith("Next: try recalibration.")
    assert verdict.with_remedy([Finding(Claim.NO_GAIN, "No gain.")]) == "Too high. No gain."
    assert verdict.with_remedy([]) == verdict


def test_an_open_question_leaves_a_fifth_of_the_level():
    level = Level.at(0.95)
    assert level.after(answered=True) == level
    assert level.after(answered=False).level == pytest.approx(0.01)
    assert (level.holds(0.05), level.holds(0.0501), level.holds(np.nan), level.holds(None)) == (1, 0, 0, 0)


def test_equal_weights_are_plain_holm():
    p = np.array([0.001, 0.2, 0.012, 0.04])
    found = weighted_holm(p, np.ones(4))
    # By its definition: step down, and stop at the first that is not rejected.
    for level in (0.003, 0.01, 0.05, 0.1, 0.3):
        rejected = set()
        for step, i in enumerate(np.argsort(p)):
            if p[i] > level / (4 - step):
                break
            rejected.add(int(i))
        assert rejected == set(np.flatnonzero(found <= level).tolist())


def test_weighted_holm_keeps_the_familywise_level():
    rng = np.random.default_rng(0)
    weights = np.array([3.0, 1.0, 1.0, 0.5])
    p = rng.random((4000, 4))
    # Two of the four hypotheses are false, and their p-values tiny.
    p[:, :2] *= 1e-4
    false = [(weighted_holm(row, weights)[2:] <= 0.05).any() for row in p]
    # Binomial(4000, 0.05): the mean and four standard errors.
    assert np.mean(false) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 4000))
