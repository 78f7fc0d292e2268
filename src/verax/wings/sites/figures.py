"""The figures of sites: each alone, their mean, and where the next one will lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from verax.common.texts import percent
from verax.display.axes import Axis
from verax.display.figures import Figure, Sheet, row_height, rows_figure
from verax.display.marks import Guide, Line, Mark, Ranged, Ranges

# What measures have that are right.
_RIGHT = {"oe": ("as expected", 1.0), "slope": ("calibrated", 1.0)}
_FACTORS = 1.01, 3.0
# Of more sites, those that stand out and the first are drawn.
MOST_DRAWN = 60


class StudiedSites(Protocol):
    """The figures' data: each site, and what sites tell together by measure."""

    @property
    def table(self) -> Sequence[Any]: ...
    @property
    def summary(self) -> Mapping[str, Any]: ...
    @property
    def column(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    def title_of(self, measure: str) -> str: ...


def sites_sheet(study: StudiedSites) -> Sheet:
    """A figure for each measure."""
    figures = [forest(study, measure) for measure in study.summary]
    height = row_height(min(len(study.table), MOST_DRAWN) + 2)
    return Sheet(figures, min(2, len(figures)), (4.2, 0.6 * height + 0.8), key="above")


def forest(study: StudiedSites, measure: str) -> Figure:
    """Each site, the mean of sites, and the next one."""
    across, title = study.summary[measure], study.title_of(measure)
    flagged = measure == "oe"
    drawn = sorted(study.table, key=lambda site: not (flagged and site.stands_out))[:MOST_DRAWN]
    rows = []
    for site in study.table:
        known = getattr(site, measure)
        if site in drawn and not math.isnan(known.value):
            name = f"{site.label}, {site.n_rows:,} rows"
            low, high = known.interval
            rows.append(Ranged(name, known.value, low, high, flagged and site.stands_out))
    level = f"{100 * study.confidence:g}%"
    says = ""
    if across.mean.interval.defined:
        rows.append(Ranged("mean of sites", across.mean.value, *across.mean.interval))
    if across.next.interval.defined:
        low, high = across.next.interval
        rows.append(Ranged("next site", across.next.value, low, high))
        says = f"The next site will have between {low:.3g} and {high:.3g} with a probability of {level}."
    ranges = Ranges(
        title, rows, f"{level} interval; of the next site: prediction interval", "stands out (Holm)"
    )
    behind: list[Mark] = []
    if measure in _RIGHT:
        name, at = _RIGHT[measure]
        behind.append(Guide(name, "x", at))
    figure = rows_figure(
        f"{title} by {study.column}", ranges, Axis(title, log=measure == "oe"), study.column, *behind
    )
    return replace(figure, says=says)


def factor_figure(study: StudiedSites) -> Figure | None:
    """How far off the next site will be: the probability of an O:E within each factor of 1."""
    across = study.summary.get("oe")
    if across is None or across.mixture is None:
        return None
    factors = np.geomspace(*_FACTORS, 60)
    chances = [across.share_below(f) - across.share_below(1 / f) for f in factors.tolist()]
    near = across.share_below(1.25) - across.share_below(0.8)
    says = f"Its O:E is within a factor of 1.25 of 1 with a probability of {percent(near)}."
    x, y = Axis("factor", 1.0, _FACTORS[1]), Axis("probability", 0.0, 1.0, percent=True)
    marks: list[Mark] = [
        Line("next site within this factor", factors, chances),
        Guide("a factor of 1.25", "x", 1.25),
    ]
    return Figure("How far off the next site will be", marks, x, y, says)
