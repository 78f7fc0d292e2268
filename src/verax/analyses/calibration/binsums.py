"""Sums of forecasts and outcomes in bins of equal width, which merge: what calibration errors are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from verax.analyses.parts import probabilities, scaled, seen
from verax.common.stored import only_weights
from verax.common.summaries import Summary, merges
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import Floats, Ints
from verax.inputs.handles import LATER, Part, Recipe

Binning = Literal["width", "mass"]


def by_width(given: Floats, bins: int) -> Ints:
    """The bin of each forecast; one on an edge belongs below it, and 0 to the first bin."""
    edges = np.arange(1, bins) / bins
    return np.asarray(np.searchsorted(edges, given, side="left"))


def by_mass(given: Floats, w: Floats, bins: int) -> Ints:
    """The bin of each forecast where bins have equal weight; equal forecasts are in the same bin."""
    values, pools = np.unique(given, return_inverse=True)
    mass = np.bincount(pools, w, len(values))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.asarray(np.minimum((bins * middle).astype(np.int64), bins - 1)[pools])


def binned(given: Floats, happened: Any, w: Floats, bins: int, binning: Binning) -> Floats:
    """(4, bins) sums of w, w * (forecast - happened), w * happened and w * w."""
    found = by_width(given, bins) if binning == "width" else by_mass(given, w, bins)
    return bin_sums(found, given, happened, w, bins)


def bin_sums(found: Ints, given: Floats, happened: Any, w: Floats, bins: int) -> Floats:
    """(4, bins) sums of w, w * (forecast - happened), w * happened and w * w."""
    columns = (w, w * (given - happened), w * happened, w * w)
    return np.stack([np.bincount(found, column, bins) for column in columns])


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
        rows, p = seen(part, self.model, ()), probabilities(part, self.model)
        w = np.ones(len(rows.y)) if rows.weights is None else scaled(part, rows.weights)
        events: list[tuple[Floats, Any]] = [(p[:, k], rows.y == k) for k in range(p.shape[1])]
        if self.top_only:
            events = [(rows.top, rows.decision == rows.y)]
        sums = [binned(given, happened, w, self.bins, self.binning) for given, happened in events]
        return BinSums(Sum.of(np.concatenate(sums, axis=1)))
