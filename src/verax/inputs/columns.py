"""Probabilities as separate columns, one array per class, as files and data frames hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.errors import InputError


class Columns:
    """K columns of N numbers, to be read like an (N, K) array that was never put together.

    `Forecasts` takes it in place of `p`. The compiled pass reads the columns where they are. Everything else
    asks for slices of rows, which are put together as they are asked for.

    >>> import verax as vx
    >>> from verax.inputs.columns import Columns
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
