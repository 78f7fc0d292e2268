"""Rows with known five-year risks, followed for times of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd

HORIZON = 5.0


def rows(n=600, seed=0, *, ties=False, last=10.0):
    """Times, events and true risks at five years; censored uniformly up to the last time."""
    rng = np.random.default_rng(seed)
    rate = 0.08 * np.exp(0.8 * rng.normal(size=n))
    event_time, end = rng.exponential(1 / rate), rng.uniform(0, last, n)
    time, event = np.minimum(event_time, end), (event_time <= end).astype(int)
    if ties:
        time = np.ceil(2 * time) / 2
    return time, event, 1 - np.exp(-HORIZON * rate)


def frame(**how):
    """The same as a data frame."""
    time, event, risk = rows(**how)
    return pd.DataFrame({"id": np.arange(len(time)), "time": time, "event": event, "p": risk})


def kaplan_meier(time, event, at, weights=None):
    """The probability of no event up to a time, one time after the other."""
    w = np.ones(len(time)) if weights is None else np.asarray(weights, float)
    alive = 1.0
    for t in np.unique(time[event == 1]):
        if t <= at:
            alive *= 1 - w[(time == t) & (event == 1)].sum() / w[time >= t].sum()
    return alive
