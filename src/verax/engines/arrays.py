"""Row statistics by array-API calls: on any array, where it lives."""

from __future__ import annotations

from collections.abc import Collection
from functools import singledispatch
from itertools import accumulate
from typing import Any

import numpy as np

from verax.engines.stats import Formula, RowStats, ShareStats
from verax.inputs.arrays import Array, Namespace, device_of, is_traced, to_host, to_index, widen
from verax.inputs.forecasts import ShareBatch, log_softmax
from verax.kernels.statistics import CUMULATIVE, LOGARITHMS, MODE

# Up to so many classes, array calls on the host are faster on columns than on rows.
_FEW = 64


@singledispatch
def validate(batch: Any) -> tuple[bool, bool]:
    """Whether all rows of a batch are valid, and whether any has weight: one look at the device."""
    return _validate(batch, (batch.y < 0) | (batch.y >= batch.n_classes))


@validate.register
def _validate_shares(batch: ShareBatch) -> tuple[bool, bool]:
    xp, shares = batch.xp, batch.shares
    clear = batch.unity.clear(batch.n_classes, float(xp.finfo(shares.dtype).eps))
    return _validate(batch, ~((xp.min(shares, axis=1) >= 0) & (xp.abs(xp.sum(shares, axis=1) - 1) <= clear)))


def _validate(batch: Any, bad: Array) -> tuple[bool, bool]:
    """The same, where it is known which outcomes are bad."""
    xp, p = batch.xp, _by_column(batch.p)
    clear = batch.unity.clear(batch.n_classes, float(xp.finfo(p.dtype).eps))
    unclear = ~((xp.min(p, axis=1) >= 0) & (xp.abs(xp.sum(p, axis=1) - 1) <= clear))
    flags = [xp.any(unclear), xp.any(bad)]
    if batch.weights is not None:
        flags[1] = flags[1] | xp.any(~((batch.weights >= 0) & xp.isfinite(batch.weights)))
        flags.append(xp.any(batch.weights > 0))
    found = xp.stack(flags)
    if is_traced(found):
        # There are no values to look at: inside `jax.jit` valid rows are the caller's affair.
        return True, True
    some_unclear, some_bad, *weighty = to_host(found).tolist()
    if some_unclear:
        some_bad = some_bad or not batch.unity.holds(to_host(p)).all()
    return not some_bad, all(weighty)


@singledispatch
def compute(batch: Any, needs: Collection[str]) -> RowStats:
    """The statistics `needs` (and `p_true`) of a batch of valid rows."""
    p = _by_column(batch.p)
    columns = to_index(batch.xp.arange(batch.n_classes, device=device_of(p)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return reduce_rows(batch.xp, p, batch.y, columns, needs, logits=batch.logits)


@compute.register
def _compute_shares(batch: ShareBatch, needs: Collection[str]) -> RowStats:
    if batch.xp is np:
        return ShareStats.of_pairs(batch, lambda pairs: compute(pairs, needs))
    # Elsewhere every class is scored for all rows: which shares are zero is not looked at.
    p, logits, xp = _by_column(batch.p), batch.logits, batch.xp
    columns = to_index(xp.arange(batch.n_classes, device=device_of(p)))
    found = []
    for k in range(batch.n_classes):
        y = to_index(xp.full((batch.n_rows,), k, device=device_of(p)))
        stats = reduce_rows(xp, p, y, columns, needs, logits=logits)
        found.append((None, batch.shares[:, k], stats))
    return ShareStats(xp, batch.n_classes, batch.n_rows, found)


def _by_column(p: Array) -> Array:
    """Probabilities in a float type of NumPy; those of few classes column by column in memory.

    NumPy adds and compares columns several times as fast as rows of few numbers.
    """
    p = widen(p)
    return np.asfortranarray(p) if isinstance(p, np.ndarray) and p.shape[1] <= _FEW else p


@singledispatch
def formula_for(_rows: Any, rule: Formula) -> Formula:
    """What a rule means for rows of this kind: its own formula, but for top lists, where some are fined."""
    return rule


def reduce_rows(
    xp: Namespace, p: Array, y: Array, columns: Array, needs: Collection[str], *, logits: Array | None = None
) -> RowStats:
    """The statistics of valid (n, K) rows, in their own precision; `columns` are the positions 0..K-1.

    It calls `xp` alone and looks at no value: it can be traced and differentiated, and no device waits.
    """
    outcome, columns = y[:, None], columns[None, :]
    stats = RowStats(xp, int(p.shape[1]), p_true=xp.take_along_axis(p, outcome, axis=1)[:, 0])
    log_p = None if logits is None or not LOGARITHMS & set(needs) else log_softmax(logits, xp)
    if log_p is not None:
        stats.log_p = xp.take_along_axis(log_p, outcome, axis=1)[:, 0]
    if "rest_sq" in needs:
        rest = xp.where(columns == outcome, xp.zeros_like(p), p)
        stats.add(rest_sq=xp.sum(rest * rest, axis=1))
    if MODE & set(needs):
        _add_modes(stats, p, columns, y)
    if "invalid" in needs:
        stats.add(invalid=xp.zeros_like(stats.p_true))
    if CUMULATIVE & set(needs):
        _add_cumulative(stats, p, log_p, columns[:, :-1] >= outcome, needs)
    return stats


def _add_modes(stats: RowStats, p: Array, columns: Array, y: Array) -> None:
    xp = stats.xp
    top = xp.max(p, axis=1)
    ties = p == top[:, None]
    share = 1 / xp.sum(xp.astype(ties, p.dtype), axis=1)
    decision = xp.min(xp.where(ties, columns, stats.n_classes), axis=1)
    hit = xp.where(stats.p_true == top, share, xp.zeros_like(share))
    stats.add(
        top=top,
        hit=hit,
        answered=hit,
        decision=decision,
        hit_lowest=xp.astype(decision == y, p.dtype),
    )


def _add_cumulative(
    stats: RowStats, p: Array, log_p: Array | None, at_or_above: Array, needs: Collection[str]
) -> None:
    # A tail sum instead of 1 - P keeps all digits of forecasts that are nearly certain.
    xp = stats.xp
    below = xp.cumulative_sum(p, axis=1)[:, :-1]
    above = xp.flip(xp.cumulative_sum(xp.flip(p, axis=1), axis=1), axis=1)[:, 1:]
    if {"cdf_l1", "cdf_l2"} & set(needs):
        error = xp.where(at_or_above, above, below)
        stats.add(cdf_l1=xp.sum(error, axis=1), cdf_l2=xp.sum(error * error, axis=1))
    if "cdf_log" in needs:
        # Of the probabilities only the side that counts: the other's logarithm may have no derivative.
        if log_p is None:
            logs = xp.log(xp.where(at_or_above, below, above))
        else:
            logs = xp.where(at_or_above, *_log_tails(log_p, xp))
        stats.add(cdf_log=xp.sum(-logs, axis=1))


def _log_tails(log_p: Array, xp: Namespace) -> tuple[Array, Array]:
    """The logarithms of the probabilities at or below, and above, each of the K-1 thresholds."""
    columns = [log_p[:, j] for j in range(log_p.shape[1])]
    below = list(accumulate(columns[:-1], xp.logaddexp))
    above = list(accumulate(columns[:0:-1], xp.logaddexp))[::-1]
    return xp.stack(below, axis=1), xp.stack(above, axis=1)
