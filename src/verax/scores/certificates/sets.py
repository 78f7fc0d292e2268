"""Sets elicited by set scores: every set is compared with the one elicited by a truth."""

from __future__ import annotations

from itertools import product

import numpy as np

from verax.scores.certificates.probes import ForecastPanel
from verax.scores.sets import SetRule

# The most truths that all sets are compared under.
_MOST_TRUTHS = 5000
_ROUNDING = 1e-9


def elicitation_note(rule: SetRule, panel: ForecastPanel) -> str:
    """Whether any of the 2**K sets has a smaller expected loss than the set that the truth asks for.

    The search for properties compares the sets that some forecast asks for; this compares all of them.
    """
    truths = np.asarray(panel.p, float)[:_MOST_TRUTHS]
    k = truths.shape[1]
    masks = np.array(list(product([False, True], repeat=k)))
    losses = rule.by_set(masks)
    with np.errstate(invalid="ignore"):
        expected = np.where(np.isfinite(losses).all(axis=1), truths @ np.nan_to_num(losses.T), np.inf)
    elicited = np.einsum("nk,nk->n", truths, rule.by_set(rule.elicited(truths)))
    beaten = int(np.count_nonzero(expected.min(axis=1) < elicited - _ROUNDING))
    result = "none beats" if not beaten else f"{beaten:,} times one beats"
    return (
        f"Forecasts stand for the sets that they ask for. All {len(masks):,} sets were compared under "
        f"{len(truths):,} truths: {result} the set that the truth asks for."
    )
