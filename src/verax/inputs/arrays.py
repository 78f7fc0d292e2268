"""Arrays of every kind: their containers, namespaces and precisions.

NumPy is the home case and imports nothing else. Other array-API arrays stay where they are; frames
and columns (pandas, polars, pyarrow, DuckDB) become NumPy arrays, and their column names come along.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np

from verax.errors import SHOWN_ROWS, InputError, Offenders, Remedy


class Columns:
    """K columns of N numbers, read like an (N, K) array that is never put together.

    `Forecasts` takes it in place of `p`. The compiled pass reads the columns in place. Everything else reads
    slices of rows, which are put together on demand.

    >>> import verax as vx
    >>> from verax.inputs.arrays import Columns
    >>> p = Columns([np.array([0.8, 0.4]), np.array([0.2, 0.6])])
    >>> p.shape, round(vx.brier([0, 1], p), 3)
    ((2, 2), 0.2)
    """

    ndim = 2

    def __init__(self, columns: Sequence[np.ndarray[Any, Any]]) -> None:
        self.columns: tuple[np.ndarray[Any, Any], ...] = tuple(np.asarray(column) for column in columns)
        shapes = {column.shape for column in self.columns}
        if len(shapes) != 1 or self.columns[0].ndim != 1:
            raise InputError(
                "must have columns of one length",
                argument="p",
                kind="length",
                found=f"their shapes are {', '.join(map(str, sorted(shapes))) or 'none'}",
            )
        self.shape: tuple[int, int] = (len(self.columns[0]), len(self.columns))
        self.dtype: np.dtype[Any] = np.result_type(*self.columns)

    def __getitem__(self, key: tuple[Any, Any]) -> Any:
        """An array of some rows (a slice first), or these columns in another order (a list second)."""
        rows, chosen = key
        if isinstance(chosen, list):
            return Columns([self.columns[j][rows] for j in chosen])
        parts = [column[rows] for column in self.columns]
        joined = np.empty((len(parts), len(parts[0])), self.dtype)
        for row, part in zip(joined, parts, strict=True):
            row[...] = part
        return joined.T

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("separate columns cannot become one array without a copy")
        return np.asarray(self[:, ...], dtype)


Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

# An array of any array-API namespace, and that namespace: Python has no types for them.
Array = Any
Namespace = Any

# Up to this number of classes, array calls on the host are faster on columns than on rows.
_FEW = 64
# Arrays that do not name their namespace themselves, and containers that narwhals reads.
_ARRAY_PACKAGES = frozenset({"torch", "cupy"})
_FRAME_PACKAGES = frozenset({"pandas", "polars", "pyarrow", "modin", "cudf", "narwhals"})
# DuckDB relations, under the names of its older and newer modules.
_RELATION_PACKAGES = frozenset({"duckdb", "_duckdb"})


def to_array(x: object, argument: str) -> tuple[Array, tuple[Any, ...] | None]:
    """Convert `x` to an array, without a copy if possible, and return its column names if it has any.

    A column of lists of probabilities becomes a table of numbers.
    """
    array, columns = _to_array(x, argument)
    if argument == "p" and isinstance(array, np.ndarray) and array.dtype == object and array.ndim == 1:
        array = _stacked(array, argument)
    return array, columns


def is_relation(x: Any) -> bool:
    """Whether it is a DuckDB relation."""
    package = type(x).__module__.partition(".")[0]
    return package in _RELATION_PACKAGES and hasattr(x, "fetch_arrow_table") and not isinstance(x, type)


def is_masked(x: object) -> TypeGuard[np.ma.MaskedArray[Any, Any]]:
    """Whether it is an array with masked values; there is none unless `numpy.ma` was imported."""
    return "numpy.ma" in sys.modules and isinstance(x, np.ma.MaskedArray) and bool(np.ma.is_masked(x))


def _to_array(x: object, argument: str) -> tuple[Array, tuple[Any, ...] | None]:
    package = type(x).__module__.partition(".")[0]
    if is_masked(x):
        rows = np.unique(np.argwhere(np.ma.getmaskarray(x))[:, :1]).tolist()
        more = f" ({len(rows):,} rows in all)" if len(rows) > 1 else ""
        raise InputError(
            "must not have masked values",
            argument=argument,
            kind="missing",
            found=f"row {rows[0]} has one{more}" if rows else "it is masked",
            rows=rows[:SHOWN_ROWS],
            count=len(rows),
        )
    if isinstance(x, (np.ndarray, np.generic)):
        return np.asarray(x), None
    if isinstance(x, Columns):
        return x, None
    if hasattr(x, "summarise") and not isinstance(x, type):
        # A handle; its class is defined further up.
        raise InputError(
            "must be an array in memory: this call needs all rows at once or returns one number per row",
            argument=argument,
            kind="type",
            found=f"it is {getattr(x, 'name', 'predictions')}, opened by `scan`",
            remedies=[
                Remedy(
                    "Pass it alone, in place of outcomes and forecasts, to functions such as `evaluate` and "
                    "`compare`; or read the rows with `verax.files.read`, if they fit.",
                    python_only=True,
                )
            ],
        )
    if hasattr(x, "toarray") or getattr(x, "is_sparse", False) or getattr(x, "is_sparse_csr", False):
        advice = Remedy("Pass its toarray() or to_dense().", python_only=True)
        raise InputError("must not be sparse", argument=argument, kind="type", remedies=[advice])
    # A class has the attributes of its instances, so only instances are asked for them.
    claims = hasattr(x, "__array_namespace__") or package in _ARRAY_PACKAGES
    array_like = claims and hasattr(x, "ndim")
    if array_like and not isinstance(x, type):
        return x, None
    if is_relation(x):
        return _from_frame(_of_relation(x, argument), argument)
    if package in _FRAME_PACKAGES and not isinstance(x, type):
        return _from_frame(x, argument)
    if package == "xarray" and hasattr(x, "dims") and hasattr(x, "values"):
        return np.asarray(x.values), _names_along(x)
    if x is None or isinstance(x, (str, bytes, type, Mapping, Set)) or hasattr(x, "__next__"):
        raise InputError(
            f"must be an array, a list or a column, not a {type(x).__name__}",
            argument=argument,
            kind="type",
            remedies=_meant(x, argument),
        )
    return _as_numpy(x, argument), None


def _of_relation(x: Any, argument: str) -> Any:
    """The table of a DuckDB relation, or its only column; the values of an ENUM are texts."""
    table = x.to_arrow_table() if hasattr(x, "to_arrow_table") else x.fetch_arrow_table()
    if argument == "p" or table.num_columns != 1:
        return table
    column = table.column(0)
    return column.cast(column.type.value_type) if x.types[0].id == "enum" else column


def _from_frame(x: object, argument: str) -> tuple[Array, tuple[Any, ...] | None]:
    import narwhals as nw

    try:
        native: Any = nw.from_native(x, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError:
        raise InputError("must not have two columns with the same name", argument=argument) from None
    if isinstance(native, nw.LazyFrame):
        advice = Remedy("Call its collect() first.", python_only=True)
        raise InputError("must not be a lazy frame", argument=argument, kind="type", remedies=[advice])
    if isinstance(native, nw.DataFrame):
        if not native.columns:
            raise InputError("must have columns", argument=argument, kind="length", found="it has none")
        values = native.to_numpy()
        if values.dtype == object and values.shape[1] == 1 and argument == "p":
            # A single column of lists.
            return values[:, 0], None
        if values.dtype == object and all(dtype.is_numeric() for dtype in native.schema.dtypes()):
            # pandas has no numeric array for several columns of a pyarrow type, but has one for each.
            values = np.stack([_numbers(column) for column in native.iter_columns()], axis=1)
        return values, tuple(native.columns)
    if isinstance(native, nw.Series):
        return native.to_numpy(), None
    return _as_numpy(x, argument), None


def frame_columns(x: object) -> dict[Any, Any] | None:
    """The columns of a frame of any package by their names, as narwhals series; None for other things."""
    import narwhals as nw

    try:
        frame = nw.from_native(x, eager_only=True)  # type: ignore[call-overload]
    except TypeError:
        return None
    # A name that is a number would be read as the place of a row.
    return dict(zip(frame.columns, frame.iter_columns(), strict=True))


def _numbers(column: Any) -> np.ndarray[Any, Any]:
    """The numbers of a column of narwhals. Decimals have no type of their own in NumPy."""
    import narwhals as nw

    decimal = column.dtype == nw.Decimal
    return np.asarray((column.cast(nw.Float64()) if decimal else column).to_numpy())


def _names_along(x: Any) -> tuple[Any, ...] | None:
    """The names of the columns of a labelled array, by its coordinates; None if they do not name any."""
    index = getattr(x, "indexes", {}).get(x.dims[1]) if len(x.dims) == 2 else None
    return None if index is None else tuple(index.tolist())


def _stacked(values: np.ndarray[Any, Any], argument: str) -> np.ndarray[Any, Any]:
    """A column of lists of one length as (n, m) numbers, NaN for missing ones; other columns unchanged.

    >>> _stacked(np.array([None, [0.5, 0.5]], dtype=object), "p").tolist()
    [[nan, nan], [0.5, 0.5]]
    """
    # None, NaN and the missing value of pandas have no length.
    rows = [row if hasattr(row, "__len__") and getattr(row, "shape", None) != () else None for row in values]
    first = next((row for row in rows if row is not None), None)
    if not isinstance(first, (list, tuple, np.ndarray)):
        return values
    lengths = np.array([len(first if row is None else row) for row in rows])
    wrong = Offenders(argument, f"must hold lists of {len(first)} numbers", "length", ("has", "have"))
    wrong.add(lengths != len(first), lengths, 0)
    if wrong.count:
        raise wrong.error()
    empty = np.full(len(first), np.nan)
    try:
        parts = [empty if row is None else np.asarray(row, _number_type(row)) for row in rows]
    except (TypeError, ValueError):
        raise InputError("must hold lists of numbers", argument=argument, kind="type") from None
    # Missing lists do not widen the others.
    return np.stack(parts).astype(_number_type(first), copy=False)


def _meant(x: object, argument: str) -> list[Remedy]:
    """The call that was meant, if forecasts are missing, or forecasts or grades are of several models."""
    if argument == "grades" and isinstance(x, Mapping):
        text = "Compare several models with vx.compare_grades({name: values, ...})."
    elif argument != "p":
        return []
    elif x is None:
        text = "Open a table or file of outcomes and forecasts with vx.evaluate(vx.scan(table, target=...))."
    elif isinstance(x, Mapping):
        text = "Compare several models with vx.compare(y, {name: p, ...})."
    else:
        return []
    return [Remedy(text, python_only=True)]


# Classifiers with several outputs give a list of arrays.
ONE_OUTPUT = Remedy("Score several outputs one at a time: vx.evaluate(y[:, 0], p[0]).", python_only=True)


def _number_type(row: object) -> Any:
    return row.dtype if isinstance(row, np.ndarray) and row.dtype.kind == "f" else np.float64


def _as_numpy(x: object, argument: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(x)
    except ValueError:
        tables = isinstance(x, (list, tuple)) and all(getattr(item, "ndim", 1) == 2 for item in x)
        raise InputError(
            "must be rectangular",
            argument=argument,
            kind="type",
            found="its rows differ in length",
            remedies=[ONE_OUTPUT] if tables else (),
        ) from None
    except Exception as error:
        # The object's own conversion failed, with whatever it raises.
        raise InputError(
            f"must be an array, a list or a column, not a {type(x).__name__}",
            argument=argument,
            kind="type",
            found=f"it cannot be read as an array ({type(error).__name__})",
        ) from error


def same_rows(x: object, y: object, names: tuple[str, str]) -> None:
    """Refuse two pandas objects with the same row labels in different orders."""
    if x is None:
        return
    first, second = getattr(x, "index", None), getattr(y, "index", None)
    if not (hasattr(first, "equals") and hasattr(second, "equals")) or first is None or second is None:
        return
    if len(first) != len(second) or first.nlevels != second.nlevels or first.equals(second):
        return
    if first.isin(second).all():
        advice = f"Put them in one order, such as {names[0]}.loc[{names[1]}.index]."
        raise InputError(
            "must have its rows in the order of the forecasts: rows are matched by position",
            argument=names[0],
            kind="order",
            found="both have the same index, in different orders",
            remedies=[Remedy(advice, python_only=True)],
        )


# The namespaces of known array types: looking one up is faster than finding it.
_namespaces: dict[type, Namespace] = {}


def namespace_of(x: Array) -> Namespace:
    """The array-API namespace of `x`; plain NumPy for NumPy arrays."""
    if isinstance(x, (np.ndarray, Columns)):
        return np
    xp = _namespaces.get(type(x))
    if xp is None:
        from array_api_compat import array_namespace

        xp = _namespaces[type(x)] = array_namespace(x)
    return xp


def device_of(x: Array) -> object:
    """The device of `x`, as its namespace names it."""
    if isinstance(x, np.ndarray):
        return x.device
    from array_api_compat import device

    return device(x)


def to_host(x: Array) -> np.ndarray[Any, Any]:
    """A NumPy copy or view of `x`, detached from any gradient."""
    if hasattr(x, "detach"):  # torch
        x = x.detach().cpu()
        # NumPy has no type for half precision with the range of single precision.
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x
    elif hasattr(x, "get") and not isinstance(x, np.ndarray):  # CuPy
        x = x.get()
    return np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x)


def is_traced(x: Array) -> bool:
    """Whether JAX traces `x`, so that it has no value yet: inside `jit`, not inside `grad` alone."""
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(x, jax.core.Tracer):
        return False
    try:
        np.asarray(x)
    except jax.errors.TracerArrayConversionError:
        return True
    return False


def move_like(x: Array, like: Array) -> Array:
    """`x` in the namespace and on the device of `like`."""
    xp = namespace_of(like)
    if xp is np:
        return to_host(x)
    if namespace_of(x) is xp:
        from array_api_compat import to_device

        return x if device_of(x) == device_of(like) else to_device(x, device_of(like))
    return xp.asarray(_portable(to_host(x)), device=device_of(like))


def _portable(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of `x` in a type that every namespace has: native byte order, no wide unsigned integers."""
    if x.dtype.kind == "u" and x.dtype.itemsize > 1:
        return x.astype(np.int64 if x.size == 0 or x.max() < 2**63 else np.float64)
    if x.dtype.kind == "f" and x.dtype.itemsize > 8:
        return x.astype(np.float64)
    return x.astype(x.dtype.newbyteorder("="))


def kind_of(x: Array) -> str:
    """'real', 'integer', 'bool', 'complex', or for NumPy arrays also 'text', 'object', 'other'."""
    if isinstance(x, (np.ndarray, Columns)):
        kinds = {"f": "real", "i": "integer", "u": "integer", "b": "bool", "c": "complex"}
        kinds |= {"U": "text", "S": "text", "T": "text", "O": "object"}
        return kinds.get(x.dtype.kind, "other")
    return _kind_of_type(namespace_of(x), x.dtype)


@lru_cache(maxsize=64)
def _kind_of_type(xp: Namespace, dtype: Any) -> str:
    for kind, name in (("real floating", "real"), ("integral", "integer"), ("bool", "bool")):
        if xp.isdtype(dtype, kind):
            return name
    return "complex" if xp.isdtype(dtype, "complex floating") else "other"


def widen(x: Array) -> Array:
    """`x` in the widest floating type its device has: float64, unless there is none."""
    xp = namespace_of(x)
    if xp is np:
        return x.astype(np.float64, copy=False)
    if x.dtype == xp.float64:
        return x
    info = xp.__array_namespace_info__()
    wide = info.dtypes(kind="real floating", device=device_of(x)).get("float64", xp.float32)
    return xp.astype(x, wide, copy=False)


def by_column(x: Array) -> Array:
    """Rows of numbers of few classes, column by column in memory.

    NumPy adds and compares columns several times as fast as rows of few numbers.
    """
    return np.asfortranarray(x) if isinstance(x, np.ndarray) and x.shape[1] <= _FEW else x


def to_index(x: Array) -> Array:
    """`x` as the namespace's own index type (int64, or what JAX has in its place)."""
    xp = namespace_of(x)
    if xp is np:
        return x.astype(np.int64, copy=False)
    return xp.astype(x, xp.__array_namespace_info__().default_dtypes()["integral"], copy=False)
