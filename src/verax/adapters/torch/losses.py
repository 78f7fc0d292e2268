"""Rules as training losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from verax.adapters.torch.eager import eager_loss
from verax.adapters.torch.fused import fused_loss, number_of
from verax.adapters.torch.rows import check_ignore_index
from verax.adapters.training import trainable
from verax.common.checks import check_choice
from verax.errors import InputError, show
from verax.scores.base import Rule
from verax.scores.registry import name_of

ReductionName = Literal["mean", "sum", "none"]
_REDUCTIONS = get_args(ReductionName)


class Loss(torch.nn.Module):
    """A scoring rule as a training loss, from logits.

    Rules that depend on the most likely class alone (zero-one) have no gradient and are refused.
    A penalized rule has the value of its name, penalty included, and the gradient of the inner rule: the
    penalty is constant as long as the most likely class stays the same. Improper rules (`sa_rps`,
    `abs_rps`) make the model overconfident.

    It is computed in float32, or float64 for float64 logits, and never waits for a GPU: a target outside
    the classes makes its loss NaN there, and raises an `InputError` on the CPU.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    reduction : {"mean", "sum", "none"}, default "mean"
        "mean" divides by the sum of the weights, like `torch.nn.CrossEntropyLoss`; "none" returns a loss for
        each target, times its weight.
    class_weights : Tensor or sequence of K floats, optional
        Weights of the outcome classes.
    ignore_index : int, optional
        Target of rows to ignore, such as -100 for padding: they add no loss, gradient or weight, whatever
        their logits. By default no row is ignored. The mean of no rows is NaN, as in
        `torch.nn.CrossEntropyLoss`.

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
    """

    class_weights: Tensor | None

    def __init__(
        self,
        rule: Rule | str,
        *,
        reduction: ReductionName = "mean",
        class_weights: Tensor | Sequence[float] | None = None,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        self.rule: Rule = trainable(rule)
        self._number = number_of(self.rule)
        self.ignore_index: int | None = check_ignore_index(ignore_index)
        check_choice("reduction", reduction, get_args(ReductionName))
        self.reduction = reduction
        self.register_buffer("class_weights", None if class_weights is None else _to_tensor(class_weights))

    def forward(self, logits: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
        """Compute the loss of logits for the targets.

        Parameters
        ----------
        logits : Tensor of shape (N, K), (N, K, ...) or (N,)
            The logits; a single dimension means class 1 of two.
        target : Tensor of shape (N,) or (N, ...)
            Class positions.
        weights : Tensor of shape (N,) or (N, ...), optional
            Weights of the targets.

        Returns
        -------
        Tensor
            A single loss, or one per target, according to `reduction`.
        """
        rows, options = (logits, target, weights, self.class_weights), (self.reduction, self.ignore_index)
        if self._number is not None and _has_kernel(logits, weights):
            return fused_loss(self._number, *rows, *options)
        return eager_loss(self.rule, *rows, *options)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        # Numbers are of this process.
        self._number = number_of(self.rule)

    def extra_repr(self) -> str:
        """What `print(model)` says about it."""
        ignored = "" if self.ignore_index is None else f", ignore_index={self.ignore_index}"
        return f"{name_of(self.rule)}, reduction={self.reduction!r}{ignored}"


def _to_tensor(class_weights: Tensor | Sequence[float]) -> Tensor:
    try:
        weights = torch.as_tensor(class_weights)
    except Exception:  # torch raises errors of several types here
        weights = torch.zeros(0, dtype=torch.complex64)
    if weights.is_complex() or weights.ndim != 1:
        raise InputError(
            f"must be numbers, one per class, not {show(class_weights)}",
            argument="class_weights",
            kind="type",
        )
    return weights


def _has_kernel(logits: Tensor, weights: Tensor | None) -> bool:
    """Whether kernels compute the loss: on a GPU, unless weights are differentiated as well."""
    on_gpu = isinstance(logits, Tensor) and logits.is_cuda
    return on_gpu and not (isinstance(weights, Tensor) and weights.requires_grad)
