"""The columns of rows whose sums score tests of calibration are made of, and the events that are tested.

With L the log-odds of a forecast p, v = p (1 - p) and d = y - p, these are d, dL, dL^2 and v, vL, ..., vL^4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.inputs.arrays import Floats

# The number of columns.
N_SUMS = 8
# Log-odds beyond this vary no further.
_MOST_ODDS = 35.0
# Over groups, whose sums would take much memory, more events than this are not tested.
_MOST_OVER_GROUPS = 20


def log_odds(q: Floats) -> Floats:
    """The log-odds of forecasts; those of 0 and 1 are large.

    >>> log_odds(np.array([0.0, 0.5, 1.0])).tolist()
    [-35.0, 0.0, 35.0]
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(q) - np.log1p(-q), -_MOST_ODDS, _MOST_ODDS))


def row_scores(q: Floats, odds: Floats, gap: Any, squares: Any) -> list[Floats]:
    """The columns for forecasts q of these log-odds, (N,) each.

    `gap` is the weight of what happened minus the weight times the forecast, `squares` the squared weight.
    """
    columns = [gap, gap * odds, gap * odds * odds]
    column = squares * (q * (1 - q))
    for _ in range(5):
        columns.append(column)
        column = column * odds
    return columns


def scored_events(n_events: int, n_classes: int) -> tuple[int, ...]:
    """The events that are tested: of two classes the last, of more all and that of the most likely class.

    >>> scored_events(2, 2), scored_events(1, 2), scored_events(3, 3)
    ((1,), (0,), (0, 1, 2, 3))
    """
    return (n_events - 1,) if n_classes == 2 else tuple(range(n_events + 1))


def scored_over_groups(n_events: int, n_classes: int) -> tuple[int, ...]:
    """The events that are tested over groups: of very many the one about the most likely class alone."""
    events = scored_events(n_events, n_classes)
    return events if len(events) <= _MOST_OVER_GROUPS else events[-1:]


def sums_of_groups(groups: Floats, n_events: int, place: int, n_scored: int) -> Floats | None:
    """The (G, 8) sums of one of the scored events over groups; None where they were not summed.

    `groups` has the weights, the gap of each event, and then these sums.
    """
    first = groups.shape[1] - N_SUMS * n_scored
    if first < 1 + n_events:
        return None
    return groups[:, first + N_SUMS * place : first + N_SUMS * (place + 1)]
