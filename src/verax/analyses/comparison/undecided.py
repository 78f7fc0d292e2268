"""What would decide a comparison that has not: how many more rows of the same kind."""

from __future__ import annotations

import math

from verax.analyses.comparison.records import Difference
from verax.inference.sizes import Goal, MeanSpread
from verax.inputs.groups import GroupCount, each_count

# The power that more rows are to have.
POWER = 0.9
# A smaller difference is rounding.
_NOTHING = 1e-12
# The practical size: models whose mean losses differ by a smaller share are equal for all purposes.
PRACTICAL = 1e-4
# A smaller pilot says little about how many rows are needed.
_LEAST_FREEDOM = 19
# Where this many times as many rows are needed, the difference is none for practical purposes.
_FAR = 100


def rows_to_decide(
    gap: Difference, n_rows: int, n_groups: GroupCount | None, confidence: float
) -> float | None:
    """How many rows in all would show a difference of the size seen; None where that is not known."""
    if not (gap.standard_error > 0 and abs(gap.difference) > _NOTHING and gap.freedom >= _LEAST_FREEDOM):
        return None
    units = n_rows if n_groups is None else min(each_count(n_groups))
    goal = Goal(abs(gap.difference), 1 - confidence, POWER)
    return goal.units(MeanSpread(gap.standard_error, gap.freedom, units)) * n_rows / units


def what_would_decide(
    rule: str, mean: float, gap: Difference, n_rows: int, n_groups: GroupCount | None, confidence: float
) -> list[str]:
    """The sentence about a difference that is not significant; none where it is, or little is known.

    Parameters
    ----------
    rule : str
        The name of the rule.
    mean : float
        The smaller mean loss, of which `PRACTICAL` is the practical size.
    gap : Difference
        The difference.
    n_rows, n_groups, confidence
        As in a comparison.
    """
    if not gap.p_adjusted > 1 - confidence:
        return []
    size, share = PRACTICAL * mean, f"{100 * PRACTICAL:g}% of the mean loss"
    if _NOTHING < abs(gap.difference) < size:
        if gap.interval.defined and max(-gap.interval.low, gap.interval.high) < size:
            return [
                f"{rule}: {gap.a} and {gap.b} are equal for all purposes: they differ by less than {share}."
            ]
        return [f"{rule}: {gap.a} and {gap.b} are not told apart, and the gap seen is below {share}."]
    rows = rows_to_decide(gap, n_rows, n_groups, confidence)
    if rows is None or rows <= n_rows:
        return []
    pair = f"{rule}: {gap.a} and {gap.b} are not told apart"
    if rows > _FAR * n_rows:
        return [f"{pair}, and it would take more than {_FAR} times as many rows to show a gap of this size."]
    more = rows - n_rows
    digits = 10 ** max(0, math.floor(math.log10(more)) - 1)
    said = f"{math.ceil(more / digits) * digits:,}"
    return [f"{pair}. About {said} more rows would show a gap of this size (power {100 * POWER:g}%)."]
