"""The sums of several rules over a batch of tensors, left on their device: by a kernel, or by operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from verax.adapters.torch.rows import TensorRows, flatten, read
from verax.engines.cuda import places
from verax.engines.cuda.places import layout
from verax.engines.cuda.printer import POSITIVE, Form
from verax.engines.cuda.sums import OUTCOME_TYPES, VALUE_TYPES, Pass, program_of
from verax.engines.tally import CONFUSION_UP_TO, n_cells
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
        Weights and squared weights as `verax.engines.tally.Counts` keeps them.
    """

    sums: Tensor
    counts: Tensor
    squares: Tensor | None = None
    cells: Tensor | None = None
    squared_cells: Tensor | None = None


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
    differentiated = getattr(preds, "requires_grad", True) and torch.is_grad_enabled()
    if dtype == torch.float64 and not differentiated:
        found = _by_kernel(rules, preds, target, weights, logits, ignore_index, decisions)
        if found is not None:
            return found
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


def _by_kernel(
    rules: Sequence[Rule],
    preds: Tensor,
    target: Tensor,
    weights: Tensor | None,
    logits: bool,
    ignore_index: int | None,
    decisions: bool,
) -> BatchSums | None:
    place = places.locate(preds) if isinstance(preds, Tensor) and preds.numel() else None
    if place is None:
        return None
    rows, y, w = flatten(preds.detach(), target, weights, logits=logits)
    y = y if str(y.dtype).removeprefix("torch.") in OUTCOME_TYPES else y.long()
    w = w if w is None or w.dtype in (torch.float32, torch.float64) else w.double()
    of_p, of_y, of_w = place.view(rows), place.view(y), None if w is None else place.view(w)
    if of_p is None or of_p.dtype not in VALUE_TYPES or of_y is None or (w is not None and of_w is None):
        return None
    n, k = of_p.shape
    weight_type = None if of_w is None else of_w.dtype
    options: dict[str, Any] = {"logits": logits, "ignore": ignore_index is not None}
    form = Form(k, of_p.dtype, of_y.dtype, weight_type, **layout(of_p), **options)
    program = program_of(tuple(rules), form, decisions, CONFUSION_UP_TO)
    if program is None:
        return None
    work = Pass(program, n, len(rules))
    memory = torch.empty(work.n_head + work.n_room, dtype=torch.float64, device=rows.device)
    cells = torch.zeros(work.n_cells, dtype=torch.int64, device=rows.device)
    table = cells.data_ptr() if decisions else None
    limit, ignore = Unity.of(preds).limit, ignore_index or 0
    work.bind(place, of_p, of_y, of_w, clear=limit, memory=memory.data_ptr(), cells=table, ignore=ignore)
    with place.device.current():
        place.device.clear(memory.data_ptr(), 8 * work.n_head, place.stream)
        work.weigh()
        work.sum()
    return _arranged(work, memory[: work.n_head], cells, decisions)


def _arranged(work: Pass, head: Tensor, cells: Tensor, decisions: bool) -> BatchSums:
    """The sums of a kernel in the order of `BatchSums`; only views and additions, so nothing waits."""
    program, n = work.program, work.n_rules
    weighted = program.form.weight is not None
    none = head[0]  # Losses are summed as they are: shifts are zero.
    counts, sums = head[n : n + program.n_counts], head[n + program.n_counts : -1]
    first, step = (2, 4) if weighted else (0, 2)
    of_rules = sums[first : first + n * step].reshape(n, step)
    extra = sums[first + n * step :]
    weight, squared = (sums[0], sums[1]) if weighted else (counts[0], counts[0])

    def by_rule(usual: Tensor, start: int) -> Tensor:
        """A number of each rule: from the fourfold sums of rules that may be infinite, else the usual one."""
        places_of = {r: 4 * i + start for i, r in enumerate(program.infinite)}
        return torch.stack([extra[places_of[r]] if r in places_of else usual for r in range(n)])

    if weighted:
        finite, finite_squared, infinite = by_rule(weight, 0), by_rule(squared, 1), by_rule(none, 2)
    else:
        where = {r: 7 + i for i, r in enumerate(program.infinite)}
        infinite = torch.stack([counts[where[r]] if r in where else none for r in range(n)])
        finite = finite_squared = counts[0] - infinite
    main = torch.stack([finite, of_rules[:, 0], of_rules[:, 1], infinite], dim=1)
    total = torch.cat([weight[None], main.reshape(-1)])
    if not decisions:
        return BatchSums(total, counts[:6].long())
    at = 2 if weighted else 0
    second = torch.stack([finite_squared, of_rules[:, at], of_rules[:, at + 1]], dim=1)
    positive = counts[POSITIVE] if weighted else counts[0]
    squares = torch.cat([torch.stack([positive, squared]), second.reshape(-1)])
    tables = [cells.double()] * 2
    if weighted:
        limbs = cells.reshape(2, 3, -1).double()
        high = ((limbs[:, 2] * work.limb + limbs[:, 1]) * work.limb + limbs[:, 0]) * work.limb
        unit = torch.ldexp(torch.ones_like(head[-1]), torch.frexp(head[-1]).exponent)
        tables = [high[0] * unit, high[1] * unit * unit]
    if program.form.n_classes > CONFUSION_UP_TO:
        right = (sums[-2:-1], sums[-1:]) if weighted else (counts[-1:],) * 2
        tables = [torch.cat([table, share]) for table, share in zip(tables, right, strict=True)]
    return BatchSums(total, counts[:6].long(), squares, *tables)
