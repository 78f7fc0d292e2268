"""Arrays of every kind: what container, what namespace, what precision.

NumPy is the home case and imports nothing else. Other array-API arrays stay where they are; frames
and columns (pandas, polars, pyarrow) become NumPy arrays, and their column names come along.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from verax.errors import InputError

# An array of any array-API namespace, and that namespace: Python has no types for them.
Array = Any
Namespace = Any

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

# Arrays that do not name their namespace themselves, and containers that narwhals reads.
_ARRAY_PACKAGES = frozenset({"torch", "cupy"})
_FRAME_PACKAGES = frozenset({"pandas", "polars", "pyarrow", "modin", "cudf", "narwhals"})


def to_array(x: object, argument: str) -> tuple[Array, tuple[Any, ...] | None]:
    """Bring `x` to an array, without a copy where possible, with its column names if it has any."""
    package = type(x).__module__.partition(".")[0]
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        row = int(np.argwhere(np.ma.getmaskarray(x))[0][0])
        raise InputError(
            f"`{argument}` must not have masked values; row {row} has one.", argument=argument, rows=(row,)
        )
    if isinstance(x, np.ndarray):
        return np.asarray(x), None
    if hasattr(x, "__array_namespace__") or (package in _ARRAY_PACKAGES and hasattr(x, "ndim")):
        return x, None
    if package in _FRAME_PACKAGES:
        return _from_frame(x, argument)
    if x is None or isinstance(x, (str, bytes, Mapping, Set)) or hasattr(x, "__next__"):
        raise InputError(
            f"`{argument}` must be an array, a list or a column, not a {type(x).__name__}.", argument=argument
        )
    if hasattr(x, "toarray"):
        raise InputError(f"`{argument}` is sparse; pass its toarray().", argument=argument)
    try:
        return np.asarray(x), None
    except ValueError:
        raise InputError(
            f"`{argument}` is not rectangular: its rows differ in length.", argument=argument
        ) from None


def _from_frame(x: object, argument: str) -> tuple[Array, tuple[Any, ...] | None]:
    import narwhals as nw

    try:
        native: Any = nw.from_native(x, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError:
        raise InputError(f"`{argument}` must not have two columns of one name.", argument=argument) from None
    if isinstance(native, nw.LazyFrame):
        raise InputError(f"`{argument}` is a lazy frame; collect() it first.", argument=argument)
    if isinstance(native, nw.DataFrame):
        return native.to_numpy(), tuple(native.columns)
    if isinstance(native, nw.Series):
        return native.to_numpy(), None
    return np.asarray(x), None


def same_rows(x: object, y: object, names: tuple[str, str]) -> None:
    """Refuse two pandas objects whose rows carry the same labels in a different order."""
    first, second = getattr(x, "index", None), getattr(y, "index", None)
    if not (hasattr(first, "equals") and hasattr(second, "equals")) or first is None or second is None:
        return
    if len(first) == len(second) and not first.equals(second) and first.isin(second).all():
        raise InputError(
            f"`{names[0]}` and `{names[1]}` have the same index in a different order, and rows are matched "
            f"by position. Put them in one order, such as {names[0]}.loc[{names[1]}.index].",
            argument=names[0],
        )


def namespace_of(x: Array) -> Namespace:
    """The array-API namespace of `x`; plain NumPy for NumPy arrays."""
    if isinstance(x, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(x)


def device_of(x: Array) -> object:
    """The device `x` lives on, in the words of its own namespace."""
    if isinstance(x, np.ndarray):
        return x.device
    from array_api_compat import device

    return device(x)


def to_host(x: Array) -> np.ndarray[Any, Any]:
    """A NumPy copy or view of `x`, detached from any gradient."""
    if hasattr(x, "detach"):  # torch
        x = x.detach().cpu()
    elif hasattr(x, "get") and not isinstance(x, np.ndarray):  # CuPy
        x = x.get()
    return np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x)


def move_like(x: Array, like: Array) -> Array:
    """`x` in the namespace and on the device of `like`."""
    xp = namespace_of(like)
    if xp is np:
        return to_host(x)
    if namespace_of(x) is xp:
        from array_api_compat import to_device

        return x if device_of(x) == device_of(like) else to_device(x, device_of(like))
    return xp.asarray(np.array(to_host(x)), device=device_of(like))


def kind_of(x: Array) -> str:
    """'real', 'integer', 'bool', 'complex', or for NumPy arrays also 'text', 'object', 'other'."""
    if isinstance(x, np.ndarray):
        kinds = {"f": "real", "i": "integer", "u": "integer", "b": "bool", "c": "complex"}
        kinds |= {"U": "text", "S": "text", "T": "text", "O": "object"}
        return kinds.get(x.dtype.kind, "other")
    xp = namespace_of(x)
    for kind, name in (("real floating", "real"), ("integral", "integer"), ("bool", "bool")):
        if xp.isdtype(x.dtype, kind):
            return name
    return "complex" if xp.isdtype(x.dtype, "complex floating") else "other"


def sum_tolerance(p: Array) -> float:
    """How far a row of `p` may be from summing to one, by the precision it came in."""
    if kind_of(p) != "real":
        return 1e-6
    return tolerance_of(int(namespace_of(p).finfo(p.dtype).bits))


def tolerance_of(bits: int) -> float:
    """How far a sum of probabilities of so many bits may be from one."""
    return {16: 1e-2, 32: 1e-4}.get(bits, 1e-6)


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


def to_index(x: Array) -> Array:
    """`x` as the namespace's own index type (int64, or what JAX has in its place)."""
    xp = namespace_of(x)
    if xp is np:
        return x.astype(np.int64, copy=False)
    return xp.astype(x, xp.__array_namespace_info__().default_dtypes()["integral"], copy=False)
