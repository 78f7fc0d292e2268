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

# P-values of shift, slope and shape by `subgroup_tests` of the reference code for `mixed()`.
KINDS = np.array(
    [
        [0.736364122, 0.541986362, np.nan],
        [0.360073448, 0.391605092, 0.751001838],
        [0.00237894982, 0.393660799, 0.181196827],
        [1.27664332e-07, 0.079126188, 0.270472083],
        [0.298796532, np.nan, np.nan],
        [8.689554e-11, 0.455115591, 0.0112634209],
    ]
)
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


def mixed():
    """Subgroups of 40 to 2,500 rows with forecasts that have heavy tails; some are too low."""
    rng = np.random.default_rng(5)
    sizes = [40, 80, 300, 900, 30, 2500]
    site = np.repeat(np.arange(6), sizes)
    p = np.clip(expit(-1 + 0.8 * rng.standard_t(1.3, len(site))), 1e-12, 1 - 1e-12)
    return (rng.random(len(p)) < expit(np.log(p / (1 - p)) + 0.3)).astype(int), p, site


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
    found = vx.subgroups(y, p, by=site)
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


def test_p_values_are_those_of_the_reference():
    y, p, site = mixed()
    found = vx.subgroups(y, p, by=site)
    kinds = np.array([(line.p_shift, line.p_slope, line.p_shape) for line in found.lines], float)
    np.testing.assert_allclose(kinds, KINDS, rtol=1e-6)
    # Weights of a half each, a quarter, and a quarter, over the tests there are.
    shares = np.where(np.isnan(kinds), np.nan, [0.5, 0.25, 0.25])
    shares /= np.nansum(shares, axis=1, keepdims=True)
    expected = np.minimum(np.nanmin(kinds / shares, axis=1), 1)
    np.testing.assert_allclose([line.p_value for line in found.lines], expected, rtol=1e-9)
    told = repr(found)
    assert "Tested subgroups that were not tested" in told
    assert "10 and 20 expected rows of either outcome" in told


def test_bins_of_forecasts_give_nearly_the_same_p_values(change):
    """Where distinct forecasts do not fit into memory, neighbours share a bin."""
    y, p, site = mixed()
    exact = vx.subgroups(y, p, by=site)
    change(exact_up_to=600)
    found = vx.subgroups(Scattered(y, np.stack([1 - p, p], axis=1), by=site, n_parts=5), by="by")
    for ours, true in zip(found.lines, exact.lines, strict=True):
        assert ours.p_value == pytest.approx(true.p_value, rel=0.1)
        assert list(ours.events.interval) == pytest.approx(list(true.events.interval), rel=1e-3)


def test_all_subgroups_far_off_are_found():
    """O:E of .57 to .62 in each of five: this was told as "not significantly miscalibrated in any"."""
    rng = np.random.default_rng(0)
    p, site = rng.beta(2, 8, 1500), np.arange(1500) % 5
    y = (rng.random(1500) < 0.6 * p).astype(int)
    found = vx.subgroups(y, p, by=site)
    assert found.verdict.claims[0] == "all_subgroups_off"
    assert "too high in all 5 subgroups" in found.verdict
    assert found.pooled["model"].ratio < 0.7


def test_what_was_forecast_as_impossible_and_happened():
    y, p, site = rows_of(400, 1.0)
    p = p.copy()
    p[4], y[4] = 0.0, 1
    found = vx.subgroups(y, p, by=site)
    assert [line.label for line in found.flagged] == [0]
    assert found[0].p_value == 0
    p[4] = 1e-9
    assert 0 < vx.subgroups(y, p, by=site)[0].p_value < 1e-6


def test_p_values_have_no_floor():
    rng = np.random.default_rng(0)
    q = rng.random(6000)
    found = vx.subgroups((rng.random(6000) < q**3).astype(int), q, by=np.arange(6000) // 2000)
    assert all(0 < line.p_value < 1e-40 for line in found.lines)


def test_subgroups_that_are_too_small_for_a_test_are_named():
    rng = np.random.default_rng(0)
    p = np.where(np.arange(400) % 2, 0.3, 0.004)
    found = vx.subgroups((rng.random(400) < p).astype(int), p, by=np.arange(400) % 2)
    assert (found[0].p_value, found[0].p_adjusted, found[0].stands_out) == (None, None, False)
    assert found.untested == "Not tested for calibration: 0 (fewer than 2 rows of either outcome expected)."
    assert found.untested in found.verdict
    few = vx.subgroups(
        (rng.random(400) < p).astype(int), p, by=np.arange(400) // 200, groups=np.arange(400) // 80
    )
    assert found.level == few.level
    assert few.untested == "Not tested for calibration: 0 and 1 (fewer than 4 groups)."


def test_rows_of_a_group_may_be_alike():
    """CR2 and Student's t, by their definitions, and no smaller than the p-value of independent rows."""
    from scipy import stats

    rng = np.random.default_rng(3)
    p, groups, site = rng.uniform(0.1, 0.6, 600), np.arange(600) // 20, np.arange(600) // 300
    effect = rng.normal(0, 0.8, 30)[groups]
    y = (rng.random(600) < expit(np.log(p / (1 - p)) + effect)).astype(int)
    found = vx.subgroups(y, p, by=site, groups=groups)
    for label, line in found.items():
        own = site == label
        excess = np.bincount(groups[own] - groups[own].min(), (y - p)[own])
        right = np.bincount(groups[own] - groups[own].min(), (p * (1 - p))[own])
        share = right / right.sum()
        variance = ((excess - share * excess.sum()) ** 2 / (1 - share)).sum()
        left = share**2 / (1 - share)
        freedom = 1 / ((share**2).sum() + left.sum() ** 2 - (left**2).sum())
        by_t = 2 * stats.t.sf(abs(excess.sum()) / variance**0.5, freedom)
        by_normal = 2 * stats.norm.sf(abs(excess.sum()) / right.sum() ** 0.5)
        assert line.p_shift == pytest.approx(max(by_t, by_normal), rel=1e-9)


def test_groups_that_are_in_several_subgroups_are_not_said_to_be_alike():
    """Subgroups that share groups are not independent, so their shifts do not tell that all are off."""
    rng = np.random.default_rng(0)
    p, site, groups = rng.uniform(0.1, 0.6, 3000), np.arange(3000) % 3, np.arange(3000) // 30
    y = (rng.random(3000) < 0.6 * p).astype(int)
    crossed = vx.subgroups(y, p, by=site, groups=groups).pooled["model"]
    nested = vx.subgroups(y, p, by=site, groups=groups + 100 * site).pooled["model"]
    assert crossed.several
    assert not crossed.alike
    assert nested.alike


def test_lists_are_tested_by_their_entries_and_by_what_they_leave_out():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(6, 0.5), 1200)
    y = (rng.random((1200, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 5)
    sharper = p**2 / (p**2).sum(axis=1, keepdims=True)
    site = np.arange(1200) % 3
    right, wrong = (
        vx.subgroups(y, vx.TopLists.from_probabilities(each, 3), by=site) for each in (p, sharper)
    )
    assert not right.flagged
    assert len(wrong.flagged) == 3


def test_more_classes_have_no_observed_events():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 120), rng.integers(0, 3, 120)
    found = vx.subgroups(y, p, by=np.arange(120) % 2)
    assert all(line.events is None for line in found.lines)
    assert found.pooled["model"].event == "the most likely class"
    assert "Its probabilities of the most likely class are too high" in found.verdict
    assert "O:E" not in repr(found).partition("\nsubgroup")[2]


@pytest.mark.parametrize("own", [{}, {"weights": True}, {"groups": True}])
def test_the_same_events_in_parts(own):
    y, p, site = rows_of(800, 0.8)
    rng = np.random.default_rng(0)
    given = {"weights": rng.uniform(0.5, 2, 800)} if "weights" in own else {}
    given |= {"groups": np.arange(800) // 8} if "groups" in own else {}
    exact = vx.subgroups(y, p, by=site, **given)
    found = vx.subgroups(Scattered(y, np.stack([1 - p, p], axis=1), by=site, **given), by="by")
    for ours, true in zip(found.lines, exact.lines, strict=True):
        assert ours.events.ratio == pytest.approx(true.events.ratio, rel=1e-12)
        assert list(ours.events.interval) == pytest.approx(list(true.events.interval), rel=1e-9)
    assert {model: each.p_value for model, each in found.pooled.items()} == pytest.approx(
        {model: each.p_value for model, each in exact.pooled.items()}, rel=1e-9
    )
    assert exact.pooled
    for ours, true in zip(found.lines, exact.lines, strict=True):
        kinds = [(line.p_shift, line.p_slope, line.p_shape) for line in (ours, true)]
        assert kinds[0] == pytest.approx(kinds[1], rel=1e-9)


def test_events_of_few_groups_have_wider_intervals():
    y, p, site = rows_of(800, 0.8)
    alone = vx.subgroups(y, p, by=site)
    over = vx.subgroups(y, p, by=site, groups=np.arange(800) // 4 % 6)
    for a, b in zip(alone.lines, over.lines, strict=True):
        assert np.ptp(b.events.interval) > 1.1 * np.ptp(a.events.interval)


def test_weights_that_are_copies_count_as_rows():
    y, p, site = rows_of(400, 0.8)
    copies = np.random.default_rng(0).integers(1, 4, 400)
    found = vx.subgroups(y, p, by=site, weights=copies, weights_are="counts")
    repeated = vx.subgroups(*(np.repeat(x, copies) for x in (y, p)), by=np.repeat(site, copies))
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
    verdict = vx.subgroups(y, p, by=site).verdict
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
    rng = np.random.default_rng(10)
    p = np.round(rng.uniform(0.05, 0.95, 800), 3)
    sex = np.where(np.arange(800) % 2, "F", "M")
    y = (rng.random(800) < np.where(sex == "M", expit(0.7 * np.log(p / (1 - p))), p)).astype(int)
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


def test_forecasts_that_are_too_extreme_in_all_subgroups():
    """Events happen as often as forecast, and the slope is off everywhere."""
    rng = np.random.default_rng(0)
    odds, site = rng.normal(0, 1, 3000), np.arange(3000) % 6
    y = (rng.random(3000) < expit(odds)).astype(int)
    for factor, words in ((1.4, "too extreme"), (0.6, "not extreme enough")):
        first = vx.subgroups(y, expit(factor * odds), by=site).verdict.findings[0]
        assert first.claim == "subgroups_off_as_a_whole"
        assert first.text.startswith(
            f"Its probabilities are {words} as a whole over the subgroups (p < 0.0001"
        )
