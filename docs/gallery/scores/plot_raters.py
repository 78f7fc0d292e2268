"""
What is a model worth in raters?
================================

Raters disagree, and no forecast avoids the loss that this costs. ``vx.raters`` splits the loss into rater
disagreement and the excess of the forecasts, and compares the forecasts with panels of raters. The data are
generated.
"""

import numpy as np
import pandas as pd

import verax as vx

rng = np.random.default_rng(1)
grades = ["none", "mild", "severe"]
truth = rng.dirichlet([0.8, 0.6, 0.4], 1500)  # how raters grade each eye
labels = pd.DataFrame({who: [rng.choice(grades, p=q) for q in truth] for who in ("ann", "bob", "cy")})
labels.loc[::3, "cy"] = None  # cy grades two eyes of three
noise = np.exp(rng.normal(0, 0.7, truth.shape))
p = truth * noise / (truth * noise).sum(axis=1, keepdims=True)

# %%
# A panel of r raters, used as a forecast, has the disagreement divided by r as its excess. The forecasts are
# where their own excess puts them.

found = vx.raters(labels, p, raters="columns", classes=grades, ordered=True)
print(found.verdict)
found.plot()

# %%
# Each rater as a forecast of the others, beside the model on the same cases.

for rater in found.raters:
    print(f"{rater.name}: rater {rater.own.value:.3f}, model {rater.forecast.value:.3f}")

# %%
# The worst cases show whether to blame the model, or to ask the raters again.

for case in found.cases[:5]:
    print(f"eye {case.row}: {case.source}")
