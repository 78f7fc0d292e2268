"""
At which probability should I act?
==================================

The most likely class is the right decision only if all errors cost the same. With other costs,
decide by expected cost. Thresholds can also be tuned on data; then cross-validation shows what they
are worth on new rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import verax as vx

x, progression = load_diabetes(return_X_y=True)
stages = ["slow", "moderate", "fast", "very fast"]
y = np.searchsorted(np.quantile(progression, [0.4, 0.7, 0.9]), progression)
p = cross_val_predict(LogisticRegression(C=10), x, y, cv=10, method="predict_proba")
# Cost of a decision (column) for each outcome (row).
costs = [[0, 1, 1, 2], [3, 0, 1, 1], [8, 3, 0, 1], [20, 8, 3, 0]]

# %%
# Deciding by expected cost halves the cost. Thresholds tuned on these patients look better still.
# Cross-validated (``honest``), most of that gain is gone, and its confidence interval includes
# zero.

chosen = vx.choose_thresholds(y, p, metric="ec", costs=costs, classes=stages)
decisions = {
    "what happened": y,
    "most likely": vx.decide(p),
    "expected cost": vx.decide(p, costs=costs),
    "thresholds": chosen.decide(p),
}
print(chosen)
assert chosen.in_sample < chosen.honest < chosen.reference
assert chosen.interval.low < 0

# %%
# If a miss costs 20, many more patients are called "very fast" than there are.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for place, decided in enumerate(decisions.values()):
    shares = np.bincount(decided, minlength=4) / len(y)
    for stage, colour in enumerate(("#c6dbef", "#6baed6", "#2171b5", "#08306b")):
        label = stages[stage] if place == 0 else None
        ax.barh(place, 100 * shares[stage], left=100 * shares[:stage].sum(), color=colour, label=label)
    cost = vx.expected_cost(y, decided, n_classes=4, costs=costs)
    ax.text(101, place, f"costs {cost:.2f}", va="center")
ax.set_yticks(range(4), list(decisions))
ax.set(xlabel="patients (%)", xlim=(0, 118), ylim=(3.5, -0.5))
ax.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside upper center", ncols=4, frameon=False)
