"""Tensors as rows of forecasts. Shapes and types are checked, values are not: no device has to wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from array_api_compat import torch as compat
from torch import Tensor

from verax._settings import settings
from verax.adapters.rows import NumpyCalls, TrainingRows
from verax.common.checks import check_flag, check_integer
from verax.errors import InputError, Remedy, show
from verax.inputs.validity import Unity

# The types of targets that kernels read as they are.
INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})
# Class weights that a repr shows.
_SHOWN = 6


class _TorchCalls:
    """The array-API namespace of PyTorch, with direct calls of some functions: fewer layers, one graph."""

    softmax: Any = staticmethod(lambda z: torch.softmax(z, 1))
    log_softmax: Any = staticmethod(lambda z: torch.log_softmax(z, 1))
    astype: Any = staticmethod(lambda x, dtype: x.to(dtype))
    clip: Any = staticmethod(torch.clamp)
    cumulative_sum: Any = staticmethod(lambda x, axis: torch.cumsum(x, axis))
    flip: Any = staticmethod(lambda x, axis: torch.flip(x, [axis]))
    take_along_axis: Any = staticmethod(lambda x, places, axis: torch.gather(x, axis, places))
    where: Any = staticmethod(torch.where)
    stack: Any = staticmethod(torch.stack)
    concat: Any = staticmethod(torch.concat)
    reshape: Any = staticmethod(torch.reshape)
    abs: Any = staticmethod(torch.abs)
    log: Any = staticmethod(torch.log)
    argmax: Any = staticmethod(torch.argmax)
    positions: Any = staticmethod(lambda n, like: torch.arange(n, device=like.device))

    def __getattr__(self, name: str) -> Any:
        return getattr(compat, name)

    def sum(self, x: Tensor, axis: int | None = None) -> Tensor:
        return torch.sum(x) if axis is None else torch.sum(x, axis)

    def all(self, x: Tensor, axis: int) -> Tensor:
        return torch.all(x, axis)

    def any(self, x: Tensor, axis: int | None = None) -> Tensor:
        return torch.any(x) if axis is None else torch.any(x, axis)

    def max(self, x: Tensor, axis: int) -> Tensor:
        return torch.amax(x, axis)

    def min(self, x: Tensor, axis: int) -> Tensor:
        return torch.amin(x, axis)

    def maximum(self, x: Any, limit: Any) -> Tensor:
        return torch.clamp(x, min=limit) if isinstance(limit, (int, float)) else compat.maximum(x, limit)

    def minimum(self, x: Any, limit: Any) -> Tensor:
        return torch.clamp(x, max=limit) if isinstance(limit, (int, float)) else compat.minimum(x, limit)

    def add_up(self, n: int, places: Tensor, values: Tensor) -> Tensor:
        return torch.zeros(n, dtype=values.dtype, device=values.device).index_add(0, places, values)


xp: _TorchCalls = _TorchCalls()
_NUMPY = NumpyCalls()
_LIMITS = {size: Unity.at(8 * size).limit for size in (1, 2, 4, 8)}


def limit_of(x: Tensor) -> float:
    """The largest distance of sums of probabilities from 1, given their precision."""
    return _LIMITS[x.element_size()]


def keeping_types(fn: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Move a tensor as `Module.to` does, without changing its type."""

    def moved(x: Tensor) -> Tensor:
        result = fn(x)
        return result if result.dtype == x.dtype else x.to(result.device)

    return moved


def is_on_host(x: Tensor) -> bool:
    """Whether the values of a tensor can be read at once, and by NumPy."""
    plain = (type(x) is Tensor or type(x) is torch.nn.Parameter) and x.is_cpu
    return plain and not torch.compiler.is_compiling() and not is_transformed()


def is_transformed() -> bool:
    """Whether `torch.func` transforms the computation. Compilers cannot follow this test."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def is_small(x: Tensor) -> bool:
    """Whether NumPy, whose calls cost less, computes with a tensor faster than PyTorch, which has threads."""
    return x.numel() <= settings.torch_host_up_to


def read(
    preds: Tensor, target: Tensor, weights: Tensor | None, *, logits: bool, **options: Any
) -> TrainingRows:
    """Predictions with their targets and weights; `options` as in `as_rows`."""
    rows = flatten(preds, target, weights, logits=logits)
    return as_rows(*rows, limit_of(preds), limit_of(target), logits=logits, **options)


def as_rows(
    rows: Tensor,
    target: Tensor,
    weights: Tensor | None,
    limit: float = 0.0,
    target_limit: float = 0.0,
    *,
    logits: bool,
    dtype: torch.dtype,
    ignore_index: int | None = None,
    class_weights: Tensor | None = None,
    by_numpy: bool = False,
) -> TrainingRows:
    """The rows from `flatten`, for computing in `dtype`, by PyTorch or by NumPy."""
    z: Any = _as(dtype, rows)
    y: Any = _as(dtype if target.ndim == 2 else torch.int64, target)
    w: Any = None if weights is None else _as(dtype, weights)
    if by_numpy:
        z, y, w = z.detach().numpy(), y.numpy(), None if w is None else w.detach().numpy()
    batch = TrainingRows(_NUMPY if by_numpy else xp, z, y, w, logits, limit, target_limit)
    if ignore_index is not None:
        _check_ignorable(batch, ignore_index)
        batch = batch if batch.shared else batch.without(batch.target != ignore_index)
    if class_weights is None:
        return batch
    check_class_weights(class_weights, batch.n_classes)
    of_classes = class_weights.to(dtype)
    return batch.weighted_by(of_classes.numpy() if by_numpy else of_classes)


def _as(dtype: torch.dtype, x: Tensor) -> Tensor:
    # A call that changes nothing still takes its time.
    return x if x.dtype == dtype else x.to(dtype)


def on_host(batch: TrainingRows) -> TrainingRows:
    """Rows of tensors on the CPU for NumPy."""
    rows, target, weights, kept = (
        None if x is None else x.detach().numpy()
        for x in (batch.rows, batch.target, batch.weights, batch.kept)
    )
    limits = batch.limit, batch.target_limit
    return TrainingRows(_NUMPY, rows, target, weights, batch.logits, *limits, kept)


def _check_ignorable(batch: TrainingRows, ignore_index: int) -> None:
    if batch.shared and ignore_index >= 0:
        raise InputError(
            "cannot name a class where targets are distributions",
            argument="ignore_index",
            values=[ignore_index],
            remedies=[Remedy("Give rows to ignore the weight 0.", python_only=True)],
        )


def flatten(
    preds: Tensor, target: Tensor, weights: Tensor | None, *, logits: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Predictions as (N, K) rows, with (N,) or (N, K) targets and (N,) weights, in the types they have."""
    if weights is None and _is_plain(preds, target):
        return preds, target, None
    _check_types(preds, target, weights)
    rows, y, w = preds, target, weights
    if preds.ndim == 1 and target.ndim == 1 and target.is_floating_point():
        raise _wrong_type(
            "target",
            target,
            "could be a target of two classes for each number, or the distribution of one row",
            *_OF_TWO,
            "For one row of K classes pass a batch of one: logits[None] and target[None].",
        )
    if preds.ndim == 1 and is_single(preds, target):
        rows, y, w = preds[None], target[None], None if weights is None else weights[None]
    _check_shapes(rows, y, w)
    if rows.ndim == 1:
        rows = _two_columns(rows, logits=logits)
    y = _in_rows(y) if y.is_floating_point() else y.reshape(-1)
    return _in_rows(rows), y, None if w is None else w.reshape(-1)


def _two_columns(x: Tensor, *, logits: bool) -> Tensor:
    """Logits, or probabilities, of both classes from those of class 1."""
    return torch.stack([torch.zeros_like(x) if logits else 1 - x, x], dim=1)


class Binary(NamedTuple):
    """How the logits, or probabilities of class 1, of several problems with two classes are given.

    Attributes
    ----------
    labels : bool
        Whether each number of a row is a problem of its own, with a target of its own.
    ignore_index : int, optional
        The target of numbers to leave out.
    """

    labels: bool
    ignore_index: int | None

    @classmethod
    def of(cls, two_class: object, labels: object, ignore_index: int | None) -> Binary | None:
        """What these options of a loss or metric say; None where rows have a number for each class."""
        two_class, labels = check_flag("two_class", two_class), check_flag("labels", labels)
        if two_class and labels:
            raise InputError(
                "has problems of two classes anyway: leave out two_class", argument="labels", values=[True]
            )
        return cls(labels, ignore_index) if two_class or labels else None

    def flatten(
        self, preds: Tensor, target: Tensor, weights: Tensor | None, *, logits: bool
    ) -> tuple[Tensor, Tensor, Tensor | None, tuple[int, ...]]:
        """Rows (M, 2), targets (M,) or (M, 2), weights (M,), and the shape of the losses."""
        for argument, x in (("preds", preds), ("target", target)):
            if not isinstance(x, Tensor):
                raise InputError(
                    f"must be a tensor, not a {type(x).__name__}", argument=argument, kind="type", values=[x]
                )
        column = not self.labels and preds.ndim > 1
        if column and preds.shape[1] != 1:
            raise _wrong_type(
                "preds",
                preds,
                "must have one number per target, (N,) or (N, 1, ...), with two_class=True",
                "Leave out two_class if rows have a number for each class.",
                "Pass labels=True if they have a number for each label.",
            )
        shape = preds.shape
        inner = (*shape[:1], *shape[2:]) if column else shape
        if target.shape not in (shape, inner):
            raise InputError(
                f"must have the shape of the predictions, {tuple(shape)}",
                argument="target",
                kind="length",
                found=f"the shape is {tuple(target.shape)}",
            )
        z, y, w = preds.reshape(-1), target.reshape(-1), self._weights(weights, target, inner)
        if y.dtype == torch.bool:
            y = y.long()
        if not y.is_floating_point():
            return _two_columns(z, logits=logits), y, w, tuple(target.shape)
        if self.ignore_index is not None:
            out = y == self.ignore_index
            # Not a product with the mask: what is left out may be NaN, also in the gradient.
            z, y = torch.where(out, 0.5, z), torch.where(out, 0.5, y)
            w = torch.where(out, 0.0, torch.ones_like(y) if w is None else w)
        return _two_columns(z, logits=logits), _two_columns(y, logits=False), w, tuple(target.shape)

    def _weights(
        self, weights: Tensor | None, target: Tensor, inner: tuple[int, ...] | torch.Size
    ) -> Tensor | None:
        if not isinstance(weights, Tensor):
            return weights
        # Labels have weights of their own, or those of their rows.
        if self.labels and weights.shape == target.shape[:1] and target.ndim > 1:
            weights = weights.reshape(-1, *[1] * (target.ndim - 1)).expand(target.shape)
        if weights.shape not in (target.shape, inner):
            raise InputError(
                f"must have the shape {tuple(inner)}, for predictions of shape {tuple(target.shape)}",
                argument="weights",
                kind="length",
                found=f"the shape is {tuple(weights.shape)}",
            )
        return weights.reshape(-1)


def _is_plain(preds: Any, target: Any) -> bool:
    """Whether these are (N, K) rows with classes: most are, and need no further look."""
    if not (isinstance(preds, Tensor) and isinstance(target, Tensor)):
        return False
    if preds.ndim != 2 or target.ndim != 1:
        return False
    n, k = preds.shape
    return target.dtype == torch.int64 and preds.is_floating_point() and k > 1 and len(target) == n


def _in_rows(x: Tensor) -> Tensor:
    """Numbers of classes, (N, K, ...), as rows."""
    return x if x.ndim == 2 else x.movedim(1, -1).reshape(-1, x.shape[1])


def is_single(preds: Tensor, target: Tensor) -> bool:
    """Whether these are one row without a batch, as in `torch.nn.CrossEntropyLoss`: (K,) logits."""
    return preds.ndim == 1 and target.ndim == 0


def check_ignore_index(value: int | None) -> int | None:
    """`value` as a Python integer or None; everything else is refused."""
    return None if value is None else check_integer("ignore_index", value)


def check_class_weights(class_weights: Tensor, n_classes: int) -> None:
    """Refuse weights that are not one per class."""
    if class_weights.shape != (n_classes,):
        raise InputError(
            f"must be {n_classes} numbers, one per class",
            argument="class_weights",
            kind="length",
            found=f"their shape is {tuple(class_weights.shape)}",
        )


def read_class_weights(class_weights: Any) -> Tensor | None:
    """Class weights as a tensor of floats: one per class, not negative."""
    if class_weights is None:
        return None
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
    weights = weights if weights.is_floating_point() else weights.double()
    if not bool(((weights >= 0) & (weights < torch.inf)).all()):
        raise InputError(
            "must be finite and not negative", argument="class_weights", kind="sign", values=weights.tolist()
        )
    return weights


def show_class_weights(class_weights: Tensor | None) -> str:
    """Class weights as an argument in a repr; of many classes the first."""
    if class_weights is None:
        return ""
    numbers = [f"{weight:g}" for weight in class_weights[:_SHOWN].tolist()]
    return f", class_weights=[{', '.join([*numbers, '...'] if len(class_weights) > _SHOWN else numbers)}]"


def _check_types(preds: Tensor, target: Tensor, weights: Tensor | None) -> None:
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
    if target.is_complex() or target.dtype == torch.bool:
        raise _wrong_type(
            "target",
            target,
            "must hold class positions, which are integers, or distributions",
            "For flags pass target.long().",
        )


def _check_shapes(preds: Tensor, target: Tensor, weights: Tensor | None) -> None:
    if preds.ndim > 1 and preds.shape[1] < 2:
        raise _wrong_type(
            "preds",
            preds,
            "must have at least two classes",
            *_OF_TWO,
        )
    expected = (*preds.shape[:1], *preds.shape[2:])
    if target.is_floating_point() and target.shape != preds.shape:
        raise _wrong_type(
            "target",
            target,
            f"must hold class positions, which are integers, or distributions of shape {tuple(preds.shape)}",
            "For class positions pass target.long().",
        )
    for argument, x in (("target", target), ("weights", weights)):
        if x is not None and not (argument == "target" and x.is_floating_point()) and x.shape != expected:
            raise InputError(
                f"must have the shape {expected}, for predictions of shape {tuple(preds.shape)}",
                argument=argument,
                kind="length",
                found=f"the shape is {tuple(x.shape)}",
            )


# What to do about two classes in one column.
_OF_TWO = (
    "For two classes by one number each, a sigmoid logit or the probability of class 1, create the loss or "
    "score with two_class=True.",
    "Or pass two columns, one for each class.",
)


def _wrong_type(argument: str, x: Tensor, requirement: str, *advice: str) -> InputError:
    return InputError(
        requirement,
        argument=argument,
        kind="type",
        found=f"it is {x.dtype} of shape {tuple(x.shape)}",
        remedies=[Remedy(text, python_only=True) for text in advice],
    )
