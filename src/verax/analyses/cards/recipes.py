"""Cards of predictions that are not in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verax.analyses.cards.scorecard import Scorecard
from verax.engines.tally import Tally
from verax.errors import InputError
from verax.inference.intervals import Resampling
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import each_count
from verax.inputs.handles import Handle, Part, Recipe
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike, fitting_metrics


@dataclass(frozen=True)
class CardRecipe(Recipe[Any]):
    """The card of one model."""

    model: str
    rules: tuple[Rule, ...]
    ordered: bool
    costs: CostsLike | None
    plan: Resampling

    def take(self, part: Part) -> Scorecard:
        """The card of some rows."""
        forecasts = part.models[self.model]
        assert isinstance(forecasts, Forecasts)
        tally = Tally(self.rules, forecasts.n_classes).update(forecasts)
        metrics = fitting_metrics(self.ordered, self.costs, forecasts.n_classes)
        card = Scorecard(tally, forecasts.classes, self.ordered, metrics, self.plan)
        return card.with_skipped(part.skipped, part.numbers)

    def load(self, stored: bytes) -> Scorecard:
        """A card from its bytes."""
        return getattr(Scorecard, "from_bytes")(stored)  # type: ignore[no-any-return]  # noqa: B009


def card_of(handle: Handle, recipe: CardRecipe) -> Scorecard:
    """The card of all rows of a handle."""
    found = handle.summarise({"card": recipe})
    card: Scorecard = found["card"].with_skipped(found.skipped)
    if card.weight == 0:
        raise InputError("must not all be zero", argument="weights", source=handle.name)
    if card.n_groups is not None and min(each_count(card.n_groups)) < 2:
        raise InputError(
            "must be two or more, to be resampled",
            argument="groups",
            found="there is one" + (" of one kind" if isinstance(card.n_groups, tuple) else ""),
            source=handle.name,
        )
    return card
