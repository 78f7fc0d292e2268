"""Odd values: what a caller may pass by mistake or by malice, each made afresh, as some can be used once."""

from __future__ import annotations

import array
import datetime
import decimal
import fractions
import io
import itertools
import os
import threading
import time
import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import verax as vx
from attack.law import HostileError

# Four rows with forecasts of three classes; calls have them several times, a little moved.
TIMES = 6
_P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5], [0.3, 0.3, 0.4]])
_MOVED = np.arange(4 * TIMES)[:, None] * np.array([-0.002, 0.001, 0.001])
P = np.tile(_P, (TIMES, 1)) + _MOVED
Y = np.tile([0, 1, 2, 2, 1, 1, 2, 0], TIMES // 2)
SITE = np.tile(["u", "v", "u", "v"], TIMES)
N = len(Y)


def _record() -> Any:
    return np.array([(1, 0.5)] * 4, dtype=[("a", "i4"), ("b", "f8")])


def _objects(*values: object) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _pandas(make: Callable[[Any], Any]) -> Any:
    import pandas as pd

    return make(pd)


def _polars(make: Callable[[Any], Any]) -> Any:
    import polars as pl

    return make(pl)


def _arrow(make: Callable[[Any], Any]) -> Any:
    import pyarrow as pa

    return make(pa)


def _torch(make: Callable[[Any], Any]) -> Any:
    try:
        import torch
    except ImportError:
        return P.tolist()
    return make(torch)


def _two_level(pd: Any) -> Any:
    columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    return pd.DataFrame(P, columns=columns)


# Odd values by name; each is made afresh, because some can be used once only.
ODD: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "ellipsis": lambda: ...,
    "true": lambda: True,
    "zero": lambda: 0,
    "minus one": lambda: -1,
    "seven": lambda: 7,
    "a million": lambda: 10**6,
    "2^63": lambda: 2**63,
    "10^30": lambda: 10**30,
    "10^400": lambda: 10**400,
    "10^5000": lambda: 10**5000,
    "a half": lambda: 0.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "1e308": lambda: 1e308,
    "complex": lambda: 1j,
    "decimal": lambda: decimal.Decimal("0.5"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "np.float64": lambda: np.float64(0.25),
    "np.int8": lambda: np.int8(3),
    "np.bool": lambda: np.True_,
    "empty text": lambda: "",
    "text": lambda: "rps",
    "no rule": lambda: "no rule(",
    "lone surrogate": lambda: "\ud800",
    "nul": lambda: "a\0b",
    "deep text": lambda: "(" * 400,
    "bytes": lambda: b"abc",
    "empty list": list,
    "empty tuple": tuple,
    "empty dict": dict,
    "dict": lambda: {"a": P, "b": P},
    "dict of texts": lambda: {0: "x"},
    "set": lambda: {0, 1, 2},
    "generator": lambda: (i for i in (0, 1, 2, 2)),
    "range": lambda: range(4),
    "class": lambda: int,
    "function": lambda: len,
    "object": object,
    "module": lambda: np,
    "texts": lambda: ["a", "b", "c", "c"],
    "mixed list": lambda: [0, "a", None, 2.5],
    "tuples": lambda: [(0, 1), (2, 3), (4, 5), (4, 5)],
    "ragged": lambda: [[0.5], [0.2, 0.3], [], [1.0]],
    "nested": lambda: [[[0.5]], [[0.5]]],
    "unhashable": lambda: [{}, [], set(), {}],
    "wrong sums": lambda: P * 2,
    "nan rows": lambda: np.where(P[0, 0] == P, np.nan, P),
    "negative rows": lambda: P - 0.5,
    "empty array": lambda: np.zeros(0),
    "no rows": lambda: np.zeros((0, 3)),
    "no columns": lambda: np.zeros((4, 0)),
    "0-d": lambda: np.array(0.5),
    "3-d": lambda: np.zeros((4, 3, 2)),
    "objects": lambda: _objects(0, "a", None, {}),
    "record": _record,
    "complex array": lambda: P + 0j,
    "dates": lambda: np.array(["2020-01-01"] * 4, "datetime64[D]"),
    "date": lambda: datetime.date(2020, 1, 1),
    "durations": lambda: np.arange(4).astype("timedelta64[s]"),
    "masked": lambda: np.ma.masked_array(Y, np.tile([0, 1, 0, 0], TIMES)),
    "masked rows": lambda: np.ma.masked_array(P, P < 0.15),
    "read-only": lambda: _read_only(P),
    "big-endian": lambda: P.astype(">f8"),
    "big-endian integers": lambda: Y.astype(">i4"),
    "unsigned": lambda: Y.astype(np.uint64),
    "every other": lambda: np.repeat(P, 2, axis=0)[::2],
    "fortran": lambda: np.asfortranarray(P),
    "reversed": lambda: Y[::-1],
    "half precision": lambda: P.astype(np.float16),
    "long double": lambda: P.astype(np.longdouble),
    "byte texts": lambda: np.array([b"a", b"b", b"c", b"c"]),
    "void": lambda: np.zeros(4, "V8"),
    "matrix": lambda: np.asarray(P).view(np.matrix),
    "pandas frame": lambda: _pandas(lambda pd: pd.DataFrame(P, columns=["a", "b", "c"])),
    "pandas series": lambda: _pandas(lambda pd: pd.Series(["a", "b", "c", "c"])),
    "nullable series": lambda: _pandas(lambda pd: pd.Series([0, 1, None, 2], dtype="Int64")),
    "arrow series": lambda: _pandas(lambda pd: pd.Series([0, 1, 2, 2], dtype="int64[pyarrow]")),
    "arrow frame": lambda: _pandas(lambda pd: pd.DataFrame(P).astype("double[pyarrow]")),
    "nullable frame": lambda: _pandas(lambda pd: pd.DataFrame(P).astype("Float64")),
    "categorical": lambda: _pandas(lambda pd: pd.Categorical(["a", "b", "c", "c"], ordered=True)),
    "two levels": lambda: _pandas(_two_level),
    "index of tuples": lambda: _pandas(lambda pd: pd.MultiIndex.from_tuples([(0, 1), (1, 2), (2, 3)])),
    "time stamps": lambda: _pandas(lambda pd: pd.Series(pd.date_range("2020", periods=4))),
    "NaT": lambda: _pandas(lambda pd: pd.NaT),
    "NA": lambda: _pandas(lambda pd: pd.NA),
    "polars frame": lambda: _polars(lambda pl: pl.DataFrame(P, schema=["a", "b", "c"])),
    "polars series": lambda: _polars(lambda pl: pl.Series([0, 1, None, 2])),
    "polars lists": lambda: _polars(lambda pl: pl.Series([[0.5], [0.1, 0.2], None, []])),
    "lazy frame": lambda: _polars(lambda pl: pl.LazyFrame({"a": [1.0]})),
    "arrow table": lambda: _arrow(lambda pa: pa.table({"a": [0.5, 0.1], "b": [0.5, 0.9]})),
    "arrow array": lambda: _arrow(lambda pa: pa.array([0, 1, 2, None])),
    "chunked array": lambda: _arrow(lambda pa: pa.chunked_array([[0, 1], [2, 2]])),
    "arrow scalar": lambda: _arrow(lambda pa: pa.scalar(3)),
    "tensor": lambda: _torch(lambda torch: torch.tensor(P)),
    "integer tensor": lambda: _torch(lambda torch: torch.tensor(Y)),
    "tensor with gradient": lambda: _torch(lambda torch: torch.tensor(P, requires_grad=True)),
    "sparse tensor": lambda: _torch(lambda torch: torch.tensor(P).to_sparse()),
    "half tensor": lambda: _torch(lambda torch: torch.tensor(P, dtype=torch.bfloat16)),
    "half outcomes": lambda: _torch(lambda torch: torch.tensor(Y, dtype=torch.bfloat16)),
    "strict rows": lambda: _strict(P),
    "strict one-hot": lambda: _strict(np.eye(3, dtype=bool)[Y]),
    "strict integers": lambda: _strict(Y),
    "objects of lists": lambda: _objects([0], [1], [2], [2]),
    "objects of arrays": lambda: _objects(np.array([0, 1]), np.array([1]), np.array(2), np.zeros(0)),
    "objects with holes": lambda: _objects("a", None, float("nan"), "b"),
    "huge integers": lambda: _objects(0, 10**30, 1, 2),
    "largest integers": lambda: np.array([0, 1, 2**63 - 1, 2]),
    "2^64": lambda: np.array([0, 1, 2**64 - 1, 2], np.uint64),
    "no chunks": lambda: _arrow(lambda pa: pa.chunked_array([], pa.float64())),
    "no chunks of lists": lambda: _arrow(lambda pa: pa.chunked_array([], pa.list_(pa.float64()))),
    "table without chunks": lambda: _arrow(
        lambda pa: pa.table({"a": pa.chunked_array([], pa.float64()), "y": pa.chunked_array([], pa.int64())})
    ),
    "table without columns": lambda: _arrow(lambda pa: pa.table({})),
    "dictionary": lambda: _arrow(lambda pa: pa.array(["a", "b", "c", "c"]).dictionary_encode()),
    "arrow nulls": lambda: _arrow(lambda pa: pa.nulls(4)),
    "frame without columns": lambda: _pandas(lambda pd: pd.DataFrame(index=range(4))),
    "periods": lambda: _pandas(lambda pd: pd.Series(pd.period_range("2020", periods=4, freq="M"))),
    "intervals": lambda: _pandas(lambda pd: pd.Series(pd.interval_range(0, 4))),
    "duration": lambda: datetime.timedelta(seconds=3),
    "np.timedelta64": lambda: np.timedelta64(3, "s"),
    "missing duration": lambda: np.timedelta64("NaT", "s"),
    "np.datetime64": lambda: np.datetime64("2020-01-01"),
    "missing time": lambda: np.datetime64("NaT", "D"),
    "missing times": lambda: np.array(["2020-01-01", "NaT", "NaT", "2021-01-01"], "datetime64[s]"),
    "missing time stamps": lambda: _pandas(
        lambda pd: pd.to_datetime(pd.Series(["2020", None, None, "2021"]))
    ),
    "time": lambda: datetime.time(12),
    "rule": lambda: vx.rps,
    "class of rules": lambda: vx.rules.Brier,
    "top lists": lambda: lists(),
    "sparse": lambda: _sparse(),
    # What belongs to another function, or to another argument of this one.
    "outcomes": lambda: Y,
    "forecasts": lambda: P,
    "a name": lambda: "site",
    "names": lambda: ["site", "sex"],
    "rules": lambda: ["brier", "rps"],
    "a rule in a list": lambda: [vx.brier],
    "columns": lambda: [SITE, SITE[::-1]],
    "columns by name": lambda: {"site": SITE, "sex": SITE[::-1]},
    "frame of labels": lambda: _pandas(lambda pd: pd.DataFrame({"site": SITE, "sex": SITE[::-1]})),
    "frame of an array": lambda: _pandas(lambda pd: pd.DataFrame(P)),
    "one column": lambda: _pandas(lambda pd: pd.DataFrame({"site": SITE})),
    "numbers by name": lambda: {"a": 1.0, "b": 2.0},
    "sets": lambda: vx.Sets.from_probabilities(P, level=0.8),
    "handle": lambda: vx.scan(frame(), target="y", probs="p_*"),
    "path": lambda: "answers.csv",
    # Objects that answer wrongly.
    "negative length": lambda: hostile(__len__=lambda self: -1, __getitem__=lambda self, i: 0),
    "huge length": lambda: hostile(__len__=lambda self: 2**62, __getitem__=lambda self, i: 0),
    "no length": lambda: hostile(__len__=_raises, __getitem__=_raises, __iter__=_raises),
    "no array": lambda: hostile(__array__=lambda self, *a, **k: [1, 2]),
    "array that raises": lambda: hostile(__array__=_raises),
    "array of another shape": lambda: hostile(
        __array__=lambda self, *a, **k: np.zeros((2, 2, 2)), __len__=lambda self: 4, shape=(4, 3)
    ),
    "lying shape": lambda: hostile(shape=(4, "x"), dtype="float", ndim=None, __len__=lambda self: 4),
    "equal to nothing": lambda: hostile(__eq__=_raises, __hash__=lambda self: 1),
    "equal to arrays": lambda: hostile(__eq__=lambda self, other: np.zeros(3), __hash__=lambda self: 1),
    "no hash": lambda: hostile(__hash__=_raises),
    "no truth": lambda: hostile(__bool__=_raises),
    "no text": lambda: hostile(__repr__=_raises, __str__=_raises),
    "no float": lambda: hostile(__float__=_raises, __index__=_raises, __int__=_raises),
    "odd index": lambda: hostile(__index__=lambda self: 10**30),
    "odd float": lambda: hostile(__float__=lambda self: float("nan")),
    "any attribute": lambda: hostile(
        __getattr__=lambda self, name: self, __call__=lambda self, *a, **k: self
    ),
    "no attribute": lambda: hostile(__getattr__=_raises),
    "endless": lambda: hostile(__iter__=_endless),
    "interface": lambda: hostile(__array_interface__={"shape": (4,), "typestr": "<f8", "version": 3}),
    "dataframe": lambda: hostile(__dataframe__=lambda self, *a, **k: None),
    "arrow stream": lambda: hostile(__arrow_c_stream__=lambda self, *a, **k: None),
    "namespace": lambda: hostile(__array_namespace__=lambda self, *a, **k: np, shape=(4, 3), dtype=float),
    "mapping": lambda: hostile(keys=lambda self: ["a"], __getitem__=_raises),
    "path that raises": lambda: hostile(__fspath__=_raises),
    "path of a number": lambda: hostile(__fspath__=lambda self: 3),
    "path of bytes": lambda: hostile(__fspath__=lambda self: b"a.csv"),
    "subclass of str": lambda: type("Text", (str,), {"__eq__": _raises, "__hash__": str.__hash__})("rps"),
    "subclass of int": lambda: type("Number", (int,), {"__lt__": _raises, "__le__": _raises})(2),
    "subclass of list": lambda: type("List", (list,), {"__iter__": _raises})(range(4)),
    "subclass of dict": lambda: type("Dict", (dict,), {"items": _raises})(a=P, b=P),
    "iterator that raises": lambda: map(_raises, range(4)),
    "closed file": lambda: _closed(),
    "text stream": lambda: io.StringIO("label,p_a,p_b\n0,0.5,0.5\n"),
    "byte stream": lambda: io.BytesIO(b"VERAX"),
    "missing path": lambda: Path("there", "is", "none.csv"),
    "folder": lambda: Path("."),
    "root": lambda: Path("/"),
    "device": lambda: Path("/dev/null"),
    "process": lambda: Path("/proc/self/mem"),
    "pattern": lambda: "*.csv",
    "open pattern": lambda: "[.csv",
    "url": lambda: "http://127.0.0.1:1/a.csv",
    "url of nothing": lambda: "s3://",
    "long name": lambda: "x" * 5000,
    "home of nobody": lambda: "~nobody-there/a.csv",
    "lock": threading.Lock,
    "count": lambda: itertools.count(),
    "memoryview": lambda: memoryview(b"0123"),
    "bytearray": lambda: bytearray(b"0122"),
    "array of floats": lambda: array.array("d", [0.1, 0.2, 0.3, 0.4]),
    "moment with zone": lambda: datetime.datetime(
        2026, 3, 29, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")
    ),
    "year 1": lambda: datetime.datetime(1, 1, 1),
    "moments": lambda: _pandas(lambda pd: pd.Series(pd.date_range("2020", periods=4, tz="Asia/Kolkata"))),
    "far times": lambda: np.array([2**62, -(2**62), 0, 1], "datetime64[ns]"),
    "decimals": lambda: [decimal.Decimal("0.1"), decimal.Decimal("NaN"), decimal.Decimal("sNaN"), 1],
    "fractions": lambda: [fractions.Fraction(1, 3)] * 4,
    "arrow decimals": lambda: _arrow(lambda pa: pa.array([decimal.Decimal("0.5")] * 4)),
    "arrow structs": lambda: _arrow(lambda pa: pa.array([{"a": 1}] * 4)),
    "arrow maps": lambda: _arrow(lambda pa: pa.array([[("a", 0.5)]] * 4, pa.map_(pa.string(), pa.float64()))),
    "arrow lists": lambda: _arrow(lambda pa: pa.array([[0.5, None], None, [], [1.0]])),
    "arrow bytes": lambda: _arrow(lambda pa: pa.array([b"\xff", b"", None, b"a"])),
    "arrow times": lambda: _arrow(lambda pa: pa.array([0, 1, None, 2**62], pa.timestamp("us", "UTC"))),
    "arrow batch": lambda: _arrow(lambda pa: pa.record_batch({"y": [0, 1], "p_0": [0.5, None]})),
    "arrow reader": lambda: _arrow(
        lambda pa: pa.RecordBatchReader.from_batches(pa.schema([("y", pa.int64())]), iter(()))
    ),
    "table of one name": lambda: _arrow(lambda pa: pa.Table.from_arrays([pa.array([1, 2])] * 2, ["a", "a"])),
    "frame of one name": lambda: _pandas(lambda pd: pd.DataFrame(P, columns=["a", "a", "b"])),
    "frame of objects": lambda: _pandas(
        lambda pd: pd.DataFrame({"y": [0, "a", None, {}], "p_0": [[], 1, "", 2]})
    ),
    "sparse series": lambda: _pandas(lambda pd: pd.Series(pd.arrays.SparseArray([0, 0, 1, 2]))),
    "polars structs": lambda: _polars(lambda pl: pl.Series([{"a": 1}] * 4)),
    "polars objects": lambda: _polars(lambda pl: pl.Series([object()] * 4, dtype=pl.Object)),
    "polars categories": lambda: _polars(lambda pl: pl.Series(["a", "b", "c", "c"], dtype=pl.Categorical)),
    "polars decimals": lambda: _polars(lambda pl: pl.Series([decimal.Decimal("0.5")] * 4)),
    "polars times": lambda: _polars(lambda pl: pl.Series([datetime.time(12)] * 4)),
    "lazy frame that fails": lambda: _polars(lambda pl: pl.LazyFrame({"y": [1]}).select(pl.col("none"))),
    "zeros": lambda: np.zeros((4, 3)),
    "tiny": lambda: np.full((4, 3), 5e-324),
    "huge": lambda: np.full((4, 3), 1e308),
    "infinite rows": lambda: np.where(P[0, 0] == P, np.inf, P),
    "broadcast": lambda: np.broadcast_to(np.array([0.5, 0.25, 0.25]), (4, 3)),
    "many dimensions": lambda: np.zeros((1,) * 32),
    "none of each": lambda: [None] * 4,
    "nested texts": lambda: [["a"], ["b", "c"], "d", []],
    "deep list": lambda: _deep(3000),
    "itself": lambda: _itself(),
    "key of none": lambda: {None: P, "b": P},
    "keys of tuples": lambda: {("a", 1): P, ("a", 2): P},
    "empty forecasts": lambda: {"a": np.zeros((0, 3)), "b": P},
    "minus ones": lambda: -np.ones(4),
    "negative sizes": lambda: [-1, -2],
    "smallest integer": lambda: -(2**63),
    "minus zero": lambda: -0.0,
    "numbers of text": lambda: ["1", "2", "01", "1.0"],
    "percent": lambda: "50%",
    "warning": lambda: UserWarning,
    "slice": lambda: slice(None, None, -1),
    "not implemented": lambda: NotImplemented,
}


def hostile(**members: Any) -> Any:
    """An object of a class with these members."""
    return type("Hostile", (), members)()


def _raises(*_: object, **__: object) -> Any:
    raise HostileError("hostile")


def _endless(_self: object) -> Any:
    while True:
        time.sleep(0.01)
        yield 0


def _closed() -> Any:
    file = open(os.devnull)  # noqa: SIM115
    file.close()
    return file


def _deep(n: int) -> Any:
    made: Any = [0.5]
    for _ in range(n):
        made = [made]
    return made


def _itself() -> Any:
    made: list[Any] = [0.5]
    made.append(made)
    return made


def frame() -> Any:
    """Rows as a frame of pandas."""
    return frame_of({"y": Y} | {f"p_{i}": P[:, i] for i in range(3)})


def frame_of(columns: dict[str, Any]) -> Any:
    """Columns as a frame of pandas."""
    return _pandas(lambda pd: pd.DataFrame(columns))


def table_of(columns: dict[str, Any]) -> Any:
    """Columns as a table of Arrow."""
    return _arrow(lambda pa: pa.table(columns))


def _strict(values: Any) -> Any:
    try:
        import array_api_strict
    except ImportError:
        return values
    return array_api_strict.asarray(values)


def _read_only(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


def _sparse() -> Any:
    from scipy.sparse import csr_array

    return csr_array(P)


def lists() -> vx.TopLists:
    return vx.TopLists.from_probabilities(P, 2)


def made(name: str, *, fitting: bool) -> Any:
    """An odd value; if it is `fitting`, one of four rows has as many as the rows of the calls."""
    value = ODD[name]()
    return _repeated(value) if fitting else value


def _repeated(value: Any) -> Any:
    kind = type(value).__module__.partition(".")[0]
    if type(value) is list and len(value) == 4:
        return value * TIMES
    if type(value) in (np.ndarray, np.ma.MaskedArray) and value.ndim and len(value) == 4:
        return (np.ma if isinstance(value, np.ma.MaskedArray) else np).concatenate([value] * TIMES)
    if kind in ("pandas", "polars", "pyarrow") and getattr(value, "__len__", lambda: 0)() == 4:
        return _repeated_column(kind, value)
    return value


def _repeated_column(kind: str, value: Any) -> Any:
    if kind == "pandas":
        return _pandas(lambda pd: pd.concat([value] * TIMES)) if hasattr(value, "iloc") else value
    if kind == "polars":
        return _polars(lambda pl: pl.concat([value] * TIMES))
    whole = hasattr(value, "num_chunks")
    return _arrow(lambda pa: pa.chunked_array([*(value.chunks if whole else [value])] * TIMES))
