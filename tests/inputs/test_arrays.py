"""Arrays and frames of unusual kinds: read as what they are, or refused by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import verax as vx
from cases import torch as tensor
from verax.inputs.arrays import to_array

Y = np.array([0, 1, 2, 2])
P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5], [0.3, 0.3, 0.4]])
RIGHT = vx.brier(Y, P)


@pytest.mark.parametrize("kind", [">i2", ">i4", ">i8", "<u2", "<u4", "<u8", ">u8", ">f8"])
def test_outcomes_and_weights_of_any_type_beside_tensors(kind):
    y, weights = Y.astype(kind), (Y + 1).astype(kind)
    assert vx.brier(y, tensor(P)) == pytest.approx(RIGHT, rel=1e-15)
    assert vx.brier(Y, tensor(P), weights=weights) == pytest.approx(vx.brier(Y, P, weights=Y + 1))


def test_weights_that_fit_no_int64_beside_tensors():
    weights = np.array([1, 2**63, 1, 1], np.uint64)
    assert vx.brier(Y, tensor(P), weights=weights) == pytest.approx(vx.brier(Y, P, weights=weights))


@pytest.mark.parametrize("kind", ["double[pyarrow]", "float[pyarrow]", "Float64", "Float32"])
def test_frames_of_types_that_have_missing_values(kind):
    frame = pd.DataFrame(P).astype(kind)
    assert to_array(frame, "p")[0].dtype.kind == "f"
    assert vx.brier(Y, frame) == pytest.approx(RIGHT, rel=1e-6)
    frame.iloc[1, 2] = None
    with pytest.raises(vx.InputError) as caught:
        vx.brier(Y, frame)
    assert (caught.value.argument, caught.value.kind, caught.value.rows) == ("p", "finite", (1,))


@pytest.mark.parametrize("kind", ["int64[pyarrow]", "Int64", "UInt8"])
def test_columns_of_types_that_have_missing_values(kind):
    y = pd.Series(Y, dtype=kind)
    assert vx.brier(y, P) == RIGHT
    assert vx.brier(Y, P, weights=y + 1) == pytest.approx(vx.brier(Y, P, weights=Y + 1))
    y[2] = None
    with pytest.raises(vx.InputError) as caught:
        vx.brier(y, P)
    assert (caught.value.argument, caught.value.rows) == ("y", (2,))


def test_columns_and_rows_with_several_levels():
    columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    index = pd.MultiIndex.from_product([["u", "v"], [0, 1]])
    frame = pd.DataFrame(P, columns=columns, index=index)
    assert vx.brier(Y, frame) == RIGHT
    assert vx.brier(pd.Series(Y, index=[5, 6, 7, 8]), frame) == RIGHT
    assert vx.brier(pd.Series(Y, index=index), frame) == RIGHT
    with pytest.raises(vx.InputError) as caught:
        vx.brier(pd.Series(Y, index=index[::-1]), frame)
    assert (caught.value.argument, caught.value.kind) == ("y", "order")


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


@pytest.mark.parametrize(
    "value",
    [None, "text", b"bytes", {}, {1, 2}, iter([1]), int, vx.TopLists, Broken(), [[1], [1, 2]]],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_array_is_refused(value):
    with pytest.raises(vx.InputError) as caught:
        to_array(value, "q")
    assert (caught.value.argument, caught.value.kind) == ("q", "type")


def test_the_class_of_tensors_is_no_array(torch):
    test_what_is_no_array_is_refused(torch.Tensor)


@pytest.mark.parametrize("to", [csr_array, lambda p: tensor(p).to_sparse()], ids=["scipy", "torch"])
def test_sparse_arrays_are_refused(to):
    with pytest.raises(vx.InputError) as caught:
        to_array(to(P), "p")
    assert caught.value.remedies


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(P, P == 0.6)
    with pytest.raises(vx.InputError) as caught:
        to_array(masked, "p")
    assert (caught.value.kind, caught.value.rows) == ("missing", (1,))
    with pytest.raises(vx.InputError):
        to_array(np.ma.masked, "p")


@pytest.mark.parametrize("shape", [(), (2, 2, 3)])
def test_distributions_have_one_or_two_dimensions(shape):
    for call in (vx.rps.by_outcome, vx.rps.entropy):
        with pytest.raises(vx.InputError) as caught:
            call(np.full(shape, 1 / 3))
        assert caught.value.kind == "type"


def test_expected_losses_need_truths_that_fit():
    p = np.full((2, 3), 1 / 3)
    for q in (np.full((3, 3), 1 / 3), np.full((2, 2), 0.5)):
        with pytest.raises(vx.InputError) as caught:
            vx.brier.expected(p, q)
        assert (caught.value.argument, caught.value.kind) == ("q", "length")


@pytest.mark.parametrize("to", [np.asarray, tensor])
def test_a_distribution_is_no_distance_from_itself_in_any_array(to):
    p = np.full((2, 3), 1 / 3)
    assert vx.brier.divergence(p, to(p)).tolist() == [0.0, 0.0]


def test_losses_for_every_outcome_have_a_limit():
    lists = vx.TopLists.from_dicts([{0: 0.5}], n_classes=10**30)
    with pytest.raises(vx.InputError) as caught:
        vx.brier.by_outcome(lists)
    assert caught.value.argument == "p"


LISTS = {
    "polars": lambda rows: pl.Series(rows),
    "polars of fixed width": lambda rows: pl.Series(rows, dtype=pl.Array(pl.Float64, 3)),
    "polars frame": lambda rows: pl.DataFrame({"probs": rows}),
    "pandas": lambda rows: pd.Series(rows),
    "pandas of arrays": lambda rows: pd.Series([None if row is None else np.array(row) for row in rows]),
    "pandas frame": lambda rows: pd.DataFrame({"probs": rows}),
    "pandas of arrow": lambda rows: pd.Series(rows, dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
    "arrow": lambda rows: pa.array(rows),
    "arrow of fixed width": lambda rows: pa.array(rows, type=pa.list_(pa.float64(), 3)),
    "chunked arrow": lambda rows: pa.chunked_array([rows[:1], rows[1:]]),
}


@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_a_column_of_lists_of_probabilities(make):
    rows = P.tolist()
    assert vx.brier(Y, make(rows)) == pytest.approx(RIGHT, rel=1e-15)
    assert vx.decide(make(rows)).tolist() == P.argmax(axis=1).tolist()
    rows[2] = None
    with pytest.raises(vx.InputError) as caught:
        vx.brier(Y, make(rows))
    assert (caught.value.argument, caught.value.kind, caught.value.rows) == ("p", "finite", (2,))
    assert vx.evaluate(Y, make(rows), invalid="skip").skipped.rows == (2,)


def test_lists_that_are_no_probabilities():
    ragged = [*P.tolist()[:2], [0.5, 0.5], [1.0]]
    with pytest.raises(vx.InputError) as caught:
        vx.brier(Y, pl.Series(ragged))
    assert (caught.value.kind, caught.value.rows, caught.value.values) == ("length", (2, 3), (2, 1))
    with pytest.raises(vx.InputError, match="must hold lists of numbers"):
        vx.brier(Y, pd.Series([["a", "b"]] * 4))
    # Precision decides the tolerance.
    single = pd.Series([row.astype(np.float32) for row in P * 1.00005])
    assert vx.brier(Y, single) == pytest.approx(RIGHT, rel=1e-3)
    with pytest.raises(vx.InputError) as caught:
        vx.brier(Y, pd.Series((P * 1.00005).tolist()))
    assert caught.value.kind == "sum"


def test_enums_state_the_order_of_their_categories():
    labels = np.array(["low", "middle", "high"])
    y = pl.Series(labels[Y], dtype=pl.Enum(labels.tolist()))
    shuffled = pl.DataFrame({"high": P[:, 2], "low": P[:, 0], "middle": P[:, 1]})
    assert vx.rps(y, shuffled) == pytest.approx(vx.rps(Y, P), rel=1e-15)
    for unordered in (pl.Series(labels[Y]), pl.Series(labels[Y], dtype=pl.Categorical)):
        with pytest.raises(vx.InputError) as caught:
            vx.rps(unordered, shuffled)
        assert caught.value.kind == "order"


@pytest.mark.parametrize("to", [np.asarray, tensor])
def test_a_single_column_comes_with_fitting_advice(to):
    with pytest.raises(vx.InputError, match=r"pass one number per row: p\[:, 0\]"):
        vx.brier([0, 1], to([[0.2], [0.7]]))


def test_missing_values_are_all_counted():
    with pytest.raises(vx.InputError) as caught:
        vx.brier(np.array([0, None, 2, None], dtype=object), P)
    assert (caught.value.kind, caught.value.rows, caught.value.count) == ("missing", (1, 3), 2)
    masked = np.ma.masked_array(P, np.zeros(P.shape, bool))
    masked[1, 0] = masked[1, 1] = masked[3, 2] = np.ma.masked
    with pytest.raises(vx.InputError, match=r"row 1 has one \(2 rows in all\)") as caught:
        vx.brier(Y, masked)
    assert (caught.value.kind, caught.value.rows) == ("missing", (1, 3))
