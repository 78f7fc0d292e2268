"""Functions that read predictions part by part say what they say of the same rows in memory."""

from __future__ import annotations

import pytest

import verax as vx
from scanned import alike
from scannedlists import OWN, in_memory
from scattered import Scattered, problem

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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lists", [False, True])
def test_lengths_are_compared_as_in_memory(lists, kind):
    y, p, own = list_case(kind) if lists else case(kind, k=8)
    for options in ({}, {"k": [0, 2], "rule": ["brier", "log_score"]}):
        found, exact = both(vx.compare_lengths, y, p, own, **options)
        alike(numbers(found), numbers(exact))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lists", [False, True])
def test_slopes_are_those_of_the_rows(lists, kind):
    y, p, own = list_case(kind) if lists else case(kind)
    for options in [{}, {"places": 2} if lists else {"ordered": True}]:
        found, exact = both(vx.calibration_slope, y, p, own, **options)
        alike(found.to_dict(), exact.to_dict(), near=1e-9)
        assert found.heading == exact.heading
