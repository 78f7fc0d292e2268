"""Rows with everything that a scan may read, as arrays and as an Arrow table, and what must come of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import verax as vx
from verax.report import Report

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
    columns |= {f"q_{name}": p[:, 2 - i] for i, name in enumerate(CLASSES)}
    lists = {
        "all_p": pa.array(p.tolist()),
        "number": np.arange(N),
        "site": np.array(["a", "b", "c"])[groups % 3],
    }
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


# What is asked of predictions that are not in memory. Rows have ids: draws do not depend on partitions.
ANALYSES = {
    "evaluate": lambda rows: vx.evaluate(rows, ordered=True),
    "worst": lambda rows: vx.worst(rows, rule="rps", n=7),
    "retention": lambda rows: vx.retention(rows, rule="rps", metric="qwk", bootstrap=20),
    "selective": lambda rows: vx.selective(rows, by="entropy", metric="accuracy"),
    "decompose": lambda rows: vx.decompose(rows, rule="rps"),
    "reliability": lambda rows: vx.reliability(rows),
    "subgroups": lambda rows: vx.subgroups(rows, by="site", rule="rps"),
    "components": lambda rows: vx.decompose(rows, rule="brier", bootstrap=20),
    "slopes": lambda rows: vx.calibration_slope(rows),
    "risk": lambda rows: vx.risk_coverage(rows, rule="rps", bootstrap=20),
    "ranking": lambda rows: vx.roc_auc(rows, average="weighted"),
    "benefit": lambda rows: vx.net_benefit(rows, thresholds=[0.2, 0.5]),
    "deferral": lambda rows: vx.deferral(rows, defer=[0.2, 0.4]),
    "lengths": lambda rows: vx.compare_lengths(rows, k=[1], rule="brier"),
    "thresholds": lambda rows: vx.choose_thresholds(rows, bootstrap=20),
    "report": lambda rows: Report.of(rows, ordered=True),
}


def asked(source, name):
    """What an analysis says of a source."""
    options = COLUMNS | {"id": "number"} | ({"by": "site"} if name in ("subgroups", "report") else {})
    if name == "compare":
        return vx.compare(vx.scan(source, probs={"a": "p_*", "b": "q_*"}, **options), rule="rps")
    return ANALYSES[name](vx.scan(source, probs="p_*", **options))


@cache
def expected(name):
    """What one process says of a query, whose number of rows is not known before, as that of clusters."""
    return asked(pl.from_arrow(table()).lazy(), name).to_dict()


def alike(found, expected, where="", near=1e-12):
    """Hold what two results say together; rows are known by their ids, and numbers of rows may differ.

    What results store differs in the last digits.
    """
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected.keys() - {"row", "stored"}:
            alike(found[key], expected[key], f"{where}.{key}", near)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            alike(one, other, f"{where}[{i}]", near)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=near, nan_ok=True), where
    else:
        assert found == expected, where


def without_package(folder, name="verax"):
    """What PYTHONPATH is for an interpreter that cannot import a package."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Refusing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {name!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Refusing())\n"
    )
    return str(folder)
