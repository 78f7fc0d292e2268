"""Losses by PyTorch's own operations, on every device and differentiable any number of times.

Small losses on the CPU come with their gradient from NumPy or a compiled loop, which cost less per call.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, nan
from typing import Any

import numpy as np
import torch
from torch import Tensor

from verax.adapters.rows import ArgumentNames, TrainingRows, refuse_invalid, warn_of_no_rows
from verax.adapters.torch.rows import (
    as_rows,
    check_class_weights,
    flatten,
    is_on_host,
    is_small,
    is_transformed,
    limit_of,
    on_host,
)
from verax.errors import RuleError
from verax.scores.base import Rule
from verax.scores.gradients.logits import losses_with_gradient
from verax.wings.frameworks.rowslopes import compiles_rows, losses_with_slopes

_NAMES = ArgumentNames("logits", "target", "weights", "logits", "ignore_index")


def eager_loss(
    rule: Rule,
    logits: Tensor,
    target: Tensor,
    weights: Tensor | None,
    class_weights: Tensor | None,
    reduction: str,
    ignore_index: int | None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The loss of logits (N, K, ...) when `target` happened, (N, ...) or (N, K, ...), as `Loss` gives it."""
    rows, y, w = flatten(logits, target, weights, logits=True)
    if class_weights is not None:
        check_class_weights(class_weights, rows.shape[1])
    work = _Work(rule, y, w, class_weights, reduction, ignore_index, label_smoothing, limit_of(target))
    loss = work.loss(rows)
    return loss.reshape(shape_of_losses(logits, target)) if reduction == "none" else loss


@dataclass(frozen=True)
class _Work:
    """The arguments of a loss other than the logits, which are (N, K) rows."""

    rule: Rule
    target: Tensor
    weights: Tensor | None
    class_weights: Tensor | None
    reduction: str
    ignore_index: int | None
    label_smoothing: float
    target_limit: float
    names: ArgumentNames = _NAMES

    def loss(self, rows: Tensor) -> Tensor:
        if not is_on_host(rows):
            return self.by_operations(rows)
        constant = self.weights is None or not self.weights.requires_grad
        by_loop = constant and self._has_loop(rows)
        if by_loop or (constant and is_small(rows) and _has_slopes(self.rule)):
            losses, slopes, total = self.with_slopes(rows, by_loop=by_loop)
            # Broken rows are left to operations.
            if isfinite(total):
                loss: Tensor = _HostLoss.apply(rows, losses, slopes, self, by_loop)  # type: ignore[no-untyped-call]
                return loss
        return self.by_operations(rows)

    def _has_loop(self, rows: Tensor) -> bool:
        """Whether a compiled loop goes through the rows, each of which has a class as its target."""
        classes = self.target.ndim == 1 and not self.label_smoothing
        return classes and compiles_rows(self.rule, *rows.shape)

    def by_operations(self, rows: Tensor) -> Tensor:
        batch = self._read(rows)
        invalid = _flag_invalid(batch, self.names)
        class_weights = None if self.class_weights is None else self.class_weights.to(batch.rows.dtype)
        scored, factor, divisor = batch.for_training(class_weights, self.label_smoothing)
        losses: Tensor = scored.losses(self.rule)
        losses = losses if invalid is None else torch.where(invalid, torch.nan, losses)
        losses = losses if factor is None else losses * factor
        if self.reduction == "none":
            return losses
        if self.reduction == "mean" and divisor is None:
            return losses.mean()
        total: Tensor = losses.sum()
        if self.reduction == "sum" or divisor is None:
            return total
        whole: Tensor = divisor.sum()
        if is_on_host(whole) and not whole:
            warn_of_no_rows()
        return total / whole

    def with_slopes(self, rows: Tensor, *, by_loop: bool) -> tuple[Any, Any, float]:
        """The loss and its derivatives in the logits, (N, K), by NumPy; without a reduction those of each.

        The third is a sum of all losses, which is not finite where rows are broken.
        """
        batch = self._read(rows, by_numpy=True)
        refuse_invalid(batch, self.names)
        class_weights = None if self.class_weights is None else self.class_weights.double().numpy()
        scored, factor, divisor = batch.for_training(class_weights, self.label_smoothing)
        n = len(scored.rows)
        whole = 1.0
        if self.reduction == "mean":
            whole = float(n if divisor is None else divisor.sum())
        scale, dtype = 1 / whole if whole else nan, scored.rows.dtype
        if by_loop:
            factors: Any = np.full(n, scale) if factor is None else factor * scale
            n_threads = torch.get_num_threads()
            losses, slopes = losses_with_slopes(self.rule, scored.rows, scored.target, factors, n_threads)
            losses *= factors
        else:
            losses, slopes = self._by_arrays(scored)
            factors = scale if factor is None else factor * scale
            losses *= factors
            slopes = np.multiply(slopes, factors if factor is None else factors[:, None], dtype=dtype)
        total = float(losses.sum())
        return np.asarray(losses if self.reduction == "none" else total, dtype), slopes, total

    def _by_arrays(self, scored: TrainingRows) -> tuple[Any, Any]:
        """The losses and their derivatives by array calls, or loops for few classes."""
        z, y = scored.rows, scored.target
        n, k = z.shape
        if scored.shared:
            # A distribution is all classes in turn, by their shares.
            z, y = np.repeat(z, k, axis=0), np.tile(np.arange(k), n)
        losses, slopes = losses_with_gradient(self.rule, z.T, y, repeated=True)
        slopes = slopes.T
        if scored.shared:
            losses = (losses.reshape(n, k) * scored.target).sum(axis=1)
            slopes = (slopes.reshape(n, k, k) * scored.target[:, :, None]).sum(axis=1)
        return losses, slopes

    def _read(self, rows: Tensor, *, by_numpy: bool = False) -> TrainingRows:
        return as_rows(
            rows,
            self.target,
            self.weights,
            target_limit=self.target_limit,
            logits=True,
            dtype=computed_in(rows, self.target),
            ignore_index=self.ignore_index,
            by_numpy=by_numpy,
        )


class _HostLoss(torch.autograd.Function):
    """A loss with its gradient, by NumPy; further derivatives by operations."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, loss: Any, slopes: Any, work: _Work, by_loop: bool) -> Tensor:
        ctx.work, ctx.slopes, ctx.by_loop = work, torch.from_numpy(slopes), by_loop
        ctx.save_for_backward(rows)
        return torch.from_numpy(loss)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        (above,) = upstream
        (rows,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            loss = ctx.work.by_operations(rows)
            return torch.autograd.grad(loss, rows, above, create_graph=True)[0], *[None] * 4
        # The gradient is given away once: a second pass through the graph computes it again.
        slopes, ctx.slopes = ctx.slopes, None
        if slopes is None:
            slopes = torch.from_numpy(ctx.work.with_slopes(rows, by_loop=ctx.by_loop)[1])
        if is_transformed():
            slopes = slopes * (above[:, None] if above.ndim else above)
        elif above.ndim or above.item() != 1:
            slopes *= above[:, None] if above.ndim else above
        return slopes, *[None] * 4

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        row_tangents: Tensor = (ctx.slopes * tangents[0]).sum(dim=1)
        return row_tangents if ctx.work.reduction == "none" else row_tangents.sum()


def shape_of_losses(logits: Tensor, target: Tensor) -> tuple[int, ...]:
    """The shape of the losses of such targets, one by one."""
    if not target.is_floating_point():
        return tuple(target.shape)
    return tuple(logits.shape[2:]) if logits.ndim == 1 else (*logits.shape[:1], *logits.shape[2:])


def computed_in(logits: Tensor, target: Tensor) -> torch.dtype:
    """The type that losses are computed in: float32, or float64 if logits or targets are."""
    wide = torch.float64 in (logits.dtype, target.dtype)
    return torch.float64 if wide else torch.float32


def returned_in(logits: Tensor, target: Tensor) -> torch.dtype:
    """The type that cross entropy has for such logits and targets."""
    dtype = torch.promote_types(logits.dtype, target.dtype) if target.is_floating_point() else logits.dtype
    narrow = dtype not in (torch.float32, torch.float64)
    return torch.float32 if narrow and torch.is_autocast_enabled(logits.device.type) else dtype


def row_losses(rule: Rule, batch: TrainingRows, label_smoothing: float, names: ArgumentNames) -> Tensor:
    """The loss of each row of a batch of another framework, whose tensors are PyTorch's."""
    if batch.logits and batch.kept is None:
        work = _Work(rule, batch.target, None, None, "none", None, label_smoothing, batch.target_limit, names)
        return work.loss(batch.rows)
    invalid = _flag_invalid(batch, names)
    losses: Tensor = batch.for_training(None, label_smoothing)[0].losses(rule)
    if invalid is None:
        return losses
    return torch.where(invalid, torch.nan, losses)


def _flag_invalid(batch: TrainingRows, names: ArgumentNames) -> Tensor | None:
    """Flag invalid rows; on the CPU, where looking is free, raise an error if there are any, else None."""
    if is_on_host(batch.rows):
        refuse_invalid(on_host(batch), names)
        return None
    invalid: Tensor = batch.invalid
    return invalid


@lru_cache(maxsize=128)
def _has_slopes(rule: Rule) -> bool:
    """Whether the derivatives of a rule's formula are known."""
    try:
        losses_with_gradient(rule, np.zeros((3, 1)), np.zeros(1, np.int64))
    except RuleError:
        return False
    return True
