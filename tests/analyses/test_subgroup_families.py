"""Tests of subgroups that share one level: what they show together, each by itself, and observed events."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import verax as vx
from commandline import verax
from scattered import Scattered
from verax.analyses.subgroups.verdict import verdict_of

# `ratio_interval` of the reference code for rows_of(400, 0.8).
LIMITS = np.array(
    [
        [0.68968604, 1.35097341],
        [0.4741664, 1.06440941],
        [0.4993398, 1.09972525],
        [0.42599037, 1.0180361],
    ]
)


def rows_of(n, factor, seed=1):
    """Forecasts of two classes in four subgroups, whose events happen `factor` times as often as forecast."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(2, 6, n), 4)
    return (rng.random(n) < p * factor).astype(int), p, np.arange(n) % 4


def shifted(shift, seed):
    """Outcomes of subgroups of 4,000 x 0.72^k rows whose log-odds are off by these numbers."""
    rng = np.random.default_rng(seed)
    sizes = np.round(4000 * 0.72 ** np.arange(len(shift))).clip(60).astype(int)
    site = np.repeat(np.arange(len(shift)), sizes)
    odds = rng.normal(-1.5, 1, len(site))
    return (rng.random(len(site)) < expit(odds + np.asarray(shift)[site])).astype(int), expit(odds), site


def test_observed_and_expected_events_with_their_interval():
    """Limits of the reference code of the method for the same rows."""
    y, p, site = rows_of(400, 0.8)
    found = vx.subgroups(y, p, by=site, bootstrap=0)
    for label, line in found.items():
        rows = site == label
        assert line.events.observed == y[rows].sum()
        assert line.events.expected == pytest.approx(p[rows].sum())
        assert line.events.ratio == pytest.approx(y[rows].sum() / p[rows].sum())
    limits = np.array([line.events.interval for line in found.lines])
    # The other two subgroups vary more than forecasts that are right: their limits are wider.
    np.testing.assert_allclose(limits[1:3], LIMITS[1:3], rtol=1e-6)
    assert (limits[::3, 0] < LIMITS[::3, 0]).all()
    assert (limits[::3, 1] > LIMITS[::3, 1]).all()
    columns = found.to_frame()
    assert columns["observed_to_expected"].tolist() == [line.events.ratio for line in found.lines]
    assert columns["observed_to_expected_low"].tolist() == [line.events.interval.low for line in found.lines]
    assert "O:E" in repr(found)


def test_more_classes_have_no_observed_events():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 120), rng.integers(0, 3, 120)
    found = vx.subgroups(y, p, by=np.arange(120) % 2, bootstrap=10)
    assert all(line.events is None for line in found.lines)
    assert not found.pooled
    assert "O:E" not in repr(found)


@pytest.mark.parametrize("own", [{}, {"weights": True}, {"groups": True}])
def test_the_same_events_in_parts(own):
    y, p, site = rows_of(800, 0.8)
    rng = np.random.default_rng(0)
    given = {"weights": rng.uniform(0.5, 2, 800)} if "weights" in own else {}
    given |= {"groups": np.arange(800) // 8} if "groups" in own else {}
    exact = vx.subgroups(y, p, by=site, bootstrap=50, **given)
    found = vx.subgroups(Scattered(y, np.stack([1 - p, p], axis=1), by=site, **given), by="by", bootstrap=50)
    for ours, true in zip(found.lines, exact.lines, strict=True):
        assert ours.events.ratio == pytest.approx(true.events.ratio, rel=1e-12)
        assert list(ours.events.interval) == pytest.approx(list(true.events.interval), rel=1e-9)
    assert {model: each.p_value for model, each in found.pooled.items()} == pytest.approx(
        {model: each.p_value for model, each in exact.pooled.items()}, rel=1e-9
    )
    # Rows of a group may be in several subgroups.
    assert bool(exact.pooled) == ("groups" not in own)


def test_events_of_few_groups_have_wider_intervals():
    y, p, site = rows_of(800, 0.8)
    alone = vx.subgroups(y, p, by=site, bootstrap=0)
    over = vx.subgroups(y, p, by=site, bootstrap=0, groups=np.arange(800) // 4 % 6)
    for a, b in zip(alone.lines, over.lines, strict=True):
        assert np.ptp(b.events.interval) > 1.1 * np.ptp(a.events.interval)


def test_weights_that_are_copies_count_as_rows():
    y, p, site = rows_of(400, 0.8)
    copies = np.random.default_rng(0).integers(1, 4, 400)
    found = vx.subgroups(y, p, by=site, weights=copies, weights_are="counts", bootstrap=0)
    repeated = vx.subgroups(*(np.repeat(x, copies) for x in (y, p)), by=np.repeat(site, copies), bootstrap=0)
    for ours, true in zip(found.lines, repeated.lines, strict=True):
        assert list(ours.events.interval) == pytest.approx(list(true.events.interval), rel=1e-9)


@pytest.mark.parametrize(
    ("shift", "words", "claim"),
    [
        (np.full(10, -0.3), "in all 10 subgroups", "all_subgroups_off"),
        (np.r_[-0.5, np.zeros(9)], "as a whole", "subgroups_off_as_a_whole"),
        (np.r_[[-0.6] * 3, np.zeros(7)], "in more than one subgroup", "subgroups_off_as_a_whole"),
        (np.where(np.arange(10) % 2, -0.1, 0.1), None, None),
    ],
)
def test_words_about_all_subgroups(shift, words, claim):
    """No claim about all of them if one carries it, or if their shifts differ."""
    y, p, site = shifted(shift, seed=4)
    verdict = vx.subgroups(y, p, by=site, bootstrap=100).verdict
    told = [finding for finding in verdict.findings if finding.claim.endswith(("_off", "_whole"))]
    assert [finding.claim for finding in told] == ([claim] if claim else [])
    if claim:
        assert f"too high {words}" in told[0].text
        assert told[0].p_value <= told[0].level == 0.01


def test_what_all_subgroups_show_is_not_called_calibrated():
    """Each is too small to stand out, and together they are far off."""
    y, p, site = rows_of(900, 0.7, seed=3)
    found = vx.subgroups(y, p, by=site + 4 * (np.arange(900) // 4 % 3))
    assert not found.flagged
    assert "too high in all 12 subgroups" in found.verdict
    assert "not significantly miscalibrated in any" not in found.verdict
    assert "None of 12 subgroups is significantly miscalibrated by itself" in found.verdict


def test_one_level_and_one_sentence_everywhere(tmp_path):
    """A subgroup with a p-value between 1 and 5 percent is told alike in Python, terminal and page."""
    rng = np.random.default_rng(1)
    p = np.round(rng.uniform(0.05, 0.95, 800), 3)
    sex = np.where(np.arange(800) % 2, "F", "M")
    y = (rng.random(800) < np.where(sex == "M", expit(0.5 * np.log(p / (1 - p))), p)).astype(int)
    found = vx.subgroups(y, p, by=pd.Series(sex, name="sex"))
    assert 0.01 < found["M"].p_adjusted < 0.05
    (told,) = found.verdict.findings
    assert told.level == 0.01
    assert f"p = {told.p_value:.4f}, tested at 1%" in told.text
    assert told.text in verdict_of(y, p, parts={"sex": found})[0]
    pd.DataFrame({"label": y, "p_1": p, "sex": sex}).to_csv(tmp_path / "rows.csv", index=False)
    asked = ("evaluate", tmp_path / "rows.csv", "--by", "sex")
    shown = verax(*asked, "--html", tmp_path / "page.html").stdout
    by_terminal = json.loads(verax(*asked, "--json").stdout)
    assert told.text in shown
    assert told.text in (tmp_path / "page.html").read_text()
    assert told.text in [finding["text"] for finding in by_terminal["findings"]]
    assert [line["stands_out"] for line in by_terminal["subgroups"]["sex"]["subgroups"]] == [False, False]


def test_the_level_of_subgroups_does_not_depend_on_other_questions():
    """A model that does not beat class frequencies leaves a question open."""
    rng = np.random.default_rng(0)
    p, y = rng.uniform(0.3, 0.7, 400), rng.integers(0, 2, 400)
    found = vx.subgroups(y, p, by=np.arange(400) % 2)
    verdict, held = verdict_of(y, p, parts={"by": found})
    assert verdict.claims[0] == "worse_than_reference" or verdict.claims[0] == "not_better_than_reference"
    assert held["by"].level == found.level == 0.01
    assert [line.p_adjusted for line in held["by"].lines] == [line.p_adjusted for line in found.lines]
