"""Tensors as rows of forecasts. Shapes and types are checked, values are not: no device has to wait."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from array_api_compat import torch as compat
from torch import Tensor

from verax.common.checks import check_integer
from verax.engines.arrays import reduce_rows
from verax.engines.stats import RowStats
from verax.errors import InputError, Remedy

# The types of targets that kernels read as they are.
INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


class _Namespace:
    """The array-API namespace of PyTorch, with limits that are numbers: `torch.compile` follows a clamp."""

    def __getattr__(self, name: str) -> Any:
        return getattr(compat, name)

    def maximum(self, x: Any, limit: Any) -> Tensor:
        return torch.clamp(x, min=limit) if isinstance(limit, (int, float)) else compat.maximum(x, limit)

    def minimum(self, x: Any, limit: Any) -> Tensor:
        return torch.clamp(x, max=limit) if isinstance(limit, (int, float)) else compat.minimum(x, limit)


xp: _Namespace = _Namespace()


@dataclass(frozen=True)
class TensorRows:
    """Predictions as (N, K) rows, targets as (N,) positions, weights as (N,) numbers or None.

    `rows` are logits if `logits` is true, else probabilities. Targets outside 0..K-1 stay in `y` as
    given; statistics use the nearest class for them, so callers must look at `inside`. `kept` says
    which rows count, None for all. Rows that do not are uniform forecasts of class 0 with weight 0.
    """

    rows: Tensor
    y: Tensor
    weights: Tensor | None
    logits: bool
    kept: Tensor | None = None

    @property
    def n_classes(self) -> int:
        return int(self.rows.shape[1])

    @property
    def inside(self) -> Tensor:
        """Which targets are classes."""
        return (self.y >= 0) & (self.y < self.n_classes)

    def statistics(self, needs: Collection[str]) -> RowStats:
        """The row statistics `needs`, in the precision of the rows."""
        p = torch.softmax(self.rows, dim=1) if self.logits else self.rows
        columns = torch.arange(self.n_classes, device=p.device)
        y = self.y.clamp(0, self.n_classes - 1)
        return reduce_rows(xp, p, y, columns, needs, logits=self.rows if self.logits else None)

    def without(self, ignore_index: int) -> TensorRows:
        """The rows with targets other than `ignore_index`; shapes stay, so no device has to wait."""
        kept = self.y != ignore_index
        blank = 0.0 if self.logits else 1 / self.n_classes
        ones = torch.ones_like(self.rows[:, 0]) if self.weights is None else self.weights
        return TensorRows(
            # Not a product with the mask: NaN logits of ignored rows must not reach the gradient.
            torch.where(kept[:, None], self.rows, blank),
            torch.where(kept, self.y, 0),
            torch.where(kept, ones, 0.0),
            self.logits,
            kept,
        )


def read(
    preds: Tensor,
    target: Tensor,
    weights: Tensor | None,
    *,
    logits: bool,
    dtype: torch.dtype,
    ignore_index: int | None = None,
) -> TensorRows:
    """Predictions (N,), (N, K) or (N, K, ...) with their targets and weights, computed with in `dtype`."""
    _check_form(preds, target, weights)
    rows, y, w = _flatten(preds.to(dtype), target, weights, logits)
    read_rows = TensorRows(rows, y.long(), None if w is None else w.to(dtype), logits)
    return read_rows if ignore_index is None else read_rows.without(ignore_index)


def flatten(
    preds: Tensor, target: Tensor, weights: Tensor | None, *, logits: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Predictions as (N, K) rows, with (N,) targets and weights, in the types they have."""
    _check_form(preds, target, weights)
    return _flatten(preds, target, weights, logits)


def _flatten(
    preds: Tensor, target: Tensor, weights: Tensor | None, logits: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    rows = preds
    if preds.ndim == 1:
        rows = torch.stack([torch.zeros_like(preds) if logits else 1 - preds, preds], dim=1)
    elif preds.ndim > 2:
        rows = preds.movedim(1, -1).reshape(-1, preds.shape[1])
    return rows, target.reshape(-1), None if weights is None else weights.reshape(-1)


def check_ignore_index(value: int | None) -> int | None:
    """`value` as a Python integer or None; everything else is refused."""
    return None if value is None else check_integer("ignore_index", value)


def _check_form(preds: Tensor, target: Tensor, weights: Tensor | None) -> None:
    for argument, x in (("preds", preds), ("target", target), ("weights", weights)):
        if not isinstance(x, Tensor) and (x is not None or argument != "weights"):
            raise InputError(
                f"must be a tensor, not a {type(x).__name__}", argument=argument, kind="type", values=[x]
            )
    if not preds.is_floating_point() or preds.ndim == 0:
        raise _wrong_type(
            "preds",
            preds,
            "must be floating-point rows, (N, K)",
            "Predictions come first, as everywhere in PyTorch, and targets second.",
        )
    if preds.ndim > 1 and preds.shape[1] < 2:
        raise _wrong_type(
            "preds",
            preds,
            "must have at least two classes",
            "For a binary problem pass one number per row: preds.squeeze(1).",
        )
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise _wrong_type(
            "target",
            target,
            "must hold class positions, which are integers",
            "For one-hot rows pass target.argmax(dim=1), for flags target.long().",
        )
    expected = (*preds.shape[:1], *preds.shape[2:])
    for argument, x in (("target", target), ("weights", weights)):
        if x is not None and tuple(x.shape) != expected:
            raise InputError(
                f"must have the shape {expected}, for predictions of shape {tuple(preds.shape)}",
                argument=argument,
                kind="length",
                found=f"the shape is {tuple(x.shape)}",
            )


def _wrong_type(argument: str, x: Tensor, requirement: str, advice: str) -> InputError:
    return InputError(
        requirement,
        argument=argument,
        kind="type",
        found=f"it is {x.dtype} of shape {tuple(x.shape)}",
        remedies=[Remedy(advice, python_only=True)],
    )
