"""Rows with everything that a scan may read, as arrays and as an Arrow table, and what must come of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import verax as vx

CLASSES = ["low", "middle", "high"]
N = 2500


@cache
def arrays():
    """Outcomes, probabilities, weights and groups."""
    rng = np.random.default_rng(7)
    p = rng.dirichlet([2, 1, 1], N)
    y = np.array([rng.choice(3, p=row) for row in p])
    return y, p, rng.random(N), rng.integers(0, 60, N)


@cache
def table():
    """The same as columns, with the probabilities also as lists, and with numbers of rows."""
    y, p, weights, groups = arrays()
    columns = {f"p_{name}": p[:, i] for i, name in enumerate(CLASSES)}
    lists = {"all_p": pa.array(p.tolist()), "number": np.arange(N)}
    return pa.table({"label": np.array(CLASSES)[y], **columns, **lists, "w": weights, "patient": groups})


# How `scan` is told what the columns are.
COLUMNS = {"target": "label", "weights": "w", "groups": "patient", "classes": CLASSES}


@cache
def in_memory():
    """The card of the arrays."""
    y, p, w, groups = arrays()
    return vx.evaluate(y, p, ordered=True, weights=w, groups=groups, classes=CLASSES)


def broken(row, value=0.9999):
    """The table with a row that does not sum to 1."""
    p = arrays()[1].copy()
    p[row, 0] = value
    bad = table().set_column(1, "p_low", pa.array(p[:, 0]))
    return bad.set_column(bad.schema.get_field_index("all_p"), "all_p", pa.array(p.tolist()))


def same(card, memory=None):
    """Whether a card says what the rows in memory say, intervals too."""
    memory = memory or in_memory()
    assert card.n_rows == memory.n_rows
    assert card.n_groups == memory.n_groups
    assert list(card.scores) == list(memory.scores)
    for name, expected in memory.scores.items():
        assert card.scores[name].mean == pytest.approx(expected.mean, rel=1e-12)
        assert list(card.scores[name].interval) == pytest.approx(list(expected.interval), rel=1e-9)
