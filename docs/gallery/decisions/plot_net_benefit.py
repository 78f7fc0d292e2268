"""
Is a model worth using, and for whom?
=====================================

Treating at a risk of 10 % or more means accepting nine unneeded treatments for one that is needed.
Other users are more careful. Net benefit measures the value of a model to each of them: needed
treatments minus unneeded ones at their exchange rate. A model is useful at thresholds where it
beats treating everybody and treating nobody.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import verax as vx

x, progression = load_diabetes(return_X_y=True)
y = progression > np.quantile(progression, 0.75)  # the quarter in which the disease goes furthest
model = LogisticRegression(C=100)
forecasts = {
    "all ten measurements": cross_val_predict(model, x, y, cv=10, method="predict_proba")[:, 1],
    "age and sex": cross_val_predict(model, x[:, :2], y, cv=10, method="predict_proba")[:, 1],
}

thresholds = np.arange(0.02, 0.9, 0.02)
found = vx.net_benefit(y, forecasts, thresholds=thresholds, classes=["other", "fast"])
found.plot()
print(*found.sentences, sep="\n")

# %%
# The ten measurements are useful at nearly every threshold. Age and sex alone help nobody: where
# their curve is above zero, it follows that of treating everybody.

assert found.curve("fast", "all ten measurements").useful
assert not found.curve("fast", "age and sex").useful
