"""How much longer lists improve the score: hard predictions, lists of several lengths, full distributions.

The expected padded score of a true list never gets worse when the list grows, so predictions of
different lengths can be compared by one number. How much it improves depends on the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from verax.analyses.cards.listcard import padded_rules
from verax.analyses.comparison.length_result import LengthComparison
from verax.analyses.comparison.shortening import check_lengths, names_of, shorter_lists
from verax.analyses.units import SamplingUnits, dot
from verax.inference.intervals import check_confidence
from verax.inputs.arrays import Floats, to_array, to_host
from verax.inputs.groups import check_one_way
from verax.inputs.handles import Handle
from verax.inputs.lists.toplists import TopLists
from verax.inputs.options import Reading, reads
from verax.inputs.rows import Rows, faults_of, pair
from verax.scores.base import Rule, losses_of
from verax.scores.combinators import Padded, padded
from verax.scores.registry import as_rules, name_of


@reads
def compare_lengths(
    y: object,
    p: object = None,
    *,
    k: Sequence[int] | None = None,
    rule: Rule | str | Sequence[Rule | str] | None = None,
    confidence: float = 0.95,
    **read: Unpack[Reading],
) -> LengthComparison:
    """Score a classifier's hard prediction, its top lists and its full distribution on the same outcomes.

    What each of them loses against another is a mean difference of losses of the same rows, with an interval.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
        `scan` has opened, in place of both `y` and `p`.
    p : array_like of shape (N, K) or (N,), or TopLists, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough. Lists take the place of the full distribution.
    k : sequence of int, optional
        The lengths to compare; 1, 2, 3, 5, 10, ... if not given.
    rule : Rule, str or sequence of these, optional
        Symmetric proper rules to use instead of all that are registered.
    confidence : float, default 0.95
        Confidence level of the intervals.
    **read

    Returns
    -------
    LengthComparison
        The mean losses and their differences.

    Examples
    --------
    >>> import verax as vx
    >>> p = [[0.5, 0.44, 0.03, 0.03], [0.3, 0.6, 0.05, 0.05], [0.1, 0.2, 0.65, 0.05]]
    >>> comparison = vx.compare_lengths([1, 0, 2], p, rule="brier")
    >>> [round(mean, 4) for mean in comparison["brier"]]
    [1.3333, 0.77, 0.5314, 0.5318, 0.5318]
    >>> print(comparison)
    what longer lists buy: 3 rows, 4 classes
    prediction   brier
    ------------------
    hard        1.3333
    top-1       0.7700
    top-2       0.5314
    top-3       0.5318
    full        0.5318
    ------------------
    brier: the probability of the first class takes the loss from 1.333 to 0.77. The other classes take it to
    0.5318: lists of 2 have 100 % of that and are within 1 % of the full distribution.
    Against each other, with 95% intervals:
    brier: hard is 0.5633 (-1.0105 to 2.1372) above top-1, top-1 is 0.2382 (-0.3279 to 0.8043) above top-3,
    top-3 is 0.0000 (0.0000 to 0.0000) above full.
    """
    check_confidence(confidence)
    chosen = _choose(rule)
    if isinstance(y, Handle):
        from verax.analyses.comparison.length_streams import lengths_of_handle

        return lengths_of_handle(y, k, chosen, confidence)
    form: dict[str, Any] = dict(read)
    shared = {name: form.pop(name, None) for name in ("weights", "groups")}
    lists, lengths = _lists(p, k, form)
    given = pair(y, p, **read)
    rows = [*shorter_lists(lists.with_outcomes(y, **shared), lengths), given]
    groups = rows[0].groups
    check_one_way(groups, "lengths of lists")
    weights = None if rows[0].weights is None else np.asarray(rows[0].weights, float)
    units, weighty = SamplingUnits.of(rows[0].n_rows, weights, groups)
    found = {name_of(rule.rule): _measure(rule, rows, units, weighty, weights) for rule in chosen}
    return LengthComparison(
        names_of(lengths, lists=isinstance(p, TopLists)),
        tuple(chosen),
        {name: means for name, (means, _, _) in found.items()},
        {name: infinite for name, (_, infinite, _) in found.items()},
        tuple(lengths),
        rows[0].n_rows,
        lists.n_classes,
        lists.n_invalid if isinstance(p, TopLists) else 0,
        {name: covariance for name, (_, _, covariance) in found.items()},
        units,
        confidence,
    ).with_faults(faults_of({"": given}))


def _measure(
    rule: Padded, rows: Sequence[Rows], units: SamplingUnits, weighty: Any, weights: Floats | None
) -> tuple[tuple[float, ...], tuple[float, ...], Floats]:
    """The mean loss of every prediction, the weight of infinite losses, and the covariance of the means."""
    means, infinite, columns = [], [], []
    for each in rows:
        loss = np.asarray(to_host(losses_of([rule], each)[0]), float)
        unbounded = np.isinf(loss)
        infinite.append(float(unbounded.sum() if weights is None else weights[unbounded].sum()))
        loss = loss if weighty is None else loss[weighty]
        means.append(dot(units.share, loss))
        columns.append(np.where(np.isinf(loss), np.nan, loss))
    influence = units.influence(columns, len(columns))
    with np.errstate(invalid="ignore", divide="ignore"):
        influence = influence / np.sqrt(1 - units.sums(units.share))[:, None]
        return tuple(means), tuple(infinite), influence.T @ influence


def _lists(p: object, k: Sequence[int] | None, read: dict[str, Any]) -> tuple[TopLists, list[int]]:
    """Lists to truncate, and the lengths to truncate them to."""
    if isinstance(p, TopLists):
        longest = int(p.lengths.max(initial=0))
        return p, check_lengths(k, longest)
    raw, _ = to_array(p, "p")
    m = int(raw.shape[1]) if raw.ndim == 2 else 2
    lengths = check_lengths(k, m)
    # The hard prediction needs one class, even if all lengths are 0.
    return TopLists.from_probabilities(p, max(1, *lengths), **read), lengths


def _choose(rules: Rule | str | Sequence[Rule | str] | None) -> list[Padded]:
    if rules is None:
        return padded_rules()
    return [rule if isinstance(rule, Padded) else padded(rule) for rule in as_rules(rules)]
