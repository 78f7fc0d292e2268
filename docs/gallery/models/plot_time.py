"""
Forecasts in time order: which model will be better?
====================================================

Neighbouring days are similar. Random folds let a model see the neighbours of its test days, so they
favour models that memorise. ``HBlockSplit`` holds out contiguous blocks, with a gap before and
after.

The series is generated: rain depends on the air pressure, which changes slowly, and on spells of
weather that the models do not see.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import lfilter
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier

import verax as vx

rng = np.random.default_rng(0)
n_past, n_days = 1200, 3600
pressure, spell = lfilter([0.2], [1, -0.98], rng.normal(size=(2, n_days)))
rain = rng.random(n_days) < 1 / (1 + np.exp(1.5 * (pressure - spell)))
date = np.arange(n_days) / 10
models = {
    "nearest days": (KNeighborsClassifier(15), np.column_stack([date, pressure])),
    "pressure only": (LogisticRegression(), pressure[:, None]),
}


def forecast(splits):
    """Each model's forecasts of the test days, trained on the others."""
    p = {name: np.full(n_days, np.nan) for name in models}
    for train, test in splits:
        for name, (model, x) in models.items():
            p[name][test] = model.fit(x[train], rain[train]).predict_proba(x[test])[:, 1]
    return p


# %%
# Both splits of the first 1,200 days, and the result on the following 2,400 days. Neighbouring days
# are correlated, so differences are tested with ``time_ordered=True``.

past, future = np.arange(n_past), np.arange(n_past, n_days)
ways = {
    "random folds": (past, KFold(10, shuffle=True, random_state=0).split(past)),
    "blocks, gap of 40 days": (past, vx.selection.HBlockSplit(10, gap=40).split(past)),
    "the future": (future, [(past, future)]),
}
found = {}
for way, (days, splits) in ways.items():
    p = {name: values[days] for name, values in forecast(splits).items()}
    found[way] = vx.compare(rain[days], p, rule="brier", time_ordered=True)
    difference = found[way].difference("nearest days", "pressure only")
    print(f"{way}: {found[way].best()} has the lower score; difference {difference.interval:+.3f}")

# %%
# Random folds favour the model that memorises the surrounding days. Without such days it loses, as
# the blocks predicted. The weather drifts slowly, so 1,200 days are too few for significance; on the
# 2,400 future days the difference is significant.

figure, ax = plt.subplots(figsize=(6.6, 2.6), layout="constrained")
for name, colour, marker in (("nearest days", "#D55E00", "s"), ("pressure only", "#0072B2", "o")):
    means = [next(m.mean for m in found[way].models["brier"] if m.name == name) for way in ways]
    ax.plot(means, list(ways), marker, color=colour, markersize=9, label=name)
ax.set(xlabel="Brier score (lower is better)", ylim=(2.5, -0.5))
ax.grid(axis="x", color="#dddddd")
figure.legend(loc="outside upper center", ncols=2, frameon=False)
assert found["random folds"].best() == "nearest days"
assert found["blocks, gap of 40 days"].best() == found["the future"].leader() == "pressure only"
