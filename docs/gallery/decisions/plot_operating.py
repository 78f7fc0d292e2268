"""
Which threshold, and what happens there?
========================================

A screening test should miss few cases. The threshold for a sensitivity of at least 90 % is chosen on
the data so that new cases reach it with 95 % confidence. Specificity and predictive values at this
threshold have confidence intervals.
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
    "body mass index": cross_val_predict(model, x[:, 2:3], y, cv=10, method="predict_proba")[:, 1],
}

curves = vx.roc_curve(y, forecasts, classes=["other", "fast"])
curves.plot()
print(curves)

# %%
# At thresholds that promise to find nine of ten fast cases, the ten measurements raise fewer false alarms.

points = vx.operating_points(y, forecasts, threshold="sensitivity>=0.9", classes=["other", "fast"])
print(points)
gap = points.difference("all ten measurements", "body mass index", "specificity")
assert gap.interval.low > 0
