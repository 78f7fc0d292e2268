"""Rules as training losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from verax._settings import settings
from verax.adapters.rows import check_label_smoothing
from verax.adapters.torch.eager import eager_loss, returned_in
from verax.adapters.torch.fused import fused_loss, number_of
from verax.adapters.torch.rows import (
    check_ignore_index,
    is_transformed,
    keeping_types,
    read_class_weights,
    show_class_weights,
)
from verax.adapters.training import trainable
from verax.common.checks import check_choice
from verax.errors import InputError
from verax.scores.base import Rule
from verax.scores.registry import name_of

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
        weight: Tensor | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.rule: Rule = trainable(rule)
        self._number = number_of(self.rule)
        self.ignore_index: int | None = check_ignore_index(ignore_index)
        self.label_smoothing: float = check_label_smoothing(label_smoothing)
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
            The logits. One dimension means class 1 of two classes if the target has the same length, and a
            single row if there is one target.
        target : Tensor of shape (N,), (N, ...) or the shape of the logits
            Class positions, which are integers, or distributions, which are floats.
        weights : Tensor of shape (N,) or (N, ...), optional
            Weights of the targets.

        Returns
        -------
        Tensor
            A single loss, or one per target, according to `reduction`.
        """
        rows, options = (logits, target, weights, self.class_weights), (self.reduction, self.ignore_index)
        if self._number is not None and not self.label_smoothing and _has_kernel(logits, target, weights):
            loss = fused_loss(self._number, *rows, *options)
        else:
            loss = eager_loss(self.rule, *rows, *options, self.label_smoothing)
        dtype = returned_in(logits, target)
        return loss if loss.dtype == dtype else loss.to(dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Loss:
        return super()._apply(keeping_types(fn), recurse)  # type: ignore[no-untyped-call,no-any-return]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        # Numbers are of this process.
        self._number = number_of(self.rule)

    def extra_repr(self) -> str:
        """What `print(model)` says about it."""
        ignored = "" if self.ignore_index is None else f", ignore_index={self.ignore_index}"
        smoothing = f", label_smoothing={self.label_smoothing:g}" if self.label_smoothing else ""
        weights = show_class_weights(self.class_weights)
        return f"{name_of(self.rule)}, reduction={self.reduction!r}{weights}{ignored}{smoothing}"


def _has_kernel(logits: Tensor, target: Tensor, weights: Tensor | None) -> bool:
    """Whether kernels compute the loss: on a GPU, for classes, unless weights are differentiated as well."""
    on_gpu = isinstance(logits, Tensor) and logits.is_cuda
    if is_transformed() or not (on_gpu if settings.torch_kernels is None else settings.torch_kernels):
        return False
    soft = isinstance(target, Tensor) and target.is_floating_point()
    return not soft and not (isinstance(weights, Tensor) and weights.requires_grad)
