"""`evaluate`: all the scores that fit a problem, from one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from verax.analyses.cards.rates import RowMeasures
from verax.analyses.cards.recipes import CardRecipe, card_of
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.measures import is_ordinal
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.memory import holds_lists, open_rows, usual_weights
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.metrics import (
    CostsLike,
    needs_order,
)
from verax.scores.registry import fitting_rules, padded_rules

# Cards refer to at most this number of probabilities in memory.
_HELD = 2**21


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
    plan = Resampling.checked(confidence, bootstrap, seed, weights_are=weights_are)
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
    card = card_of(handle, recipe, part=part)
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
