"""What a report is about where the rows are elsewhere: there are no arrays of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verax.inference.intervals import WeightsAre
from verax.inputs.handles import Handle
from verax.report.problem import Problem, by_merit, fitting
from verax.report.words import distinct
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike, cost_range
from verax.scores.registry import as_rules

# How ranks of the worst rows are shown.
RANKS = (
    "Ranks of the worst rows by other scores come from histograms of losses; where these do not settle a "
    "rank, its range is shown, such as “12 to 15”."
)


@dataclass(frozen=True, eq=False)
class Rowless:
    """What was counted in rows that are not here, whatever their kind."""

    size: int = 0
    is_grouped: bool = False
    is_named: bool = False

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.size

    @property
    def grouped(self) -> bool:
        """Whether rows belong to groups."""
        return self.is_grouped

    @property
    def named(self) -> bool:
        """Whether rows have ids."""
        return self.is_named


@dataclass(frozen=True, eq=False)
class Elsewhere(Rowless, Problem):
    """What a report is about where the probabilities are elsewhere."""

    is_weighted: bool = False

    @classmethod
    def at(
        cls,
        handle: Handle,
        rules: Sequence[Rule | str] | None,
        *,
        ordered: bool,
        costs: CostsLike | None,
        weights_are: WeightsAre,
    ) -> Elsewhere:
        """What is known before the rows are read."""
        chosen = as_rules(rules) if rules is not None else fitting(ordered)
        if costs is not None:
            cost_range(costs, None, handle.n_classes)
        labels = range(handle.n_classes) if handle.classes is None else handle.classes
        return cls(
            models=dict.fromkeys(distinct(handle.models)),
            y=None,
            classes=handle.classes,
            names=distinct(labels),
            ordered=ordered,
            costs=costs if costs is not None or not ordered else "quadratic",
            weights=None,
            groups=None,
            by=dict.fromkeys(distinct(handle.by)),  # type: ignore[arg-type]
            ids=None,
            rules=by_merit(chosen, handle.n_classes, ordered),
            normalize=False,
            logits=False,
            weights_are=weights_are,
            time_ordered=False,
        )

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.is_weighted
