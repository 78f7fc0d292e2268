"""Every public result as strict JSON, and made again from it."""

from __future__ import annotations

import copy
import datetime
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import verax as vx
from verax.analyses.calibration.summary import summarize
from verax.common.kinds import SPECIAL, below, named, stored_name
from verax.common.results import Result
from verax.results import Worst
from verax.selection import History

RNG = np.random.default_rng(7)
N = 60
Y = RNG.integers(0, 3, N)
P, Q = RNG.dirichlet(np.ones(3), N), RNG.dirichlet(np.ones(3) * 2, N)
# An outcome of probability zero: infinite losses and undefined intervals.
P[0] = np.eye(3)[(Y[0] + 1) % 3]
BINARY, CHANCE = Y > 0, 1 - P[:, 0]
GROUPS = np.array([f"patient {i % 12}" for i in range(N)])
WEIGHTS = RNG.uniform(0.5, 2, N)
NAMES = ["mild", "moderate", "severe"]
LISTS = vx.TopLists.from_probabilities(P, 2)
MODELS = {"a": P, "b": Q}
FOLDS = {"folds": 3, "seed": 1}
ADDRESS = re.compile(" at 0x.*")


def history():
    return History.from_columns({"val_pbs": [0.9, 0.6, np.nan], "val_f1": [0.3, 0.5, 0.6]})


def monitored():
    monitor = vx.Monitor(0.5)
    monitor.update(Y, Q, time=datetime.date(2026, 3, 1))
    return monitor.history


RESULTS = {
    "card": lambda: vx.evaluate(Y, P, ordered=True, groups=GROUPS, weights=WEIGHTS),
    "card of labels": lambda: vx.evaluate(np.array(NAMES)[Y], P, classes=NAMES, ordered=True),
    "card of dates": lambda: vx.evaluate(
        [datetime.date(2026, 1, 1 + int(k)) for k in Y],
        P,
        classes=[datetime.date(2026, 1, 1 + k) for k in range(3)],
    ),
    "card that skipped": lambda: vx.evaluate(Y, np.r_[P[:-1], [[2, 0, 0]]], invalid="skip"),
    "card of two kinds of groups": lambda: vx.evaluate(Y, P, groups=(GROUPS, np.arange(N) % 7)),
    "card of costs": lambda: vx.evaluate(Y, P, ordered=True, costs=[[0, 1, 2], [1, 0, 1], [3, 1, 0]]),
    "tally": lambda: vx.Tally.of(Y, P) + vx.Tally.of(Y, Q),
    "list card": lambda: vx.evaluate(Y, LISTS),
    "comparison": lambda: vx.compare(Y, MODELS, rule=["brier", "log_score"], reference="b"),
    "comparison of lists": lambda: vx.compare(Y, {"a": LISTS, "b": Q}, rule="brier"),
    "folds": lambda: vx.compare_folds(Y, MODELS, folds=np.arange(N) % 3, rule=["brier", "log_score"]),
    "scores of folds": lambda: vx.compare_folds(scores={"a": [1, 2, 4], "b": [2, 4, 5]}, better="higher"),
    "data sets": lambda: vx.compare_datasets(RNG.random((7, 3)), better="lower", rope=0.1, draws=100),
    "score map": lambda: vx.diagrams.score_map(Y, MODELS, rule="brier"),
    "lengths": lambda: vx.compare_lengths(Y, P, k=[1, 2]),
    "decomposition": lambda: vx.decompose(Y, Q, rule="rps", bootstrap=10),
    "components": lambda: vx.decompose(Y, Q, rule="brier").parts[0],
    "list decomposition": lambda: vx.decompose(Y, LISTS, rule="brier"),
    "reliability": lambda: vx.reliability(Y, Q, resamples=10),
    "reliability curve": lambda: vx.reliability(Y, Q, resamples=10).curves[0],
    "list reliability": lambda: vx.reliability(Y, LISTS, resamples=10),
    "slopes": lambda: vx.calibration_slope(Y, Q),
    "slope": lambda: vx.calibration_slope(Y, Q).lines[0],
    "calibration": lambda: summarize(Y, Q, bootstrap=10),
    "retention": lambda: vx.retention(Y, P, rule="brier", metric="qwk", bootstrap=5),
    "retentions": lambda: vx.retention(Y, P, rule=["brier", "rps"], metric=["qwk", "ec"]),
    "risk": lambda: vx.risk_coverage(Y, P, groups=GROUPS),
    "subgroups": lambda: vx.subgroups(Y, MODELS, by=np.arange(N) % 2, least=10),
    "subgroups of lists": lambda: vx.subgroups(Y, LISTS, by=np.array(["x", "y"])[np.arange(N) % 2], least=10),
    "validation": lambda: vx.plan_validation(BINARY, CHANCE, spans={"in_the_large": 0.3}),
    "rank": lambda: vx.roc_auc(Y, Q),
    "ranks": lambda: vx.c_index(Y, MODELS, groups=GROUPS),
    "precision": lambda: vx.average_precision(BINARY, CHANCE),
    "murphy": lambda: vx.diagrams.murphy(BINARY, {"a": CHANCE, "b": 1 - Q[:, 0]}),
    "benefit": lambda: vx.net_benefit(BINARY, CHANCE, thresholds=[0.1, 0.5]),
    "benefit curve": lambda: vx.net_benefit(BINARY, CHANCE, thresholds=[0.1, 0.5]).curves[0],
    "operating points": lambda: vx.operating_points(Y, MODELS, threshold=[0.3, 0.6], groups=GROUPS),
    "operating point": lambda: vx.operating_points(BINARY, CHANCE, threshold="f1").points[0],
    "rate curves": lambda: vx.roc_curve(Y, MODELS, points=5),
    "rate curve": lambda: vx.confidence_curve(Y, P).curves[0],
    "deferral": lambda: vx.deferral(Y, P, defer=[0.1, 0.3]),
    "raters": lambda: vx.raters(np.array([Y, Y[::-1]]).T, P, raters="columns", n=2),
    "thresholds": lambda: vx.choose_thresholds(Y, Q, folds=3, bootstrap=20),
    "recalibration": lambda: vx.recalibrate(Y, Q, **FOLDS),
    "isotonic": lambda: vx.recalibrate(Y, Q, method="isotonic", **FOLDS),
    "refinement": lambda: vx.refinement(Y, Q, **FOLDS),
    "sets": lambda: vx.evaluate_sets(Y, P, level=0.8, ordered=True, by=np.arange(N) % 2, groups=GROUPS),
    "conformal": lambda: vx.conformal(Y, P, score="aps", groups=GROUPS),
    "pool": lambda: vx.fit_combination(Y, {"a": Q, "b": P[::-1]}, folds=3),
    "certificate": lambda: vx.certify(vx.sa_rps),
    "worst": lambda: vx.worst(Y, P, rule="log_score", n=3, ids=GROUPS),
    "worst lists": lambda: vx.worst(Y, LISTS, rule="brier", n=3),
    "history": history,
    "monitored": monitored,
    "over time": lambda: vx.over_time(Y, Q, time=np.arange(N) // 30, groups=GROUPS),
    "selection": lambda: history().select(),
}


def strict(result: Result) -> dict:
    """What comes back from JSON that has neither NaN nor Infinity."""
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_results_come_back_equal_from_strict_json(make):
    result = make()
    found = type(result).from_dict(strict(result))
    assert found == result
    assert hash(found) == hash(result)
    assert ADDRESS.sub("", repr(found)) == ADDRESS.sub("", repr(result))
    assert found.to_dict() == result.to_dict()
    assert "stored" not in result.to_dict(stored=False)


def test_every_public_result_is_tried_here():
    places = [vx, *(getattr(vx, name) for name in ("selection", "report"))]
    public = [getattr(place, name) for place in places for name in place.__all__]
    classes = {each for each in public if isinstance(each, type) and issubclass(each, Result)}
    assert classes | {Worst} <= {type(make()) for make in RESULTS.values()}
    results = set(below(Result))
    assert len({stored_name(cls) for cls in results}) == len(results)
    assert all(map(named, [place for kind in SPECIAL.values() for place in kind]))


def test_results_that_differ_are_not_equal():
    card = RESULTS["card"]()
    assert card != RESULTS["card of labels"]()
    assert card != vx.evaluate(Y, P, ordered=True, groups=GROUPS, weights=WEIGHTS, seed=1)
    assert card != vx.evaluate(Y, P[::-1], ordered=True, groups=GROUPS, weights=WEIGHTS)
    assert RESULTS["card that skipped"]() != vx.evaluate(Y[:-1], P[:-1])
    assert RESULTS["reliability"]() != vx.reliability(Y, Q, resamples=10, seed=1)
    assert card != "a card"


def test_what_was_stored_is_read_by_a_fresh_process(tmp_path):
    path = tmp_path / "subgroups.json"
    path.write_text(json.dumps(RESULTS["subgroups of lists"]().to_dict()))
    code = (
        "import json, sys, verax as vx\nprint(vx.results.Subgroups.from_dict(json.load(open(sys.argv[1]))))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(RESULTS["subgroups of lists"]())


class Halved(type(vx.brier)):
    """A rule that verax does not know."""

    def formula(self, stats):
        return super().formula(stats) / 2


def test_what_verax_does_not_know_by_name_is_not_stored():
    card = vx.evaluate(Y, P, rules=[Halved()])
    assert card.to_dict()["stored"] is None
    assert card == vx.evaluate(Y, P, rules=[Halved()])
    with pytest.raises(vx.InputError, match="nothing stored"):
        vx.results.Scorecard.from_dict(card.to_dict())


def changed(values, *places, to):
    values = copy.deepcopy(values)
    inner = values["stored"]
    for place in places[:-1]:
        inner = inner[place]
    inner[places[-1]] = to
    return values


def test_other_values_are_refused():
    stored = strict(vx.evaluate(Y, P))
    for values, words in (
        ({}, "nothing stored"),
        (None, "nothing stored"),
        ({"stored": []}, "nothing stored"),
        (changed(stored, "version", to=2), "version 1 or older"),
        (changed(stored, "kind", to="Popen"), "nothing is called"),
        (changed(stored, "kind", to="Comparison"), "damaged"),
        (changed(stored, "of", "tally", to="a text"), "tally"),
        (changed(stored, "of", "ordered", to=None), "ordered"),
        (changed(stored, "of", "classes", to=3), "classes"),
        (strict(vx.decompose(Y, Q, rule="brier")), "those of a Scorecard"),
    ):
        with pytest.raises(vx.InputError, match=words):
            vx.results.Scorecard.from_dict(values)


def test_numbers_for_loggers():
    card, lists = RESULTS["card"](), RESULTS["list card"]()
    for each in (card, lists):
        found = each.flat("val_")
        assert {type(value) for value in found.values()} == {float}
        for name, line in {**each.scores, **each.metrics}.items():
            expected = [line.mean, *line.interval]
            np.testing.assert_array_equal(
                [found[f"val_{name}{end}"] for end in ("", "_low", "_high")], expected
            )
    flat = card.flat()
    assert flat["log_score"] == np.inf
    assert flat["log_score_finite_mean"] == card.scores["log_score"].finite_mean < np.inf
    assert flat["log_score_infinite_weight"] == WEIGHTS[0]
    assert "brier_finite_mean" not in flat
    comparison = RESULTS["comparison"]()
    found, gap = comparison.flat("test/"), comparison.differences["brier"][0]
    assert found["test/brier/a"] == vx.brier(Y, P)
    pair = f"test/brier/{gap.a} - {gap.b}"
    assert [found[pair + end] for end in ("", "_low", "_high", "_p")] == [
        gap.difference,
        *gap.interval,
        gap.p_adjusted,
    ]
    assert len(found) == 2 * (2 * 3 + 4)
