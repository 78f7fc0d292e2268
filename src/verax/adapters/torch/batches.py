"""The sums of several rules over a batch of tensors, on their device: by a kernel, or by operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from verax.adapters.torch.rows import INTEGERS, TensorRows, flatten, read
from verax.engines.counts import CONFUSION_UP_TO, n_cells
from verax.engines.cuda import places
from verax.engines.cuda.places import layout
from verax.engines.cuda.printer import RowLayout
from verax.engines.cuda.sums import VALUE_TYPES, Pass, program_of
from verax.inputs.validity import Unity
from verax.scores.base import Rule


@dataclass(frozen=True)
class BatchSums:
    """What metrics add up.

    Attributes
    ----------
    sums : Tensor
        The weight; for each rule the sums of w, w * loss and w * loss^2 over the rows with a finite loss, and
        of w over the rows with an infinite one.
    counts : Tensor
        How many rows there are, had given their outcome probability zero, and hold invalid values, sums,
        targets and weights.
    squares : Tensor, optional
        The number of rows with weight, the sum of w^2, and for each rule the sums with w^2.
    cells, squared_cells : Tensor, optional
        Weights and squared weights as `verax.engines.counts.Counts` keeps them.
    """

    sums: Tensor
    counts: Tensor
    squares: Tensor | None = None
    cells: Tensor | None = None
    squared_cells: Tensor | None = None

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """All of them, in this order."""
        return self.sums, self.counts, self.squares, self.cells, self.squared_cells

    def can_be_added_to(self, device: torch.device) -> bool:
        """Whether a kernel on this device can add to them where they are."""
        if self.sums.dtype != torch.float64:
            return False
        return all(x is None or (x.device == device and x.is_contiguous()) for x in self.tensors)


def batch_sums(
    rules: Sequence[Rule],
    preds: Tensor,
    target: Tensor,
    weights: Tensor | None,
    *,
    logits: bool,
    ignore_index: int | None,
    dtype: torch.dtype,
    decisions: bool,
) -> BatchSums:
    """The sums over predictions (N, K, ...); with `decisions` those of a card. The host reads no value."""
    batch = read(preds, target, weights, logits=logits, dtype=dtype, ignore_index=ignore_index)
    return _by_operations(rules, batch, Unity.of(preds).limit, decisions)


# ---- by operations -----------------------------------------------------------------------------


def _by_operations(rules: Sequence[Rule], batch: TensorRows, limit: float, decisions: bool) -> BatchSums:
    needs = {name for rule in rules for name in rule.needs}
    stats = batch.statistics(needs | {"decision"} if decisions else needs)
    w = torch.ones_like(stats.p_true) if batch.weights is None else batch.weights
    sums, squares = [w.sum()], [(w > 0).sum().to(w.dtype), (w * w).sum()]
    for rule in rules:
        loss = stats.loss(rule)
        infinite = loss == torch.inf
        finite = torch.where(infinite, 0.0, loss)
        counted = torch.where(infinite, 0.0, w)
        sums += [*_moments(counted, finite), (w - counted).sum()]
        if decisions:
            squares += _moments(torch.where(infinite, 0.0, w * w), finite)
    impossible = stats.impossible & (w > 0)
    rows = torch.ones_like(impossible) if batch.kept is None else batch.kept
    counts = torch.stack([rows, impossible, *_invalid(batch, w, limit)]).sum(dim=1)
    if not decisions:
        return BatchSums(torch.stack(sums), counts)
    k = batch.n_classes
    y = batch.y.clamp(0, k - 1)
    tables = [_cells(k, y, stats.decision, v) for v in (w, w * w)]
    return BatchSums(torch.stack(sums), counts, torch.stack(squares), *tables)


def _moments(w: Tensor, loss: Tensor) -> list[Tensor]:
    total = w * loss
    return [w.sum(), total.sum(), (total * loss).sum()]


def _cells(k: int, y: Tensor, decision: Tensor, w: Tensor) -> Tensor:
    """Weights by outcome and decision; of too many classes by outcome, then of correct decisions."""
    cells = torch.zeros(n_cells(k), dtype=w.dtype, device=w.device)
    if k <= CONFUSION_UP_TO:
        return cells.index_add(0, y * k + decision, w)
    cells = cells.index_add(0, y, w)
    cells[k] = (w * (y == decision)).sum()
    return cells


def _invalid(batch: TensorRows, w: Tensor, limit: float) -> list[Tensor]:
    """Which rows break which requirement, in the order of the counts."""
    rows = batch.rows
    if batch.logits:
        values = ~(rows < torch.inf).all(dim=1) | (rows == -torch.inf).all(dim=1)
        sums = torch.zeros_like(values)
    else:
        values = ~((rows >= 0) & (rows < torch.inf)).all(dim=1)
        sums = ~values & ~((rows.sum(dim=1) - 1).abs() <= limit)
    return [values, sums, ~batch.inside, ~((w >= 0) & (w < torch.inf))]


# ---- by one kernel -----------------------------------------------------------------------------


def add_by_kernel(
    states: BatchSums,
    rules: Sequence[Rule],
    preds: Tensor,
    target: Tensor,
    weights: Tensor | None,
    *,
    logits: bool,
    ignore_index: int | None,
) -> bool:
    """Add the sums of a batch to those of a metric, in place; False where operations must do it.

    `states` has the sums in pairs, (2, n): totals, and the sums of their rounding errors.
    """
    if getattr(preds, "requires_grad", True) and torch.is_grad_enabled():
        return False
    place = places.locate(preds) if isinstance(preds, Tensor) and preds.numel() else None
    if place is None or not states.can_be_added_to(preds.device):
        return False
    rows, y, w = flatten(preds.detach(), target, weights, logits=logits)
    y = y if y.dtype in INTEGERS else y.long()
    w = w if w is None or w.dtype in (torch.float32, torch.float64) else w.double()
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
    with place.device.current():
        place.device.clear(memory.data_ptr(), 8 * n_zero, place.stream)
        work.weigh()
        work.sum()
        work.add_to([None if state is None else state.data_ptr() for state in states.tensors])
    return True
