"""Forecasts over separate columns give what the same numbers in one array give."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from cases import forecasts
from verax.inputs.arrays import Columns


@pytest.mark.parametrize("n", [60, 200_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_separate_columns_are_the_same_forecasts(n, dtype):
    y, p = forecasts(n, 4)
    p = p.astype(dtype)
    apart = Columns([np.ascontiguousarray(column) for column in p.T])
    # Two rules of many rows: a kernel with all of them takes long to compile.
    rules = [*vx.rules.RULES] if n < 1000 else ["brier", "rps"]
    card, whole = (vx.evaluate(y, forecast, rules=rules, ordered=True) for forecast in (apart, p))
    assert [card[rule] for rule in rules] == pytest.approx([whole[rule] for rule in rules], rel=1e-12)
    np.testing.assert_array_equal(card.confusion, whole.confusion)
    np.testing.assert_allclose(vx.rps.samples(y, apart), vx.rps.samples(y, p), rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(apart), p)


def test_columns_of_several_types_have_the_widest():
    apart = Columns([np.array([0.25, 0.5], np.float32), np.array([0.75, 0.5])])
    assert apart.dtype == np.float64
    assert apart[0:1, ...].tolist() == [[0.25, 0.75]]
    assert vx.brier([0, 1], apart) == vx.brier([0, 1], np.asarray(apart))


def test_strided_and_read_only_columns():
    y, p = forecasts(300, 3)
    p.flags.writeable = False
    assert vx.rps(y, Columns(list(p.T))) == pytest.approx(vx.rps(y, p), rel=1e-14)


def test_invalid_rows_are_named():
    p = Columns([np.array([0.5, 0.9, 0.5]), np.array([0.5, 0.6, 0.5])])
    with pytest.raises(vx.InputError, match="row 1 sums to"):
        vx.brier([0, 1, 0], p)


@pytest.mark.parametrize("columns", [[np.ones(2), np.ones(3)], [np.ones((2, 2))]])
def test_columns_have_one_length(columns):
    with pytest.raises(vx.InputError, match="columns of one length"):
        Columns(columns)
