"""Seasons: found where rows repeat, whole seasons are the units, and too few of them claim nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

import verax as vx
from verax.inference.estimates import Estimate
from verax.inference.series import LongRun, by_season, season_means, season_of, seasons_of


def repeating(n, season, r, runs, seed=0, drift=0.0):
    """(n, runs) autoregressions of rows a season apart."""
    moving = np.zeros(season + 2)
    moving[0], moving[season] = 1.0, -r
    moving[1] -= drift
    moving[season + 1] += r * drift
    steps = np.random.default_rng(seed).normal(size=(n + 40 * season, runs))
    return lfilter([1], moving, steps, axis=0)[-n:]


def reference_season(x):
    """The shortest strong lag of one column, plainly: autocorrelations of residuals, one by one."""
    n, x = len(x), x - x.mean()
    e = x[1:] - (x[1:] @ x[:-1]) / (x @ x) * x[:-1]
    r = [1.0, *(float(e[lag:] @ e[:-lag] / (e @ e)) for lag in range(1, n // 2))]
    lags = range(4, min(n // 4, 2 * (n - 3) // 3 - 1) + 1)
    limit = {s: stats.norm.isf(0.01 / len(lags)) / math.sqrt(n - 1.5 * s) for s in lags}
    peak = {s: r[s] - max(r[s // 2], r[3 * s // 2]) for s in lags}
    strong = {s: r[s] for s in lags if r[s] > limit[s] and peak[s] > math.sqrt(1.5) * limit[s]}
    if not strong:
        return 1
    return min(s for s in strong if strong[s] >= 0.7 * max(strong.values()))


def test_seasons_are_found_where_rows_repeat_and_nowhere_else():
    x = repeating(1000, 24, 0.6, 40)
    assert (season_of(x) == 24).all()
    plain = lfilter([1], [1, -0.8], np.random.default_rng(1).normal(size=(1000, 200)), axis=0)
    assert (season_of(plain) > 1).mean() < 0.04
    assert [reference_season(column) for column in x.T[:5]] == [24] * 5
    assert [reference_season(column) for column in plain.T[:20]] == season_of(plain[:, :20]).tolist()
    other = np.column_stack([np.ones(1000), np.full(1000, np.nan), x[:, 0]])
    assert season_of(other).tolist() == [1, 1, 24]
    assert season_of(x[:12]).tolist() == [1] * 40


def test_the_week_is_found_beside_the_day():
    week = repeating(24 * 7 * 60, 168, 0.5, 6, seed=2)
    both = lfilter([1], [1, *[0] * 23, -0.3], week, axis=0)
    assert (seasons_of(both) == 168).mean() > 0.8
    assert seasons_of(both, 24).tolist() == [24] * 6


@pytest.mark.parametrize(("n", "season", "r", "drift"), [(960, 24, 0.6, 0.0), (960, 24, 0.5, 0.5)])
def test_tests_of_seasonal_series_keep_their_size(n, season, r, drift):
    """Without seasons they rejected 11 to 30 %; the Monte Carlo error is 1 point."""
    x = repeating(n, season, r, 500, drift=drift)
    found = LongRun.of(x, None)
    p = Estimate(x.mean(axis=0), found.error, found.freedom, found.cautions).p_values()
    assert 0.01 < (p < 0.05).mean() < 0.08
    plain = LongRun._of_rows(x, None)
    assert (Estimate(x.mean(axis=0), plain.error, plain.freedom).p_values() < 0.05).mean() > 0.09


def test_whole_seasons_are_the_units():
    x = repeating(1000, 24, 0.6, 3)
    found, means = LongRun.of(x, None), season_means(x, 24)
    assert means.shape == (41, 3)
    assert np.allclose(means[-1], x[-24:].mean(axis=0))
    alone = LongRun._of_rows(means, None)
    assert found.error == pytest.approx(alone.error)
    assert found.freedom.tolist() == alone.freedom.tolist()
    assert (found.seasons == 24).all()
    assert np.allclose(by_season(x, None, None).mean(axis=0), x.mean(axis=0))
    assert by_season(x, 3, None) is x
    # Without a season nothing changes.
    noise = np.random.default_rng(0).normal(size=(1000, 2))
    assert LongRun.of(noise, None).error == pytest.approx(LongRun._of_rows(noise, None).error)
    stated = LongRun.of(noise, None, 10)
    assert stated.error == pytest.approx(LongRun._of_rows(season_means(noise, 10), None).error)


def compared(n, season, method="moments", **more):
    x = repeating(n, 24, 0.6, 1, seed=3)[:, 0]
    losses = np.clip(0.5 + 0.05 * x, 0.01, 0.99)
    found = vx.compare(
        np.zeros(n, int),
        {"a": losses, "b": np.full(n, 0.5)},
        rule="brier",
        time_ordered=True,
        method=method,
        season=season,
        bootstrap=200,
        **more,
    )
    return found, found.difference("a", "b")


@pytest.mark.parametrize("method", ["moments", "bootstrap", "permutation"])
@pytest.mark.parametrize("season", [None, 24])
def test_a_comparison_says_how_rows_repeat(method, season):
    found, difference = compared(1000, season, method)
    assert "brier, a - b: rows repeat about every 24; 41 whole seasons are the units." in found.notes
    assert difference.interval.defined
    assert ("a season of 24" in found.method) == (season is not None)
    found, difference = compared(480, season, method)
    assert difference.interval.caution == "rows repeat about every 24: only 20 whole seasons"
    assert any("only 20 whole seasons; p-values may be too small" in note for note in found.notes)
    found, difference = compared(200, season, method)
    assert math.isnan(difference.p_value)
    assert not difference.interval.defined
    assert any("only 8 whole seasons, too few for a claim." in note for note in found.notes)
    assert "significantly better" not in found.verdict


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"season": 334},
            "at most a third of the 1,000 rows: fewer whole seasons support no claim; it is 334",
        ),
        ({"season": 1}, "season"),
        ({"season": 24, "lags": 3}, "cannot be used with `lags`"),
        ({"season": 24, "time_ordered": False}, "must be left out unless rows are in order of time"),
    ],
)
def test_seasons_that_support_no_claim_are_refused(options, message):
    y, p = np.zeros(1000, int), np.full(1000, 0.4)
    with pytest.raises(vx.InputError, match=message):
        vx.compare(y, {"a": p, "b": p / 2}, rule="brier", **{"time_ordered": True, **options})


def test_a_stated_number_of_lags_ends_the_search():
    found, difference = compared(1000, None, lags=2)
    assert not any("rows repeat" in note for note in found.notes)
    assert difference.freedom == 200
