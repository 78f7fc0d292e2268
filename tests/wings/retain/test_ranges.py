"""Ranges of metrics over all orders of the rows of a bin, against every such order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from verax.scores.metrics import METRICS
from verax.wings.retain.bins import RANGES


def removals(table, gone):
    """Every way to remove a number of rows from the cells of a bin."""
    for taken in itertools.product(*(range(int(count) + 1) for count in table.ravel())):
        if sum(taken) == gone:
            yield np.reshape(taken, table.shape).astype(float)


def cases(k, unit):
    """Tables of rows that are kept for certain, and of a bin, in which some classes are rare."""
    rng = np.random.default_rng(k)
    for i in range(16):
        certain, table = rng.integers(0, 3, (k, k)).astype(float), np.zeros((k, k))
        certain = certain + 1 if i % 2 else np.vstack([[1.0] + [0.0] * (k - 1), certain[1:]])
        cells = rng.choice(k * k, 3, replace=False)
        table.ravel()[cells] = rng.integers(1, 3, 3)
        gone = int(rng.integers(1, table.sum()))
        yield unit * certain, unit * table, gone


@pytest.mark.parametrize("unit", [1.0, 0.125], ids=["rows", "light rows"])
@pytest.mark.parametrize("name", RANGES)
def test_ranges_hold_every_order_and_do_not_depend_on_the_unit(name, unit):
    metric, tight, finite = METRICS[name], 0, 0
    for certain, table, gone in cases(2 if metric.for_two else 3, unit):
        share = gone * unit / table.sum()
        with np.errstate(all="ignore"):
            low, high = RANGES[name](certain + (1 - share) * table, table, share)
            after = [metric.of(certain + table - unit * each) for each in removals(table / unit, gone)]
            again = RANGES[name]((certain + (1 - share) * table) / unit, table / unit, share)
        found = np.array(after)[np.isfinite(after)]
        assert np.allclose([low, high], again, equal_nan=True)
        assert (found >= low - 1e-12).all(), (name, low, found.min())
        assert (found <= high + 1e-12).all(), (name, high, found.max())
        finite += bool(np.isfinite([low, high]).all())
        tight += bool(len(found) and high - low <= 4 * np.ptp(found) + 0.25)
    assert finite >= 6
    assert tight >= 4
