"""Rows cut into subgroups by one compiled pass: the rows of each are those that an index takes."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from cases import forecasts, needs_numba
from verax._settings import changed
from verax.inputs.arrays import Columns
from verax.inputs.breakdown import divides, parts_by
from verax.inputs.groups import Groups
from verax.inputs.memory import open_rows

pytestmark = needs_numba


@pytest.fixture(autouse=True)
def compiled(change):
    change(compiled_from=0)


def both_ways(part, labels):
    """The parts of each label from the compiled pass, and by taking rows."""
    assert divides(part, len(labels.labels))
    found = dict(parts_by(part, labels))
    with changed(kernels=False):
        return found, dict(parts_by(part, labels))


GIVEN = {
    "rows": lambda p: p,
    "columns": lambda p: np.asfortranarray(p),
    "single": lambda p: p.astype(np.float32),
    "every other": lambda p: np.repeat(p, 2, axis=0)[::2],
    "apart": lambda p: Columns(list(p.T)),
    "one column": lambda p: p[:, 0],
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("options", [{}, {"weights": True, "groups": True}])
def test_each_subgroup_has_the_rows_that_an_index_takes(given, options, monkeypatch):
    y, p = forecasts(200, 4)
    rng = np.random.default_rng(1)
    # A label without rows, and one with a single row.
    labels = Groups(np.array([2, *rng.choice([0, 3], 199)]), np.array(["a", "b", "c", "d"]))
    y = y == 0 if given == "one column" else y
    read = {"weights": rng.random(200), "groups": rng.integers(0, 9, 200)} if options else {}
    by = {"site": labels.labels[labels.codes], "age": rng.integers(0, 3, 200).astype(np.int32)}
    handle = open_rows(y, GIVEN[given](p), ids=np.arange(200) + 7, by=by, **read)
    found, taken = both_ways(handle.kept, labels)
    assert list(found) == list(taken) == ["a", "b", "c", "d"]
    for label, part in found.items():
        rows, other = part.rows.batch(0, part.n_rows), taken[label].rows.batch(0, taken[label].n_rows)
        assert part.n_rows == np.sum(labels.codes == "abcd".index(label))
        for name in ("y", "p", "weights", "groups"):
            ours, theirs = getattr(rows, name), getattr(other, name)
            assert (ours is None) == (theirs is None)
            assert ours is None or (np.array_equal(ours, theirs) and ours.dtype == theirs.dtype)
        assert np.array_equal(part.ids, taken[label].ids)
        assert np.array_equal(part.row_numbers, taken[label].row_numbers)
        for name in by:
            assert np.array_equal(part.by[name], taken[label].by[name])
            assert part.by[name].dtype == taken[label].by[name].dtype


def test_what_is_not_moved():
    y, p = forecasts(60, 12)
    handle = open_rows(y, p, by={})
    # Rows of many numbers, and very many subgroups.
    assert not divides(handle.kept, 2)
    assert divides(open_rows(y % 3, forecasts(60, 3)[1]).kept, 256)
    assert not divides(open_rows(y % 3, forecasts(60, 3)[1]).kept, 257)
    # Shares of classes, and whole numbers.
    assert not divides(open_rows(forecasts(60, 3)[1], forecasts(60, 3)[1], raters="shares").kept, 2)
    assert not divides(open_rows(y % 2, np.eye(2, dtype=int)[y % 2]).kept, 2)


def test_invalid_rows_are_named_by_their_numbers_among_all():
    y, p = forecasts(300, 3)
    p[170] = 0.9
    with pytest.raises(vx.InputError) as caught:
        vx.subgroups(y, p, by=np.arange(300) % 5)
    assert caught.value.rows == (170,)
    assert caught.value.argument == "p"
