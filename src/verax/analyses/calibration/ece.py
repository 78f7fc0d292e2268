"""Calibration error in bins: the mean, the root mean square or the largest gap."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack, get_args

import numpy as np

from verax.analyses.calibration.sources import events_of_kind
from verax.common.checks import check_choice, check_count, check_flag
from verax.common.spelling import LATER
from verax.common.stored import only_weights
from verax.common.summaries import Summary, merges
from verax.engines.sums import Sum, Sums
from verax.errors import InputError, passing, show
from verax.inputs.arrays import Floats, Ints
from verax.inputs.handles import Handle, Part, Recipe
from verax.inputs.memory import holds_lists, open_rows
from verax.inputs.options import WeightedOptions, reads

Binning = Literal["width", "mass"]
Norm = Literal["l1", "l2", "max"]
Kind = Literal["confidence", "classwise", "listed", "mass"]
# Which of these there are for full distributions, and for top lists.
_DENSE, _LISTS = ("confidence", "classwise"), ("confidence", "listed", "mass")

USUAL_BINS = 15
# The largest number of bins, of one event and of all.
MOST_BINS, _MOST_OF_ALL = 1_000_000, 10_000_000
# A bin whose squared shares of the weight sum to one, up to rounding, has a single row.
_ALONE = 1e-12


@reads
def ece(
    y: object,
    p: object = None,
    *,
    bins: int = USUAL_BINS,
    kind: Kind = "confidence",
    binning: Binning = "width",
    norm: Norm = "l1",
    debias: bool = False,
    **read: Unpack[WeightedOptions],
) -> float:
    """Calibration error in bins: the mean gap between forecast and frequency. Lower is better.

    From 0 to 1. **It is not a proper score, and it depends on the bins.** The constant forecast of the base
    rates has an error of 0 and says nothing; other bins give other numbers; in bins with few rows noise
    counts as error. Report it beside a proper score; to see calibration use `decompose` and
    `reliability`, which need no bins.

    Parameters
    ----------
    y
        Only bins of equal width are possible then.
    p
    bins : int, default 15
        The number of bins.
    kind : {"confidence", "classwise", "listed", "mass"}, default "confidence"
        "confidence": the probability of the most likely class (the lowest index where several are)
        against the share of rows where it was right. "classwise": the probability of each class against
        its frequency, averaged over the classes. For top lists: "confidence" is about the first place,
        "listed" about all listed classes together, "mass" about the sum of the list against the share of
        outcomes that are listed.
    binning : {"width", "mass"}, default "width"
        "width": bins of equal width, the upper end included. "mass": bins of equal weight; equal forecasts
        are always in the same bin.
    norm : {"l1", "l2", "max"}, default "l1"
        How the gaps of the bins become one number: their mean by weight (the ECE), the root of the mean of
        their squares (RMS calibration error), or the largest (maximum calibration error). Over classes, the
        squares are averaged before the root is taken, and the largest is that of all classes.
    debias : bool, default False
        Subtract from each squared gap what noise adds to it, f (1 - f) / (n - 1) for a frequency f in n
        rows; for "l2" only. A bin with a single row counts as zero, and so does a sum below zero.
    **read

    Returns
    -------
    float
        The calibration error.

    See Also
    --------
    decompose : Miscalibration without bins.
    reliability : Curves without bins.

    References
    ----------
    Guo et al. (2017), arXiv:1706.04599, for "confidence"; Kull et al. (2019), arXiv:1910.12656, for
    "classwise"; Kumar, Liang and Ma (2019), arXiv:1909.10155, and Broecker (2012),
    doi:10.1007/s00382-011-1191-1, for `debias`

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.4, 0.6]]
    >>> round(vx.ece(y, p), 4), round(vx.ece(y, p, bins=1), 4)
    (0.125, 0.025)
    >>> round(vx.ece(y, p, norm="l2"), 4), round(vx.ece(y, p, norm="max"), 4)
    (0.1323, 0.2)
    >>> vx.ece([0, 0, 0, 1], [[0.75, 0.25]] * 4)
    0.0
    """
    check_count("bins", bins)
    if bins > MOST_BINS:
        raise InputError(f"must be at most {MOST_BINS:,}, not {show(bins)}", argument="bins", values=[bins])
    lists = holds_lists(y, p)
    check_choice("kind", kind, _LISTS if lists else _DENSE)
    check_choice("binning", binning, ("width", "mass"))
    check_choice("norm", norm, get_args(Norm))
    if check_flag("debias", debias) and norm != "l2":
        raise InputError(
            "is known for squared gaps only",
            argument="debias",
            remedies=[passing("for the root of the mean squared gap", norm="l2")],
        )
    return binned_error(open_rows(y, p, single=True, **read), bins, kind, binning, norm, debias=debias)


def binned_error(
    handle: Handle,
    bins: int = USUAL_BINS,
    kind: Kind = "confidence",
    binning: Binning = "width",
    norm: Norm = "l1",
    *,
    debias: bool = False,
) -> float:
    """The calibration error in bins of the only model; by default the usual one."""
    sums = _sums_of(handle, bins, kind, binning)
    return _over_events([_of_bins(of_event, norm, debias) for of_event in sums], norm)


def _over_events(values: list[float], norm: Norm) -> float:
    """One number from those of the events."""
    if norm == "max":
        return max(values)
    mean = float(np.mean(values))
    return math.sqrt(max(mean, 0.0)) if norm == "l2" else mean


def _sums_of(handle: Handle, bins: int, kind: Kind, binning: Binning) -> Floats:
    """Sums of the rows by bin, for each event."""
    if binning == "mass" and not handle.whole:
        raise InputError(
            "must be 'width' where predictions are not in memory: bins of equal weight need an order of the "
            "rows",
            argument="binning",
            values=[binning],
        )
    n_events = 1 if kind == "confidence" or handle.lists else handle.n_classes
    if n_events * bins > _MOST_OF_ALL:
        raise InputError(
            f"must be at most {_MOST_OF_ALL:,} for all classes together",
            argument="bins",
            found=f"there are {n_events * bins:,}",
            values=[bins],
        )
    recipe: Recipe[BinSums] = BinRecipe(handle.one_model(), bins, kind == "confidence", binning)
    if handle.lists:
        recipe = ListBinRecipe(handle.one_model(), bins, kind, binning)
    summary = handle.summarise({"bins": recipe})["bins"]
    if handle.lists and not summary.sums.high[0].any():
        raise _all_empty()
    return np.asarray(summary.sums.high.reshape(4, n_events, bins).swapaxes(0, 1))


def _all_empty() -> InputError:
    return InputError("must list some class", argument="p", kind="list", found="every list is empty")


def _of_bins(sums: Floats, norm: Norm, debias: bool) -> float:
    """The gaps of the bins as one number; with "l2" the mean of their squares."""
    weight, gaps, hits, squares = sums
    filled = weight > 0
    weight, gaps = weight[filled], np.abs(gaps[filled])
    if norm == "l1":
        return float(gaps.sum() / weight.sum())
    gaps = gaps / weight
    if norm == "max":
        return float(gaps.max())
    squared = gaps**2
    if debias:
        frequency = hits[filled] / weight
        # The sum of squared shares of the weight is 1 / n for n rows of equal weight.
        share = squares[filled] / weight**2
        several = share < 1 - _ALONE
        noise = frequency * (1 - frequency) * share / np.where(several, 1 - share, 1.0)
        squared = np.where(several, squared - noise, 0.0)
    return float((weight * squared).sum() / weight.sum())


# ---- sums in bins of equal width, which merge, or of equal weight --------------------------------


class BinSums(Summary, kind="calibration bins"):
    """Sums by bin, of one event after the other: those of all rows add up."""

    sums: Sum = merges(Sums(4, "events*bins"))

    def _check(self) -> None:
        only_weights(self.sums.high[0])


@dataclass(frozen=True)
class BinRecipe(Recipe[BinSums]):
    """Sums in bins of one model: of its most likely class, or of every class."""

    model: str
    bins: int
    top_only: bool
    binning: Binning = field(default="width", metadata=LATER)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The numbers of bins and of events."""
        if self.top_only:
            return {"bins": self.bins, "events": 1}
        return {"bins": self.bins} | ({"events": known["classes"]} if "classes" in known else {})

    def take(self, part: Part) -> BinSums:
        """The sums of some rows."""
        kind = "confidence" if self.top_only else "classwise"
        return _in_bins(events_of_kind(part, self.model, kind), self.bins, self.binning)


@dataclass(frozen=True)
class ListBinRecipe(Recipe[BinSums]):
    """Sums in bins of one kind of event of the lists of a model."""

    model: str
    bins: int
    kind: str
    binning: Binning = field(default="width", metadata=LATER)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The numbers of bins and of events."""
        return {"bins": self.bins, "events": 1}

    def take(self, part: Part) -> BinSums:
        """The sums of some lists."""
        return _in_bins(events_of_kind(part, self.model, self.kind), self.bins, self.binning)


def _in_bins(events: Sequence[tuple[Floats, Any, Floats]], bins: int, binning: Binning) -> BinSums:
    """Sums of w, w * (forecast - happened), w * happened and w * w in the bins of each event."""
    if not events:
        return BinSums(Sum.zeros((4, bins)))
    sums = []
    for given, happened, w in events:
        at = _by_width(given, bins) if binning == "width" else _by_mass(given, w, bins)
        columns = (w, w * (given - happened), w * happened, w * w)
        sums.append(np.stack([np.bincount(at, column, bins) for column in columns]))
    return BinSums(Sum.of(np.concatenate(sums, axis=1)))


def _by_width(given: Floats, bins: int) -> Ints:
    """The bin of each forecast; one on an edge belongs below it, and 0 to the first bin."""
    edges = np.arange(1, bins) / bins
    return np.asarray(np.searchsorted(edges, given, side="left"))


def _by_mass(given: Floats, w: Floats, bins: int) -> Ints:
    """The bin of each forecast where bins have equal weight; equal forecasts are in the same bin."""
    values, pools = np.unique(given, return_inverse=True)
    mass = np.bincount(pools, w, len(values))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.asarray(np.minimum((bins * middle).astype(np.int64), bins - 1)[pools])
