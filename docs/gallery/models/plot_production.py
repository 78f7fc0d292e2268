"""
Is the model still good?
========================

A model is released with the scorecard of its test set. Predictions come in day by day. After 40
days the patients change: severe cases become more frequent. ``vx.Monitor`` raises an alarm that
holds however often one looks, and tells when the change began.
"""

from datetime import date, timedelta

import numpy as np

import verax as vx

rng = np.random.default_rng(3)
classes = ["none", "mild", "severe"]


def day(n, severe=0.0):
    """Calibrated forecasts; a share of the outcomes becomes severe."""
    p = rng.dirichlet([2.0, 1.0, 0.7], n)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return np.where(rng.random(n) < severe, 2, y), p


reference = vx.evaluate(*day(4000), classes=classes, ordered=True)
monitor = vx.Monitor(reference, ordered=True)
for i in range(60):
    rows = day(150, severe=0.0 if i < 40 else 0.15)
    monitor.update(*rows, classes=classes, time=date(2026, 1, 1) + timedelta(i))

# %%
# The evidence of a change stays low for 40 days, then grows until it crosses the line that raises an
# alarm. The shaded days are the plausible beginnings of the change.

monitor.plot()
print(monitor.verdict)
assert monitor.alarm is not None
assert monitor.alarm.time > date(2026, 2, 9)

# %%
# The time at which the change began is estimated with its earliest and latest plausible day.

likeliest, earliest, latest = monitor.began
print(f"{likeliest} ({earliest} to {latest})")
assert abs((likeliest - date(2026, 2, 10)).days) <= 5
