"""Sizes of validation studies: against published numbers, other integrals, and the widths that they reach."""

from __future__ import annotations

import json
import math
import shlex

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import beta, norm

import verax as vx
from commandline import verax

# The published examples round the normal quantile.
PUBLISHED = {"confidence": 2 * float(ndtr(1.96)) - 1}


def rows_of(plan):
    return {each.name: each.rows for each in plan.criteria}


# Riley et al. (2021) by pmvalsampsize, with 1e6 draws of the linear predictor where that one draws them: it
# finds 905 rows for O:E by steps of 1e-4, 510 likewise, 4,544 and 17,080 by draws, 5,604 likewise, and 1,388
# rows of net benefit from a standard error rounded to three digits.
@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        (
            {"prevalence": 0.018, "auc": 0.8, "spans": {"observed_to_expected": 1}},
            {"observed_to_expected": 906, "slope": 17129, "auc": 4252},
        ),
        ({"normal": (-5, 2.5), "spans": {"auc": None, "observed_to_expected": None}}, {"slope": 4554}),
        ({"beta": (0.5, 0.5), "spans": {"auc": None, "observed_to_expected": None}}, {"slope": 1644}),
        (
            {"beta": (1.33, 1.75), "prevalence": 0.43, "auc": 0.8},
            {"observed_to_expected": 511, "slope": 2135, "auc": 308},
        ),
        (
            {
                "normal": (-2.5, 1),
                "prevalence": 0.1,
                "auc": 0.75,
                "threshold": 0.1,
                "spans": {"observed_to_expected": 0.4},
            },
            {"observed_to_expected": 876, "slope": 5614, "auc": 1008, "net_benefit": 1392},
        ),
    ],
)
def test_published_examples(stated, wanted):
    assert rows_of(vx.plan_validation(**stated, **PUBLISHED)) == wanted


@pytest.mark.parametrize("threshold", [0.05, 0.3])
def test_stated_distributions_are_those_of_other_integrals(threshold):
    def mean(of, low=-30.0, high=30.0):
        return quad(lambda z: norm.pdf(z) * of(expit(-1.5 + 1.2 * z), -1.5 + 1.2 * z), low, high)[0]

    found = vx.plan_validation(normal=(-1.5, 1.2), threshold=threshold, spans={"in_the_large": 0.3})
    level, first, second = (mean(lambda p, z, k=k: p * (1 - p) * z**k) for k in (0, 1, 2))
    rate = mean(lambda p, z: p)
    at = (np.log(threshold / (1 - threshold)) + 1.5) / 1.2
    sensitivity = mean(lambda p, z: p, low=at) / rate
    specificity = mean(lambda p, z: 1 - p, high=at) / (1 - rate)
    assert found.prevalence == pytest.approx(rate, abs=1e-6)
    assert (found.sensitivity, found.specificity) == pytest.approx((sensitivity, specificity), abs=2e-4)
    z = norm.ppf(0.975)
    rows = rows_of(found)
    assert rows["in_the_large"] == math.ceil(1 / (level * (0.15 / z) ** 2))
    assert rows["slope"] == math.ceil(level / ((0.1 / z) ** 2 * (level * second - first**2)))
    odds = (1 - rate) / rate * threshold / (1 - threshold)
    variance = sensitivity * (1 - sensitivity) / rate + odds**2 * specificity * (1 - specificity) / (1 - rate)
    variance += odds**2 * (1 - specificity) ** 2 / (rate * (1 - rate))
    assert rows["net_benefit"] == pytest.approx(variance / (0.1 / z) ** 2, rel=2e-3, abs=1)
    assert found.auc == pytest.approx(auc_of_normal(-1.5, 1.2), abs=1e-4)


def auc_of_normal(mean, deviation):
    """The AUC of calibrated risks by draws of pairs."""
    logit = mean + deviation * norm.ppf((np.arange(4000) + 0.5) / 4000)
    p = expit(logit)
    right = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    weight = p[:, None] * (1 - p)
    return float((right * weight).sum() / weight.sum())


@pytest.mark.parametrize(("a", "b"), [(0.3, 4.0), (60.0, 900.0)])
def test_beta_distributions_far_from_even(a, b):
    found = vx.plan_validation(beta=(a, b), spans={"auc": None, "observed_to_expected": None})
    p = beta.ppf((np.arange(400_000) + 0.5) / 400_000, a, b)
    logit, spread = np.log(p) - np.log1p(-p), p * (1 - p)
    centred = logit - np.average(logit, weights=spread)
    wanted = 1 / (np.mean(spread * centred**2) * (0.1 / norm.ppf(0.975)) ** 2)
    assert found.rows == pytest.approx(wanted, rel=2e-4)
    assert found.prevalence == pytest.approx(a / (a + b), rel=1e-9)


def test_the_planned_rows_reach_the_widths():
    spans = {"observed_to_expected": None, "slope": 0.4, "auc": 0.1, "net_benefit": 0.3, "in_the_large": 0.4}
    plan = vx.plan_validation(normal=(-1.5, 1.2), threshold=0.2, spans=spans)
    rng = np.random.default_rng(0)

    def width(name, n):
        logit = rng.normal(-1.5, 1.2, n)
        y = (rng.random(n) < expit(logit)).astype(int)
        if name == "net_benefit":
            curve = vx.net_benefit(y, expit(logit), thresholds=[0.2], standardized=True).curves[0]
            return float(np.ptp(curve.interval))
        return float(np.ptp(list(vx.evaluate(y, expit(logit)).measures[name].interval)))

    for each in plan.criteria:
        widths = [width(each.name, int(each.rows)) for _ in range(30 if each.name == "net_benefit" else 6)]
        assert np.mean(widths) == pytest.approx(each.span, rel=0.1), each.name


RNG = np.random.default_rng(3)
LOGIT = RNG.normal(-1.5, 1.2, 300)
P = expit(LOGIT)
Y = (RNG.random(300) < P).astype(int)


def test_a_pilot_gives_its_forecasts_prevalence_and_ranking():
    found = vx.plan_validation(Y, P, threshold=0.2)
    assert found.prevalence == pytest.approx(Y.mean())
    assert found.auc == pytest.approx(vx.roc_auc(Y, P).value)
    spread = P * (1 - P)
    centred = LOGIT - np.average(LOGIT, weights=spread)
    assert rows_of(found)["slope"] == math.ceil(
        1 / (np.mean(spread * centred**2) * (0.1 / norm.ppf(0.975)) ** 2)
    )
    assert found.sensitivity == pytest.approx(P[P >= 0.2].sum() / P.sum())
    for each in found.criteria:
        assert each.rows_low < each.rows < each.rows_high
    assert f"{found.rows:,.0f} rows" in found.verdict
    assert found.verdict.next_step.text == f"collect {found.rows - 300:,.0f} more rows"
    assert "events" in repr(found)


def test_the_range_holds_what_pilots_leave_open():
    true = rows_of(vx.plan_validation(normal=(-1.5, 1.2)))
    held = dict.fromkeys(true, 0)
    for i in range(60):
        rng = np.random.default_rng([8, i])
        p = expit(rng.normal(-1.5, 1.2, 400))
        found = vx.plan_validation((rng.random(400) < p).astype(int), p)
        for each in found.criteria:
            held[each.name] += each.rows_low <= true[each.name] <= each.rows_high
    # 60 samples of 95 %: below 51 with a probability of 0.1 %.
    assert min(held.values()) >= 51, held


def test_weights_count_as_rows_that_tell_as_much():
    twice = vx.plan_validation(np.r_[Y, Y], np.r_[P, P])
    weighted = vx.plan_validation(Y, P, weights=np.full(300, 2.0))
    assert rows_of(weighted) == rows_of(twice)
    wide, narrow = (found.criteria[0].rows_high - found.criteria[0].rows_low for found in (weighted, twice))
    assert wide > narrow
    uneven = vx.plan_validation(Y, P, weights=np.where(np.arange(300) < 20, 20.0, 1.0))
    assert uneven.n_events < 20
    assert "only" in uneven.notes[1]


def test_forecasts_of_zero_and_one_tell_nothing_of_the_slope():
    with_certain = vx.plan_validation(np.r_[Y, 0, 1], np.r_[P, 0.0, 1.0], spans={"auc": None})
    rows = rows_of(vx.plan_validation(Y, P, spans={"auc": None}))
    assert rows_of(with_certain)["slope"] == pytest.approx(rows["slope"] * 302 / 300, abs=1)


def test_forecasts_that_are_all_alike_have_no_slope():
    found = vx.plan_validation([0, 1, 0, 0], [0.25] * 4, spans={"auc": None})
    assert found.rows == math.inf
    assert "no number of rows" in found.verdict
    assert found.verdict.next_step is None


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "`prevalence` must be given"),
        ((), {"prevalence": 0.1}, "`auc` must be given"),
        ((), {"prevalence": 0.1, "auc": 0.4}, "`auc` must be above 0.5"),
        ((), {"prevalence": 1.0, "auc": 0.7}, "`prevalence` must lie between 0 and 1"),
        ((), {"normal": (0, 1), "beta": (1, 1)}, "cannot be combined with `beta`"),
        ((), {"normal": (0, 0)}, "a positive standard deviation"),
        ((), {"normal": 3}, "must be two numbers"),
        ((), {"normal": (0, math.inf)}, "finite numbers"),
        ((), {"beta": (0, 1)}, "positive parameters"),
        ((), {"normal": (0, 1), "spans": {"slop": 1}}, "Did you mean 'slope'"),
        ((), {"normal": (0, 1), "spans": {"slope": 0}}, "positive widths"),
        ((), {"normal": (0, 1), "spans": {"net_benefit": 0.1}}, "`threshold` must be given"),
        (
            (),
            {"normal": (0, 1), "spans": {"observed_to_expected": None, "slope": None, "auc": None}},
            "must leave a criterion",
        ),
        ((), {"normal": (0, 1), "threshold": 0}, "`threshold` must lie between"),
        ((Y, P), {"beta": (1, 1)}, "cannot be combined with a pilot"),
        ((Y, P), {"threshold": 0.9999}, "must be reached by some forecasts"),
        ((np.zeros(300, int), P), {}, "rows with and without the event"),
        ((np.arange(300) % 3, np.full((300, 3), 1 / 3)), {}, "must have two classes"),
        ((Y, np.where(np.arange(300) == 5, np.nan, P)), {}, "row 5"),
        ((Y, P), {"weights": np.zeros(300)}, "`weights`"),
        ((Y, P), {"confidence": 1.5}, "`confidence`"),
    ],
)
def test_bad_input_is_refused(arguments, options, message):
    with pytest.raises(vx.InputError, match=message):
        vx.plan_validation(*arguments, **options)


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    path = tmp_path_factory.mktemp("validation") / "pilot.csv"
    pd.DataFrame({"y": Y, "p": P, "site": np.arange(300) // 10}).to_csv(path, index=False)
    return path


def test_the_command_says_what_the_library_says(pilot):
    line = "--validate --threshold 0.2 --spans slope=0.3,auc=none --json"
    found = json.loads(verax("plan", pilot, *shlex.split(line)).stdout)["validation"]
    wanted = vx.plan_validation(vx.scan(pilot), threshold=0.2, spans={"slope": 0.3, "auc": None})
    assert found == json.loads(json.dumps(wanted.to_dict(stored=False)))
    stated = verax("plan", "--validate", "--normal=-2.5,1", "--prevalence", "0.1")
    assert str(vx.plan_validation(normal=(-2.5, 1), prevalence=0.1).verdict) in " ".join(
        stated.stdout.split()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--auc 0.8", "--auc is for --validate"),
        ("--validate --power 0.8 --auc 0.8", "--power cannot be combined with --validate"),
        ("PILOT --validate --groups site", "the groups cannot be combined with --validate"),
        ("--validate --normal=1", "--normal must be two numbers"),
        ("--validate --normal=1,x", "--normal must hold numbers"),
        ("--validate --beta=1,1 --spans slope=wide", "--spans must hold numbers"),
        ("--validate --auc 0.8", "--prevalence must be given"),
    ],
)
def test_the_command_refuses_in_one_line(arguments, message, pilot):
    done = verax("plan", *(pilot if word == "PILOT" else word for word in shlex.split(arguments)))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
