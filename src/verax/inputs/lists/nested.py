"""Columns of lists, as pandas, polars and pyarrow have them: one flat array, and where each list begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.errors import InputError
from verax.inputs.arrays import Ints, to_array, to_host
from verax.inputs.lists.ragged import offsets_of


def column_of_lists(x: Any, argument: str) -> tuple[np.ndarray[Any, Any], Ints] | list[Any] | None:
    """The entries of a column of lists and where each list begins; None for what is no such column.

    A column of Python objects is returned as a list of them.
    """
    package = type(x).__module__.partition(".")[0]
    if package == "polars":
        return _from_polars(x, argument)
    if package == "pandas" and getattr(x, "ndim", 0) == 1:
        if type(x.dtype).__name__ == "ArrowDtype":
            import pyarrow as pa

            return _from_arrow(pa.array(x), argument)
        return list(x) if x.dtype == object else None
    if package == "pyarrow":
        return _from_arrow(x, argument)
    if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype == object:
        return list(x)
    return None


def _from_polars(x: Any, argument: str) -> tuple[np.ndarray[Any, Any], Ints] | list[Any] | None:
    if type(getattr(x, "dtype", None)).__name__ not in ("List", "Array"):
        return None
    try:
        return _from_arrow(x.to_arrow(), argument)
    except ImportError:
        return list(x.to_list())


def _from_arrow(x: Any, argument: str) -> tuple[np.ndarray[Any, Any], Ints] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = getattr(x, "type", None)
    if kind is None or not (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        return None
    if x.null_count:
        row = int(pc.index(x.is_null(), True).as_py())
        raise InputError(
            "must have one list per row",
            argument=argument,
            kind="missing",
            found=f"row {row} is missing ({x.null_count} in all)",
            rows=[row],
            count=x.null_count,
        )
    lengths = to_host(to_array(pc.list_value_length(x), argument)[0]).astype(np.int64)
    # Of chunks, and of slices, the entries of their own lists.
    entries = pc.list_flatten(x)
    return to_host(to_array(entries, argument)[0]), offsets_of(lengths)
