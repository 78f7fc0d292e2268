"""The one type of interval, and the plan by which intervals are computed."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest
from scipy.stats import t as student

from verax.errors import InputError
from verax.inference import bootstrap
from verax.inference.intervals import MOST_REPLICATES, Resampling, t_quantile
from verax.results import Interval

HALF = Interval(0.25, 0.5, method="t", confidence=0.9, caution="few groups")


def test_an_interval_is_the_pair_of_its_ends() -> None:
    low, high = HALF
    assert (low, high) == (HALF.low, HALF.high) == HALF == (HALF[0], HALF[1])
    assert json.loads(json.dumps(HALF)) == [0.25, 0.5]
    assert np.asarray(HALF).tolist() == [0.25, 0.5]
    assert type(Interval(np.float32(0.5), np.int64(1)).low) is float


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_keeps_every_fact(copied) -> None:
    assert copied(HALF).to_dict() == HALF.to_dict()
    assert HALF.to_dict() == {
        "low": 0.25,
        "high": 0.5,
        "method": "t",
        "confidence": 0.9,
        "caution": "few groups",
    }


def test_an_interval_of_the_negated_quantity_and_within_bounds() -> None:
    assert (-HALF).to_dict() == {**HALF.to_dict(), "low": -0.5, "high": -0.25}
    assert HALF.within((0.3, 0.4)).to_dict() == {**HALF.to_dict(), "low": 0.3, "high": 0.4}
    assert HALF.within((0.0, math.inf)) == HALF


def test_an_undefined_interval_says_why() -> None:
    none = Interval.undefined("there is only one row", confidence=0.9)
    assert not none.defined
    assert math.isnan(none.low)
    assert math.isnan(none.high)
    assert (none.caution, f"{none:.3f}") == ("there is only one row", "")
    assert not none.within((0.0, 1.0)).defined
    assert f"{HALF:.1f}" == "0.2 to 0.5"
    assert "few groups" in repr(HALF)


@pytest.mark.parametrize(
    ("changes", "argument", "kind"),
    [
        ({"confidence": 95}, "confidence", "value"),
        ({"confidence": 1}, "confidence", "value"),
        ({"confidence": math.nan}, "confidence", "value"),
        ({"confidence": "0.9"}, "confidence", "type"),
        ({"confidence": True}, "confidence", "type"),
        ({"replicates": 1}, "bootstrap", "value"),
        ({"replicates": 0}, "bootstrap", "value"),
        ({"replicates": MOST_REPLICATES + 1}, "bootstrap", "value"),
        ({"replicates": 100.0}, "bootstrap", "type"),
        ({"seed": -1}, "seed", "value"),
        ({"seed": None}, "seed", "value"),
    ],
)
def test_plans_that_are_refused(changes, argument, kind) -> None:
    with pytest.raises(InputError) as caught:
        Resampling.checked(**{"confidence": 0.95, "replicates": 100, "seed": 0, **changes})
    assert (caught.value.argument, caught.value.kind) == (argument, kind)
    assert caught.value.values[0] is next(iter(changes.values()))


def test_plans_that_are_accepted() -> None:
    assert Resampling.checked(np.float64(0.5), np.int64(2), np.int64(3)) == Resampling(0.5, 2, 3)
    assert Resampling.checked(0.5, 0, 0, or_none=True).replicates == 0
    with pytest.raises(InputError) as caught:
        Resampling.checked(95, 10, 0)
    assert dict(caught.value.remedies[0].options) == {"confidence": 0.95}


@pytest.mark.parametrize("confidence", [1e-6, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99995])
def test_quantiles_of_t_whether_expanded_or_not(confidence) -> None:
    for freedom in (1, 2.5, 30, 999.9, 1000, 1000.1, 1999, 12_345.6, 1e6, 1e9, 1e300, math.inf):
        expected = student.isf((1 - confidence) / 2, freedom)
        # Of quantiles near 0, SciPy's have fewer exact digits.
        tolerance = 1e-9 if confidence < 0.01 else 1e-12
        assert t_quantile(freedom, confidence) == pytest.approx(expected, rel=tolerance)


def test_counts_that_are_drawn_row_by_row_are_multinomial(change):
    change(rows_drawn_from=0)
    counts = np.array([1.0, 5.0, 2.0, 0.0, 8.0])
    drawn = bootstrap.resampled_metrics(0.5 * counts, 0.25 * counts, 20_000, 0, lambda _cells, tables: tables)
    rate = counts[counts > 0] / 16
    assert (drawn.sum(axis=1) == 16).all()
    np.testing.assert_allclose(drawn.mean(axis=0), 16 * rate, atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.T), 16 * (np.diag(rate) - np.outer(rate, rate)), atol=0.12)
