"""The range of the coverage among new rows: against formulas written out, and by simulation."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import beta, kurtosis, norm, t

import verax as vx
from scattered import Scattered

RNG = np.random.default_rng(21)


def cases(n, rng=RNG):
    p = rng.dirichlet(np.ones(3), n)
    return (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1), p


Y, P = cases(400)
S = 1 - P[np.arange(400), Y]


def test_rows_of_equal_weight_follow_the_law_of_an_order_statistic():
    for level in (0.5, 0.8, 0.9):
        found = vx.conformal(Y, P, level=level)
        k = math.ceil(401 * level - 1e-9)
        assert found.expected_coverage == pytest.approx(beta.ppf([0.025, 0.975], k, 401 - k), rel=1e-9)
        assert (found.range.effective, found.range.tied, found.range.caution) == (400, False, "")
    assert vx.conformal(Y, P, weights=np.full(400, 3.0)).range == vx.conformal(Y, P).range
    more = vx.conformal(np.append(Y, Y[:9]), np.vstack([P, P[:9]]), weights=np.arange(409) < 400)
    assert more.range == vx.conformal(Y, P).range
    assert "worth" not in repr(found)


def test_weights_change_how_many_rows_the_sample_is_worth():
    w = np.random.default_rng(0).lognormal(0, 0.8, 400)
    found = vx.conformal(Y, P, weights=w, level=0.8)
    inside = found.threshold >= S
    share = w[inside].sum() / w.sum()
    sandwich = (w**2 * (inside - share) ** 2).sum() / w.sum() ** 2
    worth = share * (1 - share) / sandwich
    out = w[~inside]
    m = out.sum() ** 2 / (out**2).sum()
    worth = 1 / (m / (m + 10) / worth + 10 / (m + 10) / min(w.sum() ** 2 / (w**2).sum(), worth))
    worth /= 1 + 4 * (1 - m / len(out)) / m
    assert found.range.effective == pytest.approx(worth, rel=1e-9)
    a = 0.8 * 401 / 400 * worth
    assert found.expected_coverage == pytest.approx(beta.ppf([0.025, 0.975], a, worth + 1 - a), rel=1e-9)
    assert f"worth {worth:,.0f} independent ones" in repr(found)
    few = vx.conformal(Y[:60], P[:60], weights=w[:60])
    assert "rows in effect" in few.range.caution
    assert f"Caution: {few.range.caution}." in repr(few)


def test_groups_have_students_quantile():
    codes = np.random.default_rng(1).integers(0, 40, 400)
    found = vx.conformal(Y, P, groups=codes, level=0.8)
    inside = found.threshold >= S
    shares = np.array([inside[codes == g].mean() for g in range(40)])
    share = shares.mean()
    worth = share * (1 - share) / (shares.var(ddof=1) / 40)
    df = max(2, min(39, 80 / (kurtosis(shares, fisher=False) - 1 + 2 / 40)))
    worth *= (norm.ppf(0.025) / t.ppf(0.025, df)) ** 2
    assert found.range.effective == pytest.approx(worth, rel=1e-9)
    a = 0.8 * 41 / 40 * worth
    assert found.expected_coverage == pytest.approx(beta.ppf([0.025, 0.975], a, worth + 1 - a), rel=1e-9)
    assert found.range.caution == ""
    assert vx.conformal(Y, P, groups=codes % 20, level=0.8).range.caution == "the range rests on 20 groups"
    # Groups of one row are rows.
    assert vx.conformal(Y, P, groups=np.arange(400)).range == vx.conformal(Y, P).range


def test_ties_have_the_upper_limit_of_clopper_and_pearson():
    p = np.round(P * 8) / 8
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    kept = p.min(axis=1) >= 0
    y, p = Y[kept], p[kept]
    found = vx.conformal(y, p)
    n, at = len(y), int((1 - p[np.arange(len(y)), y] <= found.threshold + 1e-9).sum())
    k = math.ceil((n + 1) * 0.9)
    assert found.range.tied
    assert found.range.low == pytest.approx(beta.ppf(0.025, k, n + 1 - k))
    assert found.range.high == pytest.approx(beta.ppf(0.975, at + 1, n - at))
    assert f"a coverage of at least {found.range.low:.1%}, and at most {found.range.high:.1%}" in str(
        found.verdict
    )


@pytest.mark.parametrize("kind", ["", "weights", "groups"])
def test_rows_elsewhere_and_files_have_the_same_range(kind, tmp_path):
    import pandas as pd

    of = {
        "": {},
        "weights": {"weights": np.random.default_rng(2).random(400)},
        "groups": {"groups": np.arange(400) % 35},
    }[kind]
    found = vx.conformal(Y, P, **of).range
    names = {"weights": "w", "groups": "g"}
    table = pd.DataFrame(P, columns=["prob:0", "prob:1", "prob:2"]).assign(outcome=Y)
    reading = {name: names[name] for name in of}
    for name, column in of.items():
        table[names[name]] = column
    table.to_parquet(tmp_path / "rows.parquet")
    probs = ["prob:0", "prob:1", "prob:2"]
    scanned = vx.scan(tmp_path / "rows.parquet", target="outcome", probs=probs, classes=[0, 1, 2], **reading)
    others = [vx.conformal(scanned)]
    if kind != "groups":
        others.append(vx.conformal(Scattered(Y, P, **of)))
    for other in others:
        assert [other.range.low, other.range.high] == pytest.approx([found.low, found.high], rel=1e-9)
        assert (other.range.tied, other.range.caution) == (found.tied, found.caution)


def test_the_range_is_kept_and_what_0_3_saved_has_none(tmp_path):
    found = vx.conformal(Y, P, groups=np.arange(400) % 20)
    found.save(tmp_path / "sets.json")
    loaded = vx.results.Conformal.load(tmp_path / "sets.json")
    assert loaded.range == found.range
    assert repr(loaded) == repr(found)
    stored = json.loads((tmp_path / "sets.json").read_text())
    del stored["range"], stored["checksum"]
    stored |= {"version": 1, "verax": "0.3.0"}
    (tmp_path / "old.json").write_text(json.dumps(stored))
    old = vx.results.Conformal.load(tmp_path / "old.json")
    assert old.range is None
    assert old.expected_coverage == (0.0, 1.0)
    assert "95% of such samples" not in repr(old)
    for spoiled in ({"low": 0.9, "high": 0.8}, {"effective": 0}, {"tied": 1}, {"caution": None}):
        stored["range"] = {**found.range.to_dict(), **spoiled}
        (tmp_path / "bad.json").write_text(json.dumps(stored))
        with pytest.raises(vx.InputError):
            vx.results.Conformal.load(tmp_path / "bad.json")


def scored(s):
    """Outcomes and forecasts of two classes whose nonconformity is s."""
    return np.zeros(len(s), int), np.column_stack([1 - s, s])


@pytest.mark.parametrize("design", ["equal", "weights", "ties", "groups"])
def test_the_coverage_lies_in_the_range(design):
    """300 samples; the Monte Carlo error of 95 % is 1.3 points."""
    rng, inside, outside_before = np.random.default_rng(9), [], []
    for _ in range(300):
        options = {}
        if design == "groups":
            effect = rng.normal(0, 0.35, 50)[np.arange(500) % 50]
            s = norm.cdf((effect + rng.normal(0, 1, 500)) / math.hypot(1, 0.35))
            options = {"groups": np.arange(500) % 50}
        else:
            s = rng.random(500)
        if design == "ties":
            s = np.round(s, 1) * 0.9 + 0.02
        if design == "weights":
            options = {"weights": rng.lognormal(0, 1, 500)}
        found = vx.conformal(*scored(s), level=0.85, **options)
        # Scores are uniform in the population, before they are rounded; weights are unrelated to them.
        covered = found.threshold
        if design == "ties":
            covered = min(1.0, round((found.threshold - 0.02) / 0.9, 1) + 0.05)
        inside.append(found.range.low <= covered <= found.range.high)
        k = math.ceil(501 * 0.85)
        before = beta.ppf([0.025, 0.975], k, 501 - k)
        outside_before.append(not before[0] <= covered <= before[1])
    assert np.mean(inside) >= 0.92
    if design in ("weights", "ties"):
        assert np.mean(outside_before) > 0.1
