"""Functions that read predictions part by part say what they say of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from scanned import alike
from scannedlists import OWN, in_memory
from scattered import Scattered, problem
from verax.inputs.memory import open_rows

KINDS = ["rows", "weights", "groups", "both"]


def case(kind, n=400, k=3, seed=0):
    """Outcomes, forecasts, and weights and groups as the kind says."""
    rng, y, p = problem(n, k, seed)
    weights = rng.integers(0, 4, len(y)) * 0.5 if kind in ("weights", "both") else None
    groups = rng.integers(0, 25, len(y)) if kind in ("groups", "both") else None
    return y, p, {"weights": weights, "groups": groups}


def list_case(kind):
    """The same of top lists."""
    y, models = in_memory()
    return y, models["a"], {name: v if kind in ("both", name) else None for name, v in OWN.items()}


def both(function, y, p, own, seed=0, **options):
    """What a function says of rows that are elsewhere, and of the same rows in memory."""
    found = function(Scattered(y, p, n_parts=6, seed=seed, **own), **options)
    return found, function(y, p, **own, **options)


def numbers(result):
    """What a result says but for its sentences, whose last digits are rounded."""
    return {name: v for name, v in result.to_dict().items() if name not in ("words", "comparability")}


def test_a_handle_in_memory_answers_one_question_after_the_other():
    y, p, own = case("weights", n=60)
    models = {"a": p, "b": p[:, ::-1]}
    handle, single = open_rows(y, models, **own), open_rows(y, p, **own)
    for i in range(6):
        rule = ("brier", "log_score", "rps")[i % 3]
        found, exact = vx.compare(handle, rule=rule), vx.compare(y, models, rule=rule, **own)
        alike(found.to_dict(stored=False), exact.to_dict(stored=False))
        lengths = {"k": [i % 3], "rule": "brier"}
        found, exact = vx.compare_lengths(single, **lengths), vx.compare_lengths(y, p, **lengths, **own)
        alike(numbers(found), numbers(exact))


def test_options_of_opened_rows_may_be_repeated_as_they_are_by_default():
    y, p, _ = case("rows", n=40)
    handle = open_rows(y, p)
    assert vx.evaluate(handle, normalize=False, logits=False).n_rows == 40
    with pytest.raises(vx.InputError, match="`normalize` must not be given beside predictions"):
        vx.evaluate(handle, normalize=True)


def test_what_compare_refuses_it_refuses_wherever_rows_are():
    y, p, _ = case("rows", n=40)
    models, same = {"a": p, "b": p[:, ::-1]}, {"groups": np.zeros(40, int)}
    for options, own in (
        ({"lags": 3}, {}),
        ({"reference": "c"}, {}),
        ({"reference": 3}, {}),
        ({"reference": "frequencies"}, same),
        ({}, same),
    ):
        errors = []
        for rows, read in (((y, models), own), ((Scattered(y, models, **own),), {})):
            with pytest.raises(vx.InputError) as caught:
                vx.compare(*rows, rule="brier", **options, **read)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


@pytest.mark.parametrize("lists", [False, True])
def test_lengths_of_rows_of_which_one_has_all_weight_have_no_intervals(lists):
    y, p, weights = np.array([0, 1, 1]), np.array([[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]]), np.array([0, 0, 2.0])
    given = vx.TopLists.from_probabilities(p, 1) if lists else p
    for rows in ((y, given), (Scattered(y, given, n_parts=2, weights=weights),)):
        found = vx.compare_lengths(*rows, **({"weights": weights} if len(rows) > 1 else {}))
        assert found["brier"] == pytest.approx([2.0] * len(found.predictions))
        assert found["log_score"] == pytest.approx([np.inf] * len(found.predictions))
        # Of weights with a mean of one, the last row has all: only ratios of weights matter.
        assert found.infinite["log_score"] == pytest.approx([3.0] * len(found.predictions))
        assert not found.difference("hard", found.predictions[-1], "brier").interval.defined
        assert "hard" in repr(found)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lists", [False, True])
def test_risk_is_that_of_the_rows(lists, kind):
    y, p, own = list_case(kind) if lists else case(kind)
    for options in ({"bootstrap": 10}, {"rule": "log_score", "by": "entropy"}):
        found, exact = both(vx.risk_coverage, y, p, own, **options)
        assert found.aurc_within == found.augrc_within == 0
        alike(found.to_dict(stored=False), exact.to_dict(stored=False))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lists", [False, True])
def test_risk_lies_within_its_bounds_of_that_of_the_rows(lists, kind, change):
    change(exact_up_to=0)
    y, p, own = list_case(kind) if lists else case(kind)
    more = {"rule": "brier"} if lists else {"rule": "rps", "by": "entropy"}
    for options in [{}, more, {"rule": "log_score"}, {} if lists else {"costs": "quadratic"}]:
        found, exact = both(vx.risk_coverage, y, p, own, **options)
        assert found.aurc == pytest.approx(exact.aurc, abs=found.aurc_within + 1e-12)
        assert found.augrc == pytest.approx(exact.augrc, abs=found.augrc_within + 1e-12)
        assert found.loss == exact.loss
        if not np.isfinite(exact.aurc):
            continue
        assert found.aurc_within < 0.05
        assert found.risk_at(1) == pytest.approx(exact.risk_at(1), rel=1e-12)
        # Bins end at rows, where the curve is exact.
        ends = found.coverage[:: max(1, len(found.coverage) // 7)]
        for end in ends:
            assert found.risk_at(end) == pytest.approx(exact.risk_at(end), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_risk_of_few_doubts_is_exact_and_has_the_intervals_of_the_rows(kind, change):
    change(exact_up_to=0)
    y, p, own = case(kind, n=900)
    p = np.round(p, 1)
    p[:, 0] = np.round(1 - p[:, 1:].sum(axis=1), 1)
    found, exact = both(vx.risk_coverage, y, p, own, bootstrap=100)
    if own["weights"] is None:
        assert found.aurc_within == found.augrc_within == 0
        for c in (0.01, 0.2, 0.55, 0.9, 1):
            assert found.risk_at(c) == pytest.approx(exact.risk_at(c), rel=1e-12)
        for r in (0.3, exact.risk_at(0.5), 0.6):
            assert found.coverage_at(r) == pytest.approx(exact.coverage_at(r), rel=1e-9, nan_ok=True)
    for name in ("aurc", "augrc"):
        assert getattr(found, name) == pytest.approx(
            getattr(exact, name), rel=1e-9 if kind == "rows" else 0.01
        )
        ours, true = (getattr(each, f"{name}_interval") for each in (found, exact))
        assert list(ours) == pytest.approx(list(true), abs=0.35 * (true.high - true.low))
    again = type(found).from_dict(found.to_dict())
    assert again.aurc == found.aurc
    assert "histogram" in repr(found)


FITS = {
    "recalibrate": lambda *rows, **own: vx.recalibrate(*rows, method="temperature", **own),
    "choose_thresholds": lambda *rows, **own: vx.choose_thresholds(*rows, bootstrap=20, **own),
    "fit_combination": lambda *rows, **own: vx.fit_combination(*rows, folds=3, **own),
}


@pytest.mark.parametrize("kind", ["rows", "both"])
@pytest.mark.parametrize("name", FITS)
def test_fits_are_those_of_a_sample_that_does_not_depend_on_the_parts(name, kind, change):
    y, p, own = case(kind, n=600)
    models = {"a": p, "b": problem(600, 3, 1)[2]} if name == "fit_combination" else p
    fit = FITS[name]
    found = [fit(Scattered(y, models, n_parts=n, seed=n, **own)) for n in (2, 7)]
    alike(found[0].to_dict(), found[1].to_dict())
    assert found[0].n_rows == 600
    assert found[0].sampled is None
    # All rows are in the sample.
    fitted = {
        "recalibrate": lambda result: result.trial("temperature").detail,
        "choose_thresholds": lambda result: {**result.to_dict(), "stored": None},
        "fit_combination": lambda result: [round(weight, 3) for weight in result.weights.values()],
    }[name]
    assert fitted(found[0]) == fitted(fit(y, models, **own))
    change(sampled_rows=200)
    some = fit(Scattered(y, models, **own))
    assert some.n_rows <= 200
    assert some.sampled == (some.n_rows, 600)
    assert "random sample" in repr(some)
    assert type(some).from_dict(some.to_dict()).sampled == (some.n_rows, 600)
    if name != "recalibrate":
        with pytest.raises(vx.InputError, match="probabilities of all classes"):
            fit(Scattered(*list_case("rows")[:2]))


RANKS = {
    "roc_auc": (vx.roc_auc, [{}, {"ordered": True}, {"average": "weighted"}]),
    "average_precision": (vx.average_precision, [{}, {"ordered": True}, {"average": "weighted"}]),
    "c_index": (vx.c_index, [{}, {"average": "classes"}]),
}


@pytest.mark.parametrize("name", RANKS)
def test_rankings_by_bins_lie_within_their_bounds(name, change):
    change(exact_up_to=100)
    function, every = RANKS[name]
    y, p, own = case("both", n=400)
    other = problem(400, 3, 1)[2]
    for options in every:
        found, exact = both(function, y, {"a": p, "b": 0.5 * p + 0.5 * other}, own, **options)
        for ours, true in zip(found.values(), exact.values(), strict=True):
            assert true.within == 0
            assert ours.value == pytest.approx(true.value, abs=ours.within + 1e-12)
            assert 0 < ours.within < 0.01
            width = true.interval.high - true.interval.low
            assert list(ours.interval) == pytest.approx(list(true.interval), abs=ours.within + 0.005 * width)
        (gap,), (exact_gap,) = found.differences, exact.differences
        assert list(gap.interval) == pytest.approx(list(exact_gap.interval), abs=0.003)


@pytest.mark.parametrize("function", [vx.roc_auc, vx.average_precision])
def test_rankings_of_sure_forecasts_by_bins_are_near_those_of_the_rows(function, change):
    change(exact_up_to=100)
    rng = np.random.default_rng(4)
    logit = rng.normal(0, 60, 700)
    y = (rng.random(700) < 1 / (1 + np.exp(-logit / 20))).astype(int)
    p = np.exp(-np.logaddexp(0, np.stack([logit, -logit], axis=1)))
    found, exact = both(function, y, p, {})
    assert found.value == pytest.approx(exact.value, abs=found.within + 1e-12)
    assert found.within < 1e-4


EDGES = {
    "decompose": lambda *rows, **own: vx.decompose(*rows, rule="log_score", **own),
    "calibration_slope": vx.calibration_slope,
    "risk_coverage": lambda *rows, **own: vx.risk_coverage(*rows, rule="log_score", **own),
    "compare_lengths": lambda *rows, **own: vx.compare_lengths(*rows, rule="brier", **own),
    "roc_auc": vx.roc_auc,
    "net_benefit": vx.net_benefit,
    "operating_points": vx.operating_points,
    "roc_curve": vx.roc_curve,
    "deferral": lambda *rows, **own: vx.deferral(*rows, defer=0.3, **own),
}


@pytest.mark.long
@pytest.mark.parametrize("name", EDGES)
def test_parts_may_have_no_weight_and_all_rows_may_not(name):
    y, p, _ = case("rows", n=60)
    p[:2] = np.eye(3)[(y[:2] + 1) % 3]
    half = np.arange(60) >= 30
    found, exact = both(EDGES[name], y, p, {"weights": half.astype(float)})
    key = "aurc" if name == "risk_coverage" else "n_rows"
    assert found.to_dict()[key] == pytest.approx(exact.to_dict()[key], abs=0.02)
    with pytest.raises(vx.InputError, match="not all be zero"):
        EDGES[name](Scattered(y, p, weights=np.zeros(60)))
    assert EDGES[name](Scattered(y, p, groups=np.zeros(60))) is not None
