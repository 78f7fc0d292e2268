"""`evaluate`: all the scores that fit a problem, from one pass over the rows, wherever these are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from verax.analyses.cards.listcard import card_from_bytes, score_lists
from verax.analyses.cards.rates import RowMeasures
from verax.analyses.cards.rows import check_whole
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.measures import is_ordinal
from verax.analyses.parts import Accepted, KnownSums, SumsOf
from verax.engines.tally import RuleSums, first_row
from verax.inference.intervals import FewGroups, Resampling, WeightsAre
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.inputs.memory import holds_lists, open_rows, usual_weights
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike, fitting_metrics, needs_order
from verax.scores.registry import fitting_rules, padded_rules

# Cards refer to at most this number of probabilities in memory.
_HELD = 2**21
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
            metrics = fitting_metrics(self.ordered, self.costs, rows.n_classes)
            tally = self._from_losses(part, rows)
            if tally is None:
                tally = RuleSums(self.rules, rows.n_classes).update(rows)
            card = Scorecard(tally, rows.classes, self.ordered, metrics, self.plan)
            part.once(Accepted(self.model), lambda: True)
        return card if part.skipped is None else card.with_skipped(part.skipped, part.numbers)

    def _from_losses(self, part: Part, rows: Forecasts) -> RuleSums | None:
        """The sums from losses that were computed before, unless squares would cancel."""
        known: KnownSums | None = part.made(SumsOf(self.model))
        plain = None if known is None else known.of_rules(self.rules)
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


@reads
def evaluate(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    costs: CostsLike | None = None,
    rules: Sequence[Rule | str] | None = None,
    confidence: float = 0.95,
    bootstrap: int = 1000,
    seed: int = 0,
    weights_are: WeightsAre = "importance",
    few_groups: FewGroups = None,
    **read: Unpack[RowOptions],
) -> Scorecard:
    """Score forecasts `p` of outcomes `y` with every applicable rule, with confidence intervals.

    Parameters
    ----------
    y
    p
        For `TopLists` the card also says how much the lists cover (`ListCard`).
    ordered : bool, default False
        Whether the classes have an order, so that ordinal rules, quadratic kappa and expected cost fit too.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
        The cost of each decision (column) for each outcome (row); "quadratic" if `ordered`.
    rules : sequence of Rule or str, optional
        Rules to use instead of all applicable ones.
    confidence
    bootstrap : int, default 1000
        Number of bootstrap replicates, for intervals that need them.
    seed
    weights_are
    few_groups : float or "unseen", optional
        What is assumed of groups for intervals of shares such as accuracy: the largest correlation of the
        errors of a group, from 0 to 1, or "unseen" where a quarter of a group may be unlike all that were
        seen. By default errors are correlated by up to 0.2, in groups of fewer than 50 rows by more.
    **read

    Returns
    -------
    Scorecard
        The scores with their intervals; a `ListCard` for top lists.

    See Also
    --------
    compare : Several models on the same rows.
    decompose : Where a score comes from.
    worst : The rows with the largest losses.

    Examples
    --------
    >>> import verax as vx
    >>> card = vx.evaluate([0, 1, 2], [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]], ordered=True)
    >>> round(card["rps"], 4), card.accuracy, card["qwk"]
    (0.105, 1.0, 1.0)
    """
    plan = Resampling.checked(confidence, bootstrap, seed, weights_are=weights_are, few_groups=few_groups)
    return score(y, p, plan, ordered=ordered, costs=costs, rules=rules, **read)


def card_value(name: str, y: object, p: object, **read: Unpack[RowOptions]) -> float:
    """A metric or measure of a card by its name, without the rest of the card."""
    return evaluate(y, p, ordered=is_ordinal(name), rules=["zero_one"], **read)[name]


def score(
    y: object,
    p: object,
    plan: Resampling,
    *,
    ordered: bool,
    costs: CostsLike | None,
    rules: Sequence[Rule | str] | None,
    part: bool = False,
    **read: Unpack[RowOptions],
) -> Scorecard:
    """The card of all rows, or of a part of them, which may have no rows, no weight or a single group."""
    chosen = fitting_rules(rules, ordered=ordered)
    # Top lists refuse all costs, whether these need an order or not.
    lists = holds_lists(y, p)
    in_order = needs_order(chosen, costs=None if lists else costs, ordered=ordered)
    handle = open_rows(y, p, ordered=in_order, single=True, part=part, **read)
    on_card = padded_rules() if lists and rules is None else chosen
    recipe = CardRecipe(handle.one_model(), tuple(on_card), ordered, costs, plan)
    summaries = handle.summarise({"card": recipe})
    card: Scorecard = summaries["card"]
    if summaries.skipped is not None:
        card = card.with_skipped(summaries.skipped)
    if not (part or handle.shard):
        check_whole(card, handle.name)
    if handle.followed:
        card = card.of_followed()
    asked = None if rules is None else tuple(chosen)
    # A card that is kept must not keep very many rows in memory.
    small = not handle.whole or card.n_rows * card.n_classes <= _HELD
    if not small or part:
        return card
    if lists:
        return card.with_rows(None, RowMeasures(handle, ordered, plan, asked))
    weights = read.get("weights")
    if usual_weights(weights) is not weights:
        # Cards merge, so they keep the unit of their weights; other measures do not.
        handle = open_rows(y, p, ordered=in_order, single=True, **read)
    return card.with_rows(RowMeasures(handle, ordered, plan, asked))
