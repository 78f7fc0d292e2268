"""Data checks: duplicates, odd rows and sums that are off, against comparing all rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import verax as vx
from reports import answer, light, sample
from verax.inputs.memory import open_rows
from verax.report.survey import SurveyRecipe


def test_cases_of_several_raters_are_not_their_own_duplicates():
    """A case is one row, and a duplicate only where its raters chose the same."""
    counts = [[1, 1], [0, 2], [2, 2], [1, 0], [1, 0]]
    p = [[0.3, 0.7], [0.3, 0.7], [0.3, 0.7], [0.5, 0.5], [0.6, 0.4]]
    handle = open_rows(np.array(counts), np.array(p), raters="counts", ids=list("abcde"))
    found = handle.summarise({"survey": SurveyRecipe()})["survey"]
    assert (found.rated, found.weighted) == (True, False)
    assert (found.rows.n_rows, sorted(found.rows.counts)) == (5, [1, 1, 1, 2])
    assert sorted(found.ids.counts) == [1] * 5


def test_duplicates_are_those_that_comparing_all_rows_finds():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 40))
        y, p = rng.integers(0, 2, n), rng.choice([0.0, -0.0, 0.25, 0.5, 1.0], n)
        rows = [(y[i], p[i]) for i in range(n)]
        first = {row: i for i, row in reversed(list(enumerate(rows)))}
        second = {}
        for i, row in enumerate(rows):
            if first[row] < i:
                second.setdefault(row, i)
        found = SurveyRecipe().take(open_rows(y, p).kept).rows
        sure = {i for i in range(n) if p[i] in (0, 1)}
        expected = sorted((i, first[row]) for row, i in second.items() if i not in sure)
        assert found.repeated(100) == expected
        kept = [row for i, row in enumerate(rows) if i not in sure]
        assert found.repeats() == (len(kept) - len(set(kept)), 0.0)


@pytest.mark.parametrize("held", [True, False])
def test_rows_of_zeros_and_ones_are_no_copies(held):
    y, p = sample(60)
    p[:20] = np.eye(4)[y[:20]]
    for copies, kind in ((0, "fine"), (3, "look")):
        outcomes, rows = np.append(y, y[30 : 30 + copies]), np.vstack([p, p[30 : 30 + copies]])
        if held:
            report = light(outcomes, rows)
        else:
            table = pa.table({"y": outcomes, **{f"p_{k}": rows[:, k] for k in range(4)}})
            report = light(vx.scan(table))
        found = answer(report, "Duplicate rows")
        assert (found.kind, found.answer.startswith("3 rows")) == (kind, copies > 0)


def test_checks_find_what_is_odd():
    y, p = sample(300, 5)
    y[y == 4] = 0
    p[:, 3] *= 0.001
    p /= p.sum(axis=1, keepdims=True)
    y, p = np.append(y, y[:6]), np.vstack([p, p[:6]])
    ids = [*range(300), *range(6)]
    by = np.append(np.repeat(["a", "b"], 150), ["c"] * 6)
    report = light(y, p, ids=ids, by={"site": by}, classes=list("vwxyz"))
    twice = answer(report, "Duplicate rows").answer
    assert twice.startswith("6 rows (2%) repeat an earlier one")
    assert "row 300 repeats row 0; row 301 repeats row 1" in twice
    assert "; and 1 more" in twice
    assert answer(report, "Duplicate ids").answer.startswith("6 rows (2%) repeat an earlier id: row 300")
    assert answer(report, "Classes never predicted").answer.startswith("y:")
    assert answer(report, "Absent or rare classes").answer.startswith("z never occurred")
    assert "c (6)" in answer(report, "Subgroups of site").answer
    assert answer(report, "Constant forecasts").kind == "fine"
    flat = light(y, np.tile(np.full(5, 0.2), (306, 1)))
    assert answer(flat, "Constant forecasts").kind == "look"


def test_sums_that_are_off_are_named():
    y, p = sample(100, 3)
    assert answer(light(y, p), "Rows that do not sum to 1").kind == "fine"
    off = p.copy()
    off[7] *= 1.01
    found = answer(light(y, off, normalize=True), "Rows that do not sum to 1").answer
    assert found.startswith("1 row differs from 1")
    assert "row 7" in found
    assert "rescaled" in found
    single = (p * 1.00002).astype(np.float32)
    assert "100 rows differ from 1" in answer(light(y, single), "Rows that do not sum to 1").answer
    assert "logits" in answer(light(y, np.log(p), logits=True), "Rows that do not sum to 1").answer
    # Of several models each is counted: a row may be off in all of them.
    several = light(y, {"a": off, "b": (p * 1.00002), "c": p}, normalize=True)
    assert answer(several, "Rows that do not sum to 1").answer.startswith("a: 1 row; b: 100 rows differ")
