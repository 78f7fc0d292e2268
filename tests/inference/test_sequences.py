"""Confidence sequences: right at all times at once, and not for ever undecided."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import verax as vx
from cases import forecasts

RUNS = 60
# Looks at these numbers of rows: dense where the interval moves fast.
LOOKS = np.unique(np.geomspace(2, 2000, 16).astype(int))
# Three standard errors of a share of RUNS above the level.
ALLOWED = RUNS * 0.05 + 3 * math.sqrt(RUNS * 0.05 * 0.95)


def noisy_forecasts(rng, shape):
    """Binary outcomes and two forecasters: the truth with noise 0.1 and with noise 0.25."""
    q = rng.random(shape)
    y = rng.random(shape) < q
    a, b = (np.clip(q + noise * rng.normal(size=shape), 0, 1) for noise in (0.1, 0.25))
    return y, a, b


def brier_differences(y, a, b):
    return 2 * (a - y) ** 2 - 2 * (b - y) ** 2


def ever_wrong(sequence, d, target):
    """Whether the interval misses the target at any look, for one run."""
    wrong, last = False, 0
    for n in LOOKS:
        low, high = sequence.update_differences(d[last:n])
        wrong |= not low <= target[n - 1] <= high
        last = n
    return wrong


# ---- validity: the share of runs in which the interval ever misses -----------------------------


def rare_jumps(rng, n):
    """Differences of 0.01, and of -2 with probability 0.005: the mean is -0.00005 from zero."""
    d = np.where(rng.random(n) < 0.005, -2.0, 0.01)
    return d, np.full(n, 0.01 * 0.995 - 2 * 0.005)


def drift(rng, n):
    """An expected difference that changes sign again and again."""
    mean = 0.5 * np.sign(np.sin(np.sqrt(np.arange(1, n + 1.0))))
    d = np.where(rng.random(n) < (mean + 2) / 4, 2.0, -2.0)
    return d, np.cumsum(mean) / np.arange(1, n + 1)


def equal_forecasters(rng, n):
    y = rng.random(n) < 0.5
    a, b = np.clip(0.5 + 0.15 * rng.normal(size=(2, n)), 0, 1)
    return brier_differences(y, a, b), np.zeros(n)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("source", [equal_forecasters, rare_jumps, drift])
def test_the_interval_is_hardly_ever_wrong_at_any_time(source):
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(RUNS):
        d, target = source(rng, LOOKS[-1])
        wrong += ever_wrong(vx.ConfidenceSequence("brier", n_classes=2), d, target)
    assert wrong <= ALLOWED


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("df", [2.5, 30])
def test_unbounded_differences_of_known_scale(df):
    # Student's t with few degrees of freedom has heavy tails; its root mean square is known.
    rng, scale = np.random.default_rng(0), math.sqrt(df / (df - 2))
    wrong = 0
    for _ in range(RUNS):
        sequence = vx.ConfidenceSequence("log_score", n_classes=3, scale=scale)
        wrong += ever_wrong(sequence, rng.standard_t(df, LOOKS[-1]), np.zeros(LOOKS[-1]))
    assert wrong <= ALLOWED


@pytest.mark.long
@pytest.mark.slow
def test_a_stationary_sequence_intersects_and_stays_valid():
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(RUNS):
        d, target = equal_forecasters(rng, LOOKS[-1])
        wrong += ever_wrong(vx.ConfidenceSequence("brier", n_classes=2, stationary=True), d, target)
    assert wrong <= ALLOWED


def test_looking_at_an_ordinary_interval_again_and_again():
    rng = np.random.default_rng(0)
    d = brier_differences(
        rng.random((200, 1500)) < 0.5, *np.clip(0.5 + rng.normal(size=(2, 200, 1500)), 0, 1)
    )
    n = np.arange(20, 1501)
    mean = np.cumsum(d, axis=1)[:, 19:] / n
    half = 1.96 * np.sqrt(np.cumsum(d**2, axis=1)[:, 19:] / n - mean**2) / np.sqrt(n)
    assert (np.abs(mean) > half).any(axis=1).mean() > 0.15


# ---- power -------------------------------------------------------------------------------------


def rows_until_decided(sequence, d, step=10):
    for start in range(0, len(d), step):
        sequence.update_differences(d[start : start + step])
        if sequence.decided:
            return sequence.n_rows
    return math.inf


@pytest.mark.long
@pytest.mark.slow
def test_it_needs_about_as_many_rows_as_a_fixed_sample():
    # A t test at 5 % has power 80 % with 256 rows; the stitched bound of Howard et al. takes 1,400.
    d = brier_differences(*noisy_forecasts(np.random.default_rng(0), (100, 2000)))
    effect = abs(d.mean()) / d.std()
    assert ((1.96 + 0.842) / effect) ** 2 == pytest.approx(256, rel=0.03)
    rows = [rows_until_decided(vx.ConfidenceSequence("brier", n_classes=2), run) for run in d[:40]]
    assert np.median(rows) < 300


@pytest.mark.slow
def test_the_scale_of_unbounded_differences_decides_how_fast():
    d = np.random.default_rng(0).normal(-0.2, 1.0, (9, 4000))
    tight, loose = (
        np.median(
            [rows_until_decided(vx.ConfidenceSequence("log_score", n_classes=2, scale=s), x, 50) for x in d]
        )
        for s in (1.02, 3.0)
    )
    # A t test has power 80 % with 196 rows.
    assert tight < 500 < loose < 4000


def test_it_decides_when_there_is_something_to_decide():
    rng = np.random.default_rng(0)
    sequence = vx.ConfidenceSequence("brier", n_classes=2)
    assert not sequence.decided
    widths = []
    for _ in range(30):
        y = (rng.random(100) < 0.9).astype(int)
        low, high = sequence.update(y, np.full(100, 0.9), np.full(100, 0.5))
        widths.append(high - low)
    assert sequence.decided
    assert sequence.interval[1] < 0
    assert widths[-1] < 0.25 * widths[0]
    assert "at all times" in repr(sequence)


# ---- the interval ------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [None, 0.7])
def test_the_ends_have_the_capital_that_excludes(scale):
    d = np.random.default_rng(0).uniform(-0.9, 1, 50)
    sequence = vx.ConfidenceSequence("rps", n_classes=3, scale=scale)
    interval = sequence.update_differences(d)
    stakes = 0.98 * 2.0 ** (-np.arange(40) / 2) / (scale or 1)
    shares = (np.arange(40) + 2.0) ** -1.5
    for sign, end in ((1, interval.low), (-1, interval.high)):
        s = sign * stakes[:, None]
        if scale is None:
            factors = (1 + s * d) / (1 + s * end)
        else:
            u = np.maximum(s * d, -1)
            factors = (1 + u + u**2 / 2) / (1 + s * end + (s * scale) ** 2 / 2)
        capital = shares @ factors.prod(axis=1) / shares.sum()
        assert capital == pytest.approx(2 / 0.05, rel=1e-8)


@pytest.mark.parametrize("scale", [None, 0.5])
def test_batches_do_not_matter(scale):
    y, a = forecasts(200, 3, ties=False)
    _, b = forecasts(200, 3, seed=1, ties=False)
    whole, bits = (vx.ConfidenceSequence("rps", n_classes=3, scale=scale) for _ in range(2))
    whole.update(y, a, b)
    for start in range(0, 200, 7):
        part = slice(start, start + 7)
        bits.update(y[part], a[part], b[part])
    assert bits.interval == pytest.approx(whole.interval, rel=1e-9)
    assert bits.difference == pytest.approx(vx.rps(y, a) - vx.rps(y, b))
    assert bits.n_rows == 200


def test_no_rows_change_nothing():
    sequence = vx.ConfidenceSequence("rps", n_classes=3)
    sequence.update_differences([0.5] * 20)
    before = sequence.interval
    assert sequence.update_differences(np.empty(0)) == before


def test_swapping_the_forecasters_mirrors_the_interval():
    d = np.random.default_rng(0).uniform(-1, 0.5, 80)
    one, other = (vx.ConfidenceSequence("rps", n_classes=3).update_differences(x) for x in (d, -d))
    assert other == pytest.approx((-one.high, -one.low), rel=1e-9)


def test_a_sequence_can_be_saved_and_goes_on():
    d = np.random.default_rng(0).uniform(-1, 1, 3000)
    for options in ({}, {"scale": 0.6, "stationary": True}):
        sequence = vx.ConfidenceSequence("rps", n_classes=3, **options)
        empty = len(pickle.dumps(sequence))
        sequence.update_differences(d[:1000])
        saved = pickle.loads(pickle.dumps(sequence))
        assert len(pickle.dumps(sequence)) < empty + 100
        assert saved.update_differences(d[1000:]) == sequence.update_differences(d[1000:])


def test_a_stationary_interval_never_widens_and_says_when_nothing_is_left():
    sequence = vx.ConfidenceSequence("rps", n_classes=3, stationary=True)
    first = sequence.update_differences([0.5, 0.6] * 50)
    assert first.low > 0
    second = sequence.update_differences([0.3] * 20)
    assert first.low <= second.low <= second.high <= first.high
    gone = sequence.update_differences([-0.5, -0.6] * 500)
    assert not gone.defined
    assert "has changed" in gone.caution
    assert not sequence.decided
    assert not sequence.update_differences([0.5] * 5000).defined
    # Without that assumption the interval follows the average.
    moving = vx.ConfidenceSequence("rps", n_classes=3)
    assert moving.update_differences([0.5, 0.6] * 50).low > 0
    assert moving.update_differences([-0.5, -0.6] * 500).high < 0


def test_differences_that_contradict_the_scale_leave_nothing():
    sequence = vx.ConfidenceSequence("log_score", n_classes=3, scale=0.1)
    assert not sequence.update_differences([3.0] * 100).defined


def test_log_scores_from_forecasts():
    y, a, b = noisy_forecasts(np.random.default_rng(0), 3000)
    sequence = vx.ConfidenceSequence("log_score", n_classes=2, scale=1.0)
    interval = sequence.update(y.astype(int), 0.01 + 0.98 * a, 0.01 + 0.98 * b)
    assert interval.high < 0
    with pytest.raises(vx.InputError) as caught:
        sequence.update([1, 1], [0.5, 0.0], [0.5, 0.5])
    assert (caught.value.argument, caught.value.rows) == ("differences", (1,))
    assert sequence.n_rows == 3000


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["log_score", "ranked_log", "pll"])
def test_an_unbounded_rule_needs_a_scale(rule):
    with pytest.raises(vx.InputError) as caught:
        vx.ConfidenceSequence(rule, n_classes=3)
    assert (caught.value.argument, caught.value.kind) == ("scale", "missing")
    assert caught.value.remedies[0].options == {"scale": ...}
    assert vx.ConfidenceSequence(rule, n_classes=3, scale=2).interval == (-2, 2)


@pytest.mark.parametrize("scale", [0, -1, np.inf, np.nan, "a", [1.0], True])
def test_what_is_no_scale(scale):
    with pytest.raises(vx.InputError) as caught:
        vx.ConfidenceSequence("log_score", n_classes=3, scale=scale)
    assert caught.value.argument == "scale"


def test_refusals():
    with pytest.raises(vx.InputError) as caught:
        vx.ConfidenceSequence("brier", n_classes=3, confidence=95)
    assert caught.value.argument == "confidence"
    with pytest.raises(vx.InputError) as caught:
        vx.ConfidenceSequence("brier", n_classes=3, stationary="no")
    assert caught.value.argument == "stationary"
    sequence = vx.ConfidenceSequence("brier", n_classes=3)
    for bad in ([np.nan], [[0.1]], [2.5], ["a"], None, 0.5):
        with pytest.raises(vx.InputError) as caught:
            sequence.update_differences(bad)
        assert caught.value.argument == "differences"
    for n_classes in (0, 1, -3, 2.5, "3", None, 2**901):
        with pytest.raises(vx.InputError) as caught:
            vx.ConfidenceSequence("brier", n_classes=n_classes)
        assert caught.value.argument == "n_classes"
    with pytest.raises(vx.InputError) as caught:
        sequence.update([0], [[0.5, 0.25, 0.25]], [[0.5, 0.5]])
    assert (caught.value.argument, caught.value.kind) == ("b", "length")
    assert sequence.interval == (-2, 2)
    assert sequence.interval.method == "confidence sequence"
    assert math.isnan(sequence.difference)
