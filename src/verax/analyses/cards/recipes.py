"""Cards of predictions that are not in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.cards.listcard import score_lists
from verax.analyses.cards.saved import card_from_bytes
from verax.analyses.cards.scorecard import Scorecard, card_of_rows, check_whole
from verax.analyses.parts import accept, known_sums
from verax.engines.tally import RuleSums, first_row
from verax.inference.intervals import Resampling
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle, Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike

# Losses may lie three standard deviations from zero, so that their variance loses one digit: 1 - 1 / (1 + 9).
_SPREAD = 0.9


@dataclass(frozen=True)
class CardRecipe(Recipe[Any], cases=True):
    """The card of one model."""

    model: str
    rules: tuple[Rule, ...]
    ordered: bool
    costs: CostsLike | None
    plan: Resampling

    def n_groups(self, summary: Scorecard) -> int:
        """The number of groups that a card has sums of."""
        clusters = summary.tally.clusters
        return 0 if clusters is None else len(clusters.labels)

    def take(self, part: Part) -> Scorecard:
        """The card of some rows."""
        rows = part.models[self.model]
        if isinstance(rows, ListRows):
            card: Scorecard = score_lists(rows, self.rules, self.costs, self.plan)
        else:
            assert isinstance(rows, Forecasts)
            tally = self._from_losses(part, rows)
            card = card_of_rows(rows, self.rules, self.ordered, self.costs, self.plan, tally)
            accept(part, self.model)
        return card.with_skipped(part.skipped, part.numbers)

    def _from_losses(self, part: Part, rows: Forecasts) -> RuleSums | None:
        """The sums from losses that were computed before, unless squares would cancel."""
        plain = known_sums(part, self.model, self.rules)
        if plain is None:
            return None
        n, (first, second) = rows.n_rows, plain.losses.sum(axis=0).T
        if not (first * first <= _SPREAD * second * n).all():
            return None
        return RuleSums.from_sums(
            self.rules,
            rows.n_classes,
            n_rows=n,
            weight=float(n),
            sums=np.column_stack([np.full_like(first, n), first, second, np.zeros_like(first)]),
            cells=plain.cells.reshape(-1),
            n_zero=0,
            start=first_row(rows),
        )

    def load(self, stored: bytes, sizes: Mapping[str, int] | None = None) -> Scorecard:
        """A card of probabilities or of top lists from its bytes."""
        return card_from_bytes(stored)


def card_of(handle: Handle, recipe: CardRecipe, *, part: bool = False) -> Scorecard:
    """The card of all rows of a handle; they may be a `part` of more."""
    summaries = handle.summarise({"card": recipe})
    card: Scorecard = summaries["card"].with_skipped(summaries.skipped)
    if not (part or handle.shard):
        check_whole(card, handle.name)
    return card
