"""Losses on a GPU by one kernel forward and one backward, for autograd and for `torch.compile`.

The kernels are written from the rule's own formula (`verax.engines.cuda`). Where there is none for the rows
at hand, the operators compute what `eager_loss` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from verax.adapters.torch.eager import computed_in, eager_loss, shape_of_losses
from verax.adapters.torch.rows import INTEGERS, check_class_weights, flatten
from verax.engines.cuda import places
from verax.engines.cuda.losses import LossRows
from verax.engines.tracing import record
from verax.errors import VeraxError
from verax.scores.base import Rule

# Operators take numbers and tensors: rules are known to them by their place here.
_rules: list[Rule] = []


def number_of(rule: Rule) -> int | None:
    """The number under which the operators know a rule; None if its formula cannot be traced."""
    if rule not in _rules:
        if record([rule], 3, log_true=True) is None:
            return None
        _rules.append(rule)
    return _rules.index(rule)


def fused_loss(
    number: int,
    logits: Tensor,
    target: Tensor,
    weights: Tensor | None,
    class_weights: Tensor | None,
    reduction: str,
    ignore_index: int | None,
) -> Tensor:
    """What `eager_loss` computes, by the operators."""
    rows, y, w = flatten(logits, target, weights, logits=True)
    if class_weights is not None:
        check_class_weights(class_weights, rows.shape[1])
    dtype = computed_in(logits, target)
    y = y if y.dtype in INTEGERS else y.long()
    if w is not None:
        w = w if w.dtype in (torch.float32, torch.float64) else w.to(dtype)
        w = torch.where((w >= 0) & (w < torch.inf), w, torch.nan)
    class_weights = None if class_weights is None else class_weights.to(dtype).contiguous()
    inputs = rows, y, w, class_weights, number, reduction, ignore_index
    loss: Tensor
    if torch.compiler.is_compiling():
        loss = _loss_operator(*inputs)[0]
    else:
        loss = _Loss.apply(*inputs, torch.is_grad_enabled())  # type: ignore[no-untyped-call]
    return loss.reshape(shape_of_losses(logits, target)) if reduction == "none" else loss


def _loss(
    logits: Tensor,
    target: Tensor,
    weights: Tensor | None,
    class_weights: Tensor | None,
    rule: int,
    reduction: str,
    ignore_index: int | None,
) -> tuple[Tensor, Tensor]:
    """The loss of (N, K) logits, and the total weight where there is a mean."""
    loss, weight = _empty(logits, reduction)
    rows = _rows(logits, target, weights, class_weights, ignore_index)
    if rows is not None:
        if reduction == "none":
            done = rows.each(_rules[rule], loss.data_ptr())
        else:
            done = rows.total(_rules[rule], loss.data_ptr(), weight.data_ptr(), mean=reduction == "mean")
        if done:
            return loss, weight
    return eager_loss(_rules[rule], logits, target, weights, class_weights, reduction, ignore_index), weight


def _gradient(
    upstream: Tensor,
    weight: Tensor,
    logits: Tensor,
    target: Tensor,
    weights: Tensor | None,
    class_weights: Tensor | None,
    rule: int,
    reduction: str,
    ignore_index: int | None,
) -> Tensor:
    """The gradient in the logits of the loss times `upstream`."""
    gradient = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    rows = _rows(logits, target, weights, class_weights, ignore_index)
    if rows is not None:
        above = rows.place.view(upstream)
        over = weight.data_ptr() if reduction == "mean" else None
        if above is not None and rows.gradient(_rules[rule], above, over, gradient.data_ptr()):
            return gradient
    with torch.enable_grad():
        z = logits.detach().requires_grad_()
        loss = eager_loss(_rules[rule], z, target, weights, class_weights, reduction, ignore_index)
        return torch.autograd.grad(loss, z, upstream)[0]


def _refuse(*_: Any) -> None:
    raise VeraxError(
        "A loss of verax on a GPU has first derivatives only. For higher ones use rule.samples(y, logits, "
        "logits=True), which PyTorch differentiates any number of times."
    )


# ---- for autograd: functions, which cost the host little, and operators where graphs are compiled ------


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *inputs, differentiated = inputs  # type: ignore[assignment]
        ctx.early = None
        if differentiated and ctx.needs_input_grad[0]:
            ctx.early = _EarlyGradient.of(*inputs)
        loss, weight = _loss(*inputs) if ctx.early is None else ctx.early.loss
        _keep(ctx, tuple(inputs), (loss, weight))
        return loss

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        # Only where a graph of the gradient is asked for must it know that it has no derivative.
        twice = torch.is_grad_enabled()
        # It is given away once: a second pass through the graph computes it again.
        early, ctx.early = ctx.early, None
        if early is not None and not twice:
            gradient = early.times(upstream[0])
        else:
            inputs = upstream[0], *ctx.saved_tensors, *ctx.options
            gradient = _Gradient.apply(*inputs) if twice else _gradient(*inputs)  # type: ignore[no-untyped-call]
        return gradient, *[None] * 7


class _EarlyGradient:
    """A loss and its gradient by one kernel, which reads the rows once and starts before `backward` does."""

    def __init__(self, loss: tuple[Tensor, Tensor], gradient: Tensor, rescale: Callable[[int], None]) -> None:
        self.loss, self._gradient, self._rescale = loss, gradient, rescale

    @classmethod
    def of(
        cls,
        logits: Tensor,
        target: Tensor,
        weights: Tensor | None,
        class_weights: Tensor | None,
        rule: int,
        reduction: str,
        ignore_index: int | None,
    ) -> _EarlyGradient | None:
        """That of such rows; None where the gradient must wait."""
        if reduction == "none":
            return None
        rows = _rows(logits, target, weights, class_weights, ignore_index)
        if rows is None or not rows.is_plain:
            return None
        loss, weight = _empty(logits, reduction)
        gradient = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
        addresses = loss.data_ptr(), weight.data_ptr(), gradient.data_ptr()
        rescale = rows.with_gradient(_rules[rule], *addresses, mean=reduction == "mean")
        return None if rescale is None else cls((loss, weight), gradient, rescale)

    def times(self, upstream: Tensor) -> Tensor:
        """The gradient times the derivative from above; may be asked for once."""
        self._rescale(upstream.data_ptr())
        return self._gradient


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, *inputs: Any) -> Tensor:
        return _gradient(*inputs)

    @staticmethod
    def backward(*_: Any) -> Any:
        _refuse()


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, rule, reduction, ignore_index = inputs
    ctx.save_for_backward(output[1], *tensors)
    ctx.options = rule, reduction, ignore_index


_loss_operator = torch.library.custom_op("verax::loss", _loss, mutates_args=())
_gradient_operator = torch.library.custom_op("verax::loss_gradient", _gradient, mutates_args=())


@_loss_operator.register_fake
def _(logits: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return _empty(logits, others[4])


@_gradient_operator.register_fake
def _(*inputs: Any) -> Tensor:
    logits: Tensor = inputs[2]
    return torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)


def _differentiate(ctx: Any, upstream: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    gradient = _gradient_operator(upstream, *ctx.saved_tensors, *ctx.options)
    return gradient, None, None, None, None, None, None


_loss_operator.register_autograd(_differentiate, setup_context=_keep)
_gradient_operator.register_autograd(_refuse, setup_context=lambda **_: None)


def _empty(logits: Tensor, reduction: str) -> tuple[Tensor, Tensor]:
    """Room for the loss, and for the total weight."""
    shape = logits.shape[:1] if reduction == "none" else ()
    loss = torch.empty(shape, dtype=computed_in(logits, logits), device=logits.device)
    return loss, torch.empty((), dtype=torch.float64, device=logits.device)


def _rows(
    logits: Tensor,
    target: Tensor,
    weights: Tensor | None,
    class_weights: Tensor | None,
    ignore_index: int | None,
) -> LossRows | None:
    """The rows as memory that kernels read; None where there are none, or no GPU to compile for."""
    place = places.locate(logits) if len(logits) else None
    if place is None:
        return None
    z, y = place.view(logits), place.view(target)
    w = None if weights is None else place.view(weights)
    of_classes = None if class_weights is None else place.view(class_weights)
    missing = (weights is not None and w is None) or (class_weights is not None and of_classes is None)
    if z is None or y is None or missing:
        return None
    return LossRows(place, z, y, w, of_classes, ignore_index)
