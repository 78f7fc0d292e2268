"""Rules as training losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from verax._settings import settings
from verax.adapters.rows import check_label_smoothing
from verax.adapters.torch.eager import computed_in, eager_loss, returned_in, shape_of_losses
from verax.adapters.torch.rows import (
    INTEGERS,
    Binary,
    check_class_weights,
    check_ignore_index,
    flatten,
    is_transformed,
    keeping_types,
    read_class_weights,
    show_class_weights,
)
from verax.adapters.training import trainable
from verax.common.checks import check_choice
from verax.engines.tracing import record
from verax.errors import InputError, VeraxError
from verax.scores.base import Rule
from verax.scores.registry import name_of
from verax.wings.gpu import places
from verax.wings.gpu.losses import LossRows

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
    """The loss of `eager_loss`, by the operators."""
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
    """The loss of (N, K) logits, and the total weight if it is a mean."""
    loss, weight = _empty(logits, reduction)
    rows = _rows(logits, target, weights, class_weights, ignore_index)
    if rows is not None:
        if reduction == "none":
            done = rows.write(_rules[rule], loss.data_ptr())
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
        """The gradient of these rows; None if it must wait."""
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
    """The rows as memory that kernels read; None without rows, or without a GPU to compile for."""
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


ReductionName = Literal["mean", "sum", "none"]


class Loss(torch.nn.Module):
    """A scoring rule as a training loss, from logits.

    It takes the arguments of `torch.nn.CrossEntropyLoss`, which `Loss("log_score")` equals: class weights,
    ignored targets, label smoothing, reductions, targets that are distributions (soft labels, mixup), and a
    single row without a batch. By a distribution the loss is the mean over the classes.

    Rules that depend on the most likely class alone (zero-one) have no gradient and are refused.
    A penalized rule has the value of its name, penalty included, and the gradient of the inner rule: the
    penalty is constant as long as the most likely class stays the same. Improper rules (`sa_rps`,
    `abs_rps`) make the model overconfident.

    It is computed in float32 at least, and returned in the type that cross entropy has. It never waits for a
    GPU: invalid targets and weights make the loss NaN there, and raise an `InputError` on the CPU.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    reduction : {"mean", "sum", "none"}, default "mean"
        "mean" divides by the sum of the weights, like `torch.nn.CrossEntropyLoss`; "none" returns a loss for
        each target, times its weight.
    class_weights : Tensor or sequence of K floats, optional
        Weights of the outcome classes. They keep their precision if the module is cast.
    ignore_index : int, optional
        Target of rows to ignore, such as -100 for padding: they add no loss, gradient or weight, whatever
        their logits. By default no row is ignored. The mean of no rows is NaN, as in
        `torch.nn.CrossEntropyLoss`.
    label_smoothing : float, default 0.0
        Share of every target that is divided evenly among all classes.
    two_class : bool, default False
        Whether logits are those of class 1 of two, as for `torch.nn.BCEWithLogitsLoss`: (N,) or (N, 1), with
        targets 0 and 1, or probabilities of class 1.
    labels : bool, default False
        Whether each of the (N, L) logits belongs to a label that a row has or has not, with targets of the
        same shape. The loss is the mean over the labels of the rule for two classes.
    weight : Tensor or sequence of K floats, optional
        `class_weights` under the name that `torch.nn.CrossEntropyLoss` has for them.

    Examples
    --------
    >>> import torch
    >>> from verax.adapters.torch import Loss
    >>> logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    >>> loss = Loss("rps")(logits, torch.tensor([0, 2]))
    >>> round(loss.item(), 4)
    0.1689
    >>> loss.backward()
    >>> padded = Loss("rps", ignore_index=-100)(logits, torch.tensor([0, -100]))
    >>> padded.item() == Loss("rps")(logits[:1], torch.tensor([0])).item()
    True
    >>> mixed = torch.tensor([[0.75, 0.25, 0.0], [0.0, 0.0, 1.0]])
    >>> round(Loss("rps")(logits, mixed).item(), 4)
    0.1896
    """

    class_weights: Tensor | None

    def __init__(
        self,
        rule: Rule | str,
        *,
        reduction: ReductionName = "mean",
        class_weights: Tensor | Sequence[float] | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        two_class: bool = False,
        labels: bool = False,
        weight: Tensor | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.rule: Rule = trainable(rule)
        self._number = number_of(self.rule)
        self.ignore_index: int | None = check_ignore_index(ignore_index)
        self.label_smoothing: float = check_label_smoothing(label_smoothing)
        self.binary: Binary | None = Binary.of(two_class, labels, self.ignore_index)
        check_choice("reduction", reduction, get_args(ReductionName))
        self.reduction = reduction
        if class_weights is not None and weight is not None:
            raise InputError("is another name of class_weights: pass one of both", argument="weight")
        given = weight if class_weights is None else class_weights
        self.register_buffer("class_weights", read_class_weights(given))

    def forward(self, logits: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
        """Compute the loss of logits for the targets.

        Parameters
        ----------
        logits : Tensor of shape (N, K), (N, K, ...), (N,) or (K,)
            The logits. One dimension means class 1 of two classes if the target has the same length and holds
            integers, and a single row if there is one target.
        target : Tensor of shape (N,), (N, ...) or the shape of the logits
            Class positions, which are integers, or distributions, which are floats. With `two_class` and
            `labels` 0 and 1, or probabilities of class 1.
        weights : Tensor of shape (N,) or (N, ...), optional
            Weights of the targets.

        Returns
        -------
        Tensor
            A single loss, or one per target, according to `reduction`.
        """
        dtype, shape, ignored = None, None, self.ignore_index
        if self.binary is not None:
            dtype = returned_in(logits, target)
            logits, target, weights, shape = self.binary.flatten(logits, target, weights, logits=True)
            # Of distributions what is to be ignored has no weight by now.
            ignored = ignored if target.ndim == 1 else None
        rows, options = (logits, target, weights, self.class_weights), (self.reduction, ignored)
        if self._number is not None and not self.label_smoothing and _has_kernel(logits, target, weights):
            loss = fused_loss(self._number, *rows, *options)
        else:
            loss = eager_loss(self.rule, *rows, *options, self.label_smoothing)
        dtype = returned_in(logits, target) if dtype is None else dtype
        loss = loss.reshape(shape) if shape is not None and self.reduction == "none" else loss
        return loss if loss.dtype == dtype else loss.to(dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Loss:
        return super()._apply(keeping_types(fn), recurse)  # type: ignore[no-untyped-call,no-any-return]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        # Numbers are of this process.
        self._number = number_of(self.rule)

    def extra_repr(self) -> str:
        """The text of the module in `print(model)`."""
        ignored = "" if self.ignore_index is None else f", ignore_index={self.ignore_index}"
        smoothing = f", label_smoothing={self.label_smoothing:g}" if self.label_smoothing else ""
        weights = show_class_weights(self.class_weights)
        binary = "" if self.binary is None else ", labels=True" if self.binary.labels else ", two_class=True"
        return f"{name_of(self.rule)}, reduction={self.reduction!r}{weights}{ignored}{smoothing}{binary}"


def _has_kernel(logits: Tensor, target: Tensor, weights: Tensor | None) -> bool:
    """Whether kernels compute the loss: on a GPU, for classes, unless weights are differentiated as well."""
    on_gpu = isinstance(logits, Tensor) and logits.is_cuda
    if is_transformed() or not (on_gpu if settings.torch_kernels is None else settings.torch_kernels):
        return False
    soft = isinstance(target, Tensor) and target.is_floating_point()
    return not soft and not (isinstance(weights, Tensor) and weights.requires_grad)
