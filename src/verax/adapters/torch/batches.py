"""The sums of several rules over a batch of tensors on a GPU, by one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from verax._settings import settings
from verax.adapters.rows import BatchSums
from verax.adapters.torch.rows import INTEGERS, check_class_weights, flatten, is_transformed
from verax.engines.counts import CONFUSION_UP_TO
from verax.engines.cuda import places
from verax.engines.cuda.places import layout
from verax.engines.cuda.printer import RowLayout
from verax.engines.cuda.sums import VALUE_TYPES, Pass, program_of
from verax.inputs.validity import Unity
from verax.scores.base import Rule


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
) -> bool:
    """Add the sums of a batch to those of a metric, in place; False where operations must do it.

    `states` has the sums in pairs, (2, n): totals, and the sums of their rounding errors.
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
        own = class_weights.double()[y.long().clamp(0, rows.shape[1] - 1)]
        w = own if w is None else own * w
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
        work.add_to([None if state is None else state.data_ptr() for state in states.arrays])
    return True


def _can_be_added_to(states: BatchSums, device: torch.device) -> bool:
    """Whether a kernel on this device can add to sums where they are."""
    if states.sums.dtype != torch.float64:
        return False
    return all(x is None or (x.device == device and x.is_contiguous()) for x in states.arrays)
