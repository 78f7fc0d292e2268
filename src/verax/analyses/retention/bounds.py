"""How far a curve from a histogram can be from that of the rows.

A cut falls into one bin. The rows of better bins are kept, those of worse bins removed, and of this bin a
known weight is removed; only which of its rows is unknown. In the order of the rows, some part r of the
weights t of its cells is removed, with 0 <= r <= t and the sum known. The value computed here removes the
same share of each cell. Below are bounds of a metric over all r: they hold for every order of the rows inside
the bin, and however rows tie.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verax.inputs.arrays import Floats
from verax.scores.metrics import KAPPA_COSTS, METRICS, cost_matrix
from verax.scores.tworates import SHARES

Range = tuple[float, float]


def removed_sums(
    total: Floats, weight: Floats, least: Floats, most: Floats, share: Floats
) -> tuple[Floats, Floats]:
    """The smallest and the largest sum of values that a share of the weight of bins can have.

    The values lie between `least` and `most` and sum to `total`, with weights: so do those that are left.

    >>> low, high = removed_sums(*map(np.array, ([3.0], [10.0], [0.0], [1.0], [0.2])))
    >>> float(low[0]), float(high[0])
    (0.0, 2.0)
    """
    gone, left = share * weight, (1 - share) * weight
    with np.errstate(invalid="ignore"):
        low = np.maximum(least * gone, total - most * left)
        high = np.minimum(most * gone, total - least * left)
    return np.minimum(low, share * total), np.maximum(high, share * total)


def _removed(costs: Floats, table: Floats, gone: float) -> Range:
    """The smallest and the largest cost of so much of the weight in a table: the cheapest cells, the
    dearest.
    """
    order = np.argsort(costs, axis=None)
    cost, weight = costs.ravel()[order], table.ravel()[order]
    low = np.diff(np.minimum(np.cumsum(weight), gone), prepend=0.0)
    high = np.diff(np.minimum(np.cumsum(weight[::-1]), gone), prepend=0.0)
    return float(low @ cost), float(high @ cost[::-1])


def _kappa(costs: str, kept: Floats, table: Floats, share: float) -> Range:
    """Of 1 - n A / B: A is a sum over rows; B is linear in r but for a term that is at most 2 D^2 max(cost).

    B is the sum of cost_ij row_i column_j over the margins of what is kept. Let d = r - share * t, which sums
    to zero; the sum of its positive parts is at most D = share (1 - share) m, with m the weight of the bin.
    The margins of d also sum to zero, so that the product of both with the costs is at most
    1/2 |d|_1 * 1/2 |d|_1 * 2 max(cost) = 2 D^2 max(cost).
    """
    cost = cost_matrix(costs, len(kept))  # type: ignore[arg-type]
    n, gone = float(kept.sum()), share * float(table.sum())
    truth, decided = kept.sum(axis=1), kept.sum(axis=0)
    observed, chance = float((cost * kept).sum()), float(truth @ cost @ decided)
    low, high = (share * float((cost * table).sum()) - end for end in _removed(cost, table, gone)[::-1])
    slope = (cost @ decided)[:, None] + (truth @ cost)[None, :]
    fall, rise = (share * float((slope * table).sum()) - end for end in _removed(slope, table, gone)[::-1])
    second = 2 * (share * (1 - share) * float(table.sum())) ** 2 * float(cost.max())
    least, most = chance + fall - second, chance + rise + second
    if least <= 0:
        return -np.inf, np.inf
    return 1 - n * (observed + high) / least, 1 - n * max(observed + low, 0.0) / most


def _share_of(good: Floats, bad: Floats, in_bin: tuple[Floats, Floats], share: float, m: float) -> Range:
    """Of the mean over classes of good / (good + bad), from what is kept and what the bin has of both."""
    gone = share * m
    # What is removed of either kind, at least and at most.
    (g_least, g_most), (b_least, b_most) = (
        (np.maximum(0.0, gone - (m - here)), np.minimum(here, gone)) for here in in_bin
    )
    g, b = good + share * in_bin[0], bad + share * in_bin[1]
    some = (good + bad) > 0
    if bool((some & (g - g_most + b - b_most <= 0) & (in_bin[0] + in_bin[1] > 0)).any()):
        return -np.inf, np.inf
    low = (g - g_most)[some] / ((g - g_most) + (b - b_least))[some]
    high = (g - g_least)[some] / ((g - g_least) + (b - b_most))[some]
    return float(np.mean(low)), float(np.mean(high))


def _balanced(kept: Floats, table: Floats, share: float) -> Range:
    hits, here = np.diag(kept), np.diag(table)
    return _share_of(
        hits, kept.sum(axis=1) - hits, (here, table.sum(axis=1) - here), share, float(table.sum())
    )


def _f1(kept: Floats, table: Floats, share: float) -> Range:
    hits, here = np.diag(kept), np.diag(table)
    wrong = kept.sum(axis=0) + kept.sum(axis=1) - 2 * hits
    also = table.sum(axis=0) + table.sum(axis=1) - 2 * here
    return _share_of(2 * hits, wrong, (2 * here, also), share, 2 * float(table.sum()))


def _macro_mae(kept: Floats, table: Floats, share: float) -> Range:
    cost = cost_matrix("linear", len(kept))
    gone = share * float(table.sum())
    low, high = [], []
    for k in np.flatnonzero(kept.sum(axis=1) > 0):
        total, n = float(cost[k] @ (kept[k] + share * table[k])), float((kept[k] + share * table[k]).sum())
        here = float(table[k].sum())
        most = min(here, gone)
        least = max(0.0, gone - (float(table.sum()) - here))
        if n - most <= 0 and here > 0:
            return -np.inf, np.inf
        dearest, cheapest = _removed(cost[k], table[k], most)[1], _removed(cost[k], table[k], least)[0]
        low.append((total - dearest) / (n - least))
        high.append((total - cheapest) / (n - most))
    return float(np.mean(low)), float(np.mean(high))


def _macro_ppv(kept: Floats, table: Floats, share: float) -> Range:
    return _balanced(kept.T, table.T, share)


def _of_share(name: str) -> Callable[[Floats, Floats, float], Range]:
    """Of a share of two classes: what it counts, and what else it is among."""
    part, whole = SHARES[name]
    masks = part, whole - part
    scale = float(whole.max())

    def found(kept: Floats, table: Floats, share: float) -> Range:
        good, bad = (np.array([(kept * mask).sum()]) for mask in masks)
        here = np.array([(table * masks[0]).sum()]), np.array([(table * masks[1]).sum()])
        return _share_of(good, bad, here, share, scale * float(table.sum()))

    return found


_sensitivity, _specificity = _of_share("sensitivity"), _of_share("specificity")


def _youden(kept: Floats, table: Floats, share: float) -> Range:
    ends = _sensitivity(kept, table, share), _specificity(kept, table, share)
    return ends[0][0] + ends[1][0] - 1, ends[0][1] + ends[1][1] - 1


def _likelihood_ratio(positive: bool) -> Callable[[Floats, Floats, float], Range]:
    def found(kept: Floats, table: Floats, share: float) -> Range:
        sens, spec = _sensitivity(kept, table, share), _specificity(kept, table, share)
        over = sens if positive else (1 - sens[1], 1 - sens[0])
        under = (1 - spec[1], 1 - spec[0]) if positive else spec
        if under[0] <= 0:
            return -np.inf, np.inf
        return over[0] / under[1], over[1] / under[0]

    return found


def _of_kappa(costs: str) -> Callable[[Floats, Floats, float], Range]:
    return lambda kept, table, share: _kappa(costs, kept, table, share)


# The metrics that are no means over rows, and the range of each.
RANGES: dict[str, Callable[[Floats, Floats, float], Range]] = {
    "qwk": _of_kappa(KAPPA_COSTS["quadratic"]),
    "linear_kappa": _of_kappa(KAPPA_COSTS["linear"]),
    "kappa": _of_kappa(KAPPA_COSTS["unweighted"]),
    "balanced_accuracy": _balanced,
    "macro_f1": _f1,
    "macro_mae": _macro_mae,
    "macro_ppv": _macro_ppv,
    **{name: _of_share(name) for name in SHARES},
    "youden": _youden,
    "lr_positive": _likelihood_ratio(True),
    "lr_negative": _likelihood_ratio(False),
}
assert all(metric.of_row is not None or name in RANGES for name, metric in METRICS.items())


def table_bounds(name: str, values: Floats, kept: Floats, tables: Floats, shares: Floats) -> Floats:
    """How far each value of a metric can be from that of the rows.

    Parameters
    ----------
    values, shares : Floats
        (C,) the metric at each cut, and the share of the bin there that is removed.
    kept, tables : Floats
        (C, K, K) the counts of what is kept, and of the bin that each cut falls into.
    """
    bounds = np.zeros(len(values))
    cut = np.flatnonzero(
        (shares > 0) & (shares < 1) & ((tables > 0).sum(axis=(1, 2)) > 1) & ~np.isnan(values)
    )
    for c in cut:
        low, high = RANGES[name](kept[c], tables[c], float(shares[c]))
        bounds[c] = max(values[c] - low, high - values[c], 0.0)
    return bounds
