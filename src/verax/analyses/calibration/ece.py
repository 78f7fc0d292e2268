"""Expected calibration error: calibration measured in bins, for those who must report it."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np

from verax.analyses.table import RowTable
from verax.common.checks import check_choice, check_count
from verax.errors import InputError, show
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import Forecasts
from verax.inputs.options import Weighted, reads

MOST_BINS = 1_000_000


@reads
def ece(
    y: object,
    p: object,
    *,
    bins: int = 15,
    kind: Literal["confidence", "classwise"] = "confidence",
    binning: Literal["width", "mass"] = "width",
    **read: Unpack[Weighted],
) -> float:
    """Expected calibration error: the mean gap between forecast and frequency over bins. Lower is better.

    From 0 to 1. **It is not a proper score, and it depends on the bins.** The constant forecast of the base
    rates has an error of 0 and says nothing; other bins give other numbers; in bins with few rows noise
    counts as error. Report it beside a proper score; to see calibration use `decompose` and
    `reliability`, which need no bins.

    Parameters
    ----------
    y, p
        As for `evaluate`.
    bins : int
        The number of bins.
    kind : {"confidence", "classwise"}
        "confidence": the probability of the most likely class (the lowest index where several are)
        against the share of rows where it was right. "classwise": the probability of each class against
        its frequency, averaged over the classes.
    binning : {"width", "mass"}
        "width": bins of equal width, the upper end included. "mass": bins of equal weight; equal forecasts
        are always in the same bin.
    **read

    References
    ----------
    Guo et al. (2017), arXiv:1706.04599, for "confidence"; Kull et al. (2019), arXiv:1910.12656, for
    "classwise"

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.4, 0.6]]
    >>> round(vx.ece(y, p), 4), round(vx.ece(y, p, bins=1), 4)
    (0.125, 0.025)
    >>> vx.ece([0, 0, 0, 1], [[0.75, 0.25]] * 4)
    0.0
    """
    check_count("bins", bins)
    if bins > MOST_BINS:
        raise InputError(f"must be at most {MOST_BINS:,}, not {show(bins)}", argument="bins", values=[bins])
    check_choice("kind", kind, ("confidence", "classwise"))
    check_choice("binning", binning, ("width", "mass"))
    rows = RowTable.of(Forecasts(y, p, **read), [])
    w = np.ones(len(rows.y)) if rows.weights is None else rows.weights
    if kind == "confidence":
        given = rows.p[np.arange(len(rows.y)), rows.decisions]
        return _gap(given, rows.decisions == rows.y, w, bins, binning)
    gaps = [_gap(rows.p[:, k], rows.y == k, w, bins, binning) for k in range(rows.n_classes)]
    return float(np.mean(gaps))


def _gap(given: Floats, happened: Any, w: Floats, bins: int, binning: str) -> float:
    """The mean over the bins of how far the sums of forecasts and of events are apart."""
    found = _by_width(given, bins) if binning == "width" else _by_mass(given, w, bins)
    gaps = np.bincount(found, w * (given - happened), bins)
    return float(np.abs(gaps).sum() / w.sum())


def _by_width(given: Floats, bins: int) -> Ints:
    # A forecast on an edge belongs below it; 0 belongs to the first bin.
    edges = np.arange(1, bins) / bins
    return np.asarray(np.searchsorted(edges, given, side="left"))


def _by_mass(given: Floats, w: Floats, bins: int) -> Ints:
    values, pools = np.unique(given, return_inverse=True)
    mass = np.bincount(pools, w, len(values))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.asarray(np.minimum((bins * middle).astype(np.int64), bins - 1)[pools])
