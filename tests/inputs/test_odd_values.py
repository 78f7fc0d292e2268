"""Odd but plausible values, as arguments and options: each works, or is refused by an error that names it."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import verax as vx
from verax.selection import EarlyStopping, HBlockSplit, History, sliding_windows

P = np.array([[0.75, 0.25, 0.0], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.0, 0.25, 0.75]])
Y = np.array([0, 1, 2, 2])
TIMES = pd.to_datetime(["2020", None, None, "2021"])
W = np.array([1.0, 2.0, 0.0, 0.5])


def objects(*values):
    """A column of Python objects, even where they are sequences."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def test_bfloat16_tensors_are_read_beside_arrays_of_numpy():
    torch = pytest.importorskip("torch")

    def half(values):
        return torch.tensor(values).to(torch.bfloat16)

    wanted = vx.evaluate(Y, P, weights=W)["brier"]
    assert vx.evaluate(half(Y), P, weights=half(W))["brier"] == wanted
    assert vx.evaluate(half(Y), half(P), weights=half(W))["brier"] == wanted
    lists = vx.TopLists.from_arrays(half(np.tile([0, 1], (4, 1))).long(), half(P[:, :2]), n_classes=3)
    assert (
        lists.to_dicts() == vx.TopLists.from_arrays(np.tile([0, 1], (4, 1)), P[:, :2], n_classes=3).to_dicts()
    )
    assert vx.brier.divergence(P, half(P)).tolist() == [0.0] * 4
    assert sliding_windows(half(Y), 2)[1].tolist() == [2, 2]


def test_booleans_of_a_strict_namespace_may_be_one_hot_outcomes():
    xp = pytest.importorskip("array_api_strict")
    one_hot = xp.asarray(np.eye(3, dtype=bool)[Y])
    assert vx.evaluate(one_hot, xp.asarray(P))["brier"] == vx.evaluate(Y, P)["brier"]


ARROW = {
    "table without columns": pa.table({}),
    "table without chunks": pa.table({name: pa.chunked_array([], pa.float64()) for name in "ab"}),
    "column without chunks": pa.chunked_array([], pa.float64()),
    "lists without chunks": pa.chunked_array([], pa.list_(pa.float64())),
    "nulls": pa.nulls(4),
}
REFUSED = {
    "labels that are lists": (lambda: vx.evaluate(objects([0], [1], [2], [2]), P, classes=list("abc")), "y"),
    "labels that are arrays": (lambda: vx.evaluate(objects(*map(np.array, Y)), P, classes=list("abc")), "y"),
    "scalars among rows": (lambda: vx.brier.expected(objects(np.array([0.5]), np.array(1)), P), "p"),
    **{f"{name} as p": (lambda x=x: vx.evaluate(Y, x), "p") for name, x in ARROW.items()},
    **{f"{name}, skip": (lambda x=x: vx.evaluate(Y, x, invalid="skip"), None) for name, x in ARROW.items()},
    **{f"{name} as y": (lambda x=x: vx.evaluate(x, P), None) for name, x in ARROW.items()},
    "timedelta64 for a count": (lambda: vx.worst(Y, P, rule="brier", n=np.timedelta64(3, "s")), "n"),
    "missing timedelta64": (lambda: vx.worst(Y, P, rule="brier", n=np.timedelta64("NaT", "s")), "n"),
    "datetime64 for a count": (lambda: vx.worst(Y, P, rule="brier", n=np.datetime64("2020")), "n"),
    "timedelta64 for replicates": (lambda: vx.evaluate(Y, P, bootstrap=np.timedelta64(5, "s")), "bootstrap"),
    "timedelta64 for a number": (lambda: vx.rules.Log(base=np.timedelta64(2, "s")), "base"),
    "timedelta64 for classes": (lambda: vx.rps.bounds(np.timedelta64(3, "s")), "n_classes"),
    "timedelta for a share": (lambda: vx.evaluate(Y, P, confidence=datetime.timedelta(1)), "confidence"),
    "timedelta64 for labels": (lambda: vx.instance_f1([[1]], [[1]], labels=np.timedelta64(3, "s")), "labels"),
    "one value, skipped": (lambda: vx.evaluate(Y, pd.NaT, invalid="skip"), None),
    "an array as a flag": (lambda: vx.Forecasts(Y, P, ordered=Y), "ordered"),
    "a dict for progress": (lambda: vx.scan(pa.table({"y": Y}), progress={}), "progress"),
    "one value for classes": (lambda: vx.scan(pa.table({"y": Y}), classes=np.array(0.5)), "classes"),
    "one cost as a 0-d text": (lambda: vx.deferral(Y, P, defer=np.array("a")), "defer"),
    "huge length": (lambda: sliding_windows(P, 10**5000), "length"),
    "huge length and overlap": (lambda: sliding_windows(P, 10**400, overlap=0.5), "length"),
    "huge rows": (lambda: sliding_windows(P, 2, rows=np.array([2**63], np.uint64)), "rows"),
    "huge gap": (lambda: list(HBlockSplit(2, gap=10**30).split(P)), "gap"),
    "huge blocks": (lambda: list(HBlockSplit(10**5000).split(P)), "n_blocks"),
    "too many rows": (lambda: list(HBlockSplit(2).split(range(10**30))), "X"),
    "missing step": (lambda: list(HBlockSplit(2, step=np.timedelta64("NaT", "s")).split(P)), "step"),
    "missing times": (lambda: list(HBlockSplit(2).split(P, groups=TIMES)), "groups"),
    "missing texts": (lambda: list(HBlockSplit(2).split(P, groups=["a", None, None, "a"])), "groups"),
    "missing class": (lambda: list(HBlockSplit(2, per_class=True).split(P, [0.0, np.nan] * 2)), "y"),
    "missing series": (lambda: sliding_windows(P, 2, series=["a", None, None, "a"]), "series"),
    "a frame as a flag": (lambda: HBlockSplit(2, per_class=pd.DataFrame(P)), "per_class"),
    "no mapping": (lambda: History.from_columns({"loss": [0.5]}, directions=3), "directions"),
    "no records": (lambda: History.from_records(3), "records"),
    "no metric": (lambda: History.from_columns({"loss": [0.5]}).best(3), "metric"),
    "no metrics": (lambda: History.from_columns({"loss": [0.5]}).select(against=3), "against"),
    "no direction": (lambda: EarlyStopping(mode=Y), "mode"),
    "huge difference": (lambda: EarlyStopping(mode="min", min_delta=10**400), "min_delta"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_odd_values_are_refused_by_name(name):
    call, argument = REFUSED[name]
    with pytest.raises(vx.InputError) as refusal:
        call()
    assert argument is None or refusal.value.argument == argument
    assert len(str(refusal.value)) < 500


def test_a_step_beyond_the_table_leaves_one_window():
    windows = sliding_windows(np.arange(6.0), 2, step=10**30)
    assert (len(windows), windows.step, windows.unused) == (1, 10**30, 4)
    assert windows.values.tolist() == [[0.0, 1.0]]


def test_one_cost_of_deferral_may_be_a_0d_array():
    assert vx.deferral(Y, P, defer=np.array(0.25)).to_dict() == vx.deferral(Y, P, defer=0.25).to_dict()


def test_integers_beyond_64_bits_may_name_subgroups_of_a_handle():
    labels = np.array([2**64 - 1, 2**64 - 1, 5, 5], np.uint64)
    columns = {"y": Y, "by": labels} | {f"p_{i}": P[:, i] for i in range(3)}
    found = vx.subgroups(vx.scan(pa.table(columns), by="by"), by="by", least=1)
    assert [line.label for line in found.lines] == [5, 2**64 - 1]
