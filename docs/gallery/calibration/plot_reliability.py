"""
Is my model calibrated?
=======================

If a model says 80 % for a hundred patients, about eighty of them should be ill. A reliability
diagram shows how often the event happened for each forecast probability. The band shows how far
chance alone would move a calibrated model away from the diagonal.

The data are the 442 patients of the diabetes data set. The event is that the disease progresses
further than in half of them.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

import verax as vx

x, progression = load_diabetes(return_X_y=True)
y = progression > np.median(progression)
models = {"naive": GaussianNB(), "logistic": LogisticRegression(C=100)}
p = {name: cross_val_predict(m, x, y, cv=10, method="predict_proba")[:, 1] for name, m in models.items()}

# %%
# Naive Bayes counts correlated measurements several times and becomes overconfident. For forecasts
# near 0 and 1 (the grey bars: most of them) the curve leaves the band.

vx.reliability(y, p["naive"], classes=["slower", "faster"]).plot()

# %%
# Logistic regression stays within it.

vx.reliability(y, p["logistic"], classes=["slower", "faster"]).plot()

# %%
# In numbers: miscalibration is never zero, because the curve follows noise; the test asks whether
# it exceeds that of a calibrated model. A slope below 1 means overconfident.

for name in models:
    whole = vx.decompose(y, p[name], rule="brier", bootstrap=300).whole
    slope = vx.calibration_slope(y, p[name]).lines[0]
    print(f"{name}: miscalibration {whole.miscalibration:.3f}, p = {whole.p_value:.3f}", end="; ")
    print(
        f"by chance {whole.expected_miscalibration:.3f}; slope {slope.slope:.2f} ({slope.slope_interval:.2f})"
    )
