"""Arguments of the wrong kind: every public function and rule refuses them with an error of verax.

A call takes plausible arguments and puts odd values in the place of one or two of them. It may return a
result or raise a VeraxError. A TypeError is allowed only where Python itself complains about the form of
the call, that is, where no frame of verax is in the traceback. Every call must end within a few seconds.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import inspect
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

import verax as vx

SECONDS = 5

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5], [0.3, 0.3, 0.4]])
Y = np.array([0, 1, 2, 2])
SITE = np.array(["u", "v", "u", "v"])


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
    "nan rows": lambda: np.where(P == 0.7, np.nan, P),
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
    "masked": lambda: np.ma.masked_array(Y, [0, 1, 0, 0]),
    "masked rows": lambda: np.ma.masked_array(P, P < 0.2),
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
    "top lists": lambda: _lists(),
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
    "handle": lambda: vx.scan(PLAUSIBLE["source"](), target="y", probs="p_*"),
    "path": lambda: "answers.csv",
}


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


def _lists() -> vx.TopLists:
    return vx.TopLists.from_probabilities(P, 2)


# Plausible arguments by name.
PLAUSIBLE: dict[str, Callable[[], Any]] = {
    "y": lambda: Y,
    "p": lambda: P,
    "q": lambda: P,
    "a": lambda: P,
    "b": lambda: P[::-1],
    "rule": lambda: vx.brier,
    "rules": lambda: ["brier", "rps"],
    "text": lambda: "penalized(brier)",
    "n_classes": lambda: 3,
    "lists": _lists,
    "k": lambda: 2,
    "forecasts": lambda: {"a": P, "b": P[::-1]},
    "models": lambda: {"a": P, "b": P[::-1]},
    "decisions": lambda: np.array([0, 1, 1, 2]),
    "by": lambda: SITE,
    "groups": lambda: np.array([0, 0, 1, 1]),
    "classes": lambda: ["a", "b", "c"],
    "confidences": lambda: P,
    "offsets": lambda: [0, 3, 6, 9, 12],
    "rows": lambda: [{0: 0.5, 1: 0.25}, {2: 0.75}],
    "sets": lambda: [{0, 1}, {2}],
    "labels": lambda: [0, 1, 2],
    "position": lambda: 1,
    "differences": lambda: np.array([0.1, -0.2, 0.0]),
    "value": lambda: 0.5,
    "to": lambda: "scikit-learn",
    "scores": lambda: np.log(P),
    "metric": lambda: "qwk",
    "invalid": lambda: "skip",
    "weights": lambda: np.array([1.0, 0.0, 2.0, 0.5]),
    "source": lambda: _pandas(lambda pd: pd.DataFrame({"y": Y} | {f"p_{i}": P[:, i] for i in range(3)})),
    "p_0": lambda: P[:, 0],
    "X": lambda: P,
    "x": lambda: P,
    "length": lambda: 2,
    "records": lambda: [{"val_loss": 0.3}, {"val_loss": 0.2}],
    "columns": lambda: {"val_loss": [0.3, 0.2], "qwk": [0.1, 0.2]},
    "history": lambda: {"val_loss": [0.3, 0.2], "qwk": [0.1, 0.2]},
    "grades": lambda: {"a": [1, 0, 1, 0], "b": [0, 0, 1, 1]},
    "table": lambda: np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.4]]),
    "time": lambda: np.arange(4),
    "task": lambda: SITE,
    "ids": lambda: np.array(list("abcd")),
    "epochs": lambda: np.array([1, 1, 1, 1]),
    "difference": lambda: 0.01,
    "path": lambda: "nothing.json",
    "positive": lambda: 1,
    "state": lambda: [{"epoch": 1, "eval_loss": 0.5}, {"epoch": 2, "eval_loss": 0.3}],
}
# What differs from function to function.
SPECIAL: dict[tuple[str, str], Callable[[], Any]] = {
    ("evaluate_grades", "grades"): lambda: [1, 0, 1, 0],
    ("evaluate_grades", "p"): lambda: [0.9, 0.2, 0.7, 0.4],
    ("compare_folds", "scores"): lambda: {"a": [0.1, 0.2, 0.3], "b": [0.2, 0.1, 0.4]},
    ("compare_datasets", "models"): lambda: None,
    ("compare_datasets", "scores"): lambda: None,
    ("plan", "models"): lambda: ("a", "b"),
    ("sets", "sets"): lambda: P > 0.2,
    ("Combination.apply", "forecasts"): lambda: [P, P],
    ("Sets.from_mask", "mask"): lambda: P > 0.2,
    ("Sets.from_labels", "classes"): lambda: [0, 1, 2],
    ("raters", "y"): lambda: np.array([[0, 0], [1, 2], [2, 2], [2, 1]]),
    ("raters", "raters"): lambda: "columns",
    ("combine", "lists"): lambda: [_lists(), _lists()],
    ("TopLists.from_arrays", "classes"): lambda: np.tile([2, 0, 1], (4, 1)),
    ("TopLists", "classes"): lambda: np.tile([2, 0, 1], 4),
    ("TopLists", "confidences"): lambda: P.ravel(),
    ("TopLists.from_label_sets", "sets"): lambda: [[{0, 1}, {0}], [{2}]],
    ("TopLists.from_label_sets", "confidences"): lambda: [[0.5, 0.25], [0.9]],
    ("TopLists.from_logprobs", "rows"): lambda: [{"a": -0.5, "b": -1.5}, [{"token": "a", "logprob": -1}]],
    ("TopLists.with_outcomes", "weights"): lambda: np.ones(4),
    ("instance_f1", "y"): lambda: [{0, 1}, {2}],
    ("expected_hessian", "logits"): lambda: np.log(P),
    ("gradient", "logits"): lambda: np.log(P),
    ("compare", "p"): lambda: {"a": P, "b": P[::-1]},
    ("recalibrate", "method"): lambda: ["temperature", "isotonic"],
    ("fit_combination", "forecasts"): lambda: {"a": P, "b": P[::-1]},
    ("scan and evaluate", "weights"): lambda: None,
    ("scan and evaluate", "groups"): lambda: None,
    ("scan and evaluate", "lists"): lambda: None,
    ("scan and evaluate", "by"): lambda: (),
    ("scan", "weights"): lambda: "w",
    ("scan", "groups"): lambda: "g",
    ("scan", "lists"): lambda: True,
    ("scan", "by"): lambda: "site",
    ("risk_coverage", "by"): lambda: "entropy",
    ("selective", "by"): lambda: "entropy",
    ("sliding_windows", "rows"): lambda: [0, 1, 3],
    ("History.best", "metric"): lambda: "qwk",
}
# Optional arguments that are always given: the default would take too long.
ALWAYS = {("recalibrate", "method"), ("raters", "raters"), ("plan", "difference")}
# Those that are given in nearly every call: a handle would take their place.
ROWS = frozenset({"p", "forecasts"})


@cache
def _fitted(name: str) -> Any:
    """What takes new rows."""
    if name == "Combination":
        return vx.fit_combination(Y, {"a": P, "b": P[::-1]}, folds=2)
    if name == "Conformal":
        return vx.conformal(Y, P, level=0.5)
    return vx.recalibrate(Y, P, method="temperature", folds=2)


def _example_list() -> vx.TopLists:
    return vx.TopLists.from_dicts([{0: 0.5, 1: 0.25}] * 4, n_classes=3)


def _methods(name: str, make: Callable[[], Any], names: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for method in names.split():
        # A new object for every call: some calls change it.
        yield f"{name}.{method}", _Method(make, method)


class _Method:
    """A method of an object that is made when the method is called."""

    def __init__(self, make: Callable[[], Any], name: str) -> None:
        self.make, self.name = make, name
        self.__signature__ = inspect.signature(getattr(make(), name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.make(), self.name)(*args, **kwargs)


_RULE_METHODS = "__call__ samples by_outcome expected entropy divergence bounds sup_correct inf_wrong"
_LIST_MAKERS = (
    "from_arrays from_dicts from_decisions from_probabilities from_logprobs from_label_probabilities "
    "from_label_sets"
)


@cache
def targets() -> dict[str, Callable[..., Any]]:
    """Everything that is called, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for name in vx.__all__:
        value = getattr(vx, name)
        if isinstance(value, vx.rules.Rule):
            found |= dict(_methods(name, lambda rule=value: rule, _RULE_METHODS))
        elif inspect.isfunction(value) or (inspect.isclass(value) and issubclass(value, vx.rules.Rule)):
            found[name] = value
    found["Forecasts"] = vx.Forecasts
    found["TopLists"] = vx.TopLists
    found |= {f"TopLists.{name}": getattr(vx.TopLists, name) for name in _LIST_MAKERS.split()}
    found |= dict(
        _methods("TopLists", _example_list, "truncate with_outcomes with_class __getitem__ padded to_dicts")
    )
    makers = "from_mask from_labels from_probabilities from_lists"
    found |= {f"Sets.{name}": getattr(vx.Sets, name) for name in makers.split()}
    for name, methods in (
        ("Combination", "apply"),
        ("Conformal", "apply load"),
        ("Recalibration", "apply estimate_frequencies load"),
    ):
        found |= dict(_methods(name, lambda name=name: _fitted(name), methods))
    found["ConfidenceSequence"] = vx.ConfidenceSequence
    found |= dict(
        _methods(
            "ConfidenceSequence",
            lambda: vx.ConfidenceSequence("brier", n_classes=3),
            "update update_differences",
        )
    )
    found |= dict(_methods("penalized(rps)", lambda: vx.penalized(vx.rps), f"{_RULE_METHODS} constant"))
    found |= dict(_methods("padded(pbs)", lambda: vx.padded(vx.pbs), "__call__ samples by_outcome bounds"))
    found |= {f"compat.{name}": getattr(vx.compat, name) for name in ("pbs", "pll", "convert")}
    boosting = vx.adapters.boosting
    names = "probabilities start_scores xgboost_metric lightgbm_metric xgboost_objective catboost_objective"
    found |= {f"boosting.{name}": getattr(boosting, name) for name in names.split()}
    found["sklearn.scorer"] = vx.adapters.sklearn.scorer
    found |= {
        "scan and evaluate": _scanned,
        "scan columns": _framed,
        "scan arrow": _tabled,
        "HBlockSplit": _split,
        "EarlyStopping": _stop,
    }
    names = "from_records from_columns from_keras from_huggingface"
    found |= {f"History.{name}": getattr(vx.selection.History, name) for name in names.split()}
    found |= dict(_methods("History", _history, "best select"))
    found["sliding_windows"] = vx.selection.sliding_windows
    return found


def _history() -> Any:
    return vx.selection.History.from_columns({"val_loss": [0.3, 0.2, 0.4], "qwk": [0.1, 0.5, 0.4]})


def _scanned(source: Any, **options: Any) -> Any:
    return vx.evaluate(vx.scan(source, **options))


def _framed(y: Any, p_0: Any, weights: Any = None, groups: Any = None, by: Any = None) -> Any:
    return _of_columns(lambda columns: _pandas(lambda pd: pd.DataFrame(columns)), y, p_0, weights, groups, by)


def _tabled(y: Any, p_0: Any, weights: Any = None, groups: Any = None, by: Any = None) -> Any:
    return _of_columns(lambda columns: _arrow(lambda pa: pa.table(columns)), y, p_0, weights, groups, by)


def _of_columns(make: Any, y: Any, p_0: Any, weights: Any, groups: Any, by: Any) -> Any:
    given = {"y": y, "weights": weights, "groups": groups, "by": by}
    columns = {name: values for name, values in given.items() if values is not None}
    try:
        table = make(columns | {"p_0": p_0} | {f"p_{i}": P[:, i] for i in (1, 2)})
    except Exception:
        # The table itself refuses such a column.
        return None
    named = {name: name for name in columns if name != "y"}
    if by is not None:
        return vx.subgroups(vx.scan(table, target="y", **named), by="by", least=1)
    return vx.evaluate(vx.scan(table, target="y", **named))


def _split(
    X: Any,
    y: Any = None,
    groups: Any = None,
    n_blocks: Any = 2,
    n_test: Any = 1,
    n_validation: Any = 0,
    gap: Any = 0,
    gap_blocks: Any = 0,
    step: Any = 1,
    per_class: Any = False,
) -> Any:
    options = {"n_validation": n_validation, "gap": gap, "gap_blocks": gap_blocks, "step": step}
    split = vx.selection.HBlockSplit(n_blocks, n_test=n_test, per_class=per_class, **options)
    return list(split.split_three(X, y, groups))


def _stop(
    value: Any,
    rule: Any = None,
    mode: Any = "min",
    patience: Any = 2,
    min_delta: Any = 0.0,
    warmup: Any = 0,
    restore: Any = False,
) -> Any:
    options = {"patience": patience, "min_delta": min_delta, "warmup": warmup, "restore": restore}
    return vx.selection.EarlyStopping(rule, mode=mode, **options).step(value)


_scanned.__signature__ = inspect.signature(vx.scan)  # type: ignore[attr-defined]


def _arguments(rng: np.random.Generator, name: str, call: Callable[..., Any]) -> tuple[dict[str, Any], str]:
    """Arguments by name, one or two of them odd, and how the odd ones are called."""
    signature = inspect.signature(call)
    known = [p for p in signature.parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    short = name.rpartition(".")[2] if "." in name else name
    values: dict[str, Any] = {}
    for parameter in known:
        make = SPECIAL.get((name, parameter.name)) or SPECIAL.get((short, parameter.name))
        make = make or PLAUSIBLE.get(parameter.name)
        always = parameter.default is parameter.empty or (name, parameter.name) in ALWAYS
        if always or (parameter.name in ROWS and rng.random() < 0.95):
            values[parameter.name] = make() if make is not None else P
        elif make is not None and rng.random() < 0.1:
            values[parameter.name] = make()
    said = []
    if known:
        for i in rng.choice(len(known), size=min(len(known), int(rng.integers(1, 3))), replace=False):
            odd = str(rng.choice(list(ODD)))
            values[known[i].name] = ODD[odd]()
            said.append(f"{known[i].name}=<{odd}>")
    return values, ", ".join(said)


class TooLongError(BaseException):
    """A call that does not end in time; no handler of verax may catch it."""


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def give_up(_number: int, _frame: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _of_the_form(error: BaseException) -> bool:
    """Whether the interpreter refused the call itself: no frame after those of this file."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return isinstance(error, TypeError) and os.path.basename(frames[-1]) == os.path.basename(__file__)


def _call(call: Callable[..., Any], values: Mapping[str, Any]) -> BaseException | None:
    """What the call raised, if it should not have."""
    parameters = inspect.signature(call).parameters
    positional = [n for n in values if parameters[n].kind == inspect.Parameter.POSITIONAL_ONLY]
    named = {n: value for n, value in values.items() if n not in positional}
    try:
        with _limit(SECONDS), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            call(*(values[n] for n in positional), **named)
    except vx.VeraxError:
        return None
    except (Exception, TooLongError) as error:
        return None if _of_the_form(error) else error
    return None


def attempt(rng: np.random.Generator) -> None:
    """One call of a public function or rule with odd values among its arguments."""
    names = list(targets())
    name = names[int(rng.integers(len(names)))]
    call = targets()[name]
    values, said = _arguments(rng, name, call)
    error = _call(call, values)
    # A million resamples may take long.
    if error is None or (isinstance(error, TooLongError) and "<a million>" in said):
        return
    # A function of the caller may fail as it likes.
    if callable(values.get("progress")):
        return
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f"{last.tb_frame.f_code.co_name}:{last.tb_lineno}"
    what = f"{type(error).__name__}: {str(error)[:120]}"
    raise AssertionError(f"{name}({said}) raised {what} in {where}") from error
