"""Rules as torchmetrics metrics: sums stay on the device until `compute`, and merge across processes."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from verax._settings import settings
from verax.adapters.rows import BatchSums, batch_sums, warn_of_no_rows
from verax.adapters.torch.rows import (
    INTEGERS,
    Binary,
    check_class_weights,
    check_ignore_index,
    flatten,
    is_on_host,
    is_small,
    is_transformed,
    keeping_types,
    read,
    read_class_weights,
    show_class_weights,
)
from verax.adapters.training import is_differentiable
from verax.analyses.cards.scorecard import Scorecard
from verax.common.checks import check_flag, check_n_classes
from verax.engines.counts import CONFUSION_UP_TO, n_cells
from verax.engines.sums import Moments
from verax.engines.tally import RuleSums, SquaredSums
from verax.errors import InputError, Kind, Remedy, passing
from verax.inputs.arrays import widen
from verax.inputs.outcomes import check_classes
from verax.inputs.validity import Unity
from verax.kernels.shared import two_sum
from verax.scores.base import Rule
from verax.scores.cells import EXTREME
from verax.scores.metrics import CostsLike, fitting_metrics
from verax.scores.registry import fitting_rules, name_of, parse
from verax.wings.gpu import places
from verax.wings.gpu.places import layout
from verax.wings.gpu.printer import RowLayout
from verax.wings.gpu.sums import VALUE_TYPES, Pass, program_of
from verax.wings.select.refinement.epochs import RefinementLoss


def add_by_kernel(
    states: BatchSums,
    rules: Sequence[Rule],
    preds: Tensor,
    target: Tensor,
    weights: Tensor | None,
    *,
    logits: bool,
    ignore_index: int | None,
    class_weights: Tensor | None,
    number: int,
) -> bool:
    """Add the sums of a batch to those of a metric, in place; False where operations must do it.

    `states` has the sums in pairs, (2, n): totals, and the sums of their rounding errors. `number` is that of
    the update.
    """
    if settings.torch_kernels is False or (getattr(preds, "requires_grad", True) and torch.is_grad_enabled()):
        return False
    if is_transformed() or not isinstance(target, Tensor) or target.is_floating_point():
        return False
    place = places.locate(preds) if isinstance(preds, Tensor) and preds.numel() else None
    if place is None or not _can_be_added_to(states, preds.device):
        return False
    rows, y, w = flatten(preds.detach(), target, weights, logits=logits)
    y = y if y.dtype in INTEGERS else y.long()
    w = w if w is None or w.dtype in (torch.float32, torch.float64) else w.double()
    if class_weights is not None:
        check_class_weights(class_weights, rows.shape[1])
        of_classes = class_weights.double()[y.long().clamp(0, rows.shape[1] - 1)]
        w = of_classes if w is None else of_classes * w
    of_p, of_y, of_w = place.view(rows), place.view(y), None if w is None else place.view(w)
    if of_p is None or of_p.dtype not in VALUE_TYPES or of_y is None or (w is not None and of_w is None):
        return False
    n, k = of_p.shape
    weight_type = None if of_w is None else of_w.dtype
    options: dict[str, Any] = {"logits": logits, "ignore": ignore_index is not None}
    form = RowLayout(k, of_p.dtype, of_y.dtype, weight_type, **layout(of_p), **options)
    program = program_of(tuple(rules), form, states.cells is not None, CONFUSION_UP_TO)
    if program is None:
        return False
    work = Pass(program, n, len(rules))
    # The head and the table of counts start at zero; the sums of blocks follow.
    n_zero = work.n_head + work.n_cells
    memory = torch.empty(n_zero + work.n_room, dtype=torch.float64, device=rows.device)
    work.bind(
        place,
        of_p,
        of_y,
        of_w,
        clear=Unity.of(preds).limit,
        memory=memory.data_ptr(),
        cells=memory.data_ptr() + 8 * work.n_head if work.n_cells else None,
        room=memory.data_ptr() + 8 * n_zero,
        ignore=ignore_index or 0,
    )
    if states.first is not None:
        work.args.state_first, work.args.update = states.first.data_ptr(), number
    with place.device.current():
        place.device.clear(memory.data_ptr(), 8 * n_zero, place.stream)
        work.weigh()
        work.sum()
        work.add_to([None if state is None else state.data_ptr() for state in states.arrays])
    return True


def _can_be_added_to(states: BatchSums, device: torch.device) -> bool:
    """Whether a kernel on this device can add to sums where they are."""
    if states.sums.dtype != torch.float64:
        return False
    known = *states.arrays, states.first
    return all(x is None or (x.device == device and x.is_contiguous()) for x in known)


# A card keeps some numbers of each class.
_MOST_CLASSES = 10**7
# From this many classes on it takes longer to copy a table from a GPU than to compute metrics there.
_LARGE = 64

# What is counted, in this order; from the third on, rows that must not be there.
_ROWS, _IMPOSSIBLE, _VALUES, _SUMS, _TARGETS, _WEIGHTS = range(6)
# How the place of a row is kept: as (update << 32) + row; this where there is none.
_ROW_BITS, _NOWHERE = 32, 2**62


class _ExactMetric(Metric):
    """A metric whose states keep their types, whatever its module is cast to."""

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> torch.nn.Module:
        # Some devices have no float64, and moving such a tensor there fails.
        if widen(keeping_types(fn)(torch.zeros(0, device=self.device))).dtype != torch.float64:
            for name, default in self._defaults.items():
                if isinstance(default, Tensor) and default.dtype == torch.float64:
                    self._defaults[name] = default.float()
                    setattr(self, name, getattr(self, name).float())
        return super()._apply(keeping_types(fn), exclude_state)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._computed = None
        # Checkpoints may have been written in half precision.
        for name, default in self._defaults.items():
            if isinstance(default, Tensor):
                setattr(self, name, getattr(self, name).to(default.dtype))


class _RuleSums(_ExactMetric):
    """The sums of the losses of several rules.

    Floating sums are pairs, a total and the sum of its rounding errors, so that they stay precise where a
    device has no float64. Every state is a sum, so processes merge by adding.
    """

    full_state_update: bool | None = False
    higher_is_better: bool | None = False
    counts: Tensor
    first: Tensor
    class_weights: Tensor | None

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        logits: bool,
        ignore_index: int | None,
        class_weights: Tensor | Sequence[float] | None = None,
        two_class: bool = False,
        labels: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules: tuple[Rule, ...] = tuple(rules)
        self.ignore_index: int | None = check_ignore_index(ignore_index)
        self.binary: Binary | None = Binary.of(two_class, labels, self.ignore_index)
        self.logits: bool = check_flag("logits", logits)
        # A MetricCollection takes metrics whose states agree after one batch for one and the same. Two
        # rules can agree there and not later, so their states have different names.
        self._name = f"sums_{zlib.crc32(repr(self.rules).encode()):08x}"
        # The weight; for each rule the sums of w, w * loss and w * loss^2 over the rows with a finite loss,
        # and of w over the rows with an infinite one.
        self._add_sum(self._name, 1 + 4 * len(self.rules))
        self.add_state("counts", torch.zeros(6, dtype=torch.int64), dist_reduce_fx="sum")
        # Of what is counted, the first row that must not be there: the update in the higher 32 bits, its row
        # in the lower.
        self.add_state("first", torch.full((6,), _NOWHERE), dist_reduce_fx="min")
        self.register_buffer("class_weights", read_class_weights(class_weights), persistent=False)

    def _add_sum(self, name: str, size: int) -> None:
        self.add_state(name, torch.zeros(2, size, dtype=torch.float64), dist_reduce_fx="sum")

    @property
    def is_differentiable(self) -> bool:  # type: ignore[override]
        """Whether the value changes smoothly with the predictions."""
        return all(is_differentiable(rule) for rule in self.rules)

    def update(self, preds: Tensor, target: Tensor, weights: Tensor | None = None) -> None:
        """Add predictions with their targets, without reading values.

        Parameters
        ----------
        preds : Tensor of shape (N, K), (N, K, ...) or (N,)
            Predictions: probabilities, or logits if `logits` is set.
        target : Tensor of shape (N,), (N, ...) or the shape of `preds`
            Class positions, which are integers, or distributions, which are floats.
        weights : Tensor of shape (N,) or (N, ...), optional
            Weights of the targets.
        """
        self._add(preds, target, weights)

    def _add(self, preds: Tensor, target: Tensor, weights: Tensor | None, *more: str) -> None:
        """Add a batch to the sums; `more` are the names of those that a card has besides."""
        ignored = self.ignore_index
        if self.binary is not None:
            preds, target, weights, _ = self.binary.flatten(preds, target, weights, logits=self.logits)
            # Of distributions what is to be ignored has no weight by now.
            ignored = ignored if target.ndim == 1 else None
        options: dict[str, Any] = {
            "logits": self.logits,
            "ignore_index": ignored,
            "class_weights": self.class_weights,
        }
        states = {name: getattr(self, name) for name in more}
        whole = BatchSums(getattr(self, self._name), self.counts, first=self.first, **states)
        if add_by_kernel(whole, self.rules, preds, target, weights, number=self._update_count, **options):
            return
        by_numpy = self._on_host(preds, target, weights)
        batch = read(preds, target, weights, dtype=whole.sums.dtype, by_numpy=by_numpy, **options)
        with np.errstate(all="ignore"):
            sums = batch_sums(self.rules, batch, decisions=bool(more))
            self._plus({self._name: sums.sums, **{name: getattr(sums, name) for name in more}})
        if by_numpy:
            # Through NumPy, whose calls cost less, into the same memory.
            kept = self.counts.numpy()
            kept += sums.counts
        else:
            self.counts += sums.counts
        if sums.first is None:
            return
        counts, first = map(torch.as_tensor, (sums.counts, sums.first))
        places_of = torch.where(counts > 0, (self._update_count << _ROW_BITS) + first, _NOWHERE)
        self.first = torch.minimum(self.first, places_of)

    def _on_host(self, preds: Any, target: Any, weights: Any) -> bool:
        """Whether NumPy, whose calls cost less, adds up a batch: a small one, without derivatives."""
        if not (self.counts.is_cpu and isinstance(preds, Tensor) and is_small(preds) and is_on_host(preds)):
            return False
        if torch.is_grad_enabled() and (preds.requires_grad or getattr(weights, "requires_grad", False)):
            return False
        return all(x is None or getattr(x, "is_cpu", False) for x in (target, weights))

    @property
    def _dtype_of_sums(self) -> torch.dtype:
        dtype: torch.dtype = getattr(self, self._name).dtype
        return dtype

    def _plus(self, terms: dict[str, Any]) -> None:
        """Add to some sums; the rounding errors of the totals are added up in their second rows."""
        for name, term in terms.items():
            state = getattr(self, name)
            if isinstance(term, np.ndarray):
                high, low = state.numpy()
                total, error = two_sum(high, term)
                high[:] = total
                low += error
            else:
                total, error = two_sum(state[0], term)
                setattr(self, name, torch.stack([total, state[1] + error]))

    def _check(self) -> None:
        """Raise the error that the counted rows call for, if there is one."""
        counts = self.counts.tolist()
        requirements = _OF_LOGITS if self.logits else _OF_ROWS
        for which, (argument, requirement, kind, remedies) in requirements.items():
            if counts[which]:
                update, row = divmod(int(self.first[which]), 2**_ROW_BITS)
                where = f"row {row} of update {update}"
                raise InputError(
                    requirement,
                    argument=argument,
                    kind=kind,
                    found=f"{counts[which]:,} of {counts[_ROWS]:,} rows do not, the first of them {where}",
                    rows=[row],
                    count=counts[which],
                    remedies=remedies,
                )


# What each count is about: the argument, the requirement, its kind and the remedies.
_Requirement = tuple[str, str, Kind, tuple[Remedy, ...]]
_LOGITS = passing("if these are logits", logits=True)
_OF_ROWS: dict[int, _Requirement] = {
    _VALUES: ("preds", "must hold finite probabilities that are not negative", "sign", (_LOGITS,)),
    _SUMS: ("preds", "rows must sum to 1", "sum", (_LOGITS,)),
    _TARGETS: (
        "target",
        "must hold class positions from 0 to K-1, or distributions",
        "label",
        (Remedy("Leave other rows out (ignore_index= names one target to ignore).", python_only=True),),
    ),
    _WEIGHTS: ("weights", "must be finite and not negative", "sign", ()),
}
_OF_LOGITS: dict[int, _Requirement] = _OF_ROWS | {
    _VALUES: ("preds", "must hold logits that are finite or -inf, at least one finite per row", "finite", ())
}


class Score(_RuleSums):
    """The weighted mean loss of a rule, as a torchmetrics metric. Lower is better.

    `update` adds to sums on the device without waiting for it; invalid rows are counted there and reported
    by `compute`. Sums are in float64 if the device supports it, and processes add up theirs, so the result
    is that of all rows together, up to rounding. In Lightning log the metric
    itself: `self.log("val_pbs", self.val_pbs)`, and monitor "val_pbs" with mode="min". A
    `MetricCollection` of several scores names them like their rules. The sums keep their precision if the
    module is cast (`.half()`, `precision="bf16-true"`).

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    logits : bool, default False
        Whether predictions are logits. This is never guessed.
    ignore_index : int, optional
        Target of rows to ignore, such as -100 for padding; they are not counted.
    class_weights : Tensor or sequence of K floats, optional
        Weights of the outcome classes.
    two_class : bool, default False
        Whether predictions are those of class 1 of two, (N,) or (N, 1), with targets 0 and 1, or
        probabilities of class 1.
    labels : bool, default False
        Whether each of the (N, L) predictions belongs to a label that a row has or has not, with targets of
        the same shape: the mean is over rows and labels.
    **kwargs : Any
        Options of every torchmetrics metric.

    Examples
    --------
    >>> import torch
    >>> from verax.adapters.torch import Score
    >>> metric = Score("pbs")
    >>> metric.update(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.8333
    """

    plot_lower_bound: float | None = 0.0

    def __init__(
        self,
        rule: Rule | str,
        *,
        logits: bool = False,
        ignore_index: int | None = None,
        class_weights: Tensor | Sequence[float] | None = None,
        two_class: bool = False,
        labels: bool = False,
        **kwargs: Any,
    ) -> None:
        options: dict[str, Any] = {"ignore_index": ignore_index, "class_weights": class_weights}
        options |= {"two_class": two_class, "labels": labels}
        super().__init__([parse(rule)], logits=logits, **options, **kwargs)
        # Collections name metrics like their classes.
        self.__class__ = _named_like(type(self), name_of(self.rule))

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickles find classes by name, and the named ones are made here.
        named = type(self)
        return _restore, (named.__mro__[1], named.__name__), self.__getstate__()

    @property
    def rule(self) -> Rule:
        """The rule that scores."""
        return self.rules[0]

    def compute(self) -> Tensor:
        """Compute the mean loss; infinite if any row's is, NaN without weight."""
        self._check()
        _, finite, total, _, infinite = getattr(self, self._name).sum(dim=0)
        if not self.counts[_ROWS]:
            warn_of_no_rows()
        return torch.where(infinite > 0, torch.inf, total / finite)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot the mean loss, or several values of it, with matplotlib.

        Parameters
        ----------
        val : Tensor or sequence of Tensor, optional
            Values of the metric, such as one per epoch; by default its value now.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        tuple of Figure and Axes
            The figure.
        """
        return self._plot(val, ax)

    def _get_name(self) -> str:
        return "Score"

    def extra_repr(self) -> str:
        """The text of the module in `print(model)`."""
        return name_of(self.rule) + show_class_weights(self.class_weights)


@cache
def _named_like(cls: type[Score], name: str) -> type[Score]:
    """A class of scores that differs in its name."""
    return type(name, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__})


def _restore(cls: type[Score], name: str) -> Score:
    """A score without a state, to be unpickled."""
    named = _named_like(cls, name)
    return named.__new__(named)


class RefinementScore(_ExactMetric):
    """The loss after recalibration, cross-validated, as a torchmetrics metric. Lower is better.

    It keeps the predictions of an epoch on their device and fits when `compute` is called, on the host. With
    temperature scaling that takes milliseconds for 5,000 rows of 10 classes. Processes gather their rows. In
    Lightning log the metric itself: `self.log("val_refinement", self.val_refinement)`, and monitor
    "val_refinement" with mode="min".

    Parameters
    ----------
    rule : Rule or str, default "log_score"
        The proper rule that is minimised and measured.
    method : str or sequence of str, default "temperature"
        How to recalibrate, as in `vx.recalibrate`.
    logits : bool, default False
        Whether predictions are logits. This is never guessed.
    ignore_index : int, optional
        Target of rows to ignore, such as -100 for padding; they are not counted.
    **kwargs : Any
        Options of every torchmetrics metric.

    Examples
    --------
    >>> import torch
    >>> from verax.adapters.torch import RefinementScore
    >>> metric = RefinementScore("brier", logits=True)
    >>> metric.update(torch.tensor([[4.0, 0.0], [0.0, 1.0], [3.0, 0.0]] * 20), torch.tensor([0, 1, 1] * 20))
    >>> round(metric.compute().item(), 3)
    0.485
    """

    full_state_update: bool | None = False
    higher_is_better: bool | None = False
    is_differentiable: bool | None = False
    preds: list[Tensor]
    target: list[Tensor]
    weights: list[Tensor]

    def __init__(
        self,
        rule: Rule | str = "log_score",
        *,
        method: str | Sequence[str] = "temperature",
        logits: bool = False,
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.loss: RefinementLoss = RefinementLoss(rule, method=method)
        self.ignore_index: int | None = check_ignore_index(ignore_index)
        self.logits: bool = check_flag("logits", logits)
        for name in ("preds", "target", "weights"):
            self.add_state(name, [], dist_reduce_fx="cat")

    @property
    def rule(self) -> Rule:
        """The rule that scores."""
        return self.loss.rule

    def update(self, preds: Tensor, target: Tensor, weights: Tensor | None = None) -> None:
        """Keep predictions with their targets.

        Parameters
        ----------
        preds : Tensor of shape (N, K), (N, K, ...) or (N,)
            Predictions: probabilities, or logits if `logits` is set.
        target : Tensor of shape (N,) or (N, ...)
            Class positions.
        weights : Tensor of shape (N,) or (N, ...), optional
            Weights of the targets.
        """
        rows, y, w = flatten(preds.detach(), target, weights, logits=self.logits)
        if y.ndim == 2:
            raise InputError(
                "must hold class positions here, not distributions", argument="target", kind="type"
            )
        w = torch.ones(len(y), device=rows.device) if w is None else w.to(torch.float32)
        if self.ignore_index is not None:
            kept = y != self.ignore_index
            rows, y, w = rows[kept], y[kept], w[kept]
        self.preds.append(rows.float() if rows.dtype in _HALVES else rows)
        self.target.append(y)
        self.weights.append(w)

    def compute(self) -> Tensor:
        """Compute the refinement of all rows; NaN without rows."""
        if not len(self.preds):
            return torch.tensor(torch.nan, device=self.device)
        rows, y, w = (dim_zero_cat(x).cpu() for x in (self.preds, self.target, self.weights))
        weights = None if bool((w == 1).all()) else w
        try:
            value = self.loss(y, rows, weights=weights, logits=self.logits)
        except InputError as error:
            known = {"y": "target", "p": "preds"}
            raise error.replace(argument=known.get(error.argument, error.argument)) from None
        return torch.tensor(value, dtype=torch.float64).to(self.device, _floats_of(self.device))

    def extra_repr(self) -> str:
        """The text of the module in `print(model)`."""
        return f"{name_of(self.rule)}, {self.loss.method}"


# Types whose probabilities would not sum to one as closely as those of the others.
_HALVES = (torch.float16, torch.bfloat16)


def _floats_of(device: torch.device) -> torch.dtype:
    """The widest type of floats that a device has."""
    dtype: torch.dtype = widen(torch.zeros(0, device=device)).dtype
    return dtype


class Card(_RuleSums):
    """All applicable rules and metrics of decisions, as one torchmetrics metric.

    `compute` returns a dictionary of numbers: the mean loss by each rule, accuracy, and for ordered
    classes quadratic kappa (`qwk`) and expected cost (`ec`). `scorecard` returns the `Scorecard` with
    confidence intervals. In Lightning, at the end of an epoch: `self.log_dict(self.card.compute())`, then
    `self.card.reset()`.

    Parameters
    ----------
    n_classes : int
        The number of classes, K.
    ordered : bool, default False
        Whether the classes have an order.
    rules : sequence of Rule or str, optional
        Rules to use instead of all applicable ones.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
        The cost of each decision (column) for each outcome (row); "quadratic" if `ordered`.
    classes : sequence of K labels, optional
        Names of the classes, in order; for ordered classes lowest first.
    logits : bool, default False
        Whether predictions are logits. This is never guessed.
    ignore_index : int, optional
        Target of rows to ignore, such as -100 for padding; they are not counted.
    prefix : str, default ""
        Prefix of the names in the dictionary, such as `"val_"`.
    **kwargs : Any
        Options of every torchmetrics metric.

    Examples
    --------
    >>> import torch
    >>> from verax.adapters.torch import Card
    >>> card = Card(3, ordered=True, rules=["pbs", "rps"], prefix="val_")
    >>> card.update(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), torch.tensor([0, 1]))
    >>> {name: round(value.item(), 4) for name, value in card.compute().items()}
    {'val_pbs': 0.8333, 'val_rps': 0.1175, 'val_accuracy': 0.5, 'val_qwk': 0.6667, 'val_ec': 0.5}
    """

    higher_is_better: bool | None = None
    cells: Tensor

    def __init__(
        self,
        n_classes: int,
        *,
        ordered: bool = False,
        rules: Sequence[Rule | str] | None = None,
        costs: CostsLike | None = None,
        classes: Sequence[Hashable] | None = None,
        logits: bool = False,
        ignore_index: int | None = None,
        prefix: str = "",
        **kwargs: Any,
    ) -> None:
        n_classes = check_n_classes(n_classes, most=_MOST_CLASSES)
        super().__init__(fitting_rules(rules, ordered), logits=logits, ignore_index=ignore_index, **kwargs)
        self.n_classes = n_classes
        self.ordered = ordered
        self.prefix = prefix
        self._classes = check_classes(classes, n_classes)
        self._metrics = fitting_metrics(ordered, costs, n_classes)
        # Weights by outcome and decision; of too many classes, by outcome, and of correct decisions.
        self._add_sum("cells", n_cells(n_classes))
        # The same sums with squared weights, which intervals need, and the number of rows with weight.
        self._add_sum("squares", 2 + 3 * len(self.rules))
        self._add_sum("squared_cells", n_cells(n_classes))

    def update(self, preds: Tensor, target: Tensor, weights: Tensor | None = None) -> None:
        """Add predictions with their targets, without reading values.

        Parameters
        ----------
        preds : Tensor of shape (N, K), (N, K, ...) or (N,)
            Predictions: probabilities, or logits if `logits` is set.
        target : Tensor of shape (N,), (N, ...) or the shape of `preds`
            Class positions, which are integers, or distributions, which are floats.
        weights : Tensor of shape (N,) or (N, ...), optional
            Weights of the targets.
        """
        k = 2 if preds.ndim == 1 else int(preds.shape[1])
        if k != self.n_classes:
            raise InputError(
                f"must have {self.n_classes} classes",
                argument="preds",
                kind="length",
                found=f"there are {k}",
            )
        self._add(preds, target, weights, "squares", "cells", "squared_cells")

    def compute(self) -> dict[str, Tensor]:
        """Compute all rules and metrics, by name."""
        self._check()
        weight, *sums = self._total(self._name).tolist()
        finite, first, second, infinite = np.reshape(sums, (len(self.rules), 4)).T
        moments = Moments.from_sums(finite, first, second, infinite=infinite, count=infinite > 0)
        values = dict(zip(map(name_of, self.rules), moments.mean, strict=True))
        if self.n_classes > CONFUSION_UP_TO:
            right = self.cells[:, self.n_classes].double().sum().item()
            values["accuracy"] = np.divide(right, weight)
        else:
            table = self._table(weight)
            values |= {metric.name: metric.of(table) for metric in self._metrics}
        names = [self.prefix + name for name in values]
        numbers = torch.tensor([float(value) for value in values.values()], dtype=self._dtype_of_sums)
        return dict(zip(names, numbers.to(self.device).unbind(), strict=True))

    def _table(self, weight: float) -> Any:
        """The weights of outcomes and decisions: large tables stay on a GPU, others are NumPy arrays."""
        shape = self.n_classes, self.n_classes
        if not self.cells.is_cuda or self.n_classes < _LARGE:
            return self._total("cells").numpy().reshape(shape)
        exponent = math.frexp(weight)[1]
        factor = math.ldexp(1.0, -exponent) if abs(exponent) > EXTREME else 1.0
        return (self.cells.detach() * factor).sum(dim=0).reshape(shape)

    def scorecard(self) -> Scorecard:
        """Return the scorecard of all rows of all processes; zero-probability rows are not identified."""
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync, should_unsync=self._should_unsync
        ):
            tally = self._tally()
        if not tally.weight > 0:
            raise InputError("must have rows, and not all of weight zero", argument="preds", kind="length")
        return Scorecard(tally, self._classes, self.ordered, self._metrics)

    def _tally(self) -> RuleSums:
        self._check()
        weight, *sums = self._total(self._name).tolist()
        n_positive, square_sum, *squares = self._total("squares").tolist()
        return RuleSums.from_sums(
            self.rules,
            self.n_classes,
            n_rows=int(self.counts[_ROWS]),
            weight=weight,
            sums=np.array(sums),
            cells=self._total("cells").numpy(),
            n_zero=int(self.counts[_IMPOSSIBLE]),
            squared=SquaredSums(
                n_positive, square_sum, np.array(squares), self._total("squared_cells").numpy()
            ),
        )

    def _total(self, name: str) -> Tensor:
        """A sum with its rounding errors, on the host."""
        state: Tensor = getattr(self, name).detach()
        if state.dtype == torch.float64:
            return state.sum(dim=0).cpu()
        return state.cpu().double().sum(dim=0)
