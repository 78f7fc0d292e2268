"""Weights: what they mean for intervals and p-values, and whether the intervals cover."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

import verax as vx
from verax.engines.differences import PairedTally
from verax.errors import InputError
from verax.inference.estimates import Estimate

WEIGHTS = {
    "lognormal": lambda rng, n: rng.lognormal(-0.5, 1, n),
    "integers from 1 to 5": lambda rng, n: rng.integers(1, 6, n).astype(float),
}


def sample(rng, n, k=3):
    """Outcomes that follow the forecasts."""
    p = rng.dirichlet(np.ones(k), n)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return np.minimum(y, k - 1), p


def lines(card):
    return {**card.scores, **card.metrics}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.floats(1e-6, 1e6), grouped=st.booleans())
def test_the_scale_of_weights_does_not_matter(seed, factor, grouped):
    rng = np.random.default_rng(seed)
    y, p = sample(rng, 40)
    w = rng.exponential(size=40) * rng.integers(0, 2, 40) + np.eye(40)[0] + np.eye(40)[1]
    options = {"ordered": True, "bootstrap": 50, "groups": np.arange(40) % 7 if grouped else None}
    a, b = (vx.evaluate(y, p, weights=weights, **options) for weights in (w, factor * w))
    for name, line in lines(a).items():
        assert lines(b)[name].mean == pytest.approx(line.mean, rel=1e-9)
        assert lines(b)[name].interval == pytest.approx(line.interval, rel=1e-6, abs=1e-9, nan_ok=True)
    models = {"a": p, "b": np.roll(p, 1, axis=1)}
    del options["ordered"], options["bootstrap"]
    a, b = (
        vx.compare(y, models, rule="brier", weights=weights, **options).difference("a", "b")
        for weights in (w, factor * w)
    )
    assert b.p_value == pytest.approx(a.p_value, rel=1e-6)
    assert b.interval == pytest.approx(a.interval, rel=1e-6, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), grouped=st.booleans())
def test_counts_are_repeated_rows(seed, grouped):
    rng = np.random.default_rng(seed)
    y, p = sample(rng, 40)
    w = rng.integers(0, 4, 40)
    w[:7] += 1
    groups = np.arange(40) % 7 if grouped else None
    repeated = np.repeat(np.arange(40), w)
    options = {"ordered": True, "bootstrap": 50}
    a = vx.evaluate(y, p, weights=w, groups=groups, weights_are="counts", **options)
    b = vx.evaluate(y[repeated], p[repeated], groups=None if groups is None else groups[repeated], **options)
    for name, line in lines(a).items():
        assert lines(b)[name].interval == pytest.approx(line.interval, rel=1e-9, abs=1e-12, nan_ok=True)


def test_the_interval_is_the_sandwich():
    rng = np.random.default_rng(0)
    y, p = sample(rng, 50)
    w = np.append(rng.exponential(size=48), [0, 0])
    loss = vx.brier.samples(y, p)
    mean = np.average(loss, weights=w)
    variance = (w**2 * (loss - mean) ** 2).sum() / w.sum() ** 2 * 48 / 47
    effective = w.sum() ** 2 / (w**2).sum()
    card = vx.evaluate(y, p, weights=w)
    from scipy.stats import gamma, norm, t

    # Gamma limits with the relative error of the sandwich, and its degrees of freedom.
    losses = mean**2 / variance * (norm.ppf(0.975) / t.ppf(0.975, effective - 1)) ** 2
    ends = mean / losses * gamma.ppf(0.025, losses), mean / losses * gamma.ppf(0.975, losses + 1)
    assert card.effective_rows == pytest.approx(effective)
    assert card.error_of(card.scores["brier"]) == pytest.approx((variance**0.5, effective - 1))
    assert card.scores["brier"].interval == pytest.approx(ends, rel=1e-9)
    model = vx.compare(y, {"a": p, "b": p[::-1]}, rule="brier", weights=w).models["brier"]
    assert next(m for m in model if m.name == "a").interval == pytest.approx(ends)


def test_large_tables_of_weighted_rows_agree_with_small_ones():
    """The compiled pass keeps the same squared weights as the array pass."""
    rng = np.random.default_rng(0)
    n = 2**18
    y, p = sample(rng, n)
    w = rng.exponential(size=n)
    whole = vx.evaluate(y, p, weights=w, ordered=True, bootstrap=20)
    parts = [vx.evaluate(y[i::64], p[i::64], weights=w[i::64], ordered=True, bootstrap=20) for i in range(64)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    for name, line in lines(whole).items():
        assert lines(merged)[name].interval == pytest.approx(line.interval, rel=1e-9)


def test_weighted_and_unweighted_parts_merge():
    rng = np.random.default_rng(0)
    y, p = sample(rng, 60)
    w = np.append(rng.exponential(size=30), np.ones(30))
    merged = vx.evaluate(y[:30], p[:30], weights=w[:30]).merge(vx.evaluate(y[30:], p[30:]))
    for name, line in lines(vx.evaluate(y, p, weights=w)).items():
        assert lines(merged)[name].interval == pytest.approx(line.interval, rel=1e-9, nan_ok=True)


def test_what_weights_can_be():
    y, p = sample(np.random.default_rng(0), 20)
    for call in (
        lambda: vx.evaluate(y, p, weights_are="copies"),
        lambda: vx.compare(y, {"a": p, "b": p}, rule="brier", weights_are="copies"),
        lambda: vx.retention(y, p, rule="brier", weights_are="copies"),
        lambda: vx.compare(y, {"a": p, "b": p}, rule="brier", method="bootstrap", weights_are="counts"),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert (caught.value.argument, caught.value.kind) == ("weights_are", "value")


def test_retention_draws_the_copies_of_counts():
    rng = np.random.default_rng(0)
    y, p = sample(rng, 100)
    w = np.full(100, 9)
    options = {"rule": "brier", "metric": vx.brier, "removed": [0, 0.1], "bootstrap": 300}
    importance = vx.retention(y, p, weights=w, **options).interval
    counts = vx.retention(y, p, weights=w, weights_are="counts", **options).interval
    ratio = (importance[1] - importance[0]) / (counts[1] - counts[0])
    assert ratio == pytest.approx(3, rel=0.25)


# ---- coverage ------------------------------------------------------------------------------------

N_RUNS, N_ROWS = 100, 200


@pytest.fixture(scope="module")
def truth():
    """Weights do not depend on the rows, so the truth is that of unweighted rows."""
    y, p = sample(np.random.default_rng(0), 200_000)
    return {name: line.mean for name, line in lines(vx.evaluate(y, p, ordered=True, bootstrap=2)).items()}


@pytest.mark.long
@pytest.mark.parametrize("kind", WEIGHTS)
def test_intervals_of_weighted_cards_cover(kind, truth):
    rng = np.random.default_rng(1)
    shown = ["brier", "log_score", "accuracy", "qwk", "ec"]
    covered = dict.fromkeys(shown, 0)
    for _ in range(N_RUNS):
        y, p = sample(rng, N_ROWS)
        card = vx.evaluate(
            y,
            p,
            rules=["brier", "log_score"],
            ordered=True,
            bootstrap=200,
            weights=WEIGHTS[kind](rng, N_ROWS),
        )
        for name in shown:
            low, high = lines(card)[name].interval
            covered[name] += low <= truth[name] <= high
    # 95 % of 100 runs has a standard error of two percent; `studies/coverage_weights.py` has more of them.
    for name, hits in covered.items():
        assert 0.9 <= hits / N_RUNS <= 0.99, (name, hits / N_RUNS)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weighted_comparisons_keep_their_level(kind):
    rng = np.random.default_rng(2)
    rejected = 0
    for _ in range(500):
        losses = rng.exponential(size=(100, 2))
        tally = PairedTally(2).update(losses, WEIGHTS[kind](rng, 100))
        rejected += Estimate(tally.means, *tally.standard_errors()).p_values()[2] < 0.05
    assert 0.025 <= rejected / 500 <= 0.075


def test_decompose_with_counts_is_that_of_the_repeated_rows():
    rng = np.random.default_rng(0)
    p, y, w = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80), rng.integers(0, 4, 80)
    options = {"rule": "rps", "bootstrap": 30}
    counted = vx.decompose(y, p, weights=w, weights_are="counts", **options)
    repeated = vx.decompose(np.repeat(y, w), np.repeat(p, w, axis=0), **options)
    assert counted.p_value == repeated.p_value
    for name, interval in repeated.intervals.items():
        assert counted.intervals[name] == pytest.approx(interval, rel=1e-9)
    importance = vx.decompose(y, p, weights=w, **options)
    assert importance.miscalibration == pytest.approx(counted.miscalibration, rel=1e-9)
    narrow, wide = counted.intervals["score"], importance.intervals["score"]
    assert narrow.high - narrow.low < wide.high - wide.low
    groups = np.arange(80) % 10
    grouped = [
        vx.decompose(y, p, weights=w, groups=groups, weights_are=kind, **options).intervals
        for kind in ("counts", "importance")
    ]
    assert grouped[0] == grouped[1]
    with pytest.raises(vx.InputError, match="whole numbers"):
        vx.decompose(y, p, weights=w + 0.5, weights_are="counts", **options)
    assert vx.decompose(y, p, weights=w + 0.5, weights_are="counts", rule="rps").intervals is None


def test_counts_may_be_large_because_no_row_is_repeated():
    """By Student's interval: squares of m copies of a row add up to m times as much, over m squared."""
    rng, m = np.random.default_rng(0), 1e9
    p, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    options = {"rule": "rps", "bootstrap": 30}
    once, often = (
        vx.decompose(y, p, weights=np.full(80, times), weights_are="counts", **options) for times in (1.0, m)
    )
    assert often.miscalibration == pytest.approx(once.miscalibration, rel=1e-9)
    widths = [np.diff(list(each.intervals["score"]))[0] for each in (once, often)]
    quantiles = t.ppf(0.975, [79, 80 * m - 1])
    expected = quantiles[1] / quantiles[0] * np.sqrt(79 / (80 * m - 1))
    assert widths[1] / widths[0] == pytest.approx(expected, rel=1e-6)
