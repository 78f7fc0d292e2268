"""Tallies as bytes: what is read is what was written, and merges like it."""

from __future__ import annotations

import datetime as dt
from functools import reduce

import numpy as np
import pytest

import verax as vx
from cases import RULES, forecasts
from verax.common.packing import dump, load, refusing
from verax.engines.differences import PairedTally
from verax.engines.tally import RuleSums
from verax.errors import InputError
from verax.inputs.skipping import Skipped
from verax.scores.coverage import LIST_METRICS
from verax.scores.storing import formulas_named, names_of, tally_of, tally_values

RNG = np.random.default_rng(0)


def tally_to_bytes(tally):
    return dump("tally", tally_values(tally))


def tally_from_bytes(data):
    with refusing("is missing"):
        return tally_of(load(data, "tally"))


DATES = [dt.date(2020, 1, 1 + i % 3) for i in range(30)]
GROUPS = {
    "none": None,
    "texts": np.array(list("abcde") * 6),
    "numbers": np.arange(30) // 3,
    "floats": np.arange(30) / 3,
    "truth values": np.arange(30) % 2 == 0,
    "dates": np.array(DATES, "M8[D]"),
    "dates of Python": DATES,
    "texts of any length": np.array(list("abcde") * 6, np.dtypes.StringDType()),
    "two kinds": [list("abcde") * 6, np.arange(30) // 10],
}


def assert_equal(a, b):
    """The same values in the same places of two trees."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_equal(a[name], b[name])
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b, strict=a.dtype.kind not in "UV")
    else:
        assert a == b


@pytest.mark.parametrize("weights", [None, RNG.exponential(size=30), 2.0 ** RNG.integers(-1000, 1000, 30)])
@pytest.mark.parametrize("kind", GROUPS)
def test_a_tally_comes_back_as_it_was(kind, weights):
    y, p = forecasts(30, 3)
    p[::7] = np.eye(3)[(y[::7] + 1) % 3]
    rows = vx.Forecasts(y, p, weights=weights, groups=GROUPS[kind], first_row=70)
    tally = RuleSums(RULES, 3).update(rows)
    found = tally_from_bytes(tally_to_bytes(tally))
    assert found.rules == tally.rules
    assert_equal(found.to_values(), tally.to_values())
    assert_equal(found.merge(found).to_values(), tally.merge(tally).to_values())


def test_a_tally_of_lists_and_an_empty_one():
    lists = vx.TopLists.from_probabilities(np.full((4, 10**4), 1e-4), 3)
    rules = [vx.padded(vx.log_score), *LIST_METRICS]
    tally = RuleSums(rules, 10**4, decisions=False).update(lists.with_outcomes([0, 1, 2, 9000]))
    for each in (tally, RuleSums(rules, 2**70, decisions=False), RuleSums(RULES, 5)):
        assert_equal(tally_from_bytes(tally_to_bytes(each)).to_values(), each.to_values())


def test_many_classes_are_stored_in_little_room():
    y, p = forecasts(20, 1000)
    assert len(tally_to_bytes(RuleSums([vx.brier], 1000).update(vx.Forecasts(y, p)))) < 3_000


@pytest.mark.parametrize("groups", [None, list("aabbccddee"), [list("aabbccddee"), [1, 2] * 5]])
@pytest.mark.parametrize("weights", [None, np.arange(10.0)])
def test_a_paired_tally_comes_back_as_it_was(groups, weights):
    losses = RNG.exponential(size=(10, 3))
    losses[4, 1] = np.inf
    labels = None if groups is None else vx.Forecasts([0] * 10, [[1.0, 0.0]] * 10, groups=groups).groups
    tally = PairedTally(3).update(losses, weights, None if labels is None else labels.labels[labels.codes])
    found = PairedTally.from_bytes(tally.to_bytes())
    for a, b in ((found, tally), (found.merge(found), tally.merge(tally))):
        np.testing.assert_array_equal(a.means, b.means)
        np.testing.assert_array_equal(a.standard_errors()[0], b.standard_errors()[0])
        assert (a.n_rows, a.n_positive, a.weight) == (b.n_rows, b.n_positive, b.weight)


@pytest.mark.parametrize("grouped", [False, True])
def test_paired_tallies_of_any_partition_merge_through_bytes(grouped):
    losses, weights = RNG.exponential(size=(40, 3)), 2.0 ** RNG.integers(-400, 400, 40)
    groups = np.array([f"group {i}" for i in RNG.integers(0, 7, 40)]) if grouped else None
    place = RNG.integers(0, 5, 40)

    def tally(rows):
        found = PairedTally(3).update(losses[rows], weights[rows], None if groups is None else groups[rows])
        return found.to_bytes()

    parts = [PairedTally.from_bytes(tally(place == i)) for i in range(5)]
    merged, whole = reduce(PairedTally.merge, parts), PairedTally.from_bytes(tally(np.full(40, True)))
    np.testing.assert_allclose(merged.means, whole.means, rtol=1e-12)
    np.testing.assert_allclose(merged.standard_errors()[0], whole.standard_errors()[0], rtol=1e-9)


def test_skipped_rows_come_back_as_they_were():
    skipped = Skipped(10, 2, (3, 7), {"missing outcomes": 2})
    assert Skipped.from_bytes(skipped.to_bytes()) == skipped


def test_rules_are_found_by_their_names():
    rules = [*RULES, vx.rules.Log(base=2), vx.padded(vx.penalized(vx.brier, penalty=2.5), 0.5), *LIST_METRICS]
    assert formulas_named(names_of(rules)) == rules


def test_a_rule_that_only_the_caller_knows_is_refused():
    class Own(vx.rules.Brier):
        pass

    with pytest.raises(InputError, match="must be rules of verax, to be stored"):
        tally_to_bytes(RuleSums([Own()], 2))


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.zeros((2, 2))},
        {"moments": np.zeros((8, 2))},
        {"counts": {"cells": np.zeros((2, 5)), "squares": None, "n_zero": 0, "zero_rows": []}},
        {"rules": ["__import__('os')"]},
        {"rules": 3},
        {"n_rows": "many"},
    ],
)
def test_values_that_do_not_belong_together_are_refused(change):
    stored = {**tally_values(RuleSums([vx.brier], 2)), **change}
    with pytest.raises(InputError, match="verax wrote"):
        tally_from_bytes(dump("tally", stored))


def test_values_that_are_missing_are_named():
    stored = tally_values(RuleSums([vx.brier], 2))
    del stored["moments"]
    with pytest.raises(InputError, match="`moments` is missing"):
        tally_from_bytes(dump("tally", stored))
    assert load(dump("tally", stored), "tally").keys() == stored.keys()
