"""
Several images per patient: is the difference significant?
==========================================================

Two models grade 600 images of 20 patients. Images of one patient are similar, so they carry less
information than images of 600 patients. A test that ignores this finds differences that do not
exist.

The data are generated: every patient is easy or hard for each model, by chance, and in the long run
neither model is better.
"""

import matplotlib.pyplot as plt
import numpy as np

import verax as vx


def study(rng):
    """Outcomes, patients, and the forecasts of two models that are equally good."""
    patient = np.repeat(np.arange(20), 30)
    y = rng.integers(0, 2, 600)
    ability = rng.normal(size=(2, 20))[:, patient] + 1.5 * rng.normal(size=(2, 600))
    p = 1 / (1 + np.exp((1 - 2 * y) * (1 + ability)))
    return y, patient, {"a": p[0], "b": p[1]}


rng = np.random.default_rng(0)
rows, groups = [], []
for _ in range(200):
    y, patient, models = study(rng)
    rows.append(vx.compare(y, models, rule="brier").difference("a", "b"))
    groups.append(vx.compare(y, models, rule="brier", groups=patient).difference("a", "b"))

# %%
# Two hundred studies without a true difference. Tests at the 5 % level should reject in 5 % of
# them:

for name, found in (("images", rows), ("patients", groups)):
    share = np.mean([d.p_value < 0.05 for d in found])
    print(f"{name} as units: {share:.1%} of the studies find a difference")

# %%
# Confidence intervals of the first forty studies. Orange ones miss the true difference, which is
# zero.

figure, axes = plt.subplots(1, 2, figsize=(7, 4.6), sharey=True, sharex=True, layout="constrained")
for ax, found, name in zip(axes, (rows, groups), ("images", "patients"), strict=True):
    for place, d in enumerate(found[:40]):
        covers = d.interval.low <= 0 <= d.interval.high
        colour, width = ("#0072B2", 1.2) if covers else ("#D55E00", 2.4)
        ax.plot(d.interval, [place, place], color=colour, linewidth=width)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(title=f"units: {name}", xlabel="difference of Brier scores", yticks=[])
axes[0].set_ylabel("studies")
