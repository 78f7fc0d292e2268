"""Metrics of the cells of a confusion table that occur, against the same metrics of whole tables."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from verax._settings import changed
from verax.scores.cells import table_metrics
from verax.scores.metrics import METRICS


@pytest.mark.parametrize("n_classes", [2, 3, 9, 70])
@pytest.mark.parametrize("scale", [1.0, 2.0**600, 2.0**-600])
def test_cells_that_occur_give_what_tables_give(n_classes, scale):
    rng = np.random.default_rng(n_classes)
    cells = np.sort(rng.choice(n_classes**2, min(n_classes**2, 12), replace=False))
    weights = rng.integers(0, 4, (25, len(cells))) * scale
    tables = np.zeros((25, n_classes**2))
    tables[:, cells] = weights
    # The last ones have one outcome, one cell, and nothing at all.
    tables[-3], weights[-3] = 0, 0
    weights[-1], weights[-2] = 0, 0
    weights[-2, 0] = scale
    tables[-2:, cells] = weights[-2:]
    whole = tables.reshape(25, n_classes, n_classes)
    metrics = [metric for metric in METRICS.values() if n_classes == 2 or not metric.for_two]
    expected = np.stack([metric.of(whole) for metric in metrics], axis=1)
    assert np.array_equal(table_metrics(metrics, n_classes, cells, weights), expected, equal_nan=True)
    found = with_nothing_filled(metrics, n_classes, cells, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def with_nothing_filled(metrics, n_classes, cells, weights):
    with changed(filled_up_to=0):
        return table_metrics(metrics, n_classes, cells, weights)


def test_metrics_of_the_card_need_no_table():
    for metric in METRICS.values():
        if metric.on_card:
            assert metric.of_row is not None or metric.of_cells is not None


@pytest.mark.parametrize("grouped", [False, True])
def test_cards_of_many_classes_have_the_same_intervals(grouped, change):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(80), 120)
    y = rng.integers(0, 80, 120)
    more = {"groups": np.arange(120) // 3} if grouped else {}
    by_cells = vx.evaluate(y, p, ordered=True, **more).metrics
    change(filled_up_to=80**2)
    by_tables = vx.evaluate(y, p, ordered=True, **more).metrics
    for name, line in by_cells.items():
        assert line.interval == pytest.approx(by_tables[name].interval, rel=1e-12, abs=1e-14)
