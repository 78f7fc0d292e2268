"""
When may I stop the trial of a new model?
=========================================

A new model runs beside the old one, and somebody looks at the difference after every batch. If you
look often enough, an ordinary confidence interval will be wrong sooner or later. A confidence
sequence holds at all times together: look whenever you like, and stop when it is decided.

The data are generated. The new model knows more about the outcome than the old one.
"""

import matplotlib.pyplot as plt
import numpy as np

import verax as vx

rng = np.random.default_rng(0)
truth = rng.random(1500)
y = (rng.random(1500) < truth).astype(int)
new = np.clip(truth + rng.normal(0, 0.1, 1500), 0.01, 0.99)
old = np.clip(truth + rng.normal(0, 0.25, 1500), 0.01, 0.99)

sequence = vx.ConfidenceSequence("brier", n_classes=2)
rows, low, high, decided = [], [], [], None
for start in range(0, 1500, 25):
    batch = slice(start, start + 25)
    interval = sequence.update(y[batch], new[batch], old[batch])
    rows.append(sequence.n_rows)
    low.append(interval.low)
    high.append(interval.high)
    if sequence.decided and decided is None:
        decided = sequence.n_rows
print(f"decided after {decided} rows; after {sequence.n_rows} the difference is within {interval:.3f}")

# %%
# The interval shrinks as rows come in. Once it lies below zero, the new model is significantly
# better and the trial can end.

figure, ax = plt.subplots(figsize=(6.6, 3.8), layout="constrained")
ax.fill_between(rows, low, high, color="#0072B2", alpha=0.25, linewidth=0, label="95 % at all times together")
difference = vx.brier.samples(y, new) - vx.brier.samples(y, old)
ax.plot(np.arange(1, 1501), difference.cumsum() / np.arange(1, 1501), color="#0072B2", label="mean so far")
ax.axhline(0, color="black", linewidth=0.8)
ax.axvline(decided, color="#D55E00", linestyle="--", label=f"decided, after {decided} rows")
ax.set(xlabel="rows seen", ylabel="Brier score, new - old", xlim=(25, 1500), ylim=(-0.3, 0.3))
ax.legend(frameon=False)
