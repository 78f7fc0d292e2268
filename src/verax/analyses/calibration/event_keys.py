"""Keys of forecasts: the bits of each distinct one, or the number of its bin where there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax.engines.histograms import Keyed, Run, joined, share_numbers
from verax.engines.ranks import distinct, exact_keys
from verax.engines.sums import Sum
from verax.inputs.arrays import Floats, Ints

# Numbers of bins from 0 to the middle, and from 1 downwards: bins are narrow near both ends.
SPAN, ONE = 2**16, 2**15

# The level at which every distinct forecast has a key of its own.
EXACT = -1


def forecast_bins(q: Floats) -> Ints:
    """The number of the bin of each probability; it grows with it, and 0 and 1 have bins of their own.

    >>> forecast_bins(np.array([0.0, 1e-7, 0.3, 0.7, 1 - 1e-7, 1.0])).tolist()
    [0, 1, 8401, 24367, 32767, 32768]
    """
    return share_numbers(q, ONE)


def joined_keys(keys: Ints, times: int) -> Ints:
    """The keys of bins after joining neighbours `times` times."""
    event, number = np.divmod(keys, SPAN)
    upper = number > ONE // 2
    return np.asarray(
        event * SPAN + np.where(upper, ONE - joined(ONE - number, times), joined(number, times))
    )


def keys_of(q: Floats, level: int) -> Ints:
    """The key of each probability: an exact one, or the number of its bin after joining neighbours."""
    if level == EXACT:
        return exact_keys(np.clip(q, 0.0, 1.0))
    return joined_keys(forecast_bins(q), level)


def run_of(key: Floats, sums: Sequence[Any], *, exact: bool) -> Run:
    """Sums of rows by exact key, or by bin."""
    if not exact:
        return Run.of(forecast_bins(key), sums, [key])
    key = np.clip(key, 0.0, 1.0)
    different, place = distinct(key)
    run = Run.of(place, sums, [key])
    return replace(run, keys=exact_keys(different))


NO_BINS = Keyed((Run(np.zeros(0, np.int64), Sum.zeros((0, 4)), np.zeros((0, 1)), np.zeros((0, 1))),))


def counted(runs: Sequence[Run], *, exact: bool) -> tuple[int, Keyed]:
    """The level and the bins of events that have these runs."""
    if exact:
        return EXACT, NO_BINS
    numbered = [replace(run, keys=run.keys + SPAN * i) for i, run in enumerate(runs)]
    return 0, Keyed((one_after_the_other(numbered),))


def one_after_the_other(runs: list[Run]) -> Run:
    """Runs whose keys follow one another as one."""
    return Run(
        np.concatenate([run.keys for run in runs]),
        Sum(*(np.concatenate([getattr(run.sums, name) for run in runs]) for name in ("high", "low"))),
        np.concatenate([run.least for run in runs]),
        np.concatenate([run.most for run in runs]),
    )
