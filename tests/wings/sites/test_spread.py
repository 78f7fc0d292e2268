"""Published meta-analyses, equations by brute force, and simulated sites."""

import math

import numpy as np
import pytest
from scipy import stats

from verax.wings.sites.spread import NextSite, SiteCounts, SiteSpread, squared_spread_at

# Vaccination against tuberculosis: cases and others among vaccinated and among controls (Colditz 1994).
BCG = np.array(
    [
        *((4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619)),
        *((33, 5036, 47, 5761), (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892)),
        *((29, 7470, 45, 7232), (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338)),
        (27, 16886, 29, 17825),
    ],
    float,
)
# Length of stay in two kinds of care: number, mean and standard deviation of each (Normand 1999).
STAYS = np.array(
    [
        *((155, 55, 47, 156, 75, 64), (31, 27, 7, 32, 29, 4), (75, 64, 17, 71, 119, 29)),
        *((18, 66, 20, 18, 137, 48), (8, 14, 8, 13, 18, 11), (57, 19, 7, 52, 18, 4)),
        *((34, 52, 45, 33, 41, 34), (110, 21, 16, 183, 31, 27), (60, 30, 27, 52, 23, 20)),
    ],
    float,
)
# EuroSCORE II in 23 studies: patients, deaths, expected deaths, c-statistic, and what is known of its error
# (Guida 2014): a standard error, the ends of a 95 % interval, or nothing.
STUDIES = [
    (5553, 232, 222.0, 0.8095, (0.782, 0.836)),
    (1027, 28, 46.0, 0.867, (0.798, 0.936)),
    (1090, 41, 34.0, 0.81, (0.74, 0.88)),
    (5576, 191, 261.0, 0.79, 0.01),
    (23740, 746, 809.59, 0.808, 0.008),
    (3798, 215, 171.0, 0.85, 0.01),
    (428, 34, 7.0, 0.72, 0.051),
    (15497, 547, 387.0, 0.818, 0.007),
    (933, 90, 105.0, 0.67, None),
    (11170, 226, 290.0, 0.72, 0.015),
    (498, 8, 10.0, 0.72, None),
    (2004, 76, 74.0, 0.84, None),
    (216, 14, 9.0, 0.77, 0.067),
    (1066, 45, 34.0, 0.72, 0.034),
    (314, 18, 7.0, 0.77, 0.061),
    (818, 13, 21.0, 0.642, 0.071),
    (461, 33, 34.0, 0.7697, None),
    (12201, 210, 305.0, 0.8, 0.015),
    (1670, 125, 104.0, 0.82, 0.02),
    (6191, 300, 272.0, 0.83, 0.012),
    (250, 9, 4.0, 0.76, 0.056),
    (503, 21, 16.0, 0.856, 0.033),
    (50588, 1071, 1568.0, 0.77, 0.01),
]


def log_odds(p):
    return math.log(p / (1 - p))


def euroscore():
    """Log odds of the c-statistics, and their variances; without an error, by Newcombe's fourth method."""
    y, v = [], []
    for n, m, _, c, known in STUDIES:
        if isinstance(known, tuple):
            error = (log_odds(known[1]) - log_odds(known[0])) / (2 * stats.norm.ppf(0.975))
        else:
            if known is None:
                others = n - m
                star = n / 2 - 1
                known = math.sqrt(
                    c * (1 - c) * (1 + star * (1 - c) / (2 - c) + star * c / (1 + c)) / (m * others)
                )
            error = known / (c * (1 - c))
        y.append(log_odds(c))
        v.append(error**2)
    return np.array(y), np.array(v)


def test_vaccination():
    a, b, c, d = BCG.T
    y, v = np.log(a / (a + b) * (c + d) / c), 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)
    found = SiteSpread.of(y, v, 0.95)
    assert found.tau**2 == pytest.approx(0.3132, abs=5e-5)
    assert found.mean == pytest.approx(-0.7145, abs=5e-5)
    assert found.q == pytest.approx(152.2330, abs=5e-5)
    assert found.i_squared == pytest.approx(0.9222, abs=5e-5)
    # The estimate of Paule and Mandel, and the Q profile of the odds ratio.
    assert squared_spread_at(y, v, 12.0)[0] == pytest.approx(0.3181, abs=5e-5)
    of_odds = SiteSpread.of(np.log(a / b * d / c), 1 / a + 1 / b + 1 / c + 1 / d, 0.95)
    assert np.square(of_odds.of_tau) == pytest.approx([0.130, 1.181], abs=5e-4)


def test_lengths_of_stay():
    n, mean, sd, m, other, of_other = STAYS.T
    pooled = ((n - 1) * sd**2 + (m - 1) * of_other**2) / (n + m - 2)
    found = SiteSpread.of(mean - other, pooled * (1 / n + 1 / m), 0.95)
    assert (found.mean, found.tau**2) == pytest.approx((-15.1217, 685.1965), abs=5e-5)


def test_discrimination_of_euroscore():
    y, v = euroscore()
    found = SiteSpread.of(y, v, 0.95)
    w = 1 / (v + found.tau**2)
    k, error = len(y), math.sqrt(w @ (y - found.mean) ** 2 / (len(y) - 1) / w.sum())

    def ends(reach):
        return [1 / (1 + math.exp(-(found.mean + side * reach))) for side in (-1, 0, 1)]

    # What is published has the error of Hartung and Knapp where it is less than that of the weights, too.
    usual = ends(stats.t.ppf(0.975, k - 1) * error)
    assert usual == pytest.approx((0.7648784, 0.7888603, 0.8110005), abs=1e-6)
    assert found.interval.low < log_odds(usual[0]) < log_odds(usual[2]) < found.interval.high
    # The prediction interval of Higgins with k - 2 degrees of freedom.
    predicted = ends(stats.t.ppf(0.975, k - 2) * math.hypot(found.tau, error))
    assert predicted[::2] == pytest.approx((0.6792568, 0.8682736), abs=1e-6)
    low, high = (1 / (1 + math.exp(-x)) for x in NextSite.of_next(y, v).interval(0.95))
    assert (low, high) == pytest.approx((0.675, 0.870), abs=5e-4)


def test_calibration_of_euroscore():
    n, observed, expected, *_ = (
        np.array(column, float) for column in zip(*(s[:3] for s in STUDIES), strict=True)
    )
    counts = SiteCounts(observed, expected, n)
    y, v = counts.log_ratios()
    found = SiteSpread.of(y, v, 0.95)
    assert math.exp(found.mean) == pytest.approx(1.09, abs=0.005)
    assert found.tau == pytest.approx(0.41, abs=0.005)
    assert np.exp(NextSite.of_next(y, v).interval(0.95)) == pytest.approx((0.434, 2.755), abs=2e-3)
    # One study stands out: 34 deaths, of which seven were expected.
    p = np.array([counts.surprise(i) for i in range(len(n))])
    assert int(p.argmin()) == 6
    assert p.min() == pytest.approx(0.0003, abs=5e-5)
    assert np.sort(p)[1] > 0.0025


@pytest.mark.parametrize("k", [3, 5, 30])
def test_the_spread_solves_its_equation(k):
    rng = np.random.default_rng(k)
    y, v = rng.normal(0, 0.4, k), rng.lognormal(-3, 1, k)
    wanted = np.array([1e-6, 0.1, k - 1.0, 5.0 * k])
    squared = squared_spread_at(y, v, wanted)
    for goal, tau in zip(wanted, squared, strict=True):
        w = 1 / (v + tau)
        q = float(w @ (y - w @ y / w.sum()) ** 2)
        assert q == pytest.approx(goal, rel=1e-9) if tau > 0 else q <= goal


def test_the_next_site_is_a_mixture_of_normals():
    y, v = np.array([0.1, -0.2, 0.4, 0.0]), np.array([0.02, 0.03, 0.05, 0.01])
    mixture = NextSite.of_next(y, v, nodes=50)
    rng = np.random.default_rng(0)
    at = rng.integers(50, size=400_000)
    draws = rng.normal(mixture.means[at], mixture.sds[at])
    assert mixture.interval(0.8) == pytest.approx(np.quantile(draws, [0.1, 0.9]), abs=0.01)
    assert mixture.share_below(0.2) == pytest.approx((draws < 0.2).mean(), abs=4e-3)
    wider = mixture.noisier(0.09)
    assert wider.quantile(0.975) > mixture.quantile(0.975)


def test_sites_without_events_have_estimates():
    counts = SiteCounts(np.array([0.0, 30.0, 25.0, 28.0]), np.full(4, 25.0), np.full(4, 300.0))
    y, v = counts.log_ratios()
    assert np.isfinite([y, v]).all()
    assert counts.surprise(0) < 0.01 < counts.surprise(1)


def test_the_interval_covers_and_the_usual_one_does_not():
    """Six sites, 60 events each, a standard deviation of 0.3 between them: 95 ± 1.3 % (300 samples)."""
    rng = np.random.default_rng(5)
    k, events, rows, tau = 6, 60.0, 400.0, 0.3
    inside, narrow = 0, 0
    for _ in range(300):
        theta = rng.normal(0, tau, k + 1)
        observed = rng.binomial(int(rows), np.minimum(0.9, events / rows * np.exp(theta[:k]))).astype(float)
        counts = SiteCounts(observed, np.full(k, events), np.full(k, rows))
        y, v = counts.log_ratios()
        low, high = NextSite.of_next(y, v, nodes=100).interval(0.95)
        inside += low <= theta[k] <= high
        mean = SiteSpread.of(y, v, 0.95).interval
        narrow += mean.low <= theta[k] <= mean.high
    assert 0.91 < inside / 300 < 0.99
    assert narrow / 300 < 0.8
