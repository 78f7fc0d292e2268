"""Every public function that takes outcomes takes a handle in their place, or says why it does not."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import verax as vx
from scannedlists import in_memory
from scattered import Scattered, problem
from verax.report import Report

RNG, Y, P = problem(80, 3, 0)
ROWS = Scattered(Y, P, by=np.array(["a", "b"])[RNG.integers(0, 2, 80)])
TWO = Scattered(Y, {"a": P, "b": np.roll(P, 1, axis=0)})
LISTS = Scattered(in_memory()[0], in_memory()[1]["a"])

# How each function is called with a handle.
TAKES = {
    "Tally.of": lambda: vx.Tally.of(ROWS),
    "Report.of": lambda: Report.of(ROWS),
    "average_precision": lambda: vx.average_precision(ROWS),
    "c_index": lambda: vx.c_index(TWO),
    "calibration_slope": lambda: vx.calibration_slope(LISTS),
    "choose_thresholds": lambda: vx.choose_thresholds(ROWS, bootstrap=10),
    "compare": lambda: vx.compare(TWO, rule="brier"),
    "compare_lengths": lambda: vx.compare_lengths(LISTS),
    "decompose": lambda: vx.decompose(ROWS, rule="brier"),
    "deferral": lambda: vx.deferral(ROWS, defer=0.2),
    "ece": lambda: vx.ece(ROWS),
    "evaluate": lambda: vx.evaluate(ROWS),
    "fit_pool": lambda: vx.fit_pool(TWO),
    "murphy": lambda: vx.murphy(TWO),
    "net_benefit": lambda: vx.net_benefit(ROWS),
    "recalibrate": lambda: vx.recalibrate(ROWS, method="temperature"),
    "reliability": lambda: vx.reliability(ROWS, resamples=0),
    "retention": lambda: vx.retention(ROWS, rule="brier", metric="accuracy"),
    "risk_coverage": lambda: vx.risk_coverage(ROWS),
    "roc_auc": lambda: vx.roc_auc(ROWS),
    "selective": lambda: vx.selective(ROWS, metric="accuracy"),
    "subgroups": lambda: vx.subgroups(ROWS, by="by", bootstrap=0, least=1),
    "top_k_error": lambda: vx.top_k_error(LISTS, k=2),
    "worst": lambda: vx.worst(ROWS, rule="brier"),
    "Rule.__call__": lambda: vx.brier(ROWS),
}
# What gives a number for every row, takes decisions instead of forecasts, or depends on the order of rows.
REFUSES = {
    "ConfidenceSequence.update": lambda: vx.ConfidenceSequence("brier", n_classes=3).update(ROWS, P, P),
    "Forecasts": lambda: vx.Forecasts(ROWS, P),
    "Rule.samples": lambda: vx.brier.samples(ROWS),
    "TopLists.with_outcomes": lambda: in_memory()[1]["a"].with_outcomes(LISTS),
    "expected_cost": lambda: vx.expected_cost(ROWS, [0, 1], n_classes=3),
    "gradient": lambda: vx.gradient(vx.brier, ROWS, P),
    "instance_f1": lambda: vx.instance_f1(ROWS, [[0]], labels=3),
    "kappa": lambda: vx.kappa(ROWS, [0, 1], n_classes=3),
    "compat.pbs": lambda: vx.compat.pbs(ROWS, P),
    "compat.pll": lambda: vx.compat.pll(ROWS, P),
}


def public():
    """The names of all public functions and methods that take outcomes, `y`."""
    found = {name: getattr(vx, name) for name in vx.__all__}
    found |= {f"compat.{name}": getattr(vx.compat, name) for name in ("pbs", "pll")}
    found |= {"Report": Report, "Rule": vx.rules.Rule}
    for name, thing in list(found.items()):
        if inspect.isclass(thing) and (not issubclass(thing, vx.rules.Rule) or thing is vx.rules.Rule):
            methods = {each for each in dir(thing) if each == "__call__" or not each.startswith("_")}
            found |= {f"{name}.{each}": getattr(thing, each) for each in methods}
    for name, thing in found.items():
        if callable(thing) and not isinstance(thing, vx.rules.Rule) and name.split(".")[-1] != "from_dict":
            try:
                names = inspect.signature(thing).parameters
            except (TypeError, ValueError):
                continue
            if "y" in names and not (inspect.isclass(thing) and issubclass(thing, vx.rules.Rule)):
                yield name


def test_no_function_is_forgotten():
    assert sorted(public()) == sorted([*TAKES, *REFUSES])


@pytest.mark.parametrize("name", TAKES)
def test_a_handle_is_taken_in_place_of_outcomes_and_forecasts(name):
    assert TAKES[name]() is not None


@pytest.mark.parametrize("name", REFUSES)
def test_what_cannot_be_done_part_by_part_says_what_to_do_instead(name):
    with pytest.raises(vx.InputError, match=r"in memory.* Read them with|in memory.*Pass it alone"):
        REFUSES[name]()
